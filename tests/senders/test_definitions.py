"""
Tests for L{webhookrx.senders.definitions}, L{webhookrx.senders.compiled} and L{webhookrx.senders.definitions}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import compiled
from webhookrx.diagnostics import ENTRY_CODES
from webhookrx.senders import definitions as builtin
from webhookrx.senders.compiled import BadDefinition
from webhookrx.senders.definition import Decode, SenderDefinition, Setting, Severity, SignedWith, Time, When
from webhookrx.senders.definitions import all_definitions, builtin_definitions, read_definition

GOOD = b"""\
id: acme
vendor: acme
product: anvil
when:
  headers: {X-Acme: '*'}
time:
  - at: /at
severity:
  - at: /level
    map: {404: warn, yes: info}
decode:
  - {at: /more, what: base64+json}
"""

BAD = b"""\
id: a b
vendor: ''
product: anvil
format: xml
when:
  headers: {X-A: '(', 'x y': '*'}
  any_header: ['']
  path: '[a'
  body: "a = 1 AND"
service: "{/a} {b}"
events: items
decode:
  - {at: more, what: gzip}
time:
  - {at: cookie, format: soon}
message: ["ok", "{"]
severity:
  - at: /a/~
    map: {high: loud}
default_severity: loud
host: ["header:"]
"""


class ReadTests(SynchronousTestCase):
    """A data file."""

    def test_good(self) -> None:
        """A data file becomes a definition; keys of a map are text, whatever YAML makes of them."""
        entry, diagnostics = read_definition(GOOD, "acme.yaml")
        self.assertEqual(diagnostics, [])
        self.assertEqual(
            entry,
            SenderDefinition(
                id="acme",
                vendor="acme",
                product="anvil",
                when=When(headers={"X-Acme": "*"}),
                time=(Time("/at"),),
                severity=(Severity("/level", {"404": "warn", "yes": "info"}),),
                decode=(Decode("/more", "base64+json"),),
            ),
        )

    def test_bad(self) -> None:
        """Everything that is wrong is found at once, each in its place."""
        entry, diagnostics = read_definition(BAD, "bad.yaml")
        self.assertIsNone(entry)
        found = {(each.code, each.field, each.line, each.column) for each in diagnostics}
        self.assertEqual(
            found,
            {
                ("entry-id", "id", 1, 5),
                ("entry-empty", "vendor", 2, 9),
                ("entry-format", "format", 4, 9),
                ("entry-regex", "when.headers.X-A", 6, 18),
                ("entry-header", 'when.headers["x y"]', 6, 23),
                ("entry-header", "when.any_header[0]", 7, 16),
                ("entry-regex", "when.path", 8, 9),
                ("entry-query", "when.body", 9, 19),
                ("entry-place", "service", 10, 17),
                ("entry-place", "events", 11, 9),
                ("entry-place", "decode[0].at", 13, 10),
                ("entry-format", "decode[0].what", 13, 22),
                ("entry-place", "time[0].at", 15, 10),
                ("entry-format", "time[0].format", 15, 26),
                ("entry-place", "message[1]", 16, 18),
                ("entry-place", "severity[0].at", 18, 12),
                ("entry-severity", "severity[0].map.high", 19, 17),
                ("entry-severity", "default_severity", 20, 19),
                ("entry-place", "host[0]", 21, 16),
            },
        )
        self.assertLessEqual({each.code for each in diagnostics}, {code.word for code in ENTRY_CODES})

    def test_types(self) -> None:
        """What the types do not allow is found by them."""
        for data, code in (
            (b"", "empty-file"),
            (b"id: a\nvendor: a\nproduct: a\nwhen: {}\nwhere: x\n", "unknown-key"),
            (b"id: a\n", "missing-key"),
            (b"\xff", "not-utf8"),
        ):
            entry, diagnostics = read_definition(data, "bad.yaml")
            self.assertIsNone(entry)
            self.assertIn(code, [each.code for each in diagnostics])

    def test_last_resort(self) -> None:
        """A definition of last resort may do without conditions, vendor and product; others need all three."""
        for text, codes in (
            ('vendor: ""\nproduct: ""\nwhen: []\nlast_resort: yes\n', []),
            ('vendor: ""\nproduct: ""\nwhen: {body_keys: [a]}\nlast_resort: yes\n', []),
            ('vendor: a\nproduct: ""\nwhen: []\nlast_resort: yes\n', ["entry-empty"]),
            ('vendor: ""\nproduct: ""\nwhen: []\n', ["entry-empty", "entry-empty", "entry-evidence"]),
        ):
            entry, diagnostics = read_definition(f"id: a\n{text}".encode(), "f")
            self.assertEqual((entry is not None, [each.code for each in diagnostics]), (not codes, codes), text)

    def test_condition(self) -> None:
        """A condition that can't be read is told with its place."""
        text = 'id: a\nvendor: a\nproduct: a\nwhen: {body_keys: [a]}\ntime:\n  - {at: /a, condition: "b ="}\n'
        entry, (each,) = read_definition(text.encode(), "f")
        self.assertIsNone(entry)
        self.assertEqual((each.code, each.field, each.line), ("entry-query", "time[0].condition", 6))
        text = text.replace("time:", "message:").replace("at: /a", 'text: "{a}"')
        entry, diagnostics = read_definition(text.encode(), "f")
        self.assertIsNone(entry)
        self.assertEqual(
            [(each.code, each.field) for each in diagnostics],
            [("entry-place", "message[0].text"), ("entry-query", "message[0].condition")],
        )

    def test_ids(self) -> None:
        """An id has up to 100 characters that need no quotes anywhere."""
        for name, good in (("a", True), ("A-1._x", True), ("x" * 100, True), ("x" * 101, False), ("-a", False)):
            entry, diagnostics = read_definition(
                f"id: {name}\nvendor: a\nproduct: a\nwhen: {{body_keys: [a]}}\n".encode(), "f"
            )
            self.assertEqual(
                (good, [] if good else ["entry-id"]), (entry is not None, [each.code for each in diagnostics])
            )

    def test_nothing_to_tell_by(self) -> None:
        """A definition must say how its requests are told."""
        for when in ("{}", "[]", "{path: /}", "{content_type: a/b}"):
            _, diagnostics = read_definition(f"id: a\nvendor: a\nproduct: a\nwhen: {when}\n".encode(), "bad.yaml")
            self.assertEqual([each.code for each in diagnostics], ["entry-evidence"])

    def test_several_ways(self) -> None:
        """There may be several ways to tell requests, and several texts for the service; each has its place."""
        data = b"""\
id: acme
vendor: acme
product: anvil
service: [header:x-a, '{/b}']
when:
  - headers: {X-A: '*'}
  - query: {token: '^v1'}
    body_keys: [a]
"""
        entry, diagnostics = read_definition(data, "acme.yaml")
        self.assertEqual(diagnostics, [])
        assert entry is not None
        self.assertEqual(
            entry.alternatives, (When(headers={"X-A": "*"}), When(query={"token": "^v1"}, body_keys=("a",)))
        )
        self.assertEqual(entry.service, ("header:x-a", "{/b}"))
        data = b"""\
id: acme
vendor: acme
product: anvil
service: [header:x-a, '{']
when:
  - body_keys: [a]
  - path: /
  - {headers: {X-A: '('}, any_header: [''], query: {t: '['}, path: '[', body: a =}
"""
        _, diagnostics = read_definition(data, "bad.yaml")
        self.assertEqual(
            [(each.code, each.field, each.line) for each in diagnostics],
            [
                ("entry-place", "service[1]", 4),
                ("entry-evidence", "when[1]", 7),
                ("entry-regex", "when[2].headers.X-A", 8),
                ("entry-header", "when[2].any_header[0]", 8),
                ("entry-regex", "when[2].query.t", 8),
                ("entry-regex", "when[2].path", 8),
                ("entry-query", "when[2].body", 8),
            ],
        )

    def test_lines_of_a_query(self) -> None:
        """A query may go over several lines."""
        data = b"id: a\nvendor: a\nproduct: a\nwhen:\n  body: |\n    a = 1\n    AND =\n"
        _, diagnostics = read_definition(data, "bad.yaml")
        self.assertEqual([(each.line, each.column) for each in diagnostics], [(7, 9)])

    def test_compile_alone(self) -> None:
        """Without a file, all that is wrong is in the exception."""
        with self.assertRaises(BadDefinition) as caught:
            compiled(format="xml", events="x")
        self.assertEqual([problem.path for problem in caught.exception.problems], [("format",), ("events",)])
        self.assertIn("'xml' is not one of json,", str(caught.exception))

    def test_what_a_source_needs(self) -> None:
        """Settings, the place of the attempt, what people do, and what samples are signed with are read and checked."""
        data = b"""\
id: acme
vendor: acme
product: anvil
attempt: header:x-attempt
setup: [Enter the address.]
settings:
  topics: {kind: list, needed: yes, meaning: Names of topics.}
  account: {meaning: Its number.}
signed_with: {secrets: [a = b], public_url: "https://a.example", settings: {topics: [x], account: y, all: yes}}
when: {headers: {X-A: '*'}}
"""
        entry, diagnostics = read_definition(data, "acme.yaml")
        self.assertEqual(diagnostics, [])
        assert entry is not None
        self.assertEqual(
            entry.settings, {"topics": Setting("Names of topics.", "list", True), "account": Setting("Its number.")}
        )
        self.assertEqual(
            entry.signed_with,
            SignedWith(("a = b",), "https://a.example", settings={"topics": ("x",), "account": "y", "all": "yes"}),
        )
        bad = data.replace(b"kind: list", b"kind: sum").replace(b"header:x-attempt", b"cookie")
        _, diagnostics = read_definition(bad, "acme.yaml")
        self.assertEqual(
            [(each.code, each.field, each.line) for each in diagnostics],
            [("entry-place", "attempt", 4), ("entry-format", "settings.topics.kind", 7)],
        )


class JoinTests(SynchronousTestCase):
    """An operator's entries beside those of the package."""

    def named(self, name: str, vendor: str) -> bytes:
        """Return a data file."""
        return f"id: {name}\nvendor: {vendor}\nproduct: x\nwhen: {{body_keys: [a]}}\n".encode()

    def entry(self, name: str, vendor: str) -> SenderDefinition:
        """Return a definition."""
        entry, _ = read_definition(self.named(name, vendor), "x")
        assert entry is not None
        return entry

    def test_replace(self) -> None:
        """One with the same id takes the place of the package's; all come by id."""
        builtins = [self.entry("b", "theirs"), self.entry("a", "theirs")]
        entries, diagnostics = all_definitions(
            builtins, [("2.yaml", self.named("c", "own")), ("1.yaml", self.named("a", "own"))]
        )
        self.assertEqual([(entry.id, entry.vendor) for entry in entries], [("a", "own"), ("b", "theirs"), ("c", "own")])
        self.assertEqual(diagnostics, [])

    def test_twice(self) -> None:
        """Two of the operator's files with one id are an error of the second."""
        entries, diagnostics = all_definitions(
            [], [("b.yaml", self.named("a", "two")), ("a.yaml", self.named("a", "one"))]
        )
        self.assertEqual([entry.vendor for entry in entries], ["one"])
        self.assertEqual(
            [(each.code, each.file, each.line, each.column) for each in diagnostics], [("entry-twice", "b.yaml", 1, 5)]
        )

    def test_bad_file(self) -> None:
        """A file that can't be used is left out, with what is wrong."""
        entries, diagnostics = all_definitions([self.entry("a", "theirs")], [("b.yaml", b"id: 7\n")])
        self.assertEqual([entry.id for entry in entries], ["a"])
        self.assertEqual({each.file for each in diagnostics}, {"b.yaml"})


class BuiltinTests(SynchronousTestCase):
    """The package's own files."""

    def test_read_once(self) -> None:
        """They are all sound, and read once."""
        self.assertIs(builtin_definitions(), builtin_definitions())
        self.assertEqual(len(builtin_definitions()), len(builtin.builtin_files()))
        self.assertGreaterEqual(len(builtin_definitions()), 30)

    def test_bad_file(self) -> None:
        """One that can't be used is a mistake in the package."""
        self.patch(builtin, "builtin_files", lambda: [("x.yaml", b"id: 7")])
        builtin_definitions.cache_clear()
        self.addCleanup(builtin_definitions.cache_clear)
        self.assertRaises(ValueError, builtin_definitions)
