"""
Bodies of 5,000 events while the process is killed or the disk is full: never a 200 with one event missing, and once the
sender has sent again, all of them are there.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import tempfile
import time
from base64 import b64encode
from functools import partial
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SkipTest

from tests.system.receiver import PATIENCE, Answer, Connection, Receiver, ReceiverCase, post, wait_until
from tests.system.servers.alertmanager import Alertmanager
from tests.system.servers.process import free_port, program
from tests.system.test_disk import readable
from tests.system.workers import children

EVENTS = 5_000
ROUNDS = 6
MIB = 1024**2

_CONFIG = """
port: "tcp:0:interface=127.0.0.1"
source: webhook-json
split: {split}
observers: ["{observer}"]
workers: {workers}
"""


def lines(round_: int, count: int = EVENTS, size: int = 1_300) -> bytes:
    """Return events as lines of JSON, so many that they are stored in several batches."""
    filler = "x" * size
    return b"".join(b'{"event":"%d-%d","filler":"%s"}\n' % (round_, number, filler.encode()) for number in range(count))


def expected(round_: int, count: int = EVENTS) -> set[str]:
    """Return what stands for all of these events."""
    return {f"{round_}-{number}" for number in range(count)}


class BundleCase(ReceiverCase):
    def receiver(self, split: str, observer: str, workers: int = 1) -> Receiver:
        """Start a receiver that takes bodies apart."""
        config = _CONFIG.format(split=split, observer=observer, workers=workers)
        return self.start(config=config, port=None)

    def events(self, receiver: Receiver, path: str = "messages.jsonl") -> set[str]:
        """Return what stands for all events in a file, which may have torn lines."""
        return {message["event"] for message in readable(receiver, path) if "event" in message}

    def send(self, receiver: Receiver, body: bytes) -> Answer | None:
        """Send a body; return the answer, None if the process is gone before there is one."""
        try:
            with Connection(receiver.port) as connection:
                return connection.send(post(body)).answer()
        except OSError:
            return None


class KillTests(BundleCase):
    """C{kill -9} while the events of a body are stored."""

    def hold(self, observer: str, *, workers: int = 1, output: str = "messages.jsonl", watched: str = "") -> None:
        """Kill as soon as anything of a body is on disk, then at random moments; send again after each."""
        receiver = self.receiver("lines", observer, workers)
        chance = random.Random(4711)
        in_the_middle = 0
        watched = receiver.path(watched or output)
        for round_ in range(ROUNDS):
            body = lines(round_)
            before = _sizes(watched)
            with Connection(receiver.port) as connection:
                connection.send(post(body))
                if round_ < ROUNDS - 2:
                    wait_until(partial(_has_grown, watched, before), "something of it is on disk")
                else:
                    time.sleep(chance.uniform(0.0, 0.3))
                for worker in children(receiver.pid) if workers > 1 else ():
                    os.kill(worker, signal.SIGKILL)
                receiver.kill()
                try:
                    answer = connection.answer()
                except OSError:
                    answer = None
            if output == "messages.jsonl":
                there = self.events(receiver, output) & expected(round_)
                in_the_middle += 0 < len(there) < EVENTS
                if answer is not None and answer.status == 200:
                    self.assertEqual(EVENTS, len(there), "it has said 200 of events that are not there")
            receiver.start()
            again = self.send(receiver, body)
            assert again is not None
            self.assertEqual(200, again.status)
        wanted = set().union(*(expected(round_) for round_ in range(ROUNDS)))
        wait_until(lambda: wanted <= self.events(receiver, output), "all events of all bodies are there")
        self.assertEqual(0, receiver.stop())
        if output == "messages.jsonl":
            self.assertGreater(in_the_middle, 0, "no kill came in the middle of a body")

    def test_file(self) -> None:
        """With a file."""
        self.hold("file:messages.jsonl")

    def test_workers(self) -> None:
        """With two workers, which are killed with their parent."""
        self.hold("file:messages.jsonl", workers=2)

    def test_spool(self) -> None:
        """With a file behind a spool, which keeps what it has taken."""
        self.hold("spool:spool:observer=file:out.jsonl", output="out.jsonl", watched="spool")


def _sizes(path: str) -> dict[str, int]:
    """Return the bytes of a file, or of each file of a directory, by path."""
    try:
        if os.path.isdir(path):
            return {each: size for name in os.listdir(path) for each, size in _sizes(os.path.join(path, name)).items()}
        return {path: os.path.getsize(path)}
    except FileNotFoundError:
        return {}


def _has_grown(path: str, before: dict[str, int]) -> bool:
    """Tell whether a file has grown or is new. One that went since, as those of a spool do, changes nothing."""
    return any(size > before.get(each, 0) for each, size in _sizes(path).items())


class FullDiskTests(BundleCase):
    """A disk that fills up in the middle of a body."""

    def setUp(self) -> None:
        """Mount one of 8 MiB."""
        self.disk = tempfile.mkdtemp(prefix="webhookrx-disk-")
        self.addCleanup(os.rmdir, self.disk)
        try:
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=8m", "none", self.disk], check=True, capture_output=True
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise SkipTest(f"no file system can be mounted here: {error}") from None
        self.addCleanup(subprocess.run, ["umount", self.disk], check=True)

    def test_full(self) -> None:
        """The answer is 503, though a first part of the events is stored; with room again, all are."""
        path = os.path.join(self.disk, "messages.jsonl")
        receiver = self.receiver("lines", f"file:{path}:min_free=0")
        small = lines(0, 50)
        self.assertEqual(200, self.ask(receiver.port, post(small)).status)
        body = lines(1)
        for _ in range(3):
            answer = self.ask(receiver.port, post(body))
            self.assertEqual((503, "not_stored"), (answer.status, answer.reason))
            self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
        there = self.events(receiver, path)
        self.assertLess(len(there & expected(1)), EVENTS)
        self.assertEqual(set(), expected(0, 50) - there)
        subprocess.run(["mount", "-o", "remount,size=64m", self.disk], check=True)
        wait_until(lambda: self.ask(receiver.port, post(body)).status == 200, "all events are taken", PATIENCE)
        self.assertEqual(set(), expected(1) - self.events(receiver, path))
        self.assertEqual(0, receiver.stop())
        self.assertNotIn("Traceback", receiver.log())


def _alerts(group: str) -> list[dict[str, Any]]:
    """Return 300 alerts of a group."""
    return [
        {
            "labels": {"alertname": "Hot", "group": group, "number": str(number)},
            "annotations": {"summary": f"Number {number} is hot"},
            "startsAt": "2026-01-02T03:04:05Z",
        }
        for number in range(300)
    ]


def _fingers(receiver: Receiver, group: str) -> set[int]:
    """Return the numbers of the alerts of a group that are there."""
    return {int(message["labels.number"]) for message in readable(receiver) if message.get("labels.group") == group}


_TWO_FORMS = """
port: "tcp:{port}:interface=127.0.0.1"
sources:
  - {{name: array, source: webhook-json, paths: /array, split: /*}}
  - {{name: lines, source: webhook-json, paths: /lines, split: lines}}
"""


def _has_lines(receiver: Receiver, count: int) -> bool:
    return receiver.arrived() >= count


def _is_whole(receiver: Receiver, source: str, events: set[str]) -> bool:
    return events == {message["event"] for message in readable(receiver) if message["SOURCE"] == source}


class SenderTests(BundleCase):
    """Bodies as senders make them."""

    def test_firehose(self) -> None:
        """Of requests as Firehose sends them, with faults in the middle, each 200 stands for all of its records."""
        config = (
            'port: "tcp:0:interface=127.0.0.1"\nsource: webhook-json\nsender: aws-firehose\nverify: off\nsplit: yes\n'
        )
        receiver = self.start(config=config, port=None)
        good = [{"data": b64encode(b'{"event":"0-%d"}\n' % number).decode()} for number in range(500)]
        requests = {
            "good": good,
            "one is text": [*good[:250], {"data": b64encode(b"plain").decode()}, *good[250:]],
            "one is not Base64": [*good[:250], {"data": "***"}, *good[250:]],
            "one has no data": [*good[:250], {"other": 1}, *good[250:]],
            "none": [],
        }
        for name, records in requests.items():
            before = len(receiver.messages())
            body = json.dumps({"requestId": "r", "timestamp": 1, "records": records}).encode()
            answer = self.ask(receiver.port, post(body, headers=["X-Amz-Firehose-Request-Id: r"]))
            self.assertEqual((200, "r"), (answer.status, json.loads(answer.body)["requestId"]), name)
            self.assertEqual(len(records), len(receiver.messages()) - before, name)
        body = json.dumps({"requestId": "r", "timestamp": 1, "records": good * 21}).encode()
        answer = self.ask(receiver.port, post(body, headers=["X-Amz-Firehose-Request-Id: r"]))
        self.assertEqual(413, answer.status)
        self.assertEqual(0, receiver.stop())

    def test_alertmanager(self) -> None:
        """Each alert that a real Alertmanager sends is a message, also of a group that comes while we are killed."""
        port = free_port()
        manager = Alertmanager(f"http://127.0.0.1:{port}/alerts", "secret")
        self.addCleanup(manager.clean_up)
        config = (
            f'port: "tcp:{port}:interface=127.0.0.1"\nsource: webhook-json\nsender: alertmanager\nsplit: yes\n'
            "auth_token: secret\nauth_token_in: header:authorization\n"
        )
        receiver = self.start(config=config, port=None)
        manager.start()
        manager.alert(_alerts("first"))
        wait_until(lambda: _fingers(receiver, "first") == set(range(300)), "all alerts of the first group are there")
        messages = [message for message in receiver.messages() if message["labels.group"] == "first"]
        largest = max(messages, key=lambda message: message["webhook.batch.count"])
        self.assertGreater(largest["webhook.batch.count"], 1)
        envelope = json.loads(largest["webhook.batch.envelope"])
        self.assertEqual(("hook", {"group": "first"}), (envelope["receiver"], envelope["groupLabels"]))
        self.assertNotIn("alerts", envelope)

        receiver.kill()
        manager.alert(_alerts("second"))
        receiver.start()
        before = receiver.arrived()
        wait_until(lambda: receiver.arrived() > before, "some alert of the second group is there")
        receiver.kill()
        receiver.start()
        manager.alert(_alerts("second"))
        wait_until(lambda: _fingers(receiver, "second") == set(range(300)), "all alerts of the second group are there")
        self.assertEqual(0, receiver.stop())

    def test_syslog_ng(self) -> None:
        """Batches of C{http()} of syslog-ng are a message for each line of its log, through two kills."""
        ng = program("syslog-ng")
        if not ng:
            raise SkipTest("no syslog-ng: apt-get install syslog-ng-core syslog-ng-mod-http")
        port = free_port()
        receiver = self.start(config=_TWO_FORMS.format(port=port), port=None)
        common = (
            "method(\"POST\") batch-lines(100) batch-timeout(200) body('$(format-json event=$MESSAGE)') retries(1000)"
        )
        with open(receiver.path("syslog-ng.conf"), "w") as file:
            file.write(
                f'@version: 3.38\nsource input {{ file("{receiver.path("in.log")}" read-old-records(yes) '
                "flags(no-parse) log-fetch-limit(500) log-iw-size(50000)); };\n"
                f'destination array {{ http(url("http://127.0.0.1:{port}/array") {common} body-prefix("[") '
                'delimiter(",") body-suffix("]") time-reopen(1)); };\n'
                f'destination lines {{ http(url("http://127.0.0.1:{port}/lines") {common} time-reopen(1)); }};\n'
                "log { source(input); destination(array); destination(lines); flags(flow-control); };\n"
            )
        with open(receiver.path("in.log"), "w") as file:
            file.writelines(f"0-{number}\n" for number in range(10_000))
        paths = [word for letter in "Rpc" for word in (f"-{letter}", receiver.path(f"ng.{letter}"))]
        process = subprocess.Popen(
            [ng, "-F", "--no-caps", "-f", receiver.path("syslog-ng.conf"), *paths], stderr=subprocess.DEVNULL
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for share in (100, 2_000):
            wait_until(partial(_has_lines, receiver, share), f"more than {share} lines have come")
            receiver.kill()
            receiver.start()
        for source in ("array", "lines"):
            wait_until(partial(_is_whole, receiver, source, expected(0, 10_000)), f"all lines have come as {source}")
        self.assertGreater(max(message["webhook.batch.count"] for message in readable(receiver)), 1)
        self.assertEqual(0, receiver.stop())

    def test_rsyslog(self) -> None:
        """Batches of rsyslog's C{omhttp}, as an array and as lines, are a message for each line of its log."""
        rsyslog, module = program("rsyslogd"), next(Path("/usr/lib").glob("**/rsyslog/omhttp.so"), None)
        if not rsyslog or module is None:
            raise SkipTest("rsyslog is not here, or not its module omhttp.")
        receiver = self.start(config=_TWO_FORMS.format(port=0), port=None)
        actions = "".join(
            f'action(type="omhttp" server="127.0.0.1" serverport="{receiver.port}" restpath="{path}" usehttps="off" '
            f'template="event" batch="on" batch.format="{batch}" batch.maxsize="100" errorfile="{path}.err" '
            'action.resumeRetryCount="-1" queue.type="linkedList" queue.dequeueBatchSize="100")\n'
            for path, batch in (("array", "jsonarray"), ("lines", "newline"))
        )
        log = receiver.path("in.log")
        with open(receiver.path("rsyslog.conf"), "w") as file:
            file.write(
                f'global(workDirectory="{receiver.directory}")\nmodule(load="imfile")\nmodule(load="{module}")\n'
                'template(name="event" type="list" option.jsonf="on") '
                '{ property(outname="event" name="msg" format="jsonf") }\n'
                f'input(type="imfile" file="{log}" tag="t" ruleset="out")\nruleset(name="out") {{\n{actions}}}\n'
            )
        with open(log, "w") as file:
            file.writelines(f"0-{number}\n" for number in range(1_000))
        process = subprocess.Popen(
            [rsyslog, "-n", "-f", receiver.path("rsyslog.conf"), "-i", receiver.path("rsyslog.pid")],
            cwd=receiver.directory,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: receiver.arrived() >= 2_000, "all lines have come by both ways")
        for source in ("array", "lines"):
            messages = [message for message in receiver.messages() if message["SOURCE"] == source]
            self.assertEqual(expected(0, 1_000), {message["event"] for message in messages})
            self.assertGreater(max(message["webhook.batch.count"] for message in messages), 1)
