"""Tests for C{compact_object} of L{webhookrx.speedups.Compiled}: JSON as Python writes what it has read, or nothing."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.intake.json_texts import json_texts, mutated
from webhookrx.intake.json_body import MAX_ELEMENTS, MAX_JSON, PayloadError, parse_strict_json
from webhookrx.message.escapes import MISLEADING, encode_json
from webhookrx.speedups import compiled


def _read_and_written(body: bytes) -> bytes | None:
    try:
        value = parse_strict_json(body)
    except PayloadError:
        return None
    return encode_json(value) if isinstance(value, (dict, list)) else None


class CompactObjectTests(SynchronousTestCase):
    """What is taken is a subset of what Python takes, with the same result."""

    if compiled is None:
        skip = "the compiled path is not in use"

    def compact(self, body: bytes) -> bytes | None:
        """Return what is made of a body, which is either nothing or what Python makes of it."""
        assert compiled is not None
        compact = compiled.compact_object(body)
        if compact is not None:
            self.assertEqual(compact, _read_and_written(body))
        return compact

    @given(json_texts())
    def test_json_is_as_python_writes_it(self, body: bytes) -> None:
        """JSON becomes the text that Python makes of it, or is left to Python."""
        self.compact(body)

    @given(mutated(json_texts()))
    def test_what_python_refuses_is_left_to_it(self, body: bytes) -> None:
        """Bytes changed at random give nothing, or the same as in Python."""
        self.compact(body)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text('aé\n"\\/', max_size=40),
            lambda inner: st.lists(inner) | st.dictionaries(st.text("ab é", max_size=20), inner),
        )
    )
    @example({"a": [], "b": {}, "": ""})
    def test_what_is_usual_is_taken(self, value: object) -> None:
        """Objects and arrays with usual texts are taken, whatever their blanks and escapes."""
        for body in (
            json.dumps([value]),
            json.dumps({"x": value}, ensure_ascii=False),
            json.dumps([value], indent=1).replace("\n", "\r\n\t").replace("/", "\\/"),
        ):
            if "\\u" not in body:
                self.assertIsNotNone(self.compact(body.encode()), body)

    def test_table(self) -> None:
        """What is taken, and what it becomes."""
        for body, compact in (
            (b"[ 1e5, -1.50E-7,0.0 , -0.0, 0]\n", b"[1e5,-1.50E-7,0.0,-0.0,0]"),
            (b"[18446744073709551616," + b"9" * 64 + b"]", b"[18446744073709551616," + b"9" * 64 + b"]"),
            (b'["\\u00E9\\u003c\\/\\uD83D\\uDE00\\u0007\\u000a\\u0022\\u005c"]', '["é</😀\\u0007\\n\\"\\\\"]'.encode()),
            (b'{"a" :{"b": [ ] , "a":{ }},"b":[true ,false,null]}', b'{"a":{"b":[],"a":{}},"b":[true,false,null]}'),
            ('["é\u20ac😀\u00a0\u2027\u202f\u2065"]'.encode(), '["é\u20ac😀\u00a0\u2027\u202f\u2065"]'.encode()),
        ):
            self.assertEqual(compact, self.compact(body), body)

    def test_left_to_python(self) -> None:
        """What Python refuses, or reads or writes by rules of its own, is left to it."""
        for body in (
            *(b"", b" ", b"1", b'"a"', b"[", b"{", b"[1", b'{"a"', b'{"a":', b'{"a":1', b'["a', b'["\\', b'["\\u12'),
            *(
                b"[1,]",
                b"[,1]",
                b'{"a":1,}',
                b"{1:2}",
                b"[1]]",
                b"[1] x",
                b"[1}",
                b"[tru]",
                b"[nul",
                b"[True]",
                b"[1 2]",
            ),
            *(
                b"[01]",
                b"[1.]",
                b"[.5]",
                b"[1e]",
                b"[1e+]",
                b"[-]",
                b"[+1]",
                b"[-0]",
                b"[" + b"9" * 65 + b"]",
                b"[NaN]",
            ),
            *(
                b'["\t"]',
                b'["\x00"]',
                b'["\x7f"]',
                b'["\\u007f"]',
                b'["\\x41"]',
                b"['a']",
                b'["\xff"]',
                b'["\xed\xa0\x80"]',
            ),
            *(b'["\\ud800"]', b'["\\udc00"]', b'["\\ud800\\u0041"]', b'["\\ud800x"]', b"\xef\xbb\xbf[]"),
            *(b'{"a":1,"a":2}', b'[{"b":{"a":1,"c":0,"a":2}}]', b'{"\\u0061":1}', b'{"a\\n":1}'),
            *(f'["{char}"]'.encode() for char in MISLEADING),
            *(f'["\\u{ord(char):04X}"]'.encode() for char in MISLEADING),
            *(b"[" * 33 + b"]" * 33, b'{"a":' * 33 + b"1" + b"}" * 33),
            b"[" + b"1," * MAX_ELEMENTS + b"1]",
            b'["' + b"x" * MAX_JSON + b'"]',
            b'["' + b"x" * 5000 + b" " + b"1" * 65 + b'"]',
        ):
            self.assertIsNone(self.compact(body), body[:80])

    def test_limits_are_reached(self) -> None:
        """Depth and number of values up to the limits are taken, as are very many names, and digits of any text."""
        for body in (
            b"[" * 32 + b"]" * 32,
            b"[" + b"1," * (MAX_ELEMENTS - 1) + b"1]",
            json.dumps({f"name {number}": {"name": number} for number in range(40_000)}).encode(),
            b'["' + b"x" * 5000 + b" " + b"1" * 64 + b'"]',
        ):
            self.assertIsNotNone(self.compact(body), body[:80])

    def test_digits_in_a_row_are_found_anywhere(self) -> None:
        """65 digits in a row leave a body of some kibibytes to Python wherever they stand, also at its very end."""
        for place in range(140):
            body = b'["' + b"x" * place + b"1" * 65 + b"x" * (6000 - place) + b'"]'
            self.assertIsNone(self.compact(body), place)
            self.assertIsNone(self.compact(b'["' + b"x" * (5000 + place) + b'",' + b"1" * 65 + b"]"), place)

    def test_wants_bytes(self) -> None:
        """Anything but bytes is a mistake of the caller."""
        assert compiled is not None
        self.assertRaises(TypeError, compiled.compact_object, "[]")
