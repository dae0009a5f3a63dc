"""
Tests for L{webhookrx.senders.signatures.repeated_members}.
"""

from __future__ import annotations

import hmac
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests import examples as examples
from tests.senders.signatures.requests import check, verdict, verifier_of
from webhookrx.intake.json_body import json_or_missing
from webhookrx.senders.signatures import repeated_members
from webhookrx.senders.signatures.repeated_members import has_repeated_members

_texts = st.text(st.sampled_from('":\\\\,{}a\u00e9'), max_size=8)
_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), _texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_texts, inner, max_size=4)),
    max_leaves=12,
)


class RepeatedMembersTests(SynchronousTestCase):
    """Names that stand twice."""

    @given(_values, st.integers(1, 9))
    def test_once(self, value: Any, piece: int) -> None:
        """What a writer of JSON writes has each name once, whatever is in it and wherever it is cut."""
        self.patch(repeated_members, "PIECE", piece)
        body = msgspec.json.encode(value)
        self.assertFalse(has_repeated_members(json_or_missing(body), body), body)
        twice = b'{"\\u0061":%s,"a":%s}' % (body, body)
        self.assertTrue(has_repeated_members(json_or_missing(twice), twice), twice)

    def test_signed_members(self) -> None:
        """Where members alone are signed, none of them may have another of its name beside it; where all is, it may."""
        for signed, code, expected in (("{/a}", b"1", "bad_signature"), ("{body}", b'{"a":2,"a":1}', "ok:k")):
            verifier = verifier_of({"at": "header:s", "signed": signed}, secrets={"k": "s"})
            headers = {"s": hmac.digest(b"s", code, "sha256").hex()}
            self.assertEqual(expected, verdict(check(verifier, headers, b'{"a":2,"a":1}')))
            self.assertEqual("ok:k", verdict(check(verifier, headers, code if signed == "{body}" else b'{"a":1}')))
