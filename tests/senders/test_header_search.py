"""Tests for L{webhookrx.senders.index}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.senders.index import header_search

NAMES = st.text("ab-*", min_size=1, max_size=5).map(str.encode)


class HeaderSearchTests(SynchronousTestCase):
    """What is found."""

    @given(st.lists(NAMES, max_size=8), st.lists(NAMES, max_size=8))
    def test_same(self, wanted: list[bytes], there: list[bytes]) -> None:
        """Names that are wanted are found, in order and as often as they are there; nothing else is."""
        block = b"POST / HTTP/1.1\r\n" + b"".join(b"%b: a, \ta:b\r\n" % name for name in there) + b"\r\n"
        self.assertEqual([name for name in there if name in wanted], header_search(wanted)(block))

    def test_long(self) -> None:
        """A name may be long."""
        name = b"x" * 100_000
        self.assertEqual([name], header_search([name, b"y"])(b"\n%b:\r\n" % name))
