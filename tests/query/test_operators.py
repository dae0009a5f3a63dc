"""
Tests for what each operator means: L{webhookrx.query.matching} and L{webhookrx.query.predicates}.
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
