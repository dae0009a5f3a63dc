"""
Several processes that receive as one.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

from twisted.trial.unittest import SynchronousTestCase

from tests.system.certificates import CLIENT, Authority, server_settings, write_ca_file, write_hashed_directory
from tests.system.hanging_up import hang_up, reload
from tests.system.load import Load, missing
from tests.system.receiver import ANY_PORT, PATIENCE, ROOT, Connection, Receiver, ReceiverCase, post, wait_until
from tests.system.test_notify import ActivatedReceiver, NotifyCase
from tests.system.workers import ask_admin, children, is_alive, metrics, serves, workers


class WorkersCase(ReceiverCase):
    """
    Starts receivers with two workers.
    """

    def connect_to_each(self, receiver: Receiver) -> dict[int, Connection]:
        """Return a connection with each of its workers, which has been answered once."""
        pids = workers(receiver)
        found: dict[int, Connection] = {}
        deadline = time.monotonic() + PATIENCE
        while len(found) < len(pids):
            self.assertLess(time.monotonic(), deadline, "one worker has all connections")
            connection = self.connect(receiver.port)
            answer = connection.send(post(b"hello")).answer()
            self.assertEqual(200, answer and answer.status)
            for pid in pids:
                if serves(pid, connection):
                    found.setdefault(pid, connection)
            # The one that is busy now is not the next to accept.
            time.sleep(0.005)
        return found


class ReceivingTests(WorkersCase):
    """
    What senders and operators see.
    """

    def test_together(self) -> None:
        """Both serve one port, and write to one file; what they count is told as one, and each is told to be up."""
        receiver = self.start("--workers", "2", "--admin", "unix:admin")
        self.assertIn("2 workers share all endpoints", receiver.log())
        for connection in self.connect_to_each(receiver).values():
            answer = connection.send(post(b"again")).answer()
            self.assertEqual(200, answer and answer.status)
        messages = len(receiver.messages())
        counted = 'webhookrx_messages_total{source="default"}'
        wait_until(lambda: metrics(receiver)[counted] == messages, "all are counted")
        now = metrics(receiver)
        self.assertEqual(2.0, now["webhookrx_workers"])
        self.assertEqual(0.0, now["webhookrx_worker_restarts_total"])
        self.assertEqual([1.0, 1.0], [now[f'webhookrx_worker_up{{worker="{number}"}}'] for number in (0, 1)])
        self.assertEqual(20_000.0, now["webhookrx_max_connections"])
        self.assertEqual(200, ask_admin(receiver, "/readyz").status)
        self.assertEqual(0, receiver.stop())
        self.assertIn("Stopped. Counts: messages.default=", receiver.log())
        self.assertNotIn("Traceback", receiver.log())

    def test_health(self) -> None:
        """Each of them says to load balancers how all of them do together, one that is started anew as well."""
        receiver = self.start("--workers", "2", "--observer", "file:/dev/full", "--health", "/healthz")
        asked = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
        pids = workers(receiver)
        both: dict[int, Connection] = {}
        deadline = time.monotonic() + PATIENCE
        while len(both) < 2 and time.monotonic() < deadline:
            connection = self.connect(receiver.port)
            answer = connection.send(asked).answer()
            self.assertEqual(200, answer and answer.status)
            both.update({pid: connection for pid in pids if serves(pid, connection)})
        one, other = both.values()
        answer = one.send(post(b"lost")).answer()
        self.assertEqual("not_stored", answer and answer.reason)
        for each in (one, other):
            wait_until(lambda each=each: each.send(asked).answer().status == 503, "it says so")

    def test_refusals_in_the_log(self) -> None:
        """What a worker has to say is in the one log, with its number."""
        receiver = self.start("--workers", "2", "--paths", "/in")
        self.assertEqual(404, self.ask(receiver.port, post(b"", "/elsewhere")).status)
        wait_until(lambda: "no_matching_path" in receiver.log(), "the refusal is logged")
        self.assertRegex(receiver.log(), r"webhookrx.traffic#warn. Worker [01]: .*no_matching_path")

    def test_unix_socket(self) -> None:
        """A UNIX socket is shared, and is there until all have ended, with the mode that was asked for."""
        receiver = self.start("--workers", "2", port="unix:in:mode=600")
        path = receiver.path("in")
        before = os.stat(path)
        self.assertEqual(200, self.ask(path, post(b"one")).status)
        one, _ = workers(receiver)
        os.kill(one, signal.SIGTERM)
        wait_until(lambda: not is_alive(one), "it ends")
        self.assertEqual(200, self.ask(path, post(b"two")).status)
        wait_until(lambda: len(children(receiver.pid)) == 2, "another one follows")
        self.assertEqual((before.st_ino, before.st_mode), (os.stat(path).st_ino, os.stat(path).st_mode))
        self.assertEqual(0, receiver.stop())
        self.assertFalse(os.path.exists(path))

    def test_tls(self) -> None:
        """TLS works as with one process, since each reads the key."""
        receiver = self.prepare("--workers", "2", port=None)
        authority = Authority("Root")
        tls = server_settings(receiver.directory, authority.issue("receiver"))
        context = ssl.create_default_context(cafile=write_ca_file(receiver.directory, "ca", authority))
        context.check_hostname = False
        receiver = Receiver(
            *("--workers", "2", "--port", f"ssl:0:privateKey={tls.key_file}:certKey={tls.cert_file}"),
            directory=receiver.directory,
            port=None,
        )
        self.addCleanup(receiver.kill)
        receiver.start()
        for _ in range(4):
            connection = self.connect(receiver.port)
            connection.socket = context.wrap_socket(connection.socket)
            self.addCleanup(connection.socket.close)
            answer = connection.send(post(b"hello")).answer()
            self.assertEqual(200, answer and answer.status)
            connection.socket.close()
        self.assertEqual(0, receiver.stop())

    def test_keys_in_use(self) -> None:
        """
        A worker that follows another has keys and certificates as they were checked, whatever is in the files by then;
        after a reload all have the new ones. Neither command lines, environments nor the log show a key.
        """
        directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, directory)
        authority, clients = Authority("Root"), Authority("Clients")
        tls = server_settings(directory, authority.issue("first"))
        ca_dir = write_hashed_directory(os.path.join(directory, "clients"), clients)
        context = ssl.create_default_context(cafile=write_ca_file(directory, "ca", authority))
        context.check_hostname = False
        context.load_cert_chain(*reversed(clients.issue("client", (CLIENT,)).write(directory, "client")))
        options = ("--tls-key-file", tls.key_file, "--tls-cert-file", tls.cert_file, "--tls-ca-dir", ca_dir)
        receiver = Receiver("--workers", "2", "--tls-peer-verify", *options, directory=directory).start()
        self.addCleanup(receiver.kill)
        with open(tls.key_file) as file:
            secret = file.read().splitlines()[1]
        other = server_settings(directory, authority.issue("second"), "other")
        shutil.copy(other.key_file, tls.key_file)
        shutil.rmtree(ca_dir)
        for pid in workers(receiver):
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda gone=pid: not is_alive(gone), "it is gone")
        wait_until(lambda: receiver.log().count("another one follows") == 2, "both have ended")
        self.assertEqual({"first"}, {self._name_served(receiver, context) for _ in range(8)})
        for pid in (receiver.pid, *workers(receiver)):
            for what in ("cmdline", "environ"):
                with open(f"/proc/{pid}/{what}", "rb") as file:
                    self.assertNotIn(secret.encode(), file.read())
        hang_up(receiver)
        wait_until(lambda: "does not exist" in receiver.log(), "the reload has failed")
        self.assertEqual("first", self._name_served(receiver, context))
        write_hashed_directory(ca_dir, clients)
        shutil.copy(other.cert_file, tls.cert_file)
        hang_up(receiver)
        self.assertEqual({"second"}, {self._name_served(receiver, context) for _ in range(8)})
        self.assertNotIn(secret, receiver.log())
        self.assertNotIn("BEGIN", receiver.log())
        self.assertEqual(0, receiver.stop())

    def _name_served(self, receiver: Receiver, context: ssl.SSLContext) -> str:
        with context.wrap_socket(Connection(receiver.port).socket) as secure:
            secure.sendall(post(b"hello"))
            self.assertIn(b" 200 OK", secure.recv(1000))
            subject = secure.getpeercert()["subject"]  # type: ignore[index, call-overload]
            return str(dict(pair for (pair,) in subject)["commonName"])


class EndTests(WorkersCase):
    """
    Workers that end.
    """

    def test_killed_under_load(self) -> None:
        """One that is killed costs what it had not answered, and nothing else; another one follows."""
        receiver = self.start("--workers", "2", "--admin", "unix:admin")
        by_worker = self.connect_to_each(receiver)
        (killed, lost), (kept, stays) = by_worker.items()
        load = Load(receiver.port, 8).start()
        time.sleep(0.5)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: "was killed by SIGKILL" in receiver.log(), "its end is noticed")
        self.assertEqual([], lost.answers())
        answer = stays.send(post(b"still here")).answer()
        self.assertEqual(200, answer and answer.status)
        acknowledged = load.stop()
        self.assertEqual([], load.refused)
        wait_until(lambda: metrics(receiver)['webhookrx_worker_up{worker="0"}'] == 1.0, "it is back")
        wait_until(lambda: metrics(receiver)['webhookrx_worker_up{worker="1"}'] == 1.0, "it is back")
        self.assertEqual(1.0, metrics(receiver)["webhookrx_worker_restarts_total"])
        self.assertIn(kept, workers(receiver))
        self.assertEqual(0, receiver.stop())
        self.assertEqual([], missing(acknowledged, receiver.messages()))

    def test_waiting_connections(self) -> None:
        """Who has connected and waits to be accepted is not lost with a worker: others accept."""
        receiver = self.start("--workers", "2")
        pids = workers(receiver)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        connections = [self.connect(receiver.port).send(post(b"%d" % number)) for number in range(20)]
        os.kill(pids[0], signal.SIGKILL)
        os.kill(pids[1], signal.SIGCONT)
        statuses = [answer.status for answer in (connection.answer() for connection in connections) if answer]
        self.assertEqual([200] * 20, statuses)

    def test_parent_killed(self) -> None:
        """Workers whose parent has gone finish what is under way, and end."""
        receiver = self.start("--workers", "2")
        pids = workers(receiver)
        connection = self.connect(receiver.port)
        request = post(b"finish me")
        connection.send(request[:-3])
        wait_until(lambda: any(serves(pid, connection) for pid in pids), "it is accepted")
        time.sleep(0.2)
        receiver.kill()
        connection.send(request[-3:])
        answer = connection.answer()
        self.assertEqual(200, answer and answer.status)
        wait_until(lambda: not any(map(is_alive, pids)), "they end")
        self.assertEqual(["finish me"], [message["MESSAGE"] for message in receiver.messages()])

    def test_parent_killed_beside_slow_sender(self) -> None:
        """A sender that takes its time does not keep the workers of a parent that has gone from ending soon."""
        receiver = self.start("--workers", "2")
        pids = workers(receiver)
        connection = self.connect(receiver.port)
        connection.send(post(b"never ended")[:-3])
        wait_until(lambda: any(serves(pid, connection) for pid in pids), "it is accepted")
        time.sleep(0.2)
        receiver.kill()
        wait_until(lambda: not any(map(is_alive, pids)), "they end", 10.0)
        self.assertIn("The parent is gone", receiver.log())
        receiver.start()
        self.assertEqual(200, self.ask(receiver.port, post(b"hello")).status)

    def test_signals_for_the_parent(self) -> None:
        """What a terminal sends to all of its processes means the parent alone."""
        receiver = self.start("--workers", "2")
        pids = workers(receiver)
        for pid in pids:
            os.kill(pid, signal.SIGINT)
            os.kill(pid, signal.SIGHUP)
        self.assertEqual(200, self.ask(receiver.port, post(b"hello")).status)
        self.assertEqual(pids, workers(receiver))

    def test_cannot_begin(self) -> None:
        """Where a worker can't begin, all of it ends with its words, and a status that says so."""
        receiver = self.prepare("--workers", "2", "--observer", "file:sub/messages.jsonl")
        os.mkdir(receiver.path("sub"))
        os.mkdir(receiver.path("sub/messages.jsonl"))
        receiver.spawn()
        self.assertNotEqual(0, receiver.wait())
        self.assertIn("sub/messages.jsonl", receiver.log())
        self.assertNotIn("Listening on 1", receiver.log())
        self.assertNotIn("Traceback", receiver.log())

    def test_killed_at_start(self) -> None:
        """A worker that is killed before it receives is followed by another, and the start goes on."""
        receiver = self.prepare("--workers", "2", "--admin", "unix:admin")
        receiver.spawn()
        wait_until(lambda: len(children(receiver.pid)) == 2, "workers live")
        for pid in children(receiver.pid):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: "Listening on" in receiver.log(), f"it is up; its log: {receiver.log()}")
        self.assertEqual(2, receiver.log().count("was killed by SIGKILL; another one follows "))
        self.assertEqual(2.0, metrics(receiver)["webhookrx_worker_restarts_total"])
        self.assertEqual(200, ask_admin(receiver, "/readyz").status)
        self.assertEqual(0, receiver.stop())

    def test_drained(self) -> None:
        """SIGTERM has all finish what is under way; the status is 0, and every answer is given."""
        receiver = self.start("--workers", "2")
        connections = list(self.connect_to_each(receiver).values())
        request = post(b"under way")
        for connection in connections:
            connection.send(request[:-3])
        time.sleep(0.2)
        receiver.signal(signal.SIGTERM)
        wait_until(lambda: "Stopping" in receiver.log(), "it stops")
        for connection in connections:
            answer = connection.send(request[-3:]).answer()
            self.assertEqual((200, "close"), (answer and answer.status, answer and answer.headers["connection"]))
        self.assertEqual(0, receiver.wait())
        self.assertEqual(2, [message["MESSAGE"] for message in receiver.messages()].count("under way"))

    def test_cut_off(self) -> None:
        """A second signal ends it at once, and the status says that somebody was cut off."""
        receiver = self.start("--workers", "2")
        for connection in self.connect_to_each(receiver).values():
            connection.send(post(b"never ended")[:-3])
        time.sleep(0.2)
        pids = workers(receiver)
        receiver.signal(signal.SIGTERM)
        wait_until(lambda: "Stopping" in receiver.log(), "it stops")
        time.sleep(0.1)
        began = time.monotonic()
        receiver.signal(signal.SIGTERM)
        self.assertEqual(1, receiver.wait())
        self.assertLess(time.monotonic() - began, 5.0)
        wait_until(lambda: not any(map(is_alive, pids)), "they end")


class ReloadTests(WorkersCase):
    """
    SIGHUP.
    """

    def sources(self, *ports: str, more: str = "workers: 2\n") -> str:
        """Return a configuration with a source for each endpoint."""
        sources = [{"name": f"s{number}", "port": port} for number, port in enumerate(ports)]
        return f"{more}sources: {json.dumps(sources)}\n"

    def test_endpoints(self) -> None:
        """One that is added is served by all, one that is removed by nobody, and connections stay."""
        receiver = self.start(config=self.sources(ANY_PORT), port=None)
        connections = self.connect_to_each(receiver)
        said = reload(receiver, self.sources(ANY_PORT, "unix:other"))
        self.assertIn("Reloaded: 2 sources (1 unchanged, 1 added); 2 endpoints, 1 observers", said)
        self.assertEqual(200, self.ask(receiver.path("other"), post(b"other")).status)
        for connection in connections.values():
            answer = connection.send(post(b"stayed")).answer()
            self.assertEqual(200, answer and answer.status)
        said = reload(receiver, self.sources("unix:other"))
        self.assertIn("Reloaded: 1 sources", said)
        self.assertRaises(ConnectionRefusedError, Connection, receiver.port)
        self.assertEqual(200, self.ask(receiver.path("other"), post(b"other")).status)
        self.assertEqual(sorted(connections), workers(receiver))
        self.assertEqual(0, receiver.stop())

    def test_failed(self) -> None:
        """One that a worker can't follow changes nothing, and the file is opened anew all the same."""
        receiver = self.start(config=self.sources(ANY_PORT), port=None)
        os.mkdir(receiver.path("directory"))
        os.rename(receiver.path("messages.jsonl"), receiver.path("old.jsonl"))
        said = reload(receiver, self.sources(ANY_PORT, "unix:other") + "observers: ['file:directory']\n")
        self.assertRegex(said, "Reload failed, the old settings stay: .*directory")
        self.assertFalse(os.path.exists(receiver.path("other")))
        for connection in self.connect_to_each(receiver).values():
            answer = connection.send(post(b"as before")).answer()
            self.assertEqual(200, answer and answer.status)
        self.assertEqual(2, [message["MESSAGE"] for message in receiver.messages()].count("as before"))
        self.assertIn("Reload failed", receiver.log())

    def test_number(self) -> None:
        """More workers come, and too many go, while messages are taken; each knows of all that are left."""
        receiver = self.start("--admin", "unix:admin", config=self.sources(ANY_PORT), port=None)
        before = workers(receiver)
        for count in (3, 1):
            reload(receiver, self.sources(ANY_PORT, more=f"workers: {count}\n"))
            self.assertEqual(200, self.ask(receiver.port, post(b"hello")).status)
            wait_until(lambda: self.are_new(receiver, before, count), f"{count} new workers are up")  # noqa: B023
            self.assertEqual(200, self.ask(receiver.port, post(b"hello")).status)
            before = children(receiver.pid)
        self.assertEqual(0.0, metrics(receiver)["webhookrx_worker_restarts_total"])
        self.assertEqual(0, receiver.stop())

    def are_new(self, receiver: Receiver, before: list[int], count: int) -> bool:
        """Tell whether there are so many workers, all of them up, and none that was there before."""
        now = metrics(receiver)
        up = [value for name, value in now.items() if name.startswith("webhookrx_worker_up")]
        pids = children(receiver.pid)
        return up == [1.0] * count and len(pids) == count and not set(before) & set(pids)

    def test_from_one(self) -> None:
        """One process says that it can't become several without a restart."""
        receiver = self.start(config=self.sources(ANY_PORT, more=""), port=None)
        said = reload(receiver, self.sources(ANY_PORT))
        self.assertIn("One process can't become several by a reload, restart for it.", said)

    def test_rotated(self) -> None:
        """Files are opened anew by all of them."""
        receiver = self.start("--workers", "2")
        connections = self.connect_to_each(receiver)
        os.rename(receiver.path("messages.jsonl"), receiver.path("old.jsonl"))
        hang_up(receiver)
        wait_until(lambda: os.path.exists(receiver.path("messages.jsonl")), "the new file is there")
        for connection in connections.values():
            wait_until(lambda: self.lands_in_new(receiver, connection), "its messages go to the new file")  # noqa: B023

    def lands_in_new(self, receiver: Receiver, connection: Connection) -> bool:
        """Tell whether a message that is sent now lands in the new file."""
        before = len(receiver.lines())
        connection.send(post(b"where to")).answer()
        return len(receiver.lines()) > before


class ServiceManagerTests(NotifyCase):
    """
    systemd.
    """

    def test_ready(self) -> None:
        """It hears of the parent alone: that all are ready, how many there are, and the end."""
        receiver = self.spawn("--workers", "2", WATCHDOG_USEC="2000000")
        ready = self.manager.hear("READY")
        self.assertIn("2 of 2 workers", ready["STATUS"])
        self.assertGreaterEqual(self.manager.signs_of_life(3), 2)
        receiver.signal(signal.SIGHUP)
        self.manager.hear("RELOADING")
        self.manager.hear("READY")
        receiver.signal(signal.SIGTERM)
        self.manager.hear("STOPPING")
        self.assertEqual(0, receiver.wait())

    def test_stuck(self) -> None:
        """One that hangs is told of by the admin endpoint, and signs of life are withheld; until it goes on."""
        receiver = self.spawn(
            *("--workers", "2", "--admin", "unix:admin", "--limit", "answer_time=2s"), WATCHDOG_USEC="1000000"
        )
        self.manager.hear("READY")
        one, _ = workers(receiver)
        os.kill(one, signal.SIGSTOP)
        self.addCleanup(_go_on, one)
        self.manager.signs_of_life(3)
        self.assertEqual(0, self.manager.signs_of_life(2))
        health = ask_admin(receiver, "/readyz")
        self.assertEqual(200, health.status)
        self.assertRegex(health.body.decode(), "degraded.*Worker 0 hangs")
        _go_on(one)
        self.assertGreaterEqual(self.manager.signs_of_life(4), 1)

    def test_activated(self) -> None:
        """A socket that systemd hands over is shared as others are, and stays open when all have ended."""
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)
        endpoint = "systemd:domain=INET:name=webhookrx"
        receiver = ActivatedReceiver(listening, "webhookrx", "--workers", "2", port=endpoint)
        self.addCleanup(receiver.clean_up)
        receiver.start()
        port = listening.getsockname()[1]
        self.assertEqual(200, self.ask(port, post(b"one")).status)
        self.assertEqual(0, receiver.stop())
        waiting = self.connect(port).send(post(b"two"))
        receiver.start()
        answer = waiting.answer()
        self.assertEqual(200, answer and answer.status)


class ProgramTests(SynchronousTestCase):
    """
    The program that a worker is.
    """

    def test_no_reactor(self) -> None:
        """To import it is not to have a reactor yet: it takes the kind that its parent has."""
        program = "import sys, webhookrx.service.workers.main; print('twisted.internet.reactor' in sys.modules)"
        environ = {**os.environ, "PYTHONPATH": ROOT}
        said = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, check=True)
        self.assertEqual(b"False\n", said.stdout)

    def test_kind_of_reactor(self) -> None:
        """Workers have the kind of reactor that their parent was started with."""
        receiver = Receiver("--workers", "2")
        self.addCleanup(receiver.clean_up)
        place = receiver._arguments.index("-n")
        receiver._arguments = (*receiver._arguments[:place], "--reactor=poll", *receiver._arguments[place:])
        receiver.start()
        with Connection(receiver.port) as connection:
            answer = connection.send(post(b"hello")).answer()
        self.assertEqual(200, answer and answer.status)
        for pid in workers(receiver):
            with open(f"/proc/{pid}/cmdline") as file:
                self.assertIn("twisted.internet.pollreactor", file.read())
        self.assertEqual(0, receiver.stop())


def _go_on(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
