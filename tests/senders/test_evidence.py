"""
Tests for L{webhookrx.senders.evidence}.
"""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import evidence_of, known_of
from webhookrx.intake.head import Head, HeaderLines, Peer
from webhookrx.senders.bodies import FORM, MAX_FIRST
from webhookrx.senders.evidence import WantedHeaders
from webhookrx.speedups import compiled

NAMES = st.text("abAB-1", min_size=1, max_size=4).map(str.encode)
VALUES = st.binary(max_size=6)


def is_utf_8(value: bytes) -> bool:
    """Tell whether bytes are UTF-8."""
    return value.decode("utf-8", "ignore").encode() == value


class HeaderTests(SynchronousTestCase):
    """Names and values of headers."""

    def test_look_up(self) -> None:
        """Names are compared without case; the first value counts, without white space around it."""
        lines = b"Host: h", b"X-A:  one two\t", b"x-a: three", b"X-AB:", b"Y: caf\xc3\xa9", b"Z: caf\xe9"
        block = b"POST /a:b HTTP/1.1\r\n" + b"\r\n".join(lines) + b"\r\n\r\n"
        evidence = known_of(Head(b"POST", b"/a:b", b"", HeaderLines(block), Peer("", None, False)), {}, b"")
        self.assertEqual(evidence.header_names(), [b"host", b"x-a", b"x-a", b"x-ab", b"y", b"z"])
        for name, expected in {
            b"x-a": "one two",
            b"x-ab": "",
            b"host": "h",
            b"y": "caf\u00e9",
            b"z": "caf\u00e9",
            b"b http/1.1": None,
            b"a": None,
            b"post /a": None,
        }.items():
            self.assertEqual(evidence.header(name), expected, name)

    def test_media_type(self) -> None:
        """The media type is in lower case, without parameters."""
        for value, expected in {"Text/Plain; charset=UTF-8": "text/plain", "a/b ;x": "a/b", "": ""}.items():
            self.assertEqual(evidence_of(b"", {"Content-Type": value}).media_type, expected)
        self.assertEqual(evidence_of().media_type, "")

    @given(st.lists(st.tuples(NAMES, VALUES), max_size=6))
    def test_pairs(self, pairs: list[tuple[bytes, bytes]]) -> None:
        """Header lines that are pairs are looked up in the same way, whatever is in them."""
        lower = [(name.lower(), value) for name, value in pairs]
        evidence = known_of(Head(b"POST", b"/", b"", lower, Peer("", None, False)), {}, b"")
        self.assertEqual(evidence.header_names(), [name for name, _ in lower])
        for name, _ in lower:
            first = next(value for each, value in lower if each == name)
            shown = first.replace(b"\r", b" ").replace(b"\n", b" ").strip()
            self.assertEqual(evidence.header(name), shown.decode("utf-8" if is_utf_8(shown) else "latin-1"))

    @given(st.lists(st.tuples(NAMES, VALUES), max_size=6), st.sets(NAMES.map(bytes.lower), max_size=4))
    @example([(b"1", b"")], {b"1", b"10", b"x-longer"})
    def test_wanted(self, pairs: list[tuple[bytes, bytes]], wanted: set[bytes]) -> None:
        """The names and values of wanted headers are those that are found one by one, in the order of the lines."""
        lines = [name + b": " + value.translate(None, b"\r\n") for name, value in pairs]
        block = b"\r\n".join([b"POST / HTTP/1.1", b"Host: h", *lines, b"", b""])
        head = Head(b"POST", b"/", b"", HeaderLines(block), Peer("", None, False))
        evidence, other = known_of(head, {}, b""), known_of(head, {}, b"")
        found = evidence.wanted_headers(WantedHeaders.of(wanted))
        if found is not None:
            self.assertEqual(found, tuple(dict.fromkeys(name for name in other.header_names() if name in wanted)))
        for name in {*wanted, *(name.lower() for name, _ in pairs), b"content-type"}:
            self.assertEqual(evidence.header(name), other.header(name))
        self.assertEqual(evidence.media_type, other.media_type)

    def test_usual(self) -> None:
        """A usual head is left to Python only without the compiled path."""
        evidence = evidence_of(b"", {"Host": "h", "X-A": "1", "Content-Type": "a/b", "x-a": "2", "X-B": ""})
        expected, names = None if compiled is None else (b"x-a", b"x-b"), (b"x-a", b"x-b", b"x-c")
        self.assertEqual(evidence.wanted_headers(WantedHeaders.of(names)), expected)


class ObjectTests(SynchronousTestCase):
    """What requests are told by."""

    def test_table(self) -> None:
        """The body when it is an object, or the first object in it."""
        for body, expected in (
            ({"a": 1}, {"a": 1}),
            ([1, "x", {"a": 1}, {"b": 2}], {"a": 1}),
            ([0] * 200 + [{"a": 1}], None),
            ([], None),
            (7, None),
            (b'{"a": 1}\n{"b": 2}\n', {"a": 1}),
            (b"plain", None),
            (b"", None),
        ):
            evidence = evidence_of(body)
            self.assertEqual(evidence.object, expected)
            self.assertIs(evidence.object, evidence.object)

    def test_form(self) -> None:
        """The fields of a form that is not too long."""
        evidence = evidence_of(b"a=1", {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"})
        self.assertEqual(evidence.object, {"a": "1"})
        self.assertIs(evidence.object, evidence.form)
        long = b"a=" + b"x" * MAX_FIRST
        for body, media_type in ((b"a=1", "text/plain"), (b"", FORM), (long, FORM), (b"{a=1", FORM)):
            self.assertIsNone(evidence_of(body, {"Content-Type": media_type}).object, body[:20])
        self.assertEqual(evidence_of(b"a=1").object, {"a": "1"})
