"""
Tests for L{webhookrx.typed_yaml}.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Meta
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.diagnostics import ERROR, FILE_CODES, Diagnostic, Position
from webhookrx.typed_yaml import LARGEST, Reading, read_typed, text_positions
from webhookrx.typed_yaml.nodes import MOST_VALUES
from webhookrx.typed_yaml.typed_reader import MOST_MISTAKES
from webhookrx.typed_yaml.value_types import core_value


class Wheel(msgspec.Struct, frozen=True):
    """A part of L{Cart}."""

    size: int
    spare: bool = False


class Cart(msgspec.Struct, frozen=True):
    """What the tests read."""

    name: str
    load: Annotated[int, Meta(ge=1, le=9)] = 1
    any: Any = None
    labels: dict[str, str] = {}
    names: tuple[str, ...] = ()
    wheels: tuple[Wheel, ...] = ()
    front: Wheel | None = None
    one_or_more: Wheel | tuple[Wheel, ...] | None = None
    text_or_more: str | tuple[str, ...] = ()
    wheel_or_text: Wheel | str | None = None
    must_hold: list_of_wheels = ()
    numbers: dict[str, int] = {}


list_of_wheels = tuple[Wheel, ...]


class Trip(msgspec.Struct, frozen=True):
    """Has parts that must be there."""

    front: Wheel
    to: Annotated[str, Meta(description="…")]
    carts: tuple[Cart, ...]
    by: dict[str, str]
    sure: bool
    what: Any
    either: str | tuple[str, ...]


def read(text: str) -> Reading[Cart]:
    """Return what a file holds that is a cart."""
    return read_typed(text.encode(), "cart.yaml", Cart)


def told(findings: list[Diagnostic]) -> list[tuple[str, int, int, str]]:
    """Return code, line, column and field of each diagnostic."""
    return [(found.code, found.line, found.column, found.field) for found in findings]


# The file behind "name: x", and what one of its values becomes.
VALUES: list[tuple[str, str, Any]] = [
    ("name: 0123", "name", "0123"),
    ("name: yes", "name", "yes"),
    ("name: 'it''s'", "name", "it's"),
    ("name: |\n  a\n  b\n", "name", "a\nb\n"),
    ("name: 1.50", "name", "1.50"),
    ("load: 7", "load", 7),
    ("load: '7'", "load", 7),
    ("front: {size: -3, spare: on}", "front", Wheel(-3, True)),
    ("front: {size: 0, spare: OFF}", "front", Wheel(0, False)),
    ("one-or-more: {size: 1}", "one_or_more", Wheel(1)),
    ("one_or-more: [{size: 1}, {size: 2}]", "one_or_more", (Wheel(1), Wheel(2))),
    ("text_or_more: a", "text_or_more", "a"),
    ("text_or_more: [a, 1]", "text_or_more", ("a", "1")),
    ("wheel_or_text: 1", "wheel_or_text", "1"),
    ("wheel_or_text: {size: 1}", "wheel_or_text", Wheel(1)),
    ("labels: {a-b: no, c.d: 1.0, e: ''}", "labels", {"a-b": "no", "c.d": "1.0", "e": ""}),
    ("numbers: {a: 1}", "numbers", {"a": 1}),
    ("names: []", "names", ()),
    ("any: [yes, true, 'true', 12, '12']", "any", ["yes", True, "true", 12, "12"]),
    ("any: [null, ~, {a-b: }]", "any", [None, None, {"a-b": None}]),
    ("any:", "any", None),
    ("names: &a [x]\nlabels: &b {c: d}\nany: [*a, *b]", "any", [["x"], {"c": "d"}]),
    ("labels: {<<: {a: 1, b: 1}, b: 2}", "labels", {"b": "2", "a": "1"}),
    ("labels: {<<: [{a: 1}, {a: 2, b: 3}]}", "labels", {"a": "1", "b": "3"}),
    ("labels: {'<<': x}", "labels", {"<<": "x"}),
    ("any: {<<: {a: 1}}", "any", {"a": 1}),
    ("\r\nload: 2\r\n", "load", 2),
]

# Plain text, and what it is by the core schema. A number as bytes is the exact text of a number.
CORE: list[tuple[str, Any]] = [
    ("", None),
    ("Null", None),
    ("nULL", "nULL"),
    ("True", True),
    ("FALSE", False),
    ("no", "no"),
    ("0", 0),
    ("-0", 0),
    ("+12", 12),
    ("007", 7),
    ("0o17", 15),
    ("0xFf", 255),
    ("-0x1", "-0x1"),
    ("1_000", "1_000"),
    ("1.50", b"1.50"),
    ("-.5", b"-0.5"),
    ("+1.", b"1"),
    ("01.5", b"1.5"),
    ("00.5", b"0.5"),
    ("1e3", b"1e3"),
    ("1.5E-3", b"1.5e-3"),
    (".", "."),
    ("-", "-"),
    ("+.e5", "+.e5"),
    ("1.2.3", "1.2.3"),
    ("2026-11-20", "2026-11-20"),
    ("9" * 400, "9" * 400),
    ("nan", "nan"),
]

# A file, and code, line, column and field of all that is wrong with it. "name: x" stands in the first line.
MISTAKES: list[tuple[str, list[tuple[str, int, int, str]]]] = [
    ("nam: y", [("unknown-key", 2, 1, "nam")]),
    ("name: y", [("duplicate-key", 2, 1, "name")]),
    ("one-or-more: {size: 1}\none_or_more: {size: 1}", [("duplicate-key", 3, 1, "one_or_more")]),
    ("labels: {a: 1, a: 2}", [("duplicate-key", 2, 16, "labels.a")]),
    ("load: x", [("wrong-type", 2, 7, "load")]),
    ("load: 07", [("wrong-type", 2, 7, "load")]),
    ("load: 1.0", [("wrong-type", 2, 7, "load")]),
    ("load: [1]", [("wrong-type", 2, 7, "load")]),
    ("load: 0", [("bad-value", 2, 7, "load")]),
    ("load: 10", [("bad-value", 2, 7, "load")]),
    ("load:", [("no-value", 2, 6, "load")]),
    ("names: {a: b}", [("wrong-type", 2, 8, "names")]),
    ("names: x", [("wrong-type", 2, 8, "names")]),
    ("names: [a, [b], {c: d}]", [("wrong-type", 2, 12, "names[1]"), ("wrong-type", 2, 17, "names[2]")]),
    ("names: [a, ]\nany: [,]", [("yaml-syntax", 3, 7, "")]),
    ("names: [a, ~, '']", [("missing-value", 2, 12, "names[1]")]),
    ("labels: [a]", [("wrong-type", 2, 9, "labels")]),
    ("labels:\n  a:", [("missing-value", 3, 5, "labels.a")]),
    ("wheels: [{}]", [("missing-key", 2, 10, "wheels[0].size")]),
    ("wheels:\n- size:", [("missing-value", 3, 8, "wheels[0].size")]),
    ("wheels: [1]", [("wrong-type", 2, 10, "wheels[0]")]),
    ("front: 1", [("wrong-type", 2, 8, "front")]),
    ("front: {size: 1, spare: maybe}", [("wrong-type", 2, 25, "front.spare")]),
    ("front: {size: 1, spare: [yes]}", [("wrong-type", 2, 25, "front.spare")]),
    ("one_or_more: x", [("wrong-type", 2, 14, "one_or_more")]),
    ("wheel_or_text: []", [("wrong-type", 2, 16, "wheel_or_text")]),
    ("any: !!str 1", [("yaml-tag", 2, 6, "any")]),
    ("any: !x [1]", [("yaml-tag", 2, 6, "any")]),
    ("labels: !x {a: b}", [("yaml-tag", 2, 9, "labels")]),
    ("load: !!int 1", [("yaml-tag", 2, 7, "load")]),
    ("? [a]\n: b", [("bad-key", 2, 3, "")]),
    ("!x load: 1", [("yaml-tag", 2, 1, "")]),
    ("any: *nothing", [("bad-alias", 2, 6, "")]),
    ("any: &a [*a]", [("bad-alias", 2, 10, "")]),
    ("any: .inf", [("bad-value", 2, 6, "any")]),
    ("any: [-.INF, .nan]", [("bad-value", 2, 7, "any[0]"), ("bad-value", 2, 14, "any[1]")]),
    ("labels: {<<: x}", [("bad-merge", 2, 14, "labels")]),
    ("labels: {<<: [{a: b}, x]}", [("bad-merge", 2, 23, "labels")]),
    ("labels: {<<: {<<: {a: b}}}", [("bad-merge", 2, 15, "labels")]),
    ('any: "\\x07"', [("control-character", 2, 6, "any")]),
    ('labels: {"a\\0": b}', [("control-character", 2, 10, "labels")]),
    ("any: \x07", [("control-character", 2, 6, "")]),
    ("any: 1\nload: \x7f", [("control-character", 3, 7, "")]),
    ("---\nany: 1", [("several-documents", 2, 1, "")]),
    ("any: a: b", [("yaml-syntax", 2, 7, "")]),
    ("\tany: 1", [("yaml-syntax", 2, 1, "")]),
    ("%YAML 9.9", [("yaml-syntax", 2, 1, "")]),
    ("any: " + "[" * 70, [("too-deep", 2, 69, "")]),
]

# A file from its first byte on.
WHOLE_FILES: list[tuple[bytes, list[tuple[str, int, int, str]]]] = [
    (b"", [("empty-file", 0, 0, "")]),
    (b"# only this\n", [("empty-file", 0, 0, "")]),
    (b"---\n", [("empty-file", 0, 0, "")]),
    (b"null", [("empty-file", 0, 0, "")]),
    (b"text", [("wrong-type", 1, 1, "")]),
    (b"- a", [("wrong-type", 1, 1, "")]),
    (b"{}", [("missing-key", 1, 1, "name")]),
    (b"name:", [("missing-value", 1, 6, "name")]),
    (b"name: \xff", [("not-utf8", 1, 7, "")]),
    (b"name: x\n\xc3\xa9: \xc3", [("not-utf8", 2, 4, "")]),
    (b"\xef\xbb\xbfname: x", []),
    (b"\xef\xbb\xbfname: \xff", [("not-utf8", 1, 7, "")]),
    (b"name: " + b"x" * (LARGEST - 5), [("file-too-large", 0, 0, "")]),
    (b"name: " + b"x" * (LARGEST - 6), []),
    (b"name: x\rload: 1", [("control-character", 1, 8, "")]),
]

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{below}'] * 10)}]\n" for below, name in zip("abcdefg", "bcdefgh", strict=True)
)


class ValueTests(SynchronousTestCase):
    """
    What is right.
    """

    def test_values(self) -> None:
        """A value is read by the type that is wanted, from the text that was written."""
        for text, name, expected in VALUES:
            reading = read(text if name == "name" else f"name: x\n{text}")

            self.assertEqual([], [str(found) for found in reading.diagnostics if found.severity == ERROR], text)
            value = getattr(reading.value, name)
            self.assertEqual((expected, type(expected)), (value, type(value)), text)

    def test_core_schema(self) -> None:
        """Plain text for any value is read by the core schema of YAML 1.2; other numbers keep their digits."""
        for text, expected in CORE:
            value = core_value(text)
            shown = bytes(value) if isinstance(value, msgspec.Raw) else value

            self.assertEqual((expected, type(expected)), (shown, type(shown)), text)

    @given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30))
    @example(1e22)
    def test_numbers(self, number: float) -> None:
        """Whatever number is written, JSON has the same one."""
        value = core_value(repr(number))

        self.assertEqual(number, msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value)

    def test_defaults(self) -> None:
        """What is not written has its default, each time its own."""
        first, second = read("name: a").value, read("name: b").value

        assert first is not None and second is not None
        self.assertEqual(Cart("a"), first)
        self.assertIsNot(first.labels, second.labels)

    def test_no_value_is_the_default(self) -> None:
        """A key without a value has its default, which is told."""
        reading = read("name: x\nlabels:\nfront: null\ntext_or_more: ~")

        self.assertEqual(Cart("x"), reading.value)
        self.assertEqual(["no-value"] * 3, [found.code for found in reading.diagnostics])


class MistakeTests(SynchronousTestCase):
    """
    What is wrong.
    """

    def test_mistakes(self) -> None:
        """Each mistake has its code, its place and its field."""
        for text, expected in MISTAKES:
            self.assertEqual((text, expected), (text, told(read(f"name: x\n{text}").diagnostics)))

    def test_whole_files(self) -> None:
        """What is wrong with a file as a whole is told too."""
        for data, expected in WHOLE_FILES:
            self.assertEqual((data[:30], expected), (data[:30], told(read_typed(data, "f", Cart).diagnostics)))

    def test_all_at_once(self) -> None:
        """All mistakes are found in one pass, in the order of the file."""
        found = read("load: x\nwheels: [{size: a, spar: yes}, 3]\nnames: {}\nlabels: {a: [1]}\n").diagnostics

        expected = [
            ("missing-key", 1, 1, "name"),
            ("wrong-type", 1, 7, "load"),
            ("wrong-type", 2, 17, "wheels[0].size"),
            ("unknown-key", 2, 20, "wheels[0].spar"),
            ("wrong-type", 2, 32, "wheels[1]"),
            ("wrong-type", 3, 8, "names"),
            ("wrong-type", 4, 13, "labels.a"),
        ]
        self.assertEqual(expected, told(found))

    def test_sentences(self) -> None:
        """A sentence quotes what is wrong and says what is allowed."""
        for text, expected in (
            ("lod: 1", 'There is no key "lod" here. Did you mean "load"?'),
            ("load: many", 'It is "many"; it takes a whole number from 1 to 9.'),
            ("load: 12", "12 is out of range; it takes a whole number from 1 to 9."),
            ("one_or_more: x", 'It is "x"; it takes keys and values or a list.'),
            ("text_or_more: {}", "It is a mapping; it takes a text or a list."),
            ("front: [1]", "It is a list; it takes keys and values."),
            ("name: y", 'The key "name" is given twice, first in line 1.'),
            (
                "any: *s3cret",
                "Nothing before it has this name; a text that begins with * is written in quotes.",
            ),
            ("any: &me [*me]", "It stands inside of what it stands for."),
            ("load: " + "9" * 99, 'It is "' + "9" * 79 + '…"; it takes a whole number from 1 to 9.'),
        ):
            (found,) = read(f"name: x\n{text}").diagnostics

            self.assertEqual(expected, found.sentence)

    def test_no_key_like_it(self) -> None:
        """Where no key is near, all of them are named."""
        (found,) = read_typed(b"front: {size: 1, q: 2}\nname: x", "f", Cart).diagnostics

        self.assertEqual('There is no key "q" here. Known are size, spare.', found.sentence)

    def test_string(self) -> None:
        """A diagnostic as text begins with file, line and column, as editors and compilers have it."""
        (found,) = read("name: x\nload: 0").diagnostics

        sentence = "0 is out of range; it takes a whole number from 1 to 9."
        self.assertEqual(f"cart.yaml:2:7: error: load: {sentence} [bad-value]", str(found))

    def test_no_value_with_errors(self) -> None:
        """There is no value when something is wrong; what is right can be looked at all the same."""
        reading = read("name: x\nload: y\nwheels: [{spare: yes}, {size: 2}, 7]\nnames: [a, b]")

        self.assertIsNone(reading.value)
        self.assertEqual(Cart("x", 0, wheels=(Wheel(0, True), Wheel(2), Wheel(0)), names=("a", "b")), reading.partial)
        for path, sound, whole in (
            (("name",), True, True),
            (("load",), False, False),
            (("wheels",), True, False),
            (("wheels", 0), True, False),
            (("wheels", 0, "size"), False, False),
            (("wheels", 0, "spare"), True, True),
            (("wheels", 1), True, True),
            (("wheels", 2), False, False),
            (("wheels", 2, "size"), False, False),
        ):
            self.assertEqual((path, sound, whole), (path, reading.is_sound(path), reading.is_whole(path)))

    def test_stand_ins(self) -> None:
        """Parts that must be there and are not are empty values of their type."""
        reading = read_typed(b"{}", "f", Trip)

        self.assertEqual(Trip(Wheel(0), "", (), {}, False, None, ""), reading.partial)
        self.assertEqual(["missing-key"] * 7, [found.code for found in reading.diagnostics])

    def test_every_code_is_found(self) -> None:
        """Each code of the table is told of by some file, and no other."""
        files = [f"name: x\n{text}".encode() for text, _ in MISTAKES] + [data for data, _ in WHOLE_FILES]
        files += [f"name: x\nany:\n  {LAUGHS}".replace("\n", "\n  ").encode(), b"name: x\n" + b"q: 1\n" * 1001]
        found = {each.code for data in files for each in read_typed(data, "f", Cart).diagnostics}
        found |= {code for text in (self.too_many(),) for code in [each.code for each in read(text).diagnostics]}

        self.assertEqual({code.word for code in FILE_CODES}, found)

    def too_many(self) -> str:
        """Return a file whose aliases stand for very much."""
        return "name: x\nany:\n" + "".join(f"  {line}\n" for line in LAUGHS.splitlines())


class BoundTests(SynchronousTestCase):
    """
    Files that are meant to hurt. Each ends in a moment: 10 s is far more than it takes.
    """

    def setUp(self) -> None:
        started = time.process_time()
        self.addCleanup(lambda: self.assertLess(time.process_time() - started, 10))

    def test_laughs(self) -> None:
        """Aliases of aliases of aliases are not followed without end."""
        lines = "".join(f"  {line}\n" for line in LAUGHS.splitlines())

        self.assertEqual(["too-many-values"], [each.code for each in read(f"name: x\nany:\n{lines}").diagnostics])

    def test_long_text_by_alias(self) -> None:
        """A long text that is named a thousand times counts as often."""
        text = f"name: &a {'x' * 100_000}\nnames: [{', '.join(['*a'] * 1000)}]"

        self.assertEqual(["too-many-values"], [each.code for each in read(text).diagnostics])

    def test_long_keys_by_alias(self) -> None:
        """So do long keys."""
        text = f"name: x\nany: [&a {{{'x' * 1000}: 1}}, {', '.join(['*a'] * 20_000)}]"

        self.assertEqual(["too-many-values"], [each.code for each in read(text).diagnostics])

    def test_many_values(self) -> None:
        """A file of very many values is not read to its end."""
        text = "name: x\nnames: [" + "a," * (MOST_VALUES + 1) + "]"

        self.assertEqual(["too-many-values"], [each.code for each in read(text).diagnostics])

    def test_deep(self) -> None:
        """A file of nothing but brackets ends at the depth that is allowed."""
        for text in ("[" * LARGEST, "{a: " * 1_000_000, "- " * 1_000_000, "? " * 1_000_000):
            self.assertEqual(["too-deep"], [each.code for each in read(text).diagnostics])

    def test_many_mistakes(self) -> None:
        """After a thousand mistakes one more says that there are others."""
        found = read("name: x\nwheels: [" + "a," * 5000 + "]").diagnostics

        self.assertEqual([MOST_MISTAKES + 1, "too-many-mistakes"], [len(found), found[-1].code])

    @given(st.text(alphabet="ab:-?&*!|>'\"%#{}[],<~ \n\\é", max_size=60))
    def test_anything(self, text: str) -> None:
        """Whatever the file is, the answer is a cart or what is wrong, and each place is one in the file."""
        reading = read(text)
        lines = text.split("\n")

        self.assertTrue(reading.value is not None or reading.diagnostics)
        for found in reading.diagnostics:
            self.assertLessEqual(found.line, len(lines) + 1)


PLACES = """\
name: x
any:
  plain: ab cd
  over lines: ab
    cd

    ef
  single: 'a''b
    c'
  double: "a\\tb\\x41c \\
    d\\u00e9\\"e"
  literal: |
    ab
      cd

    ef
  chomped: |-

    ab
  folded: >-
    ab
    cd

    ef
      gh

    ij
  anchored: &me ab
  again: *me
  below: &it
    # for people
    ab
  empty: ""
  nothing: []
"""


class PlaceTests(SynchronousTestCase):
    """
    Where things are in a file.
    """

    def test_positions(self) -> None:
        """A value, and its key, are where they begin; what is not there is where it would be."""
        reading = read("name: x\nwheels:\n  - {size: 1}\n  - size: 2\nlabels:\n  <<: {a.b: c}\none-or-more: {size: 1}")
        for path, value, key in (
            ((), (1, 1), (1, 1)),
            (("name",), (1, 7), (1, 1)),
            (("wheels", 0), (3, 5), (3, 5)),
            (("wheels", 0, "size"), (3, 12), (3, 6)),
            (("wheels", 1, "size"), (4, 11), (4, 5)),
            (("wheels", 1, "spare"), (4, 5), (4, 5)),
            (("wheels", 2), (3, 3), (3, 3)),
            (("wheels", "size"), (3, 3), (3, 3)),
            (("labels", "a.b"), (6, 13), (6, 8)),
            (("one_or_more", "size"), (7, 21), (7, 15)),
            (("front", "size"), (1, 1), (1, 1)),
        ):
            found = reading.position(path), reading.key_position(path)
            self.assertEqual((path, Position(*value), Position(*key)), (path, *found))

    def test_nothing_to_point_at(self) -> None:
        """Where there is no file to speak of, places are the file as a whole."""
        reading = read("")

        self.assertEqual(Position(), reading.position(("name",)))
        self.assertEqual(Position(), reading.text_position(("name",), 1, 1))

    def test_characters(self) -> None:
        """Each character of a text is found where it is written, past quotes, escapes, indents and folds."""
        reading = read(PLACES)
        lines = PLACES.split("\n")
        assert reading.value is not None, reading.diagnostics
        escaped = {"\t": "\\", "A": "\\", "é": "\\", '"': "\\"}
        for name, text in reading.value.any.items():
            for number, line in enumerate(text.split("\n") if name != "nothing" else (), 1):
                for column, character in enumerate(line, 1):
                    place = reading.text_position(("any", name), number, column)
                    there = (lines[place.line - 1] + "\n")[place.column - 1]
                    expected = {character, escaped.get(character, character), "\n" if character == " " else character}
                    self.assertIn(there, expected, (name, number, column))

    def test_some_places(self) -> None:
        """The places of some characters, and those behind the last one."""
        reading = read(PLACES)
        for name, line, column, expected in (
            ("plain", 1, 4, (3, 13)),
            ("plain", 1, 6, (3, 15)),
            ("plain", 9, 99, (3, 15)),
            ("over lines", 1, 4, (5, 5)),
            ("over lines", 2, 1, (7, 5)),
            ("single", 1, 3, (8, 15)),
            ("single", 1, 5, (9, 5)),
            ("double", 1, 4, (10, 16)),
            ("double", 1, 7, (11, 5)),
            ("double", 1, 10, (11, 14)),
            ("literal", 2, 3, (14, 7)),
            ("literal", 3, 1, (15, 5)),
            ("literal", 4, 2, (16, 6)),
            ("chomped", 2, 1, (19, 5)),
            ("folded", 1, 4, (22, 5)),
            ("folded", 2, 1, (24, 5)),
            ("folded", 3, 3, (25, 7)),
            ("folded", 5, 1, (27, 5)),
            ("anchored", 1, 2, (28, 18)),
            ("again", 1, 2, (28, 18)),
            ("below", 1, 1, (32, 5)),
            ("empty", 1, 1, (33, 11)),
            ("nothing", 1, 1, (34, 12)),
        ):
            place = reading.text_position(("any", name), line, column)
            self.assertEqual((name, line, column, Position(*expected)), (name, line, column, place))

    def test_very_long_text(self) -> None:
        """In a text that is longer than all that has places, the place is that of the whole text."""
        for length, column in ((128 * 1024, 1_007), (128 * 1024 + 1, 7)):
            reading = read("name: " + "a" * length)
            self.assertEqual(Position(1, column), reading.text_position(("name",), 1, 1_001))

    def test_many_places(self) -> None:
        """Of a text with many places, each character is looked at once; then another text has its own."""
        asked = []

        def noting(*arguments: Any) -> Any:
            asked.append(arguments[-1].text)
            return flow(*arguments)

        flow = text_positions._flow
        self.patch(text_positions, "_flow", noting)
        reading = read("name: abc\ntext_or_more: def")
        for path, line, column in ((("name",), 1, 9), (("name",), 1, 7), (("text_or_more",), 2, 15), (("name",), 1, 8)):
            start = 7 if path == ("name",) else 15
            place = reading.text_position(path, 1, column - start + 1)
            self.assertEqual(Position(line, column), place)
        self.assertEqual(["abc", "def", "abc"], asked)

    def test_not_sure(self) -> None:
        """Where an indent is said and not shown, the place is that of the whole text."""
        reading = read("name: >1\n   a\n  b\n")

        self.assertEqual(Position(1, 7), reading.text_position(("name",), 1, 3))

    def test_line_separators(self) -> None:
        """In a block with line separators of Unicode, which stay in the text, the place is that of the whole text."""
        reading = read("name: |\n  a\u2028  b\n  c\n")

        self.assertEqual(Position(1, 7), reading.text_position(("name",), 2, 1))

    def test_empty_literal(self) -> None:
        """A block of empty lines has places too."""
        reading = read("name: |+\n\n\nload: 2\n")

        self.assertEqual(Position(3, 1), reading.text_position(("name",), 2, 1))

    @given(
        st.sampled_from(["'{}'", '"{}"', "{}", ">\n  {}", "|\n  {}"]),
        st.lists(st.sampled_from(["a", "b b", "", " c", "d ", "''", "\\t", "\\\\", "e\\"]), min_size=1, max_size=5),
    )
    def test_any_text(self, style: str, pieces: list[str]) -> None:
        """Whatever the text looks like, a place is the character itself or the beginning of the text."""
        text = "name: " + style.format("\n  ".join(pieces)) + "\n"
        reading = read(text)
        if reading.value is None:
            return
        lines, start = text.split("\n"), reading.position(("name",))
        for number, line in enumerate(reading.value.name.split("\n"), 1):
            for column, character in enumerate(line, 1):
                place = reading.text_position(("name",), number, column)
                there = (lines[place.line - 1] + "\n")[place.column - 1]
                same = there == character or (there in "\n " and character == " ") or there == "\\"
                self.assertTrue(same or place == start, (text, number, column, place))
