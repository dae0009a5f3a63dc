"""
Tests for L{webhookrx.intake.client_patterns}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake.client_patterns import ClientPatterns, check_client_pattern
from webhookrx.intake.provenance import ClientIdentity

FINGERPRINT = "0123456789abcdef" * 4


def client(*san: str, cn: str = "", fingerprint: str = FINGERPRINT) -> ClientIdentity:
    return ClientIdentity(cn, san, "CN=Our CA", fingerprint)


class CheckClientPatternTests(SynchronousTestCase):
    def test_usable(self) -> None:
        """A name, a wildcard for the first label, and a fingerprint with or without colons can be used."""
        colons = ":".join(FINGERPRINT[index : index + 2] for index in range(0, 64, 2)).upper()
        for text in ("a.example", "*.shippers.example", "Relay 7", f"sha256:{FINGERPRINT}", f"sha256:{colons}"):
            self.assertIsNone(check_client_pattern(text), text)

    def test_unusable(self) -> None:
        """Anything else is refused in one sentence that says what is allowed."""
        cases = {
            "": "no name of a client",
            "*.": "no name of a client",
            "a\n": "no name of a client",
            " a": "no name of a client",
            "a" * 256: "no name of a client",
            "*": "a wildcard is",
            "a.*.example": "a wildcard is",
            "*.*.example": "a wildcard is",
            "a*.example": "a wildcard is",
            "sha256:": "64 hexadecimal digits",
            "sha256:" + "g" * 64: "64 hexadecimal digits",
            "sha256:" + "a" * 63: "64 hexadecimal digits",
        }
        for text, problem in cases.items():
            self.assertIn(problem, check_client_pattern(text) or "", text)


class ClientPatternsTests(SynchronousTestCase):
    def test_names(self) -> None:
        """A name of the certificate is compared without regard to case, its common name after the others."""
        patterns = ClientPatterns(["Relay.example", "*.shippers.example"])
        cases = [
            (client("relay.EXAMPLE"), "Relay.example"),
            (client("other.example", "relay.example"), "Relay.example"),
            (client(cn="relay.example"), "Relay.example"),
            (client("a.shippers.example", cn="relay.example"), "*.shippers.example"),
            (client("other.example", cn="A.Shippers.Example"), "*.shippers.example"),
            (client("relay.example.org"), None),
            (client("x.relay.example"), None),
            (client(), None),
            (None, None),
        ]
        for number, (each, expected) in enumerate(cases):
            if each is not None:
                each = client(*each.san, cn=each.cn, fingerprint=f"{number:064}")
            self.assertEqual(expected, patterns.match(each), each)

    def test_wildcard(self) -> None:
        """A wildcard is exactly one label, and never a certificate's own wildcard."""
        patterns = ClientPatterns(["*.shippers.example"])
        cases = {
            "a.shippers.example": True,
            "a-1_b.shippers.example": True,
            "shippers.example": False,
            ".shippers.example": False,
            "a.b.shippers.example": False,
            "*.shippers.example": False,
            "a.shippers.example.": False,
            "a.shippers.example.evil": False,
            "ashippers.example": False,
            "a\0.shippers.example": False,
            "user@a.shippers.example": False,
        }
        for number, (name, expected) in enumerate(cases.items()):
            found = patterns.match(client(name, fingerprint=f"{number:064}"))
            self.assertEqual("*.shippers.example" if expected else None, found, name)

    def test_fingerprint(self) -> None:
        """A fingerprint is one certificate, whatever its names are; no name passes for one."""
        colons = ":".join(FINGERPRINT[index : index + 2] for index in range(0, 64, 2)).upper()
        patterns = ClientPatterns([f"sha256:{colons}"])

        self.assertEqual(f"sha256:{colons}", patterns.match(client()))
        self.assertIsNone(patterns.match(client(f"sha256:{FINGERPRINT}", cn=FINGERPRINT, fingerprint="f" * 64)))

    def test_remembered(self) -> None:
        """What certificates match is remembered, within bounds."""
        patterns = ClientPatterns(["a"])
        for number in range(3000):
            name = "ab"[number % 2]
            self.assertEqual("a" if name == "a" else None, patterns.match(client(name, fingerprint=str(number))))
            self.assertEqual(number % 1024 + 1, len(patterns._known))
