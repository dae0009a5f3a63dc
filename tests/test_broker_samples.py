"""Tests for C{etc/kafka} and C{etc/nats}: receivers, brokers and relays that go together."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
from contextlib import redirect_stderr, redirect_stdout

from twisted.trial.unittest import SynchronousTestCase

from tests.documents import ROOT, read
from tests.system.certificates import Authority, write_ca_file
from tests.system.test_relay_unit import variables
from tests.test_samples import load
from webhookrx.commands import main as command
from webhookrx.config.endpoints import parse_endpoint
from webhookrx.quantities import parse_size
from webhookrx.settings import Limits, MiB

BROKERS = ("kafka", "nats")

#: Directories that samples name, and what stands for them.
_DIRECTORIES = re.compile(
    r"/etc/webhookrx/relay|/etc/webhookrx|/var/lib/webhookrx-relay|/var/lib/webhookrx|/run/credentials/[\w@.-]+"
)


class BrokerSampleTests(SynchronousTestCase):
    """What can be told without a broker."""

    def setUp(self) -> None:
        """Have a directory with all files that the samples name."""
        self.directory = os.path.abspath(self.mktemp())
        os.mkdir(self.directory)
        authority = Authority("Root")
        key, chain = authority.issue("server").write(self.directory, "server")
        os.rename(key, os.path.join(self.directory, "key.pem"))
        os.chmod(os.path.join(self.directory, "key.pem"), 0o600)
        os.rename(chain, os.path.join(self.directory, "chain.pem"))
        os.rename(write_ca_file(self.directory, "ca", authority), os.path.join(self.directory, "nats-ca.pem"))
        for name in ("token", "kafka.password", "nats.password", "from", "to"):
            path = os.path.join(self.directory, name)
            with open(path, "w") as file:
                file.write("s3cret-of-a-sample\n")
            os.chmod(path, 0o600)

    def here(self, text: str) -> str:
        """Return a sample with the directory in place of those that it names."""
        return _DIRECTORIES.sub(self.directory, text)

    def test_receivers(self) -> None:
        """Each receiver loads without a warning, with a spool that lets go of messages only on a durable word."""
        for broker in BROKERS:
            path = os.path.join(self.directory, f"{broker}.yaml")
            with open(path, "w") as file:
                file.write(self.here(read(f"etc/{broker}/webhookrx.yaml")))
            settings = load(path).settings

            self.assertEqual((), settings.warnings, broker)
            (observer,) = settings.observers
            self.assertEqual("durable", dict(observer.options)["require"])
            assert observer.inner is not None
            self.assertEqual(broker, observer.inner.name)

    def test_relays(self) -> None:
        """Each relay's options are good, without a warning."""
        for broker in BROKERS:
            given = {name: self.here(value) for name, value in variables(broker).items()}
            arguments = [part for name, value in given.items() for part in (f"--{name.lower()}", value)]
            out, errors = io.StringIO(), io.StringIO()
            with redirect_stdout(out), redirect_stderr(errors):
                status = command.main(["relay", *arguments, "--check"])

            self.assertEqual((0, ""), (status, errors.getvalue()), broker)
            self.assertNotIn("warning", out.getvalue())
            self.assertNotIn("s3cret", out.getvalue())

    def test_relays_of_samples_go_together(self) -> None:
        """A relay reads where the receiver of the same sample writes."""
        self.assertIn(":9093/logs:", read("etc/kafka/webhookrx.yaml"))
        self.assertIn(":9093/logs:", variables("kafka")["FROM"])
        self.assertIn("stream=LOGS:", read("etc/nats/webhookrx.yaml"))
        self.assertIn(":4222/LOGS:", variables("nats")["FROM"])

    def test_admin(self) -> None:
        """Health and metrics of receivers and relays are for this machine alone."""
        for broker in BROKERS:
            (text,) = re.findall(r"^admin: (.*)$", read(f"etc/{broker}/webhookrx.yaml"), re.MULTILINE)
            for endpoint in (text, variables(broker)["ADMIN"]):
                self.assertTrue(parse_endpoint(endpoint).local)

    def test_stream(self) -> None:
        """The stream keeps three copies in files, refuses what does not fit, and takes the largest message."""
        stream = json.loads(read("etc/nats/stream.json"))
        self.assertEqual(
            ("LOGS", "file", 3, "new"), tuple(stream[name] for name in ("name", "storage", "num_replicas", "discard"))
        )
        self.assertGreater(stream["max_msg_size"], Limits().body + MiB)
        self.assertGreaterEqual(stream["duplicate_window"], 15 * 60 * 10**9)
        (largest,) = re.findall(r"^max_payload: (\w+)$", read("etc/nats/nats-server.conf"), re.MULTILINE)
        self.assertGreaterEqual(parse_size(largest.replace("MB", "MiB")), stream["max_msg_size"])

    def test_topic(self) -> None:
        """The script asks Kafka's tool for three replicas, two of them in sync, and the largest message."""
        tools = os.path.join(self.directory, "kafka-topics.sh")
        with open(tools, "w") as file:
            file.write('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        os.chmod(tools, 0o755)
        done = subprocess.run(
            [str(ROOT / "etc" / "kafka" / "create-topic.sh"), "kafka-1:9093", "client.properties"],
            env={**os.environ, "KAFKA_BIN": self.directory},
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        words = done.stdout.split()
        self.assertEqual(
            ["--bootstrap-server", "kafka-1:9093", "--command-config", "client.properties", "--create"], words[:5]
        )
        given = dict(zip(words[5::2], words[6::2], strict=False))
        self.assertEqual(("logs", "3"), (given["--topic"], given["--replication-factor"]))
        configs = dict(word.split("=") for word in words if "=" in word)
        self.assertEqual(("2", "false"), (configs["min.insync.replicas"], configs["unclean.leader.election.enable"]))
        self.assertGreater(int(configs["max.message.bytes"]), Limits().body + MiB)
