"""
Signals, and starts that fail: what an operator does and sees.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time

from twisted.trial.unittest import SynchronousTestCase

from tests import LONG
from tests.system.certificates import Authority, write
from tests.system.hanging_up import hang_up
from tests.system.load import Load, missing
from tests.system.receiver import PATIENCE, ROOT, Connection, Receiver, ReceiverCase, post, wait_until

#: Seconds that a busy machine may add.
SLACK = 3.0


class HangUpTests(ReceiverCase):
    """
    SIGHUP with files.
    """

    def test_rotation_under_load(self) -> None:
        """Rotated as logrotate does it, under load, no message is lost, no request refused and no connection cut."""
        receiver = self.start()
        load = Load(receiver.port).start()
        for number in range(1, 6):
            os.rename(receiver.path("messages.jsonl"), receiver.path(f"messages.{number}"))
            receiver.signal(signal.SIGHUP)
            wait_until(receiver.arrived, "the new file is written to")
        acknowledged = load.stop()
        receiver.stop()
        self.assertEqual(([], []), (load.refused, load.broken))
        names = [*(f"messages.{number}" for number in range(1, 6)), "messages.jsonl"]
        stored = [message for name in names for message in receiver.messages(name)]
        self.assertEqual([], missing(acknowledged, stored))
        self.assertEqual(len(acknowledged), len(stored))

    def test_moved_without_signal(self) -> None:
        """Until the signal, messages go on into the file that was moved; after it, into a new one."""
        receiver = self.start()
        self.ask(receiver.port, post(b"one"))
        os.rename(receiver.path("messages.jsonl"), receiver.path("old"))
        self.ask(receiver.port, post(b"two"))
        hang_up(receiver)
        self.ask(receiver.port, post(b"three"))
        self.assertEqual(["one", "two"], [message["MESSAGE"] for message in receiver.messages("old")])
        self.assertEqual(["three"], [message["MESSAGE"] for message in receiver.messages()])

    def test_connections_stay(self) -> None:
        """SIGHUP ends neither the process nor a connection, idle or inside a request."""
        receiver = self.start()
        idle, inside = self.connect(receiver.port), self.connect(receiver.port)
        request = post(b"hello")
        self.assertIsNotNone(idle.send(post(b"first")).answer())
        inside.send(request[:30])
        for _ in range(3):
            hang_up(receiver)
        for answer in (idle.send(post(b"second")).answer(), inside.send(request[30:]).answer()):
            self.assertEqual(200, answer and answer.status)
        self.assertTrue(receiver.is_running)

    def test_no_new_file(self) -> None:
        """Where the file can't be opened again, the old one stays in use, and the log says so."""
        receiver = self.prepare("--observer", "file:sub/messages.jsonl")
        os.mkdir(receiver.path("sub"))
        receiver.start()
        os.rename(receiver.path("sub"), receiver.path("moved"))
        self.assertRegex(hang_up(receiver), "Reload failed, the old settings stay: .*/sub")
        self.assertEqual(200, self.ask(receiver.port, post(b"kept")).status)
        self.assertEqual(["kept"], [message["MESSAGE"] for message in receiver.messages("moved/messages.jsonl")])
        self.assertNotIn("Traceback", receiver.log())


class TerminationTests(ReceiverCase):
    """
    SIGTERM, and SIGINT.
    """

    def assert_ended_well(self, receiver: Receiver) -> None:
        """It has ended with status 0, and has said good-bye."""
        self.assertEqual(0, receiver.wait())
        self.assertIn("Stopped. Counts", receiver.log())
        self.assertNotIn("Traceback", receiver.log())

    def hang(self, receiver: Receiver) -> Connection:
        """Have its observer, a FIFO that nobody reads from, hang on a message."""
        receiver.start()
        connection = self.connect(receiver.port).send(post(b"x" * 200_000))
        # An answer to what came later would say that this was stored; none comes, but it has been read.
        self.assertEqual(404, self.ask(receiver.port, post(b"", "/elsewhere")).status)
        return connection

    def prepare_fifo(self, *options: str) -> Receiver:
        """Make a receiver whose observer is a FIFO with a reader that does not read."""
        receiver = self.prepare("--observer", "file:fifo", "--paths", "/in", *options)
        os.mkfifo(receiver.path("fifo"))
        reader = os.open(receiver.path("fifo"), os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        return receiver

    def test_idle(self) -> None:
        """Idle connections are closed, and the process ends at once."""
        receiver = self.start()
        idle, silent = self.connect(receiver.port), self.connect(receiver.port)
        idle.send(post(b"hello")).answer()
        receiver.signal(signal.SIGTERM)
        self.assertEqual(([], []), (idle.answers(), silent.answers()))
        self.assert_ended_well(receiver)

    def test_interrupt(self) -> None:
        """SIGINT does the same."""
        receiver = self.start()
        receiver.signal(signal.SIGINT)
        self.assert_ended_well(receiver)

    def test_twist(self) -> None:
        """Under C{twist} the status is 0 as well."""
        receiver = self.prepare()
        receiver._arguments = (sys.executable, "-m", "twisted", *receiver._arguments[5:])
        receiver.start()
        self.assertEqual(200, self.ask(receiver.port, post(b"hello")).status)
        receiver.signal(signal.SIGTERM)
        self.assert_ended_well(receiver)
        self.assertEqual(["hello"], [message["MESSAGE"] for message in receiver.messages()])

    def test_under_way(self) -> None:
        """A request whose body is coming is finished and answered, as the last one; new connections are refused."""
        receiver = self.start()
        request = post(b"under way")
        connection = self.connect(receiver.port).send(post(b"first"))
        connection.answer()
        connection.send(request[:-3])
        wait_until(lambda: receiver.arrived() == 1, "the first message")
        # An answer on another connection says that what was sent before it has been read.
        self.ask(receiver.port, post(b"second"))
        receiver.signal(signal.SIGTERM)
        wait_until(lambda: _refuses(receiver.port), "it listens no more")
        self.assertTrue(receiver.is_running)
        connection.send(request[-3:])
        self.assertEqual([(200, "close")], [(each.status, each.headers["connection"]) for each in connection.answers()])
        self.assert_ended_well(receiver)
        self.assertEqual(["first", "second", "under way"], [message["MESSAGE"] for message in receiver.messages()])

    def test_begun(self) -> None:
        """A request whose head is not complete when connections end is told that the receiver is stopping."""
        receiver = self.start()
        request = post(b"too late")
        connection, idle = self.connect(receiver.port).send(request[:20]), self.connect(receiver.port)
        self.ask(receiver.port, post(b"first"))
        receiver.signal(signal.SIGTERM)
        self.assertEqual([], idle.answers())
        (answer,) = connection.send(request[20:]).answers()
        self.assertEqual((503, "draining", "close"), (answer.status, answer.reason, answer.headers["connection"]))
        self.assert_ended_well(receiver)
        self.assertEqual(["first"], [message["MESSAGE"] for message in receiver.messages()])

    def test_last_request(self) -> None:
        """A sender who is quick has one more request on its connection answered, as the last."""
        receiver = self.start()
        connection, slow = self.connect(receiver.port), self.connect(receiver.port)
        slow.send(post(b"slow")[:-3])
        connection.send(post(b"first")).answer()
        receiver.signal(signal.SIGTERM)
        wait_until(lambda: _refuses(receiver.port), "it listens no more")
        answers = connection.send(post(b"second")).answers()
        self.assertEqual([(200, "close")], [(each.status, each.headers["connection"]) for each in answers])
        slow.send(post(b"slow")[-3:])
        self.assert_ended_well(receiver)
        self.assertEqual(["first", "second", "slow"], [message["MESSAGE"] for message in receiver.messages()])

    def test_under_load(self) -> None:
        """
        Under load, what got a 200 is in the file, and no request fails: each sender is told in time that an answer is
        the last.
        """
        receiver = self.prepare()
        acknowledged: list[str] = []
        for _ in range(100 if LONG else 3):
            load = Load(receiver.start().port).start()
            wait_until(lambda load=load: all(load.acknowledged), "an answer on each connection")
            receiver.signal(signal.SIGTERM)
            acknowledged += load.wait()
            self.assert_ended_well(receiver)
            self.assertEqual([], load.refused)
            self.assertEqual([], load.broken)
        self.assertEqual([], missing(acknowledged, receiver.messages()))

    def test_slow_sender(self) -> None:
        """A sender that does not finish is cut off when the time is up, and that is a good end."""
        receiver = self.start("--drain-timeout", "1s")
        slow = self.connect(receiver.port).send(post(b"never complete")[:-3])
        self.ask(receiver.port, post(b"first"))
        began = time.monotonic()
        receiver.signal(signal.SIGTERM)
        self.assert_ended_well(receiver)
        self.assertLess(time.monotonic() - began, 1 + SLACK)
        self.assertIn("Cutting off senders that have not finished", receiver.log())
        self.assertRaises(ConnectionResetError, slow.answers)

    def test_hanging_observer(self) -> None:
        """An observer that hangs is given up when the time is up, and that is said; its senders got no 200."""
        receiver = self.prepare_fifo("--drain-timeout", "1s")
        self.hang(receiver)
        began = time.monotonic()
        receiver.signal(signal.SIGTERM)
        self.assert_ended_well(receiver)
        self.assertLess(time.monotonic() - began, 1 + SLACK)
        self.assertIn("An observer hangs: 1 messages were not stored", receiver.log())

    def test_second_signal(self) -> None:
        """A second signal ends it within a second, whatever hangs; the status tells that somebody got no answer."""
        receiver = self.prepare_fifo()
        self.hang(receiver)
        receiver.signal(signal.SIGTERM)
        wait_until(lambda: _refuses(receiver.port), "it listens no more")
        self.assertTrue(receiver.is_running)
        began = time.monotonic()
        receiver.signal(signal.SIGTERM)
        self.assertEqual(1, receiver.wait())
        self.assertLess(time.monotonic() - began, 1 + SLACK)

    def test_second_signal_for_a_slow_sender(self) -> None:
        """What is stored when the second signal comes has its 200; the sender who is not done is cut off."""
        receiver = self.start()
        self.connect(receiver.port).send(post(b"never complete")[:-3])
        self.ask(receiver.port, post(b"first"))
        receiver.signal(signal.SIGTERM)
        wait_until(lambda: _refuses(receiver.port), "it listens no more")
        receiver.signal(signal.SIGINT)
        self.assertEqual(1, receiver.wait())
        self.assertEqual(["first"], [message["MESSAGE"] for message in receiver.messages()])

    def test_both_at_once(self) -> None:
        """Two signals in one go end it too."""
        receiver = self.start()
        receiver.signal(signal.SIGTERM)
        receiver.signal(signal.SIGINT)
        self.assert_ended_well(receiver)


class BackstopTests(SynchronousTestCase):
    """
    The end of a process whose reactor does not come round any more.
    """

    PROGRAM = """
import time
from webhookrx.operations.signals import Signals

class Reactor:
    def callFromThread(self, call):
        pass

signals = Signals(Reactor(), hang_up=None, stop=None, stop_now=None, time_to_stop=lambda: 3600)
signals.take_termination()
print("up", flush=True)
while True:
    time.sleep(60)
"""

    def test_end(self) -> None:
        """The first signal alone changes nothing, the second one ends it with status 1 within a second."""
        process = subprocess.Popen(
            [sys.executable, "-c", self.PROGRAM], env={**os.environ, "PYTHONPATH": ROOT}, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        self.assertRaises(subprocess.TimeoutExpired, process.wait, 1)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(1, process.wait(PATIENCE))
        self.assertLess(time.monotonic() - began, 1 + SLACK)


class CertificateTests(ReceiverCase):
    """
    SIGHUP with certificates.
    """

    def setUp(self) -> None:
        self.authority = Authority("Test CA")
        self.receiver = self.prepare(port="ssl:0:interface=127.0.0.1:privateKey=key.pem:certKey=cert.pem")
        self.put("one")
        self.receiver.start()

    def put(self, name: str, *, key: bool = True) -> None:
        """Put a new pair in the place of the old one, or the certificate alone."""
        key_file, cert_file = self.authority.issue(name).write(self.receiver.directory, name)
        if key:
            shutil.copy(key_file, self.receiver.path("key.pem"))
        shutil.copy(cert_file, self.receiver.path("cert.pem"))

    def connect_tls(self) -> ssl.SSLSocket:
        context = ssl.create_default_context(cadata=_der_text(self.authority))
        plain = socket.create_connection(("127.0.0.1", self.receiver.port), PATIENCE)
        secure = context.wrap_socket(plain, server_hostname="localhost")
        self.addCleanup(secure.close)
        return secure

    def name_of(self, secure: ssl.SSLSocket) -> str:
        """The common name of the receiver's certificate."""
        certificate = secure.getpeercert()
        assert certificate is not None
        return str(dict(pair[0] for pair in certificate["subject"])["commonName"])

    def ask_tls(self, secure: ssl.SSLSocket) -> bytes:
        secure.sendall(post(b"hello"))
        return secure.recv(65536)[:15]

    def test_new_pair(self) -> None:
        """A new pair is used for new connections; old ones go on."""
        before = self.connect_tls()
        self.assertEqual("one", self.name_of(before))
        self.put("two")
        hang_up(self.receiver)
        self.assertEqual("two", self.name_of(self.connect_tls()))
        self.assertEqual(b"HTTP/1.1 200 OK", self.ask_tls(before))

    def test_bad_pair(self) -> None:
        """A pair that is no pair, nonsense or a missing file leave the old one in use, and the log names the file."""
        for spoil in (
            lambda: self.put("two", key=False),
            lambda: write(self.receiver.path("key.pem"), b"nonsense"),
            lambda: os.remove(self.receiver.path("cert.pem")),
        ):
            spoil()
            log = hang_up(self.receiver)
            secure = self.connect_tls()
            self.assertEqual((b"HTTP/1.1 200 OK", "one"), (self.ask_tls(secure), self.name_of(secure)))
            self.assertRegex(log, r"Reload failed, the old settings stay: .*(key|cert)\.pem")
        self.put("three")
        hang_up(self.receiver)
        self.assertEqual("three", self.name_of(self.connect_tls()))
        self.assertNotIn("Traceback", self.receiver.log())


class FailedStartTests(ReceiverCase):
    """
    Starts that fail end with one clear line and a status that is not zero.
    """

    def last_line(self, receiver: Receiver) -> str:
        """Run it to its end and return the last line of its log."""
        receiver.spawn()
        self.assertNotEqual(0, receiver.wait())
        log = receiver.log()
        self.assertNotIn("Traceback", log)
        return log.rstrip("\n").rpartition("\n")[2]

    def test_port_taken(self) -> None:
        """A port that somebody else has."""
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        endpoint = f"tcp:{taken.getsockname()[1]}:interface=127.0.0.1"
        self.assertRegex(self.last_line(self.prepare(port=endpoint)), f"Address already in use.*{endpoint}")

    def test_one_of_two_ports_taken(self) -> None:
        """A second port that somebody else has; the first is not left open."""
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        endpoint = f"tcp:{taken.getsockname()[1]}:interface=127.0.0.1"
        line = self.last_line(self.prepare("--port", endpoint))
        self.assertRegex(line, f"Address already in use.*{endpoint}")

    def test_read_only_directory(self) -> None:
        """A directory in which no file can be made."""
        # Permissions don't stop root; the kernel's own file system does.
        directory = "/sys" if os.geteuid() == 0 else self.mktemp()
        if directory != "/sys":
            os.mkdir(directory, 0o500)
        path = os.path.join(os.path.abspath(directory), "messages.jsonl")
        line = self.last_line(self.prepare("--observer", f"file:{path}"))
        self.assertIn(path, line)
        self.assertRegex(line, "(?i)permission denied|read-only|not permitted")

    def test_missing_directory(self) -> None:
        """A directory that is not there."""
        line = self.last_line(self.prepare("--observer", "file:/nonexistent/messages.jsonl"))
        self.assertIn("/nonexistent", line)

    def test_unknown_option(self) -> None:
        """An option that there isn't."""
        self.assertIn("--paths", self.last_line(self.prepare("--pahts", "/in")))


def _refuses(port: int) -> bool:
    """Whether nobody listens on a port."""
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE).close()
    except ConnectionRefusedError:
        return True
    return False


def _der_text(authority: Authority) -> str:
    from tests.system.certificates import certificates_pem

    return certificates_pem(authority.certificate).decode()
