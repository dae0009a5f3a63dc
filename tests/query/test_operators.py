"""
Tests for what each operator means: L{webhookrx.query.query} and L{webhookrx.query.predicates}.
"""

from __future__ import annotations

from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.query import Fleet, parse

RECORD = {
    "name": "Web-1",
    "empty": "",
    "port": 8443,
    "price": msgspec.Raw(b"1.50"),
    "big": msgspec.Raw(b"1e400"),
    "on": True,
    "nothing": None,
    "street": "Hauptstraße",
    "lines": "first\nsecond",
    "ip": ["10.0.0.1", "fe80::1", 7, None],
    "pair": ("x", "y"),
    "none": [],
    "nested": [["a", "b"], {"k": 1}],
    "object": {"k": "v", "n": msgspec.Raw(b"1.0")},
    "label": {"site": "fra", "app.kubernetes.io/name": "web"},
}


class TableCase(SynchronousTestCase):
    """What a table of queries matches."""

    def check(self, record: dict[str, Any], table: dict[str, bool]) -> None:
        """Each query matches the record or not, as the table says, alone and as a fleet of one."""
        for text, expected in table.items():
            with self.subTest(query=text):
                query = parse(text)
                self.assertEqual(expected, query.matches(record))
                self.assertEqual([0] if expected else [], Fleet([record]).matching(query))


class OperatorTests(TableCase):
    """The twelve operators."""

    def test_insensitive(self) -> None:
        """Without a second equals sign, upper and lower case are the same."""
        self.check(
            RECORD,
            {
                "name = web-1": True,
                "name = web": False,
                "name != WEB-1": False,
                "name != web": True,
                "name =* EB-": True,
                "name =* ebb": False,
                "name !* EB-": False,
                "name !* ebb": True,
                "name =~ '^WEB-[0-9]+$'": True,
                "name =~ ^eb": False,
                "name !~ 'B-.$'": False,
                "name !~ ^eb": True,
                "street = HAUPTSTRASSE": True,
                "street =* SS": True,
            }
            | {"name =~ ^web": True},
        )

    def test_strict(self) -> None:
        """With it, they differ."""
        self.check(
            RECORD,
            {
                "name == Web-1": True,
                "name == web-1": False,
                "name !== Web-1": False,
                "name !== web-1": True,
                "name ==* eb": True,
                "name ==* EB": False,
                "name !=* eb": False,
                "name !=* EB": True,
                "name ==~ ^Web": True,
                "name ==~ ^web": False,
                "name !=~ ^Web": False,
                "name !=~ ^web": True,
                "street == HAUPTSTRASSE": False,
            },
        )

    def test_missing(self) -> None:
        """Of a field that is missing, everything is false but what is negated."""
        for field in ("nope", "label.nope", "name.nope", "ip.9", "label.site.x"):
            self.check(
                RECORD,
                {f"{field} {operator} ''": False for operator in ("=", "=*", "=~", "==", "==*", "==~")}
                | {f"{field} {operator} ''": True for operator in ("!=", "!*", "!~", "!==", "!=*", "!=~")}
                | {f"{field} EXISTS": False, f"NOT {field} EXISTS": True, f"{field} NOT EXISTS": True},
            )

    def test_exists(self) -> None:
        """A field exists whatever it holds."""
        for field in ("name", "empty", "nothing", "none", "on", "label", "label.site", "ip.0"):
            self.check(RECORD, {f"{field} EXISTS": True, f"NOT {field} EXISTS": False, f"{field} not exists": False})


class ComparisonTests(TableCase):
    """Comparisons of numbers."""

    def test_numbers(self) -> None:
        """Numbers are compared by what they are, however they are written, also as text."""
        record = RECORD | {"text": "-12.5e1", "zero": "007", "blank": " 7", "sizes": [1, "30"], "long": 10**399}
        self.check(
            record,
            {
                "port < 8443": False,
                "port <= 8443.0": True,
                "port > 8442.5": True,
                "port >= 8444": False,
                "price > 1.5": False,
                "price >= 1.5": True,
                "price < 2e0": True,
                "big > 1e308": True,
                "text = -125": False,
                "text <= -125": True,
                "text >= -125": True,
                "sizes > 29": True,
                "sizes > 30": False,
                "sizes < 2": True,
                "long > 1e300": True,
                "ip < 8": True,
            },
        )

    def test_no_numbers(self) -> None:
        """What is no number is neither less nor more than one."""
        record = RECORD | {"text": "12a", "zero": "007", "blank": " 7", "nan": "nan", "digits": "١"}
        for field in (
            "text",
            "zero",
            "blank",
            "nan",
            "digits",
            "name",
            "empty",
            "on",
            "nothing",
            "object",
            "none",
            "no",
        ):
            self.check(record, {f"{field} {sign} 5": False for sign in ("<", "<=", ">", ">=")})


class AmongTests(TableCase):
    """C{IN}."""

    def test_texts(self) -> None:
        """One of the values is enough, whatever its case; an array needs one element that is one of them."""
        self.check(
            RECORD,
            {
                "name IN (a, WEB-1)": True,
                "name IN (web)": False,
                "name NOT IN (a, web-1)": False,
                "name NOT IN (a, b)": True,
                "nope IN (a)": False,
                "nope NOT IN (a)": True,
                "port IN (80, 8443)": True,
                "street IN (HAUPTSTRASSE)": True,
                "ip IN (fe80::1)": True,
                "ip IN (7)": True,
                "none IN ('')": False,
                "empty IN ('')": True,
                "@ANY IN (fra, ams)": True,
            },
        )

    def test_networks(self) -> None:
        """A network holds its addresses, those of version 4 also where they are written as version 6."""
        record = {
            "a": "10.1.2.3",
            "b": "::ffff:10.1.2.3",
            "c": "2001:DB8::1",
            "port": 10,
            "d": "10.0.0.0/8",
            "e": "10.1.2.3 ",
            "f": "010.1.2.3",
            "g": "fe80::1%eth0",
            "many": ["x", "192.0.2.7"],
        }
        self.check(
            record,
            {
                "a IN (192.0.2.0/24, 10.0.0.0/8)": True,
                "a IN (10.1.2.3/32)": True,
                "a IN (10.1.2.2/32)": False,
                "a IN (::/0)": False,
                "a NOT IN (10.0.0.0/8)": False,
                "b IN (10.0.0.0/8)": True,
                "b IN (::ffff:0:0/96)": True,
                "c IN (2001:db8::/32)": True,
                "c IN (2001:db9::/32)": False,
                "c IN (0.0.0.0/0)": False,
                "port IN (0.0.0.0/0)": False,
                "d IN (10.0.0.0/8)": True,
                "d IN (10.0.0.0/7)": False,
                "e IN (10.0.0.0/8)": False,
                "f IN (0.0.0.0/0)": False,
                "g IN (fe80::/10)": True,
                "many IN (192.0.2.0/24)": True,
                "a IN (10/8)": False,
                "a = 10.0.0.0/8": False,
            },
        )

    def test_quoted_names(self) -> None:
        """A name in quotes between dots is one name, whatever is in it."""
        record = {"a": {"b.c": "x", "b": {"c": "y", "d": "z"}}, "d.e": {"f": "x"}, "d": {"e": {"f": "y"}}}
        self.check(
            record,
            {
                "a.'b.c' = x": True,
                "a.'b.c' = y": False,
                "a.b.c = y": True,
                "a.'b.d' EXISTS": False,
                "a.`b`.'d' = z": True,
                "'d.e'.f = x": True,
                "'d.e.f' = y": True,
            },
        )

    def test_connector(self) -> None:
        """C{connector} is short for C{meta.connector}."""
        self.check(
            {"meta": {"connector": {"name": "a", "labels": {"t": "b"}}}},
            {
                "connector.name = a": True,
                "connector.labels.t = b": True,
                "connector EXISTS": True,
                "'connector'.x = a": False,
            },
        )


class ValueTests(TableCase):
    """Values that are no texts."""

    def test_scalars(self) -> None:
        """They are compared by their JSON; numbers as they are written."""
        self.check(
            RECORD,
            {
                "port = 8443": True,
                "port =* 44": True,
                "port =~ ^8": True,
                "port = 8443.0": False,
                "price = 1.50": True,
                "price = 1.5": False,
                "big == 1e400": True,
                "on = TRUE": True,
                "on == true": True,
                "on == True": False,
                "nothing = null": True,
                "nothing = ''": False,
                "empty = ''": True,
                "empty =* ''": True,
            },
        )

    def test_arrays(self) -> None:
        """One element is enough; negated, there must be none."""
        self.check(
            RECORD,
            {
                "ip = fe80::1": True,
                "ip = 10.0.0.2": False,
                "ip =* 10.0.": True,
                "ip =~ ^fe80": True,
                "ip != fe80::1": False,
                "ip != 10.0.0.2": True,
                "ip !~ ^fe80": False,
                "ip = 7": True,
                "ip = null": True,
                "ip.1 = fe80::1": True,
                "ip.0 = fe80::1": False,
                "pair = y": True,
                "pair = z": False,
                "none = ''": False,
                "none != ''": True,
                "none =~ ''": False,
            },
        )

    def test_objects(self) -> None:
        """An object, or an array in an array, is its JSON without blanks."""
        self.check(
            RECORD,
            {
                """object = '{"k":"v","n":1.0}'""": True,
                """object = '{"k": "v"}'""": False,
                """object =* '"N":1.0'""": True,
                """object ==* '"N"'""": False,
                """object =~ '^{"k"'""": True,
                """nested = '["a","b"]'""": True,
                """nested =* '"k":1'""": True,
                "nested = a": False,
                "label != fra": True,
            },
        )

    def test_any(self) -> None:
        """All that is in the record is looked at, names are not; negated, nothing may be so."""
        self.check(
            RECORD,
            {
                "@ANY = fra": True,
                "@any = WEB": True,
                "@ANY = site": False,
                "@ANY == 1.50": True,
                "@ANY =* fe80": True,
                "@ANY = b": True,
                "@ANY =~ '^10[.]'": True,
                "@ANY != fra": False,
                "@ANY != elsewhere": True,
                "NOT @ANY = fra": False,
            },
        )
        self.check({}, {"@ANY =* ''": False, "@ANY !* ''": True})

    def test_quoted_any(self) -> None:
        """In quotes it is the name of a field."""
        self.check({"@ANY": "x", "b": "y"}, {"'@ANY' = x": True, "'@ANY' = y": False, "'@ANY' exists": True})

    def test_names(self) -> None:
        """Names are what they are: upper and lower case differ, and they may hold dots."""
        self.check(
            RECORD,
            {
                "label.app.kubernetes.io/name = web": True,
                "Name = Web-1": False,
                "'label.site' = fra": True,
                "@timestamp = x": False,
            },
        )

    def test_lines(self) -> None:
        """A text of several lines is one text."""
        self.check(
            RECORD, {"lines =* second": True, "lines =~ ^second": False, "lines =~ 'first\\nsecond$'": True, "": True}
        )
