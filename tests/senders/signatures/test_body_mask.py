"""
Tests for L{webhookrx.senders.signatures.body_mask}.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

import tests.examples  # noqa: F401 - how many
from webhookrx.senders import json_parts
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.signatures.body_mask import BodyMask, CantMask, mask_for

_NAMES = st.sampled_from(["a", "b", "*", "0", "\u00e9", "\ud800", ""])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=12,
)


def masked_value(value: Any, steps: tuple[str, ...]) -> Any:
    """Return a value of JSON in which what a pointer leads to is masked."""
    if not steps:
        return value if value is None else "***"
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        return {name: masked_value(each, rest) if name == step else each for name, each in value.items()}
    if isinstance(value, list):
        return [masked_value(each, rest) if step in ("*", str(at)) else each for at, each in enumerate(value)]
    return value


class BodyMaskTests(SynchronousTestCase):
    """Values in bodies of JSON."""

    def test_bytes(self) -> None:
        """Only the values at the places change, whatever they are; blanks, escapes and numbers stay as they came."""
        mask = BodyMask(["/value/*/key", "/secret"])
        for body, wanted in (
            (b' {"secret" : "a\\"}b" , "n": 1.50}\n', b' {"secret" : "***" , "n": 1.50}\n'),
            (b'\xef\xbb\xbf{"secret":12}', b'\xef\xbb\xbf{"secret":"***"}'),
            (b'{"\\u0073ecret":true,"x":"secret"}', b'{"\\u0073ecret":"***","x":"secret"}'),
            (b'{"secret":"a","secret":"b"}', b'{"secret":"***","secret":"***"}'),
            (b'{"secret":{"secret":["a"]}}', b'{"secret":"***"}'),
            (b'{"x":{"secret":"a"}}', b'{"x":{"secret":"a"}}'),
            (
                b'{"value":[{"key":"a"},{"id":[{}]},{"key":null}]}',
                b'{"value":[{"key":"***"},{"id":[{}]},{"key":null}]}',
            ),
            (b'{"value":[{"key":["b"]},{"key":false}]}', b'{"value":[{"key":"***"},{"key":"***"}]}'),
            (b'{"value":[{"key":"a"}],"value":[{"key":"b"}]}', b'{"value":[{"key":"***"}],"value":[{"key":"***"}]}'),
            (b'{"value":{"0":{"key":"a"}}}', b'{"value":{"0":{"key":"a"}}}'),
            (b'{"x":"\\ud800","secret":"\\udfff"}', b'{"x":"\\ud800","secret":"***"}'),
            (b'[{"secret":"a"}]', b'[{"secret":"a"}]'),
            (b'"secret"', b'"secret"'),
            (b"", b""),
            (b" \n", b" \n"),
        ):
            self.assertEqual(wanted, mask.masked(body), body)

    def test_elements(self) -> None:
        """An index is an element of an array, and a name of an object; so are escaped names of pointers."""
        self.assertEqual(b'[1,"***",[],3]', BodyMask(["/1"]).masked(b'[1,{"1":[2]},[],3]'))
        self.assertEqual(b'["***", "***" ,{"*":"***"}]', BodyMask(["/0", "/1", "/2/*"]).masked(b'[1, 2 ,{"*":1}]'))
        self.assertEqual(b'["***","***"]', BodyMask(["/*", "/0/x"]).masked(b'[[{"x":1}],{}]'))
        self.assertEqual(b'{"a/b":"***"}', BodyMask(["/a~1b"]).masked(b'{"a/b":1}'))
        self.assertEqual(b"[]", BodyMask(["/*"]).masked(b"[]"))

    def test_unchanged(self) -> None:
        """A body with nothing at the places is the same object."""
        body = b'{"other":"secret"}'
        self.assertIs(body, BodyMask(["/secret"]).masked(body))

    def test_not_json(self) -> None:
        """What a looser reader could find a member in can't be masked, and nothing of it is quoted."""
        for body in (
            b"{'secret':'hidden'}",
            b'{secret:"hidden"}',
            b'{"secret":"hidden"} x',
            b'{"secret":"hidden"}\n{"secret":"hidden"}',
            b'{"secret":"hidden",}',
            b'{"secret":"hidden\xff"}',
            b"secret=hidden",
            b'{"secret":"hidden"}'.decode().encode("utf-16"),
            b"[" * 2_000 + b"]" * 2_000,
        ):
            with self.assertRaises(CantMask) as raised:
                BodyMask(["/secret"]).masked(body)
            self.assertNotIn("hidden", str(raised.exception))

    def test_too_many(self) -> None:
        """Brackets, commas and strings beyond a bound are not looked at."""
        self.patch(json_parts, "MAX_TOKENS", 1_000)
        with self.assertRaises(CantMask):
            BodyMask(["/secret"]).masked(b'{"x":[' + b"1," * 2_000 + b'1],"secret":"hidden"}')

    def test_senders(self) -> None:
        """Of the senders that are built in, two show secrets in bodies."""
        shown = [each.id for each in builtin_definitions() if mask_for(each.schemes) is not None]
        self.assertEqual(["meraki", "microsoft-graph"], sorted(shown))

    @given(_VALUES, st.lists(st.sampled_from(["a", "b", "*", "0", "\u00e9", ""]), min_size=1, max_size=3))
    def test_any(self, value: Any, steps: list[str]) -> None:
        """The body means what it did, but for the values at the place."""
        # A lone surrogate is read as the sign for what can't be read, so that its name is none of these.
        body = json.dumps(value).encode()
        masked = BodyMask(["/" + "/".join(steps)]).masked(body)
        self.assertEqual(masked_value(value, tuple(steps)), json.loads(masked))
