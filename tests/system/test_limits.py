"""
Senders that take their time, come in thousands or send bombs; and a good one beside them that must not notice.

With C{WEBHOOKRX_LONG=1} in the environment, C{slowhttptest} is run too, with a thousand connections of each kind
against the limits as they come: some two minutes.
"""

from __future__ import annotations

import contextlib
import re
import resource
import select
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from typing import NamedTuple

from tests import LONG
from tests.system.bombs import BOMBS, MiB
from tests.system.certificates import Authority, server_settings, write_ca_file
from tests.system.load import Load, percentile
from tests.system.receiver import ANY_PORT, PATIENCE, Connection, Receiver, ReceiverCase, post, wait_until
from tests.system.workers import children, metrics

SLOWHTTPTEST = shutil.which("slowhttptest")

#: Deadlines are looked at every half second; the rest is for a machine that has other things to do.
SLACK = 10.0

SHORT = f"""
sources: [{{port: "{ANY_PORT}", paths: [/in]}}]
limits: {{header_time: 1s, body_time: 2s, answer_time: 2s, idle_time: 3s}}
"""

HEAD = b"POST /in HTTP/1.1\r\nHost: receiver\r\nContent-Length: 1000\r\n\r\n"


class Ending(NamedTuple):
    """How a connection ended: after how many seconds, and what was heard."""

    seconds: float
    heard: bytes

    @property
    def status(self) -> int | None:
        """The status of the first answer, if there was any."""
        return int(self.heard[9:12]) if self.heard else None


class SlowSenders:
    """
    Connections that all send something first, and then one drop after the other, until they are closed.

    @param drop: what is sent each tenth of a second; nothing when empty.
    @param reads: how many bytes are taken each tenth of a second; none when 0.
    """

    def __init__(
        self, port: int, count: int, first: bytes, drop: bytes, *, reads: int = 65536, receive_buffer: int = 0
    ) -> None:
        self.endings: list[Ending] = []
        self._first = first
        self._drop = drop
        self._reads = reads
        self._open: dict[socket.socket, float] = {}
        self._heard: dict[socket.socket, bytes] = {}
        for _ in range(count):
            each = socket.socket()
            if receive_buffer:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            each.settimeout(PATIENCE)
            each.connect(("127.0.0.1", port))
            each.setblocking(False)
            self._heard[each] = b""
            self._open[each] = time.monotonic()
            self._send(each, first)

    def run(self, seconds: float) -> list[Ending]:
        """Go on until all are closed, for so many seconds at most; return how they ended."""
        end = time.monotonic() + seconds
        while self._open and time.monotonic() < end:
            for each in list(self._open):
                self._listen(each)
                if self._drop and each in self._open:
                    self._send(each, self._drop)
            time.sleep(0.1)
        for each in self._open:
            each.close()
        return self.endings

    def _listen(self, each: socket.socket) -> None:
        if self._reads < 65536 and _was_reset(each):
            self._end(each)
            return
        if not self._reads:
            return
        try:
            data = each.recv(self._reads)
        except BlockingIOError:
            return
        except OSError:
            self._end(each)
            return
        if data:
            self._heard[each] += data
        else:
            self._end(each)

    def _send(self, each: socket.socket, data: bytes) -> None:
        try:
            each.send(data)
        except BlockingIOError:
            pass
        except OSError:
            self._listen(each)

    def _end(self, each: socket.socket) -> None:
        self.endings.append(Ending(time.monotonic() - self._open.pop(each), self._heard[each]))
        each.close()


def _was_reset(each: socket.socket) -> bool:
    """Whether a connection was reset, however much of what came before is still to be read."""
    poll = select.poll()
    poll.register(each, 0)
    return bool(poll.poll(0))


class SlowSenderTests(ReceiverCase):
    """
    Many slow connections, and two good ones.
    """

    def check(
        self,
        deadline: float,
        status: int | None,
        first: bytes,
        drop: bytes,
        *,
        count: int = 100,
        config: str = SHORT,
        reads: int = 65536,
        receive_buffer: int = 0,
    ) -> None:
        """All end at the deadline with that status, and good senders are answered well all the while."""
        receiver = self.start(config=config, port=None)
        good = Load(receiver.port, 2, source="127.0.0.2", pause=0.01).start()
        slow = SlowSenders(receiver.port, count, first, drop, reads=reads, receive_buffer=receive_buffer)
        endings = slow.run(deadline + SLACK + 10)
        good.stop()
        self.assertEqual(count, len(endings), "not closed")
        self.assertEqual({status}, {ending.status for ending in endings})
        self.assertGreater(min(ending.seconds for ending in endings), deadline - 0.2)
        self.assertLess(max(ending.seconds for ending in endings), deadline + SLACK)
        self.assertEqual(([], []), (good.refused, good.broken))
        self.assertLess(percentile(good.times, 0.99), 0.5)

    def test_slow_heads(self) -> None:
        """A head that comes drop by drop is answered with 408 at the deadline, however lively it is."""
        self.check(1.0, 408, b"POST /in HTTP/1.1\r\nX: ", b"y")

    def test_slow_bodies(self) -> None:
        """So is a body."""
        self.check(2.0, 408, HEAD, b"y")

    def test_slow_chunks(self) -> None:
        """So is a body in chunks."""
        head = b"POST /in HTTP/1.1\r\nHost: receiver\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.check(2.0, 408, head, b"1\r\ny\r\n")

    def test_silent(self) -> None:
        """Who says nothing at all is not told anything either."""
        self.check(1.0, None, b"", b"")

    def test_idle(self) -> None:
        """Who has been answered may wait for the idle time, and is then let go."""
        self.check(3.0, 200, post(b"hello"), b"")

    def test_refused_body(self) -> None:
        """A refused body may not go on for ever."""
        small = SHORT.replace("limits: {", "limits: {body: 100, ")
        self.check(2.0, 413, HEAD, b"", config=small)

    def test_readers_that_sleep(self) -> None:
        """Who asks on and on and takes no answers is cut off."""
        requests = b"GET /in HTTP/1.1\r\nHost: receiver\r\n\r\n" * 2000
        self.check(2.0, None, requests, requests, count=2, reads=0, receive_buffer=4096)

    def test_slow_readers(self) -> None:
        """So is who takes answers drop by drop."""
        requests = b"GET /in HTTP/1.1\r\nHost: receiver\r\n\r\n" * 2000
        self.check(2.0, 405, requests, requests, count=2, reads=10, receive_buffer=4096)


class RoomTests(ReceiverCase):
    """
    How many, and how much.
    """

    def test_connections_of_a_peer(self) -> None:
        """One address may have so many connections; the next is told so, and others don't suffer."""
        receiver = self.start("--limit", "connections_per_peer=20")
        held = [self.connect(receiver.port) for _ in range(20)]
        (answer,) = self.connect(receiver.port).answers()
        self.assertEqual((503, "too_many_connections"), (answer.status, answer.reason))
        self.assertEqual(200, self.ask(receiver.port, post(b"other"), source="127.0.0.2").status)
        held[0].socket.close()
        wait_until(lambda: self._status(receiver, "127.0.0.1") == 200, "there is room again")

    def test_connections(self) -> None:
        """There are so many connections in all. Those that ask for nothing make room; those with a request don't."""
        receiver = self.start("--limit", "connections=20", "--admin", "unix:admin")
        silent = [self.connect(receiver.port) for _ in range(20)]
        for number in range(1, 31):
            good = self.connect(receiver.port, source=f"127.0.0.{number}").send(post(b"hello")).answer()
            self.assertEqual(200, good and good.status)
        for each in silent:
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(b"", each.socket.recv(1))
        self.assertEqual(30, self._too_many(receiver))
        held = []
        request = post(b"hello", headers=["Expect: 100-continue"])
        for _ in range(20):
            held.append(self.connect(receiver.port).send(request.removesuffix(b"hello")))
            went_on = held[-1].answer()
            self.assertEqual(100, went_on and went_on.status)
        (answer,) = self.connect(receiver.port, source="127.0.0.99").answers()
        self.assertEqual((503, "too_many_connections"), (answer.status, answer.reason))
        for each in held:
            last = each.send(b"hello").answer()
            self.assertEqual(200, last and last.status)
        wait_until(lambda: self._status(receiver, "127.0.0.99") == 200, "there is room again")

    def _counts_many(self, receiver: Receiver, least: float) -> None:
        wait_until(lambda: self._too_many(receiver) >= least, "those that had to go are counted")

    def _too_many(self, receiver: Receiver) -> float:
        return metrics(receiver).get('webhookrx_refusals_total{reason="too_many_connections",source=""}', 0.0)

    def test_room_on_all_endpoints(self) -> None:
        """
        Whoever holds all places on one endpoint, plain, TLS or a UNIX socket, and has sent nothing or half a head:
        others are served on all of them, with workers too.
        """
        directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, directory)
        authority = Authority("Root")
        tls = server_settings(directory, authority.issue("receiver"))
        context = ssl.create_default_context(cafile=write_ca_file(directory, "ca", authority))
        context.check_hostname = False
        ports = ("--port", "unix:socket", "--port", f"ssl:0:privateKey={tls.key_file}:certKey={tls.cert_file}")
        for workers in (1, 2):
            options = (*ports, "--limit", "connections=10", "--workers", str(workers), "--admin", "unix:admin")
            receiver = Receiver(*options, directory=directory).start()
            self.addCleanup(receiver.kill)
            *_, tls_port = map(int, re.findall(r"Listening on .*?:(\d+) ", receiver.log()))
            plain, local = receiver.port, receiver.path("socket")
            for held, first in ((plain, b""), (plain, b"POST /in"), (local, b""), (tls_port, b""), (tls_port, b"\x16")):
                before = self._too_many(receiver)
                for _ in range(30 * workers):
                    self.connect(held).send(first)
                self._counts_many(receiver, before + 20 * workers)
                for _ in range(5):
                    self.assertEqual(200, self.ask(plain, post(b"plain")).status)
                    self.assertEqual(200, self.ask(local, post(b"local")).status)
                    with context.wrap_socket(Connection(tls_port).socket) as secure:
                        secure.sendall(post(b"secure"))
                        self.assertIn(b"200 OK", secure.recv(100))
                self._counts_many(receiver, before + 20 * workers + 1)
            self.assertNotIn("Traceback", receiver.log())
            self.assertNotIn("handshake", receiver.log())
            self.assertEqual(0, receiver.stop())

    def _status(self, receiver: Receiver, source: str) -> int:
        return self.ask(receiver.port, post(b"hello"), source=source).status

    def test_bodies_under_way(self) -> None:
        """Bodies count as they come; who finds no room is told to come again, and the others are finished."""
        # Large bodies in progress get half of the queue: two of these fit, a third does not.
        receiver = self.start("--limit", "body=1MiB", "--limit", "queue=4MiB")
        body = bytes(MiB * 7 // 10)
        head = post(body, headers=["Expect: 100-continue"]).removesuffix(body)
        under_way = [self.connect(receiver.port).send(post(body)[:-1]) for _ in range(2)]
        # When they have been read, who asks first is not told to go on.
        wait_until(lambda: self.ask(receiver.port, head).status != 100, "the bodies have been read")
        late = self.ask(receiver.port, head)
        self.assertEqual((503, b'{"status":"flow-controlled"}'), (late.status, late.body))
        self.assertIn("retry-after", late.headers)
        for connection in under_way:
            done = connection.send(body[-1:]).answer()
            self.assertEqual(200, done and done.status)
        self.assertEqual([len(body)] * 2, [message["RAWMSG_SIZE"] for message in receiver.messages()])
        self.assertEqual(200, self.ask(receiver.port, post(body)).status)


class OpenFilesTests(ReceiverCase):
    """
    Fewer files than connections.
    """

    def start_with(self, files: str, *options: str) -> Receiver:
        """Start a receiver with a limit on open files, as an option of C{ulimit}."""
        receiver = self.prepare(*options, "--admin", "unix:admin")
        receiver._arguments = ("sh", "-c", f'ulimit {files} && exec "$@"', "sh", *receiver._arguments)
        return receiver.start()

    def test_raised(self) -> None:
        """The soft limit is raised to the hard one, in workers too, and nothing is said."""
        for workers in (1, 2):
            receiver = self.start_with("-S -n 100", "--workers", str(workers), "--limit", "connections=1000")
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            for pid in (receiver.pid, *children(receiver.pid)):
                self.assertEqual((hard, hard), resource.prlimit(pid, resource.RLIMIT_NOFILE))
            self.assertNotIn("The process may open", receiver.log())
            self.assertEqual(0, receiver.stop())

    def test_lowered(self) -> None:
        """
        Where that is not enough there are as many connections as there is room for, it is said in one line, and
        hundreds that do nothing keep nobody out.
        """
        for workers in (1, 2):
            receiver = self.start_with("-n 160", "--workers", str(workers))
            self.assertEqual(1, receiver.log().count("The process may open 160 files"))
            most = metrics(receiver)["webhookrx_max_connections"]
            self.assertTrue(40 * workers < most < 160 * workers, most)
            before = len(receiver.log())
            for _ in range(6):
                for _ in range(100):
                    self.connect(receiver.port)
                self.assertEqual(200, self.ask(receiver.port, post(b"good")).status)
            log = receiver.log()[before:]
            self.assertLess(len(log), 20_000)
            for word in ("EMFILE", "Too many open files", "Traceback"):
                self.assertNotIn(word, log)
            self.assertEqual(0, receiver.stop())

    def test_none_left(self) -> None:
        """
        When the system gives no more files all the same, the log has a few lines of it, and the processor is idle;
        once there are files again all are served.
        """
        receiver = self.start("--admin", "unix:admin")
        before = len(receiver.log())
        limits = resource.prlimit(receiver.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(receiver.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        waiting = [self.connect(receiver.port).send(post(b"hello")) for _ in range(50)]
        used = receiver.processor_time()
        time.sleep(2)
        self.assertLess(receiver.processor_time() - used, 0.5)
        self.assertLess(len(receiver.log()) - before, 20_000)
        self.assertIn("No connection can be accepted for a moment: EMFILE", receiver.log())
        resource.prlimit(receiver.pid, resource.RLIMIT_NOFILE, limits)
        answers = [answer.status for each in waiting[5:] if (answer := each.answer()) is not None]
        self.assertEqual([200] * 45, answers)
        self.assertGreater(metrics(receiver)["webhookrx_accepts_failed_total"], 1)


class BombTests(ReceiverCase):
    """
    Bodies of a few hundred kilobytes that unpack to a hundred mebibytes, and in a long run to six hundred.
    """

    #: Mebibytes that they unpack to.
    size = 600 if LONG else 100

    def test_bombs(self) -> None:
        """Each is refused with 413, and takes no more than 32 MiB of memory above rest; the process goes on."""
        receiver = self.start()
        for coding, bomb in BOMBS.items():
            body = bomb(self.size * MiB)
            self.assertEqual(200, self.ask(receiver.port, post(b"at rest")).status)
            rest = receiver.resident()
            receiver.forget_peak()
            answer = self.ask(receiver.port, post(body, headers=[f"Content-Encoding: {coding}"]))
            reason = "body_too_large" if len(body) * 100 > 10 * MiB else "unpack_ratio"
            self.assertEqual((413, reason), (answer.status, answer.reason), coding)
            self.assertLess(receiver.peak() - rest, 32 * 1024, coding)
        self.assertEqual(["at rest"] * 4, [message["MESSAGE"] for message in receiver.messages()])


class SlowHTTPTestTests(ReceiverCase):
    """
    C{slowhttptest} with a thousand connections, and the limits as they come.
    """

    if not LONG:
        skip = "it takes two minutes: set WEBHOOKRX_LONG=1"
    elif SLOWHTTPTEST is None:
        skip = "slowhttptest is not installed"

    def attack(self, deadline: float, *options: str) -> None:
        """
        Run it against a new receiver; all its connections are closed in time, and good senders don't suffer.

        Whether they are closed is seen at the receiver: a slow reader learns it long after.

        @param deadline: seconds that a connection may stay.
        """
        assert SLOWHTTPTEST is not None
        receiver = self.start()
        good = Load(receiver.port, 2, source="127.0.0.2", pause=0.005).start()
        time.sleep(5)
        before = percentile(list(good.times), 0.99)
        good.times.clear()
        files = receiver.open_files()
        url = f"http://127.0.0.1:{receiver.port}/in"
        attack = subprocess.Popen(
            [SLOWHTTPTEST, "-c", "1000", "-r", "500", "-l", str(int(deadline) + 30), *options, "-u", url],
            stdout=subprocess.DEVNULL,
        )
        self.addCleanup(attack.wait)
        self.addCleanup(attack.kill)
        wait_until(lambda: receiver.open_files() >= files + 1000, "all connections are open")
        opened_at = time.monotonic()
        # Its probes come and go.
        wait_until(lambda: receiver.open_files() <= files + 5, "all connections are closed", deadline + 2 * SLACK)
        closed_after = time.monotonic() - opened_at
        during = percentile(list(good.times), 0.99)
        good.stop()
        print(f"{options[0]}: closed after {closed_after:.1f} s; p99 {before * 1e3:.1f} ms, then {during * 1e3:.1f} ms")
        self.assertEqual(([], []), (good.refused, good.broken))
        self.assertLess(during, max(0.05, 3 * before))

    def test_slow_headers(self) -> None:
        """Slow headers are over after ten seconds."""
        self.attack(10, "-H", "-i", "2", "-t", "POST", "-x", "24")

    def test_slow_bodies(self) -> None:
        """Slow bodies are over after sixty seconds."""
        self.attack(60, "-B", "-i", "5", "-t", "POST", "-s", "8192")

    def test_slow_reads(self) -> None:
        """Slow readers are over after thirty seconds, though our system holds the little that they have not taken."""
        self.attack(30, "-X", "-w", "10", "-y", "20", "-n", "5", "-z", "32", "-k", "10")
