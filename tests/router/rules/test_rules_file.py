"""
Tests for L{webhookrx.router.rules.rules_file} and L{webhookrx.router.rules.checks}.
"""

from __future__ import annotations

import random
import time
from textwrap import dedent

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.documents import blocks, read
from tests.router.bad_rules import BAD, RULE, STEPS, TLS, rules
from webhookrx.diagnostics import CODES, ERROR, ROUTER_CODES, RULE_CODES, Position, diagnose, has_errors
from webhookrx.router.rules.router import Router, connectors_of
from webhookrx.router.rules.rule import Rule
from webhookrx.router.rules.rules_file import RulesReading, read_rule, read_rules
from webhookrx.router.rules.selectors import Selectors

# What is right, and looks like what is not.
GOOD = [
    "hosts: []",
    "connector_rules: []",
    "{version: 1}",
    RULE,
    RULE + "  selector: ''",
    RULE + "  selector: host_name = a AND host_label_b = c AND label.d-e.f/g EXISTS AND meta.os = j AND @ANY = k",
    RULE + "  paths: [^/a, '(?i)/b', '.*']",
    RULE + "  labels: {product: x, tier: 1, prod: yes}",
    RULE + "  preprocessing: {classify: yes, parse: yes, steps: [{parse: yes}]}",
    STEPS + "classify: yes\n    - probe: a\n    - parse: yes",
    TLS + "  cert_file: /c",
    TLS + "  cert_file: /c\n  ca_file: /a\n  allow_clients: ['*.example.net', 'sha256:" + "ab" * 32 + "']",
    RULE
    + "  sender: aws-firehose\n  secrets_file: /s\n  verify: off\n  handshake: no\n  split: yes\n  idempotency: 24h",
    RULE + "  sender: aws-sns\n  public_url: https://a\n  sender_settings: {topics: [a, b], confirm: yes}",
    RULE + "  allow: [office, '::/0']\n  quota: {messages: 1/s, per: address}\n  split: /events/*\n  handshake: no",
    RULE + "  auth_token_file: [/t]\n  auth_token_in: 'path:key'\n  paths: ['/(?P<key>.*)']",
    rules("name: a, P, port: 8181, selector: name = a", "name: b, P, port: 8181, selector: name = b"),
    rules(
        "name: a, P, port: 8181, selector: label.s = a",
        "name: b, P, port: 8181, selector: NOT label.s = a",
        hosts="hosts: [{name: x, labels: {s: a}}, {name: y}]",
    ),
]


class ReadRulesTests(SynchronousTestCase):
    """
    Tests for L{read_rules}.
    """

    def read(self, text: str) -> RulesReading:
        """Return what a file says."""
        return read_rules(text.encode(), "rules.yaml")

    def test_bad(self) -> None:
        """Each mistake has its code, how severe it is, line, column and field, and nothing else is told."""
        for code, text, at in BAD:
            reading = self.read(text)
            expected = [(code, CODES[code].severity, at)]
            told = [
                (found.code, found.severity, (found.line, found.column, found.field)) for found in reading.diagnostics
            ]

            self.assertEqual((text, expected), (text, told))
            self.assertEqual(CODES[code].severity != ERROR, reading.valid)

    def test_slow_paths(self) -> None:
        """Where slow patterns are allowed, a path that RE2 can't run is a warning with a code of its own."""
        text = (RULE + "  paths: [/a, '/(?P<b>.)(?P=b)', '/(c']").encode()
        told = [(found.code, found.severity, found.column) for found in read_rules(text, "a").diagnostics]
        allowed = [
            (found.code, found.severity, found.column)
            for found in read_rules(text, "a", allow_slow_patterns=True).diagnostics
        ]
        self.assertEqual([("path-not-linear", "error", 15), ("path-syntax", "error", 34)], told)
        self.assertEqual([("path-slow", "warning", 15), ("path-syntax", "error", 34)], allowed)

    def test_too_large_paths(self) -> None:
        """Paths that are not compiled for their size are not asked for a group of tokens either."""
        text = RULE + "  auth_token_file: /t\n  auth_token_in: path:key\n  paths: [" + r"'/\p{L}{1,145}', " * 3 + "]"
        self.assertEqual(["paths-too-large"], [found.code for found in self.read(text).diagnostics])

    def test_every_code(self) -> None:
        """Some file shows each code that a file can show."""
        elsewhere = {"inventory-too-large", "path-slow"}

        self.assertEqual({code.word for code in RULE_CODES}, elsewhere | {bad.code for bad in BAD} & set(CODES) - {
            "bad-value", "unknown-key", "missing-key", "wrong-type",
        })  # fmt: skip

    def test_good(self) -> None:
        """Nothing is told of what is right."""
        for text in GOOD:
            self.assertEqual((text, []), (text, [str(found) for found in self.read(text).diagnostics]))

    def test_all_at_once(self) -> None:
        """All that is wrong is told at once, and nothing that only follows from something else."""
        reading = self.read(
            "connector_rules:\n"
            '- name: "a\\tb"\n'
            "  protocol: FTP\n"
            "  port: many\n"
            "  key_file: k\n"
            "  selector: [1]\n"
            "  preprocessing:\n"
            "    classify: perhaps\n"
            "    parse: yes\n"
            "    steps: [{rename: x}, {parse: yes}, {set: {feld: log.body}}]\n"
            "- {name: b, protocol: HTTP, port: 8181}\n"
            "- text\n"
            "- {name: c, protocol: HTTP, port: 8181}\n"
            "hosts: [{labels: {a: b}}, {name: r}]\n"
        )

        expected = [
            ("bad-name", 2),
            ("bad-protocol", 3),
            ("wrong-type", 4),
            ("relative-path", 5),
            ("wrong-type", 6),
            ("wrong-type", 8),
            ("unknown-step", 10),
            ("missing-key", 10),
            ("missing-key", 10),
            ("unknown-key", 10),
            ("wrong-type", 12),
            ("port-clash", 13),
            ("missing-key", 14),
        ]
        self.assertEqual(expected, [(found.code, found.line) for found in reading.diagnostics])
        self.assertEqual(((1, 3), ["b", "c"]), (reading.indices, [rule.name for rule in reading.rules]))
        self.assertEqual(["r"], [host.name for host in reading.hosts])

    def test_sentences(self) -> None:
        """A sentence quotes what is wrong and says what is allowed; one on two rules names both."""
        for text, expected in (
            (
                rules("name: a, protocol: htps, port: 8181"),
                '"htps" is not a protocol; it takes HTTPS or HTTP. Did you mean "HTTPS"?',
            ),
            (rules("name: a, P, port: 70000"), "70000 is not a port; it takes a whole number from 1 to 65535."),
            (
                rules("name: a, P, port: 1024", "name: b, P, port: 1024"),
                'Port 1024 is wanted by the rules "a" and "b", both on all routers; a router has a port once.',
            ),
            (
                RULE + "  key_file: /k",
                "HTTP takes no private key; leave key_file out, or write HTTPS.",
            ),
            (
                "hosts: [{name: a}, {name: a}]",
                'Two hosts have the name "a", the first in line 1; each needs its own.',
            ),
            (
                RULE + "  selector: name = q\nhosts: [{name: a}, {name: b}]",
                "It matches none of the 2 hosts of this file.",
            ),
            (
                STEPS + "set-field: {field: meta.a, value: b}",
                'There is no key "set-field" here. Did you mean "set"?',
            ),
            (STEPS + "filterx: drop;", 'There is no key "filterx" here. Did you mean "expression"?'),
            (STEPS + "probes: a", 'There is no key "probes" here. Did you mean "probe"?'),
            (
                STEPS + "select: product = github",
                'A message has no field "product": all are below log or meta. Did you mean "meta.product"?',
            ),
        ):
            (found,) = self.read(text).diagnostics

            self.assertEqual(expected, found.sentence)

    def test_no_file_at_all(self) -> None:
        """What is no rules file has no rules, and says why."""
        reading = self.read("just text")

        self.assertEqual(((), (), False), (reading.rules, reading.hosts, reading.valid))

    def test_places(self) -> None:
        """A rule and its members can be pointed at by its name, for what only a router knows."""
        reading = self.read("connector_rules:\n- text\n- name: b\n  port: 8443\n  protocol: HTTPS\n  key_file: /k\n")
        found = reading.in_rule("b", diagnose("tls-file-missing", ("key_file",), "/k is not there."))

        self.assertEqual(Position(6, 13), reading.position("b", "key_file"))
        self.assertEqual(Position(3, 3), reading.position("b"))
        self.assertEqual(
            "rules.yaml:6:13: error: connector_rules[1].key_file: /k is not there. [tls-file-missing]", str(found)
        )
        self.assertRaises(KeyError, reading.position, "a")
        self.assertRaises(KeyError, reading.in_rule, "a", found)

    def test_order_of_rules(self) -> None:
        """The order of rules makes no difference for the connectors that there are."""
        items = [f"name: r{number}, P, port: {8000 + number}, selector: name != q" for number in range(5)]
        turned = list(reversed(items))
        router = Router("x")

        self.assertEqual(
            connectors_of(router, self.read(rules(*items))), connectors_of(router, self.read(rules(*turned)))
        )

    def test_sample(self) -> None:
        """The file that people start from is right."""
        reading = read_rules(read("etc/connector-rules.yaml").encode(), "sample")

        self.assertEqual([], reading.diagnostics)
        texts = [rule.selector for rule in reading.rules]
        self.assertEqual([[0], [2]], Selectors(texts).matched(texts, reading.hosts))

    def test_commented_rule(self) -> None:
        """What is commented out at its end is right, too."""
        _, _, commented = read("etc/connector-rules.yaml").partition("\n# - name: github")
        rule = f"- name: github{commented}".replace("\n# ", "\n")
        reading = read_rules(f"connector_rules:\n{rule}".encode(), "sample")
        self.assertEqual([], reading.diagnostics)
        self.assertEqual(("github", "24h"), (reading.rules[0].sender, reading.rules[0].idempotency))

    def test_documents(self) -> None:
        """The examples of the page are right."""
        found = [block.text for block in blocks(read("docs/reference/connector-rules.md")) if block.language == "yaml"]

        self.assertTrue(found)
        for text in found:
            self.assertEqual([], self.read(text).diagnostics)

    def test_router_codes_are_no_others(self) -> None:
        """No word stands for two mistakes."""
        self.assertFalse({code.word for code in ROUTER_CODES} & {code.word for code in RULE_CODES})

    @given(st.text(alphabet="name:- portclsHTPS1/{}[],'\"\n", max_size=80))
    def test_anything(self, text: str) -> None:
        """Whatever stands behind a rule, the answer is rules, or an error."""
        reading = self.read(RULE + text)

        self.assertTrue(reading.valid or has_errors(reading.diagnostics))
        for found in reading.diagnostics:
            self.assertEqual(CODES[found.code].severity, found.severity)

    @given(st.text(alphabet="nameOR labelAD().*=!~'\"@\n`\\", max_size=40))
    def test_any_selector(self, text: str) -> None:
        """Whatever a selector is, with an inventory and without, it is judged, and its mistakes are inside of it."""
        quoted = "'" + text.replace("'", "''").replace("\n", "\n\n    ") + "'"
        for hosts in ("", "hosts: [{name: name, labels: {a: b}}]\n"):
            reading = self.read(f"{RULE}  selector:\n    {quoted}\n{hosts}")

            self.assertTrue(all(each.code.startswith("selector-") for each in reading.diagnostics), reading.diagnostics)
            self.assertTrue(all(found.line >= 5 for found in reading.diagnostics))


class SizeTests(SynchronousTestCase):
    """
    A fleet.
    """

    def fleet(self, rule_count: int, host_count: int) -> bytes:
        """Return a file of many rules and hosts."""
        chance = random.Random(1)
        sites = ["fra", "ber", "muc", "lon"]
        selectors = ["label.site = {}", "label.site = {} AND label.rack = r3", "NOT label.site = {}", "name =* '-{}'"]
        lines = [
            f"name: rule-{number}, P, port: {9000 + number}, selector: "
            f'"{chance.choice(selectors).format(chance.choice(sites))}"'
            for number in range(rule_count)
        ]
        hosts = "".join(
            f"- {{name: router-{number}, labels: {{site: {chance.choice(sites)}, rack: r{number % 9}}}}}\n"
            for number in range(host_count)
        )
        return rules(*lines, hosts=f"hosts:\n{hosts}").encode()

    def test_a_thousand_hosts(self) -> None:
        """200 rules for 1,000 hosts are read and checked in a moment: 5 s is far more than it takes."""
        data = self.fleet(200, 1000)
        started = time.process_time()
        reading = read_rules(data, "fleet.yaml")

        self.assertTrue(reading.valid)
        self.assertLess(time.process_time() - started, 5)

    def test_too_large(self) -> None:
        """Where there is too much to compare, that is told, and the rest is checked all the same."""
        data = self.fleet(401, 5000).replace(b"9001", b"9000")
        codes = {found.code for found in read_rules(data, "fleet.yaml").diagnostics}

        self.assertIn("inventory-too-large", codes)
        self.assertNotIn("selector-matches-none", codes)


class ReadRuleTests(SynchronousTestCase):
    """L{read_rule}."""

    def test_valid(self) -> None:
        """A rule without a file around it is a rule."""
        reading = read_rule(b"name: a\nprotocol: HTTP\nport: 8080\n", "a")
        self.assertEqual((Rule("a", "HTTP", 8080), []), (reading.value, reading.diagnostics))

    def test_findings(self) -> None:
        """What is wrong is what is wrong with the rule in a file, at the same place of the rule."""
        rule = dedent("""\
            name: "a\\tb"
            protocol: FTP
            port: 99999
            selector: "label.a ="
            labels: {"-": x}
            paths: [a, "(("]
            preprocessing: {parse: yes, steps: [{filter: x}, {select: "= ="}]}
            """)
        alone = read_rule(rule.encode(), "file")
        file = "connector_rules:\n  - " + rule.replace("\n", "\n    ").rstrip() + "\n"
        within = read_rules(file.encode(), "file").diagnostics
        self.assertEqual(None, alone.value)
        self.assertEqual(
            [
                (each.code, ("connector_rules", 0, *each.path), each.line + 1, each.column + 4)
                for each in alone.diagnostics
            ],
            [(each.code, each.path, each.line, each.column) for each in within],
        )
        self.assertIn("unknown-step", {each.code for each in within})

    def test_warnings(self) -> None:
        """A rule with warnings alone can be used."""
        reading = read_rule(b"name: a\nprotocol: HTTP\nport: 80\nselector: labels.x = y", "a")
        self.assertEqual(["port-privileged", "selector-unknown-field"], [each.code for each in reading.diagnostics])
        self.assertIsNot(None, reading.value)
