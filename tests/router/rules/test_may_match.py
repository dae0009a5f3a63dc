"""
Tests for L{webhookrx.router.rules.may_match}.
"""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.query import parse
from webhookrx.router.rules.may_match import METADATA, may_match
from webhookrx.router.rules.router import Router

RECORD = Router("edge", labels={"site": "fra"}, arch="x86_64").record
UNKNOWN = ("os", "ip", "fqdn")

_TERMS = st.sampled_from(
    [
        "os = linux",
        "os != linux",
        "os EXISTS",
        "meta.os = linux",
        "arch = arm",
        "arch = x86_64",
        "name = edge",
        "ip = 1",
    ]
)
_QUERIES = st.recursive(
    _TERMS,
    lambda inner: st.one_of(
        st.builds("({}) AND ({})".format, inner, inner),
        st.builds("({}) OR ({})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=6,
)


class MayMatchTests(SynchronousTestCase):
    """What is known of a match when not everything is known of a router."""

    def test_table(self) -> None:
        """What does not depend on what is unknown is known."""
        for text, matched, fields in (
            ("", True, ()),
            ("name = edge", True, ()),
            ("os = linux", None, ("os",)),
            ("meta.os = linux", None, ("os",)),
            ("NOT os = linux", None, ("os",)),
            ("os EXISTS", None, ("os",)),
            ("os = linux AND name = other", False, ()),
            ("os = linux AND name = edge", None, ("os",)),
            ("os = linux OR name = edge", True, ()),
            ("os = linux OR ip = 1 OR os = bsd", None, ("os", "ip")),
            ("label.site = fra AND (os = linux OR arch = x86_64)", True, ()),
            ("label.os = linux", False, ()),
            ("meta.rack = 7", False, ()),
            ("hostname = x", False, ()),
            ("@ANY = fra", True, ()),
            ("@ANY = ber", None, ("fqdn", "ip", "os")),
            ("@ANY != ber", None, ("fqdn", "ip", "os")),
            ("NOT @ANY = fra", False, ()),
        ):
            found = may_match(parse(text), RECORD, UNKNOWN)
            self.assertEqual((matched, fields), found, text)
        self.assertEqual("may match: os, ip unknown", str(may_match(parse("os = a OR ip = 1"), RECORD, UNKNOWN)))

    @settings(deadline=None, derandomize=True, max_examples=300)
    @given(_QUERIES)
    def test_law(self, text: str) -> None:
        """What is said to be known is so, whatever the machine turns out to be; with all known, it is the query."""
        query = parse(text)
        found = may_match(query, RECORD, ("os", "ip"))
        machines = [
            Router("edge", labels={"site": "fra"}, arch="x86_64", os=system, ip=address).record
            for system, address in product(("", "linux", "bsd"), ((), ("1",), ("2",)))
        ]
        answers = {query.matches(machine) for machine in machines}
        if found.matched is not None:
            self.assertEqual({found.matched}, answers)
        for machine in machines:
            self.assertEqual((query.matches(machine), ()), may_match(query, machine, ()))
        self.assertLessEqual(set(found.unknown), set(METADATA))
