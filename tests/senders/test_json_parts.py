"""Objects and arrays of JSON are taken apart without reading what is in them, however much that is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

import tests.examples  # noqa: F401 - how many
from webhookrx.senders import json_parts
from webhookrx.senders.json_parts import (
    MAX_MEMBERS,
    NotOfThisForm,
    TooManyParts,
    documents,
    elements,
    members,
    text_of,
)

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


class PartsTests(SynchronousTestCase):
    """Both ways to take JSON apart: in one call where it holds few values, else one bracket after the other."""

    def each_way(self) -> Iterator[None]:
        """Have it done in one call, then bracket by bracket."""
        for most in (100_000, 0):
            self.patch(json_parts, "MAX_ELEMENTS", most)
            yield

    def test_elements(self) -> None:
        """Elements are the bytes that were sent, without the white space around them."""
        for _ in self.each_way():
            self.assertEqual(
                [b"1.50", b'{"a" : [1, 2]}', b'"x,]\\"y"', b"null"],
                elements(b'[ 1.50 ,{"a" : [1, 2]}\n,"x,]\\"y",null ] ', 4),
            )
            self.assertEqual(([], []), (elements(b"[]", 1), elements(b"[ \n]", 1)))

    def test_members(self) -> None:
        """So are members, in order, those of equal names each."""
        for _ in self.each_way():
            self.assertEqual(
                [("a", b"1"), ("b", b"{}"), ("a", b"[2, 3]"), ("é", b'"x"')],
                members(b'{"a":1, "b" : {} ,"a":[2, 3],"\\u00e9":"x"}'),
            )
            self.assertEqual([], members(b"{ }"))

    def test_not_of_this_form(self) -> None:
        """What is not JSON, or not an array or object, is not taken apart; nor what goes on behind its end."""
        bad = (
            b"",
            b"1",
            b"[1",
            b"[1}",
            b"[1,]",
            b"[,1]",
            b"[1]]",
            b"[1] x",
            b'["a]',
            b"{",
            b'{"a"}',
            b'{"a":1,}',
            b"{1:2}",
        )
        for _ in self.each_way():
            for body, read in product(bad, (lambda raw: elements(raw, 9), members)):
                with self.assertRaises(NotOfThisForm, msg=body):
                    read(body)
            with self.assertRaises(NotOfThisForm):
                elements(b"[" * 200_000 + b"]" * 200_000, 9)

    def test_too_many(self) -> None:
        """There may be so many elements and no more; an object with too many members is another kind of thing."""
        for _ in self.each_way():
            self.assertEqual(3, len(elements(b"[1,2,3]", 3)))
            with self.assertRaises(TooManyParts):
                elements(b"[1,2,3,4]", 3)
            with self.assertRaises(NotOfThisForm):
                members(b"{" + b",".join(b'"%d":1' % number for number in range(MAX_MEMBERS + 1)) + b"}")

    def test_tokens(self) -> None:
        """Work on JSON that is looked at bracket by bracket has an end."""
        self.patch(json_parts, "MAX_TOKENS", 5_000)
        with self.assertRaises(TooManyParts):
            elements(b"[[" + b"[]," * 200_000 + b"[]]]", 9)

    def test_long_strings(self) -> None:
        """A string of any number of escapes is one part, whether it ends or not."""
        text = b'"' + b'\\"\\\\' * 60_000 + b'"'
        many = b"0," * 100_001
        self.assertEqual(text, elements(b"[[" + many + b"0]," + text + b"]", 9)[1])
        with self.assertRaises(NotOfThisForm):
            elements(b"[[" + many + b"0]," + text[:-1] + b"]", 9)

    def test_documents(self) -> None:
        """Objects and arrays one after another are documents; what follows that is neither is left."""
        self.assertEqual(
            ([b'{"a":"}{"}', b"[1, 2]", b"{}"], b"then 1"), documents(b' {"a":"}{"}[1, 2]\r\n\n{} then 1 ', 9)
        )
        self.assertEqual(([b"{}"], b"[1"), documents(b"{}[1", 9))
        self.assertEqual(([b"{}"], b"[1}"), documents(b"{}[1}", 9))
        self.assertEqual(([], b"1 {}"), documents(b"1 {}", 9))
        self.assertEqual(([], b""), documents(b" ", 9))
        with self.assertRaises(TooManyParts):
            documents(b"{}" * 4, 3)

    def test_text(self) -> None:
        """A name may be written with escapes."""
        self.assertEqual('a"é', text_of(b'"a\\"\\u00e9"'))
        with self.assertRaises(NotOfThisForm):
            text_of(b"1")

    @given(st.lists(_VALUES, max_size=6), st.dictionaries(st.text(), _VALUES, max_size=6), st.booleans())
    def test_any_json(self, array: list[object], mapping: dict[str, object], is_pretty: bool) -> None:
        """Parts read by themselves are what they are in the whole, by both ways."""
        indent = 1 if is_pretty else None
        for most in (100_000, 0):
            json_parts.MAX_ELEMENTS, before = most, json_parts.MAX_ELEMENTS
            try:
                raw = json.dumps(array, indent=indent).encode()
                self.assertEqual(array, [json.loads(each) for each in elements(raw, 9)])
                raw = json.dumps(mapping, indent=indent, ensure_ascii=False).encode("utf-8", "replace")
                if b"?" not in raw:
                    self.assertEqual(mapping, {name: json.loads(value) for name, value in members(raw)})
            finally:
                json_parts.MAX_ELEMENTS = before

    @given(st.text(alphabet='[]{}",\\:1a ', max_size=40))
    def test_any_bytes(self, text: str) -> None:
        """What is an array for one way is the same for the other, whatever the bytes are."""
        body = text.encode()
        try:
            found = elements(body, 9)
        except NotOfThisForm:
            return
        json_parts.MAX_ELEMENTS, before = 0, json_parts.MAX_ELEMENTS
        try:
            self.assertEqual(found, elements(body, 9))
        finally:
            json_parts.MAX_ELEMENTS = before
