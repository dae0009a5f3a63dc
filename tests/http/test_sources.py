"""
Tests for L{webhookrx.http.resources}: what a source reports of its traffic, and large bodies.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.http.wire import AtOnce, Sender, Wire, post
from webhookrx.errors import NotStored
from webhookrx.http.resources import DIRECT, MOST_SEPARATORS
from webhookrx.settings import Limits, MiB
from webhookrx.speedups import compiled

GZIP = b"Content-Encoding: gzip\r\n"
CHUNKED = b"POST /one HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


def wire() -> Wire:
    """Return a site with two sources."""
    return Wire(
        {
            "/one(?P<HOST>/.*)?": {"name": "one"},
            "/two": {"name": "two", "auth_tokens": (b"t",), "parse_json": True, "keep_unparsed": False},
        },
        Limits(body=100),
    )


class AnsweredTests(SynchronousTestCase):
    """Times of answers."""

    def test_time(self) -> None:
        """The time runs from the last byte of the request to its 200, whenever its first byte came."""
        site = wire()
        site.consumer.hold()
        sender = site.connect()
        request = post(b"hello", b"/one")
        sender.send(request[:-1])
        site.advance(5)
        sender.send(request[-1:])
        site.advance(1.5)
        self.assertEqual([], site.traffic.answers)
        site.consumer.acknowledge_all()

        self.assertEqual([200], sender.statuses())
        self.assertEqual([("one", 1.5)], site.traffic.answers)

    def test_size(self) -> None:
        """The size of a message is that of its body on the wire, packed as it came."""
        site = wire()
        packed = gzip.compress(b"x" * 90)
        site.ask(post(packed, b"/one", b"Content-Encoding: gzip\r\n"))
        site.ask(post(b"hello", b"/one"))
        self.assertEqual([len(packed), 5], site.traffic.sizes)

    def test_nobody_to_answer(self) -> None:
        """Only what was sent counts: not the 200 to a sender who is gone, nor to one who was told 503 before."""
        site = wire()
        site.consumer.hold()
        gone, late = site.connect(), site.connect()
        gone.send(post(b"1", b"/one"))
        late.send(post(b"2", b"/one"))
        gone.leave()
        site.advance(31)
        site.consumer.acknowledge_all()

        self.assertEqual([503], late.statuses())
        self.assertEqual(([], [("one", "not_stored")]), (site.traffic.answers, site.traffic.refused_by))
        self.assertEqual(2, len(site.traffic.acceptances))

    def test_not_stored(self) -> None:
        """What is not safe is a refusal, not an answer."""
        site = wire()
        site.consumer.failure = NotStored("disk full")
        site.ask(post(b"1", b"/one"))
        self.assertEqual(([], [("one", "not_stored")]), (site.traffic.answers, site.traffic.refused_by))


class RefusedTests(SynchronousTestCase):
    """Who refuses."""

    def test_sources(self) -> None:
        """A refusal has the name of the source whose pattern matched, wherever it is found; before, it has none."""
        token = b"Authorization: Bearer t\r\n"
        table = [
            (post(target=b"/three"), "", "no_matching_path"),
            (b"POST /one HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "", "bad_request"),
            (post(target=b"/" + b"x" * 9000), "", "target_too_long"),
            (post(target=b"/two"), "two", "bad_token"),
            (b"GET /two HTTP/1.1\r\nHost: a\r\n\r\n", "two", "method_not_allowed"),
            (post(target=b"/one/%ff"), "one", "bad_encoding"),
            (post(target=b"/one", headers=b"Expect: x\r\n"), "one", "bad_expectation"),
            (post(b"x", b"/one", b"Content-Encoding: x\r\n"), "one", "unsupported_encoding"),
            (post(b"x", b"/one", b"Content-Encoding: gzip\r\n"), "one", "bad_compression"),
            (post(b"x" * 101, b"/one"), "one", "body_too_large"),
            (post(b"[", b"/two", token), "two", "bad_payload"),
            (CHUNKED + b"zz\r\n", "one", "bad_request"),
            (CHUNKED + b"65\r\n" + b"x" * 101, "one", "body_too_large"),
        ]
        for request, source, reason in table:
            site = wire()
            site.ask(request)
            self.assertEqual([(source, reason)], site.traffic.refused_by, request)
            self.assertEqual(([], []), (site.traffic.acceptances, site.traffic.failures), request)

    def test_no_room(self) -> None:
        """A message that finds no room is none, though there was room for its body."""
        from webhookrx.errors import NoRoom

        site = wire()

        def full(*_: object) -> None:
            raise NoRoom

        self.patch(site.consumer, "write", full)
        self.assertEqual(503, site.ask(post(b"hello", b"/one")).status)
        self.assertEqual(([("one", "no_room")], []), (site.traffic.refused_by, site.traffic.acceptances))

    def test_in_the_body(self) -> None:
        """So it is when the body takes too long, or ends too early."""
        for end, reason in (("late", "timeout"), ("cut", "bad_request")):
            site = wire()
            sender = site.connect()
            sender.send(post(b"hello", b"/one")[:-1])
            if end == "cut":
                sender.end()
            site.advance(61)
            self.assertEqual([("one", reason)], site.traffic.refused_by)

    def test_next_request(self) -> None:
        """A request that is refused before a pattern matches is not told of the source of the one before."""
        site = wire()
        sender = site.connect()
        sender.send(post(b"1", b"/one") + post(target=b"/three") + post(b"x" * 101, b"/one") + post(target=b"/three"))
        site.settle()
        self.assertEqual([200, 404, 413, 404], sender.statuses())
        expected = [("", "no_matching_path"), ("one", "body_too_large"), ("", "no_matching_path")]
        self.assertEqual(expected, site.traffic.refused_by)

    def test_draining(self) -> None:
        """Also when it stops."""
        site = wire()
        sender = site.connect()
        site.site.stopProducing()
        sender.send(post(b"1", b"/one"))
        (response,) = sender.responses()
        self.assertEqual("5", response.headers["retry-after"])
        self.assertEqual([("one", "draining")], site.traffic.refused_by)


class RecordTests(SynchronousTestCase):
    """Requests that somebody wants as they came."""

    def test_which(self) -> None:
        """Each that was read as a whole is given, large or packed, judged well or not, with its body unpacked."""
        given: list[tuple[bytes, bytes]] = []
        site = Wire(
            {"/raw": {}, "/strict": {"parse_json": True, "keep_unparsed": False}, "/token": {"auth_tokens": (b"t",)}},
            Limits(body=MiB, unpack_ratio=100),
            record=lambda head, body: given.append((head.path, body)),
        )
        large = b"x" * (DIRECT + 1)
        for target, body, headers, status in (
            (b"/raw", b"1", b"", 200),
            (b"/raw", gzip.compress(b"2"), GZIP, 200),
            (b"/raw", large, b"", 200),
            (b"/raw", gzip.compress(random.Random(1).randbytes(60_000)), GZIP, 200),
            (b"/strict", b"no JSON", b"", 400),
            (b"/token", b"3", b"", 403),
            (b"/none", b"4", b"", 404),
            (b"/raw", b"no gzip", GZIP, 400),
        ):
            self.assertEqual(status, site.ask(post(body, target, headers)).status)
        noise = random.Random(1).randbytes(60_000)
        self.assertEqual(
            [(b"/raw", b"1"), (b"/raw", b"2"), (b"/raw", large), (b"/raw", noise), (b"/strict", b"no JSON")], given
        )


class _Slices(AtOnce):
    """Does work when told to."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], Callable[[Any], None], int, Callable[[], bool]]] = []
        self.is_full = False

    def has_room(self, size: int) -> bool:
        return not self.is_full

    def run(
        self, work: Callable[[], Any], done: Callable[[Any], None], size: int, is_wanted: Callable[[], bool]
    ) -> None:
        self.waiting.append((work, done, size, is_wanted))

    def proceed(self) -> None:
        """Do all, and what comes of it."""
        while self.waiting:
            work, done, size, is_wanted = self.waiting.pop(0)
            if is_wanted():
                super().run(work, done, size, is_wanted)
            else:
                done(None)


class LargeBodyTests(SynchronousTestCase):
    """Bodies that may take long become messages in time slices."""

    def setUp(self) -> None:
        self.slices = _Slices()
        self.wire = Wire(
            {"/raw": {}, "/strict": {"parse_json": True, "keep_unparsed": False}},
            Limits(body=MiB, unpack_ratio=100),
            slices=self.slices,
        )
        self.budget = self.wire.consumer.budget

    def send(self, body: bytes, target: bytes = b"/raw", headers: bytes = b"") -> Sender:
        sender = self.wire.connect()
        sender.send(post(body, target, headers))
        return sender

    def proceed(self) -> None:
        """Do what waits."""
        self.slices.proceed()
        self.wire.settle()

    def test_which(self) -> None:
        """A body is judged at once unless it is large, unpacked, or may become so."""
        noise = random.Random(1).randbytes(60_000)
        for body, headers, waits in (
            (b"x" * DIRECT, b"", False),
            (b"x" * (DIRECT + 1), b"", True),
            (gzip.compress(b"x" * DIRECT), GZIP, False),
            (gzip.compress(noise[:2000] * 66), GZIP, True),
            (gzip.compress(noise), GZIP, True),
        ):
            sender = self.send(body, headers=headers)
            self.wire.settle()
            self.assertEqual(([] if waits else [200], int(waits)), (sender.statuses(), len(self.slices.waiting)))
            self.proceed()
            self.assertEqual([200] if waits else [], sender.statuses())
        self.assertEqual([DIRECT, DIRECT + 1, DIRECT, 132_000, 60_000], [m["RAWMSG_SIZE"] for m in self.wire.messages])
        self.assertEqual(0, self.budget.bytes)

    def test_lines_at_once(self) -> None:
        """Where only a line is wanted, and the compiled path makes it, bodies of many values are judged at once."""
        self.wire.consumer.takes_only_lines = True
        many = b"[" + b"1," * 9000 + b"1]"
        for body, target, at_once in (
            (b"x" * (DIRECT + 1), b"/raw", False),
            (b'{"a":%s}' % many, b"/strict", True),
            (b'{"a":%s,"b":"%s"}' % (many, b"x" * DIRECT), b"/strict", False),
            (b'{"a":%s,"a":1}' % many, b"/strict", False),
        ):
            sender = self.send(body, target)
            self.wire.settle()
            expected = [200] if at_once and compiled is not None else []
            self.assertEqual((expected, 1 - len(expected)), (sender.statuses(), len(self.slices.waiting)), body[-9:])
            self.proceed()
            self.assertEqual(len(body), self.wire.messages[-1]["RAWMSG_SIZE"])
        self.assertEqual((0, 4), (self.budget.bytes, len(self.wire.messages)))

    def test_may_become_large(self) -> None:
        """A packed body is unpacked at once when it can't become more than 2 MiB."""
        for size, waits in ((2 * MiB // 100, 0), (2 * MiB // 100 + 1, 1)):
            sender = self.send(b"x" * size, headers=GZIP)
            self.assertEqual(([400] * (1 - waits), waits), (sender.statuses(), len(self.slices.waiting)))

    def test_order(self) -> None:
        """Requests of one connection are answered in their order, however large they are."""
        sender = self.wire.connect()
        sender.send(post(b"x" * 2 * DIRECT, b"/raw") + post(b"small", b"/raw"))
        self.wire.settle()
        self.assertEqual([], sender.statuses())
        self.proceed()
        self.assertEqual(([200, 200], 2), (sender.statuses(), len(self.wire.messages)))

    def test_counted(self) -> None:
        """The body is counted while it waits, and then what it has unpacked to until it is a message."""
        sizes: list[int] = []
        prepare = self.wire.consumer.prepare
        self.patch(
            self.wire.consumer, "prepare", lambda message: (sizes.append(self.budget.bytes), prepare(message))[1]
        )
        packed = gzip.compress(random.Random(2).randbytes(60_000) * 3)
        self.send(packed, headers=GZIP)
        self.send(b"x" * 2 * DIRECT)
        self.assertEqual(len(packed) + 2 * DIRECT, self.budget.bytes)
        self.proceed()
        self.assertEqual(2 * DIRECT + 180_000, sizes[0])
        self.assertEqual((0, 2), (self.budget.bytes, len(self.wire.messages)))

    def test_no_room(self) -> None:
        """A body that finds no room, before it is unpacked or after, is refused for a while and forgotten."""
        packed = gzip.compress(random.Random(3).randbytes(60_000) * 3)
        self.wire.consumer.is_full = True
        full = self.send(b"x" * 2 * DIRECT)
        self.wire.consumer.is_full = False
        self.budget.resize(400_000, 10)
        unpacked = self.send(packed, headers=GZIP)
        self.assertEqual(len(packed), self.budget.bytes)
        self.budget.resize(300_000, 10)
        self.proceed()
        self.assertEqual(([503], [503]), (full.statuses(), unpacked.statuses()))
        self.assertEqual((0, []), (self.budget.bytes, self.wire.messages))

    def test_no_room_for_large_ones(self) -> None:
        """A body that may unpack to much has no part in the room that is there for small ones, small as it still is."""
        self.budget.resize(2 * MiB, 10)
        self.budget.reserve(MiB)
        sender = self.send(gzip.compress(random.Random(5).randbytes(30_000)), headers=GZIP)
        self.assertEqual(([503], []), (sender.statuses(), self.slices.waiting))
        self.assertEqual((["no_room"], MiB), (self.wire.traffic.reasons, self.budget.bytes))

    def test_refused(self) -> None:
        """What is refused is refused as at once, and the connection stays, unless too little has become too much."""
        for body, target, headers, status, ended in (
            (b"x" * 2 * DIRECT, b"/strict", b"", 400, False),
            (b"x" * 30_000, b"/raw", GZIP, 400, False),
            (gzip.compress(random.Random(4).randbytes(30_000) * 40), b"/raw", GZIP, 413, False),
            (gzip.compress(bytes(MiB)), b"/raw", GZIP, 413, True),
        ):
            sender = self.send(body, target, headers)
            self.proceed()
            self.assertEqual([status], sender.statuses())
            self.assertEqual(ended, sender.transport.end is not None, status)
        self.assertEqual((0, []), (self.budget.bytes, self.wire.messages))
        self.assertEqual("unpack_ratio", self.wire.traffic.refusals[-1][0])

    def test_failure(self) -> None:
        """Should the work fail, the sender is told so, and nothing stays counted."""
        self.patch(self.wire.consumer, "prepare", lambda message: 1 / 0)
        sender = self.send(b"x" * 2 * DIRECT)
        self.proceed()
        self.assertEqual(([500], "closed", 0), (sender.statuses(), sender.transport.end, self.budget.bytes))
        self.assertEqual(["A request could not be judged."], self.wire.traffic.failures)
        self.assertEqual([("default", "internal_error")], self.wire.traffic.refused_by)

    def test_sender_leaves(self) -> None:
        """What a sender has sent that leaves before its turn is dropped, and counted; later it makes no difference."""
        sender = self.send(b"x" * 2 * DIRECT)
        sender.transport.abortConnection()
        self.proceed()
        self.assertEqual((0, 0, 1), (len(self.wire.messages), self.budget.bytes, self.wire.traffic.dropped))

    def test_full(self) -> None:
        """While what waits has waited for too long, no more is taken."""
        self.slices.is_full = True
        self.assertEqual([503], self.send(b"x" * 2 * DIRECT).statuses())
        self.assertEqual(0, self.budget.bytes)

    def test_many_values(self) -> None:
        """A short body of very many values is a large one, where it may be JSON."""
        body = b"[" + b"[]," * (MOST_SEPARATORS * 4) + b"1]"
        for target, waits in ((b"/raw", 0), (b"/strict", 1)):
            self.send(body, target)
            self.assertEqual(waits, len(self.slices.waiting))
        few = b"[" + b"[]," * (MOST_SEPARATORS // 2 - 10) + b"%s]" % (b" " * 20_000)
        self.send(few, b"/strict")
        self.assertEqual(1, len(self.slices.waiting))

    def test_many_values_of_few_bytes(self) -> None:
        """A body of 8 KiB is judged at once, however many values it has."""
        for size, waits in ((8 * 1024, 0), (8 * 1024 + 1, 1)):
            self.send((b"[" + b"[]," * (MOST_SEPARATORS * 2) + b"1").ljust(size - 1) + b"]", b"/strict")
            self.assertEqual(waits, len(self.slices.waiting))
