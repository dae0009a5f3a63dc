"""
Tests for L{webhookrx.router.rules.router} and L{webhookrx.router.rules.checks}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.router.bad_rules import RULE, rules
from webhookrx.router.rules.router import Connector, Router, connectors_of, router_of
from webhookrx.router.rules.rule import DEFAULT_PATHS, Host
from webhookrx.router.rules.rules_file import read_rules
from webhookrx.router.steps.step import Preprocessing

_HOSTS = "hosts:\n- {name: r1, labels: {s: a}}\n- {name: r2, labels: {s: b}}\n- {name: r3, labels: {s: a}}\n"
_A = "selector: label.s = a"
_B = "selector: label.s = b"
_R2 = "selector: name = r2"

# Two rules that want one port: their selectors, whether there is an inventory, and where they meet.
MEETINGS: list[tuple[str, str, bool, str]] = [
    ("selector: ''", "selector: ' '", False, "all routers"),
    (_A, _A, False, "the routers that match"),
    (_A, "selector: ''", False, "the routers that match both"),
    ("selector: ''", _A, False, "the routers that match both"),
    (_A, _B, False, ""),
    (_A, _B, True, ""),
    (_A, _A, True, "the routers that match"),
    (_A, "selector: ''", True, '"r1" and 1 more of the hosts'),
    (_B, _R2, True, '"r2"'),
    (_A, _R2, True, ""),
]


class RouterTests(SynchronousTestCase):
    """
    Tests for L{Router}.
    """

    def test_record(self) -> None:
        """A selector sees all that is known of a router, and nothing of what is not."""
        router = Router("r", {"a": "b"}, "h", "h.example.com", ("192.0.2.1",), "linux", "x86_64", "1.0", {"m": 1})

        self.assertEqual(
            {
                "name": "r",
                "host_name": "r",
                "host_label_a": "b",
                "label": {"a": "b"},
                "hostname": "h",
                "fqdn": "h.example.com",
                "ip": ["192.0.2.1"],
                "os": "linux",
                "arch": "x86_64",
                "version": "1.0",
                "meta": {
                    "hostname": "h",
                    "fqdn": "h.example.com",
                    "ip": ["192.0.2.1"],
                    "os": "linux",
                    "arch": "x86_64",
                    "version": "1.0",
                    "m": 1,
                },
            },
            router.record,
        )
        self.assertEqual({"name": "r", "host_name": "r"}, Router("r").record)

    def test_host(self) -> None:
        """A host of the inventory is a router, with one address or several."""
        self.assertEqual(("192.0.2.1",), router_of(Host("a", ip="192.0.2.1")).ip)
        self.assertEqual(("192.0.2.1", "::1"), router_of(Host("a", ip=("192.0.2.1", "::1"))).ip)
        self.assertEqual(Router("a"), router_of(Host("a", ip="")))


class ConnectorsTests(SynchronousTestCase):
    """
    Tests for L{connectors_of}.
    """

    def of(self, text: str, router: Router) -> tuple[list[Connector], list[str]]:
        """Return the connectors of a router, and what is wrong with them."""
        connectors, diagnostics = connectors_of(router, read_rules(text.encode(), "f"))
        return connectors, [str(found) for found in diagnostics]

    def test_connector(self) -> None:
        """A connector has all that its rule says, and labels that say webhook and generic."""
        text = RULE + "  labels: {team: x}\n  suffix: in\n  preprocessing: {classify: yes}\n  selector: name = r"
        text += "\n  health: /h\n  include_request_headers: yes"

        expected = Connector(
            name="r-a-in",
            rule="a",
            port=8181,
            protocol="HTTP",
            paths=DEFAULT_PATHS,
            key_file="",
            cert_file="",
            labels={"product": "webhook", "vendor": "generic", "team": "x"},
            preprocessing=Preprocessing(classify=True),
            health="/h",
            include_request_headers=True,
        )
        self.assertEqual(([expected], []), self.of(text, Router("r")))
        self.assertEqual(([], []), self.of(text, Router("other")))

    def test_labels_of_the_rule_win(self) -> None:
        """A rule may say which product its data comes from."""
        ((connector,), _) = self.of(RULE + "  labels: {product: fortigate}", Router("r"))

        self.assertEqual({"product": "fortigate", "vendor": "generic"}, connector.labels)

    def test_one_port_twice(self) -> None:
        """Two rules that meet on this very router are told of, both by name, where the second has its port."""
        text = rules(f"name: a, P, port: 8181, {_A}", "name: b, P, port: 8181, selector: os = linux")
        connectors, problems = self.of(text, Router("r", {"s": "a"}, os="linux"))

        sentence = 'Port 8181 is wanted by the rules "a" and "b", both on "r"; a router has a port once.'
        self.assertEqual([f"f:3:35: error: connector_rules[1].port: {sentence} [port-clash]"], problems)
        self.assertEqual(["r-a-a"], [connector.name for connector in connectors])

    def test_costly_selector(self) -> None:
        """A selector that takes too much work on this router gives no connector, and its rule is named."""
        costly = " OR ".join(f"@ANY =* x{number}x" for number in range(200))
        router = Router("r", {f"label-{number}": "v" * 60 for number in range(200)})
        connectors, problems = self.of(rules(f"name: a, P, port: 8181, selector: '{costly}'"), router)

        self.assertEqual([], connectors)
        (problem,) = problems
        sentence = 'Matching it with the metadata of "r" takes too much work. [selector-too-costly]'
        self.assertRegex(problem, r"^f:\d+:\d+: error: connector_rules\[0\]\.selector: ")
        self.assertTrue(problem.endswith(sentence), problem)

    def test_one_name_twice(self) -> None:
        """So are two rules that make one name."""
        text = rules(
            f"name: a, P, port: 1024, suffix: b-c, {_A}", "name: a-b, P, port: 1025, suffix: c, selector: os = x"
        )
        _, problems = self.of(text, Router("r", {"s": "a"}, os="x"))

        sentence = 'The rules "a" and "a-b" both make a connector "r-a-b-c"; change a suffix.'
        self.assertEqual([f"f:3:10: error: connector_rules[1].name: {sentence} [duplicate-connector]"], problems)

    def test_long_name(self) -> None:
        """A name that gets too long on this very router is an error."""
        _, (problem,) = self.of(RULE, Router("r" * 250))

        self.assertIn("has 254 characters in its name; it takes up to 253. [connector-name-too-long]", problem)

    def test_selector_that_is_none(self) -> None:
        """A selector that is no query, which the file's own diagnostics tell of, matches nothing."""
        self.assertEqual(([], []), self.of(RULE + "  selector: name =", Router("r")))

    def test_order(self) -> None:
        """Connectors come in the order of their names."""
        text = rules("name: b, P, port: 1024", "name: a, P, port: 1025")

        self.assertEqual(["r-a-a", "r-b-b"], [connector.name for connector in self.of(text, Router("r"))[0]])


class MeetingTests(SynchronousTestCase):
    """
    Tests for L{webhookrx.router.rules.checks.clashes}.
    """

    def test_meetings(self) -> None:
        """Rules that want one port are told of where they meet: on a host, or on any router that there may be."""
        for first, second, inventory, where in MEETINGS:
            text = rules(
                f"name: a, P, port: 8181, {first}",
                f"name: b, P, port: 8181, {second}",
                hosts=_HOSTS if inventory else "",
            )
            told = [found.sentence for found in read_rules(text.encode(), "f").diagnostics]

            sentence = f'Port 8181 is wanted by the rules "a" and "b", both on {where}; a router has a port once.'
            self.assertEqual((first, second, [sentence] if where else []), (first, second, told))

    def test_blamed_once(self) -> None:
        """Of many rules with one port each is told of once, beside the first that it meets."""
        text = rules(
            f"name: a, P, port: 8181, {_A}",
            f"name: b, P, port: 8181, {_B}",
            "name: c, P, port: 8181",
            f"name: d, P, port: 8181, {_R2}",
            hosts=_HOSTS,
        )
        told = [found.sentence for found in read_rules(text.encode(), "f").diagnostics]

        met = ('"a" and "c", both on "r1" and 1 more of the hosts', '"b" and "d", both on "r2"')
        self.assertEqual([f"Port 8181 is wanted by the rules {each}; a router has a port once." for each in met], told)

    def test_one_name_on_a_host(self) -> None:
        """Rules that make one name are told of with the name that it is there."""
        text = rules(
            f"name: a, P, port: 1024, suffix: b-c, {_B}",
            f"name: a-b, P, port: 1025, suffix: c, {_R2}",
            hosts=_HOSTS,
        )
        (found,) = read_rules(text.encode(), "f").diagnostics

        self.assertEqual('The rules "a" and "a-b" both make a connector "r2-a-b-c"; change a suffix.', found.sentence)
