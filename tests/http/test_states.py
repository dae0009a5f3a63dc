"""
Tests for L{webhookrx.http.states}: the tables, and that connections keep to them.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.static import Data

from tests.http.wire import Sender, Wire, post
from webhookrx.errors import NotStored
from webhookrx.http.states import ANSWER, CLOSED, DONE, HALF_CLOSED, IDLE, TRANSITIONS, Lifetime, RequestCycle

CHUNKED = b"POST /in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
STREAM = (
    post(b"one")
    + post(b"refused", b"/out")
    + b"GET /in HTTP/1.1\r\nHost: a\r\n\r\n\r\n"
    + b"GET /data HTTP/1.1\r\nHost: a\r\n\r\n"
    + CHUNKED
    + post(b"two")
)
STREAMS = (
    STREAM,
    STREAM + post(b"last", headers=b"Connection: close\r\n") + post(b"behind it"),
    post(b"x", b"/out") * 40,
    post(b"x" * 5000),
    b"nonsense\r\n\r\n",
)


class TableTests(SynchronousTestCase):
    """What may follow what."""

    def test_legal(self) -> None:
        """A transition of the table leads to its state; any other one raises."""
        for machine, rows in TRANSITIONS.items():
            legal = {(one, after) for before, after, _ in rows for one in before}
            self.assertEqual(sum(len(before) for before, _, _ in rows), len(legal))
            for before in machine:
                for after in machine:
                    if (before, after) in legal:
                        self.assertIs(after, before.to(after))
                    else:
                        self.assertRaises(RuntimeError, before.to, after)

    def test_one_at_a_time(self) -> None:
        """No request is begun while another one waits for its answer; after the last answer nothing follows."""
        cycle, lifetime = TRANSITIONS[RequestCycle], TRANSITIONS[Lifetime]
        self.assertEqual({IDLE, DONE}, {after for before, after, _ in cycle if ANSWER in before})
        self.assertEqual([], [after for before, after, _ in cycle if DONE in before])
        self.assertEqual([], [after for before, after, _ in lifetime if CLOSED in before])

    def test_reachable(self) -> None:
        """Every state but the first of its machine follows another one."""
        for machine, rows in TRANSITIONS.items():
            self.assertLessEqual(set(list(machine)[1:]), {after for _, after, _ in rows})

    def test_mistake(self) -> None:
        """Should a connection take a wrong turn, it is cut off and the mistake reported; no message comes of it."""
        wire = Wire()
        sender = wire.connect()
        sender.send(post(b"x")[:-1])
        sender.protocol._complete(b"x")
        sender.protocol._body = None
        with self.assertRaises(RuntimeError):
            sender.protocol._complete(b"x")
        self.assertEqual(1, len(wire.consumer.messages))


class Play:
    """A sender, a site and a chain that do things in any order."""

    def __init__(self, secure: bool, stream: bytes) -> None:
        self.turns: list[Callable[[], None]] = []
        self.wire = Wire({"/in": {}}, later=self.turns.append)
        self.wire.root.putChild(b"data", Data(b"hello", "text/plain"))
        self.wire.consumer.hold()
        self.sender: Sender = self.wire.connect(secure=secure)
        self.sender.transport._high_water = 2000
        self.stream = stream
        self.safe = 0

    def send(self, size: int) -> None:
        transport = self.sender.transport
        if transport.reading and transport.end in (None, "half") and self.sender.protocol._lifetime < HALF_CLOSED:
            data, self.stream = self.stream[:size], self.stream[size:]
            self.sender.protocol.dataReceived(data)

    def end(self, _: int) -> None:
        if self.sender.transport.end in (None, "half"):
            self.sender.end()

    def leave(self, size: int) -> None:
        if size % 5 == 0 and self.sender.transport.end in (None, "half"):
            self.sender.leave()

    def stop_taking(self, _: int) -> None:
        self.sender.transport.stop_taking()

    def take(self, _: int) -> None:
        if self.sender.transport._held is not None and self.sender.protocol._lifetime is not CLOSED:
            self.sender.transport.take()

    def acknowledge(self, size: int) -> None:
        failure = NotStored("disk full") if size % 7 == 0 else None
        self.safe += 0 if failure else len(self.wire.consumer._waiting)
        self.wire.consumer.acknowledge_all(failure)
        self.wire.consumer.hold()

    def pause(self, _: int) -> None:
        self.wire.site.pauseProducing()

    def resume(self, _: int) -> None:
        self.wire.site.resumeProducing()

    def turn(self, _: int) -> None:
        turns, self.turns[:] = self.turns[:], []
        for turn in turns:
            turn()

    def time(self, size: int) -> None:
        self.wire.advance(size % 40)

    def finish(self, size: int) -> None:
        if size % 3 == 0:
            self.wire.site.finish()

    def drain(self, size: int) -> None:
        if size % 6 == 0:
            self.wire.site.drain()


DEEDS = [name for name in vars(Play) if not name.startswith("_")]


class WalkTests(SynchronousTestCase):
    """Connections in any order of events."""

    @settings(max_examples=300, deadline=None)
    @given(
        st.booleans(),
        st.sampled_from(STREAMS),
        st.lists(st.tuples(st.sampled_from(["send", "send", "acknowledge", *DEEDS]), st.integers(1, 400)), max_size=40),
    )
    def test_any_order(self, secure: bool, stream: bytes, deeds: list[tuple[str, int]]) -> None:
        """No transition is outside the tables, and no more requests are answered with 200 than messages are safe."""
        play = Play(secure, stream)
        for deed, size in deeds:
            getattr(play, deed)(size)
        self.assertEqual([], play.wire.traffic.failures)
        received = play.sender.transport.written.count(b'{"status":"received"}')
        self.assertLessEqual(received, play.safe)
        self.assertEqual(received, len(play.wire.traffic.answers))
