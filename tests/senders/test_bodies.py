"""
Tests for L{webhookrx.senders.bodies} and L{webhookrx.senders.bodies}.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import RequestRefused
from webhookrx.intake.json_body import MAX_DEPTH, MAX_ELEMENTS, body_text
from webhookrx.intake.urlencoded import parse_query
from webhookrx.senders import bodies
from webhookrx.senders.bodies import (
    FORM,
    LOGPLEX,
    MAX_EVENTS,
    MAX_FIRST,
    MAX_FORM,
    Events,
    first_element,
    first_object,
    form_fields,
    read_frames,
    split_documents,
    split_frames,
    split_lines,
)

FRAME = b"<158>1 2024-02-29T12:00:00.123456+00:00 host.example app web.1 - State [changed] - up"
DOCUMENTS = st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4) | st.lists(st.none()), max_size=3)


def framed(*frames: bytes) -> bytes:
    """Return frames as they are sent."""
    return b"".join(b"%d %s" % (len(frame), frame) for frame in frames)


def documents(body: bytes) -> Events | None:
    """Return what L{split_documents} makes of a body."""
    return split_documents(body, body_text(body)[0])


class LineTests(SynchronousTestCase):
    """Lines of JSON."""

    def test_lines(self) -> None:
        """Each line is an event; blank ones are left out, others stay text."""
        self.assertEqual(
            split_lines(b'\xef\xbb\xbf{"a": 1}\r\n\n  \n[2]\n{"b":\nplain \xff\n7\n {"c": 3}'),
            Events([{"a": 1}, [2], '{"b":', "plain \ufffd", "7", {"c": 3}]),
        )

    def test_none(self) -> None:
        """Without a line that is JSON there are no events."""
        for body in (b"", b"\n\n", b"plain\ntext", b"1\n2", b'{"a": 1'):
            self.assertIsNone(split_lines(body), body)

    def test_too_many(self) -> None:
        """What is beyond the bound stays text; too many values are not taken apart."""
        body = b"{}\n" * (MAX_EVENTS + 5)
        found = split_lines(body)
        assert found is not None
        self.assertEqual((len(found.events), found.rest), (MAX_EVENTS, "{}\n" * 5))
        self.assertIsNone(split_lines(b"[" + b"1," * MAX_ELEMENTS + b"1]\n{}"))
        self.patch(bodies, "MAX_EVENTS", 3)
        self.assertEqual(split_lines(b"{}\n{}\n{}"), Events([{}] * 3))
        self.assertEqual(split_lines(b"{}\n{}\n{}\n{}"), Events([{}] * 3, "{}"))

    @given(st.lists(DOCUMENTS, min_size=1, max_size=5))
    def test_whatever(self, events: list[dict[str, Any]]) -> None:
        """Documents come back as they were, as lines and one after another."""
        texts = list(map(msgspec.json.encode, events))
        self.assertEqual(split_lines(b"\n".join(texts)), Events(events))
        for between in (b"", b" ", b"\r\n\r\n"):
            self.assertEqual(documents(between.join(texts)), Events(events))


class DocumentTests(SynchronousTestCase):
    """JSON documents one after another."""

    def test_table(self) -> None:
        """What follows the last document stays text."""
        for body, expected in {
            b'{"a": 1}{"b": [2]} [3]\n\n{\n"c": "}{"\n}': Events([{"a": 1}, {"b": [2]}, [3], {"c": "}{"}]),
            b'\xef\xbb\xbf {"a": 1.50}': Events([{"a": msgspec.Raw(b"1.50")}]),
            b'{"a": 1} x {"b": 2}': Events([{"a": 1}], 'x {"b": 2}'),
            b'{"a": 1}{"b": ': Events([{"a": 1}], '{"b": '),
            b'{"a": 1}7{"b": 2}': Events([{"a": 1}], '7{"b": 2}'),
            b'{"a": 1}{"b": NaN}': Events([{"a": 1}], '{"b": NaN}'),
            b'{"a": "\\ud800"}{}': Events([{"a": "\ufffd"}, {}]),
        }.items():
            self.assertEqual(documents(body), expected, body)

    def test_none(self) -> None:
        """What does not begin with an object or array holds none."""
        for body in (b"", b"  ", b"7 {}", b'"a"', b'{"a"', b"{" * 100_000, b"[" * 5000 + b"]" * 5000, b"x"):
            self.assertIsNone(documents(body), body[:20])

    def test_too_much(self) -> None:
        """Numbers, depth and count are bounded."""
        self.assertEqual(documents(b"{}" + b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)).events, [{}])  # type: ignore[union-attr]
        found = documents(b"{} " * (MAX_EVENTS + 5))
        assert found is not None
        self.assertEqual((len(found.events), found.rest), (MAX_EVENTS, "{} " * 5))
        self.assertIsNone(documents(b"[" + b"1," * MAX_ELEMENTS + b"1]{}"))
        third = b"[" + b"1," * (MAX_ELEMENTS // 3) + b"1]"
        self.assertEqual([2, None], [found and len(found.events) for found in map(documents, (third * 2, third * 3))])
        self.assertEqual(documents(b'{"a":' + b"1" * 5000 + b"}"), Events([{"a": "1" * 5000}]))


class FirstElementTests(SynchronousTestCase):
    """The first object in an array."""

    def test_first(self) -> None:
        """It may be anywhere near the beginning, and no longer array costs more."""
        for before, found in ((0, {"a": 1}), (99, {"a": 1}), (100, None)):
            self.assertEqual(found, first_element([*[7] * before, {"a": 1}, {"a": 2}]))
        self.assertIsNone(first_element([]))


class FormTests(SynchronousTestCase):
    """Forms."""

    def test_fields(self) -> None:
        """Fields are text, or arrays where a name is repeated."""
        self.assertEqual(form_fields(b"a=1&b=x+y%21&b=&c\r\n", FORM), {"a": "1", "b": ["x y!", ""], "c": ""})

    def test_none(self) -> None:
        """What can't be read is no form; neither is JSON that is sent as one, as many do."""
        for body in (b"", b"&&", b"a=%ff", b"a=1&" * 2000, b"a=" + b"x" * MAX_FORM, b'{"a": tru', b" [1=2"):
            self.assertIsNone(form_fields(body, FORM), body[:20])

    def test_media_type(self) -> None:
        """Without a media type a form is what looks like one; with another, nothing is."""
        for body in (b"a=1", b"a=1&b=x+y%21&b=&c=\r\n", b"payload=%7B%22a%22%3A1%7D", b"a[0].b-c=/x?y:z@1,2;3"):
            self.assertIsNotNone(form_fields(body, ""), body)
            self.assertIsNone(form_fields(body, "text/plain"), body)
        for body in (b"", b"a", b"a=b c", b"<14>a=1", b'a="b"', b"a=1\nb=2", b"x" * 300 + b"=1", b"a=\xff", b"=1"):
            self.assertIsNone(form_fields(body, ""), body)

    @given(st.lists(st.sampled_from(b"% %2 2 %22 %2B %26 %3D %25 A + & =".split())))
    def test_shortcut(self, parts: list[bytes]) -> None:
        """A form with many quotes is read as any other, whatever its escapes are."""
        body = b"a=" + b"".join(parts)
        quotes = b"%22%7B%3A%2C" * 20
        try:
            plain = parse_query(body + b"&q=" + quotes)
        except RequestRefused:
            plain = None
        self.assertEqual(form_fields(body + b"&q=" + quotes, FORM), plain)


class FrameTests(SynchronousTestCase):
    """Frames of logplex."""

    def test_members(self) -> None:
        """A frame has members for its fields, without those that are a dash."""
        self.assertEqual(
            read_frames(
                framed(FRAME + b"\n", b"<40>1 2024-02-29T12:00:00+00:00 - heroku - x - [a] b", b"<7>9 - - - - -")
            ),
            Events(
                [
                    {
                        "priority": 158,
                        "facility": 19,
                        "severity": "info",
                        "timestamp": "2024-02-29T12:00:00.123456+00:00",
                        "hostname": "host.example",
                        "app_name": "app",
                        "procid": "web.1",
                        "message": "State [changed] - up",
                    },
                    {
                        "priority": 40,
                        "facility": 5,
                        "severity": "emergency",
                        "timestamp": "2024-02-29T12:00:00+00:00",
                        "app_name": "heroku",
                        "msgid": "x",
                        "message": "- [a] b",
                    },
                    {"priority": 7, "facility": 0, "severity": "debug"},
                ]
            ),
        )

    def test_other(self) -> None:
        """A frame that is no syslog is its text; several lines are one message."""
        self.assertEqual(
            read_frames(framed(b"plain \xff", b"<192>1 - - - - - x", b"<13>1 - - - - - a\nb\n")),
            Events(
                [
                    {"message": "plain \ufffd"},
                    {"message": "<192>1 - - - - - x"},
                    {"priority": 13, "facility": 1, "severity": "notice", "message": "a\nb"},
                ]
            ),
        )

    def test_rest(self) -> None:
        """What is behind the last whole frame stays text."""
        for rest in (b"99 <13>1 - - -", b"x", b"0 ", b"999999999 a", b"-5 a", b"12345678901 a"):
            found = read_frames(framed(FRAME) + rest)
            assert found is not None
            self.assertEqual((len(found.events), found.rest), (1, rest.decode()))
        self.assertEqual(read_frames(framed(FRAME) + b"\n"), read_frames(framed(FRAME)))
        frames, left = split_frames(framed(FRAME, FRAME), 1)
        self.assertEqual((len(frames), left), (1, framed(FRAME)))

    def test_none(self) -> None:
        """What does not begin with a frame has none."""
        for body in (b"", b"5", b"5 a", b"plain", b" " * 100_000):
            self.assertIsNone(read_frames(body), body[:20])


class FirstObjectTests(SynchronousTestCase):
    """What requests are told by."""

    def test_table(self) -> None:
        """The first object of what a body holds several of."""
        for body, media_type, expected in (
            (b'{"a": 1}\n{"b": 2}', "", {"a": 1}),
            (b'\n \t{"a": 1}\r\n{"b": 2}', "text/plain", {"a": 1}),
            (b'\xef\xbb\xbf{"a": 1}\n{', "", {"a": 1}),
            (b'{"a": 1}{"b": 2}', "", {"a": 1}),
            (b'{\n"a": 1\n}\n{"b": 2}', "", {"a": 1}),
            (b'{"a": 1}{"b": 2}\n{"c": 3}', "", {"a": 1}),
            (b'{"a": 1} and more', FORM, {"a": 1}),
            (b"a=1&b=2", FORM, None),
            (b"{a=1", FORM, None),
            (b'[{"a": 1}]\n', "", None),
            (b"plain", "", None),
            (b" plain", "", None),
            (b'{"a": NaN}{', "", None),
            (framed(FRAME), LOGPLEX, {"priority": 158}),
            (b"plain", LOGPLEX, None),
            (b" " * (MAX_FIRST + 1) + b"{}\n{}", "", None),
        ):
            found = first_object(body, body_text(body)[0], media_type)
            if media_type == LOGPLEX and found is not None:
                found = {"priority": found["priority"]}
            self.assertEqual(found, expected, body[:40])

    def test_bounded(self) -> None:
        """A first document that is too long is not looked at."""
        self.patch(bodies, "MAX_FIRST", 20)
        self.assertIsNone(first_object(b"", '{"a": "0123456789"}   {}'[:15] + "x" * 10 + '"}\n{}', ""))
        self.assertEqual(first_object(b"", '{"a": "0123"}\n' + "{" * 100, ""), {"a": "0123"})

    @given(st.binary(max_size=60) | st.text('{}[]",:a1 \n', max_size=40).map(str.encode))
    def test_anything(self, body: bytes) -> None:
        """Nothing is raised for any body, and nothing of it is lost."""
        text = body_text(body)[0]
        for media_type in ("", FORM, LOGPLEX):
            found = first_object(body, text, media_type)
            self.assertTrue(found is None or isinstance(found, dict))
        for events in (split_lines(body), split_documents(body, text), read_frames(body)):
            self.assertTrue(events is None or events.events)
