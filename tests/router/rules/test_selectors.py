"""
Tests for L{webhookrx.router.rules.selectors}.
"""

from __future__ import annotations

import time
from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.query import explain, parse
from webhookrx.router.rules.router import Router, router_of
from webhookrx.router.rules.rule import Host
from webhookrx.router.rules.selectors import METADATA, SelectorFields, Selectors, explain_selector

HOSTS = (
    Host(
        "fra-1", {"site": "fra", "app.kubernetes.io/name": "rx"}, ip="192.0.2.1", os="linux", meta={"rack": {"row": 7}}
    ),
    Host("fra-2", {"site": "fra"}, "h2", "h2.example.com", ("192.0.2.2", "2001:db8::2"), arch="x86_64", version="1.2"),
    Host("ber-1"),
)

# Selectors, and the hosts that they match.
MATCHED: list[tuple[str, list[int]]] = [
    ("", [0, 1, 2]),
    ("name = FRA-1", [0]) ,
    ("name == 'FRA-1'", []),
    ("label.site = fra AND os = linux", [0]),
    ("label.app.kubernetes.io/name = rx", [0]),
    ("host_label_site = fra AND host_name =* 2", [1]),
    ("ip = 192.0.2.2", [1]),
    ("ip =~ '^2001:'", [1]),
    ("fqdn =* example OR arch = x86_64 OR version = 1.2 OR hostname = h2", [1]),
    ("meta.rack.row = 7", [0]),
    ("meta.os = linux OR meta.ip = 2001:db8::2", [0, 1]),
    ("NOT os EXISTS", [1, 2]),
    ("label.site != fra", [2]),
    ("@ANY = fra", [0, 1]),
    ("AND", []),
]  # fmt: skip

# Fields, and what is said of them without an inventory.
SAID: list[tuple[str, str]] = [
    ("name", ""),
    ("label.x", ""),
    ("label.x.y/z", ""),
    ("meta.hostname", ""),
    ("meta.x", "Known are name, hostname, fqdn, ip, os, arch, version and label.NAME."),
    ("host_name", ""),
    ("host_label_x", ""),
    ("labels.x", 'Did you mean "label.x"?'),
    ("meta.router.labels.x", 'Did you mean "label.x"?'),
    ("meta.host.labels.x", 'Did you mean "label.x"?'),
    ("meta.host.name", 'Did you mean "name"?'),
    ("router.labels.x", 'Did you mean "label.x"?'),
    ("host.label.x", 'Did you mean "label.x"?'),
    ("label_x", 'Did you mean "label.x"?'),
    ("router.name", 'Did you mean "name"?'),
    ("router_name", 'Did you mean "name"?'),
    ("metadata.fqdn", 'Did you mean "fqdn"?'),
    ("host.os", 'Did you mean "os"?'),
    ("ips", 'Did you mean "ip"?'),
    ("host_ip", 'Did you mean "ip"?'),
    ("architecture", 'Did you mean "arch"?'),
    ("platform", 'Did you mean "os"?'),
    ("hostnam", 'Did you mean "hostname"?'),
    ("qqqq", "Known are name, hostname, fqdn, ip, os, arch, version and label.NAME."),
]


class SelectorTests(SynchronousTestCase):
    """
    Tests for selectors.
    """

    def test_matched(self) -> None:
        """Each selector matches its hosts, together as well as alone."""
        texts = [selector for selector, _ in MATCHED]

        self.assertEqual([expected for _, expected in MATCHED], Selectors(texts).matched(texts, HOSTS))
        for selector, expected in MATCHED[:-1]:
            query = parse(selector)
            alone = [index for index, host in enumerate(HOSTS) if query.matches(router_of(host).record)]
            self.assertEqual((selector, expected), (selector, alone))

    def test_fields(self) -> None:
        """A field that no router has gets an answer that helps."""
        known = SelectorFields(())
        for field, expected in SAID:
            begin = f'A router has no field "{field}". ' if expected else ""

            self.assertEqual(begin + expected, known.problem(field))

    def test_fields_of_messages(self) -> None:
        """Fields that messages have, and labels that no host has, are told with what may be meant."""
        known = SelectorFields(HOSTS)
        for field, begin, meant in (
            ("meta.router.labels.x", "A router has no", "label.x"),
            ("meta.host.name", "A router has no", "name"),
            ("label.stie", "No host of this file has the", "label.site"),
        ):
            self.assertEqual(f'{begin} field "{field}". Did you mean "{meant}"?', known.problem(field))
        self.assertEqual(
            'No host of this file has the field "host_label_zzzzzzzzzzzz".', known.problem("host_label_zzzzzzzzzzzz")
        )

    def test_fields_of_the_inventory(self) -> None:
        """Metadata that a host of the inventory has is told of, since no router knows that of itself."""
        self.assertEqual(
            'Only hosts of the inventory have the field "meta.rack.row", no router itself; give it a label.',
            SelectorFields(HOSTS).problem("meta.rack.row"),
        )

    def test_fields_of_hosts(self) -> None:
        """What some host has is fine, and so is what every router has and no host says."""
        known = SelectorFields(HOSTS)
        for field in (
            "label.site",
            "label.app.kubernetes.io/name",
            "host_label_site",
            "meta.ip",
            "meta.version",
            "hostname",
            "name",
        ):
            self.assertEqual("", known.problem(field))
        self.assertEqual("", SelectorFields((Host("a"),)).problem("os"))

    def test_many_fields(self) -> None:
        """Of very many fields only the first are looked at."""
        known = SelectorFields(())
        problems = [known.problem(f"no{number}") for number in range(600)]

        self.assertTrue(all(problems[:500]))
        self.assertFalse(any(problems[500:]))
        self.assertTrue(known.problem("no1"))

    def test_speed(self) -> None:
        """200 selectors are matched with 1,000 hosts in a moment: 2 s is far more than it takes."""
        hosts = [Host(f"r{number}", {"site": f"s{number % 7}", "rack": f"r{number % 40}"}) for number in range(1000)]
        texts = [f"label.site = s{number % 7} AND name =~ '{number}$'" for number in range(200)]
        started = time.process_time()
        matched = Selectors(texts).matched(texts, hosts)

        self.assertLess(time.process_time() - started, 2)
        self.assertEqual(200, len(matched))


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


class ExplainSelectorTests(SynchronousTestCase):
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
            found = explain_selector(parse(text), RECORD, UNKNOWN)
            self.assertEqual((matched, fields), (found.matched, found.unknown), text)
        self.assertEqual("may match: os, ip unknown", str(explain_selector(parse("os = a OR ip = 1"), RECORD, UNKNOWN)))

    def test_deciding(self) -> None:
        """The terms that decide are those that are known."""
        found = explain_selector(parse("os = linux AND name = other"), RECORD, UNKNOWN)

        self.assertEqual("doesn't match: name = other (is edge)", str(found))

    @given(_QUERIES)
    def test_law(self, text: str) -> None:
        """What is said to be known is so, whatever the machine turns out to be; with all known, it is the query."""
        query = parse(text)
        found = explain_selector(query, RECORD, ("os", "ip"))
        machines = [
            Router("edge", labels={"site": "fra"}, arch="x86_64", os=system, ip=address).record
            for system, address in product(("", "linux", "bsd"), ((), ("1",), ("2",)))
        ]
        answers = {query.matches(machine) for machine in machines}
        if found.matched is not None:
            self.assertEqual({found.matched}, answers)
        for machine in machines:
            self.assertEqual(explain(query, machine), explain_selector(query, machine, ()))
            self.assertIs(query.matches(machine), explain(query, machine).matched)
        self.assertLessEqual(set(found.unknown), set(METADATA))
