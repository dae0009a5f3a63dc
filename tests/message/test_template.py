"""Tests for L{webhookrx.message.template}."""

from __future__ import annotations

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.message.encoders import encode_line
from webhookrx.message.macros import isodate
from webhookrx.message.message import Message
from webhookrx.message.template import Template

MOMENT = 1_795_172_707_123_456_789

MESSAGE = Message(
    {
        "HOST": "web1",
        "MESSAGE": "it works",
        "PROGRAM": "",
        "none": None,
        "no": False,
        "zero": 0,
        "price": msgspec.Raw(b"1.50"),
        "tags": ["foo", "a,b"],
        "mixed": [1, "x"],
        "a.b-c d": "odd",
        "webhook.query.a": "q",
        "1": "one",
    },
    MOMENT,
)


class ParseTests(SynchronousTestCase):
    """Tests for L{Template.parse}."""

    def test_keeps_text(self) -> None:
        """A template remembers what the user wrote."""
        self.assertEqual("${A} $$", Template.parse("${A} $$").text)

    def test_mistakes(self) -> None:
        """Each mistake is a sentence that begins with its column."""
        for text, column, words in (
            ("${HOST", 1, "not closed by }"),
            ("ab ${HOST", 4, "not closed by }"),
            ("${A} ${B:-${C}}", 6, "another brace"),
            ("${}", 1, "name is missing"),
            ("${:-x}", 1, "name is missing"),
            ("${A:x}", 1, ":- and a default"),
            ("${A:}", 1, ":- and a default"),
            ("${A:-$B}", 1, "plain text"),
            ("$(format-json", 1, "not closed by )"),
            ("$()", 1, "no template function ''"),
            ("$(format_json)", 1, "no template function 'format_json'; there is format-json"),
            ("$(format-json --scope everything)", 1, "takes no arguments"),
            ("x $", 3, "write $$"),
            ("$ x", 1, "write $$"),
            ("$-", 1, "write $$"),
            ("$é", 1, "write $$"),
            ("a\n", 2, "one line"),
            ("ab\rc", 3, "one line"),
            ("ab\u2028", 3, "one line"),
            ("ab\x85", 3, "one line"),
            ("${A:-\n}", 6, "one line"),
        ):
            with self.subTest(text=text):
                error = self.assertRaises(ValueError, Template.parse, text)
                self.assertTrue(str(error).startswith(f"column {column}: "), str(error))
                self.assertIn(words, str(error))

    @given(st.text(alphabet="$\\{}():-aA1 \n", max_size=12))
    def test_any_text(self, text: str) -> None:
        """Any text either is a template that renders one line, or a L{ValueError} with a column."""
        try:
            template = Template.parse(text)
        except ValueError as error:
            self.assertTrue(str(error).startswith("column "))
        else:
            self.assertEqual(1, template.render_line(MESSAGE).count(b"\n"))


class RenderTests(SynchronousTestCase):
    """Tests for L{Template.render}."""

    def test_rendered(self) -> None:
        """Macros, pairs, defaults, dollar signs and literal text come out as they should."""
        for text, expected in (
            ("", ""),
            ("plain {text} (here)", "plain {text} (here)"),
            ("${HOST}", "web1"),
            ("$HOST", "web1"),
            ("$HOST.$MSG!", "web1.it works!"),
            ("$HOSTx", ""),
            ("$1", "one"),
            ("<$PRI>${HOST} ${MSGHDR}${MESSAGE}", "<13>web1 it works"),
            ("$$HOST", "$HOST"),
            ("$$$HOST$$", "$web1$"),
            ("${webhook.query.a} ${a.b-c d}", "q odd"),
            ("${missing}", ""),
            ("${missing:-x y}", "x y"),
            ("${missing:-}", ""),
            ("${missing:-a:-b}", "a:-b"),
            ("${PROGRAM:-empty}", "empty"),
            ("${none:-null}", "null"),
            ("${HOST:-x}", "web1"),
            ("${no:-x} ${zero:-x}", "false 0"),
            ("${price}", "1.50"),
            ("${tags}", 'foo,"a,b"'),
            ("${mixed}", '[1,"x"]'),
            ("${DESTIP:-?}", "?"),
            ("é ${missing:-é}", "é é"),
        ):
            with self.subTest(text=text):
                self.assertEqual(expected, Template.parse(text).render(MESSAGE))
                self.assertEqual(expected.encode() + b"\n", Template.parse(text).render_line(MESSAGE))

    def test_isodate(self) -> None:
        """Hard macros that follow from the moment of receipt are worked out."""
        self.assertEqual(isodate(MOMENT), Template.parse("${R_ISODATE}").render(MESSAGE))

    def test_format_json(self) -> None:
        """The JSON function writes what a JSON line holds."""
        self.assertEqual(b"x " + encode_line(MESSAGE), Template.parse("x $( format-json )").render_line(MESSAGE))

    def test_values_as_they_are(self) -> None:
        """Without a line to keep to, values are not escaped."""
        self.assertEqual("[a\n\x1b]", Template.parse("[$a]").render(Message({"a": "a\n\x1b"}, MOMENT)))

    def test_many_messages(self) -> None:
        """One template renders many messages; nothing of the first is in the second."""
        template = Template.parse("$a${b:-x}")
        self.assertEqual("1x", template.render(Message({"a": 1}, MOMENT)))
        self.assertEqual("2", template.render(Message({"b": 2}, MOMENT)))


class RenderLineTests(SynchronousTestCase):
    """Tests for L{Template.render_line}."""

    def test_escapes(self) -> None:
        """What could end a line or mislead a reader is escaped in values; other text stays."""
        for value, expected in (
            ("a\nb", r"a\nb"),
            ("a\r\nb", r"a\r\nb"),
            ("\t", r"\t"),
            ("\x00\x1b[31m\x7f", r"\x00\x1b[31m\x7f"),
            ("\x85\x9b", r"\x85\x9b"),
            ("\u2028\u2029", r"\u2028\u2029"),
            ("\u202e\u2066\u200f\u061c", r"\u202e\u2066\u200f\u061c"),
            ("\ud800", r"\ud800"),
            ("a\\nb\\", "a\\nb\\"),
            ("é😀\u00a0\u200d", "é😀\u00a0\u200d"),
        ):
            with self.subTest(expected=expected):
                line = Template.parse("[${a}]").render_line(Message({"a": value}, MOMENT))
                self.assertEqual(f"[{expected}]\n".encode(), line)

    def test_json_is_not_escaped_twice(self) -> None:
        """JSON's own escapes stand as they are."""
        line = Template.parse("$(format-json)").render_line(Message({"a": "\n\u2028"}, MOMENT))
        self.assertIn(rb'"a":"\n\u2028"', line)
        self.assertEqual("\n\u2028", json.loads(line)["a"])

    def test_template_with_bytes_from_the_command_line(self) -> None:
        """Literal text that is not UTF-8 doesn't stop a message."""
        self.assertEqual(b"\\udcff1\n", Template.parse("\udcff$a").render_line(Message({"a": 1}, MOMENT)))

    @given(st.text(alphabet=st.characters(exclude_categories=())), st.lists(st.text(), max_size=3))
    def test_one_line(self, text: str, texts: list[str]) -> None:
        """Whatever the values, the result is one line of UTF-8 to every reader."""
        message = Message({"a": text, "b": list(texts), "c": {"d": list(texts)}}, MOMENT)
        line = Template.parse("${a} ${b} ${c} ${a:-x}").render_line(message)
        self.assertEqual(1, len(line.decode().splitlines()))
        self.assertTrue(line.endswith(b"\n"))
