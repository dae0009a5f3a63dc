"""
Tests for L{webhookrx.config.rule_files}.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import NOW
from tests.system.certificates import Authority, Identity, self_signed
from webhookrx.config import pem
from webhookrx.config.files import LAST_SET, Snapshot, write_state
from webhookrx.config.rule_files import SavedSet, check_rule_files, read_last_set
from webhookrx.diagnostics import ERROR, WARNING, Diagnostic
from webhookrx.errors import ConfigError
from webhookrx.router.rules.router import Router, connectors_of
from webhookrx.router.rules.rules_file import read_rules
from webhookrx.router.steps.step import SetField
from webhookrx.settings import TLS

ROOT = Authority("root")
HOST = self_signed("host")


class CheckRuleFilesTests(SynchronousTestCase):
    """
    The files of rules, as they are on this machine.
    """

    def setUp(self) -> None:
        self.directory = os.path.abspath(self.mktemp())
        os.mkdir(self.directory)

    def write(self, identity: Identity, mode: int = 0o600) -> tuple[str, str]:
        """Write an identity; return its two paths."""
        key, cert = identity.write(self.directory, "host")
        os.chmod(key, mode)
        return key, cert

    def check(self, key: str, cert: str) -> list[Diagnostic]:
        """Check the files of a rule that names these."""
        text = (
            "connector_rules:\n"
            "- {name: plain, protocol: HTTP, port: 8181}\n"
            "- name: tls\n"
            "  protocol: HTTPS\n"
            "  port: 8443\n"
            f"  key_file: {key}\n"
            f"  cert_file: {cert}\n"
            "- {name: elsewhere, protocol: HTTPS, port: 1234, selector: name = other, key_file: /no, cert_file: /no}\n"
        )
        reading = read_rules(text.encode(), "rules.yaml")
        self.assertTrue(reading.valid)
        connectors, _ = connectors_of(Router("edge-1"), reading)
        return check_rule_files(reading, connectors, NOW, Snapshot())

    def test_good(self) -> None:
        """Nothing is wrong with files that fit, nor with those of rules that are not for this router."""
        self.assertEqual([], self.check(*self.write(HOST)))

    def test_missing(self) -> None:
        """What is missing is an error at its place in the rules file, that names the file."""
        key, cert = self.write(HOST)
        for paths, line, member, missing in (
            (("/no/key", cert), 6, "key_file", "/no/key"),
            ((key, "/no"), 7, "cert_file", "/no"),
        ):
            (found,) = self.check(*paths)
            column = 13 if member == "key_file" else 14
            self.assertEqual(
                f'rules.yaml:{line}:{column}: error: connector_rules[1].{member}: "{missing}" does not exist. '
                "[tls-file-missing]",
                str(found),
            )

    def test_once(self) -> None:
        """A pair that several rules name is looked at once, and each of them has what is wrong with it."""
        looked: list[TLS] = []
        real = pem.check_tls_files
        self.patch(pem, "check_tls_files", lambda tls, *others: (looked.append(tls), real(tls, *others))[1])
        text = "connector_rules:\n" + "".join(
            f"- {{name: {name}, protocol: HTTPS, port: {port}, key_file: /no/key, cert_file: /no/cert}}\n"
            for name, port in (("a", 8443), ("b", 8444))
        )
        reading = read_rules(text.encode(), "rules.yaml")
        found = check_rule_files(reading, connectors_of(Router("edge-1"), reading)[0], NOW, Snapshot())
        self.assertEqual([TLS("/no/key", "/no/cert")], looked)
        self.assertEqual([2, 2, 3, 3], [each.line for each in found])

    def test_severities(self) -> None:
        """What is wrong with dates and modes is a warning, what keeps TLS from being spoken an error."""
        day = timedelta(days=1)
        key, cert = self.write(HOST, 0o644)
        open_key = self.check(key, cert)
        expired = self.check(*self.write(ROOT.issue("old", not_after=NOW - day)))
        early = self.check(*self.write(ROOT.issue("new", not_before=NOW + day)))
        soon = self.check(*self.write(ROOT.issue("soon", not_after=NOW + day)))
        other = self.check(self.write(HOST)[0], ROOT.issue("x").write(self.directory, "x")[1])
        directory = self.check(self.directory, cert)
        for (found,), code, severity in (
            (open_key, "key-file-open", WARNING),
            (expired, "certificate-expired", WARNING),
            (early, "certificate-not-yet-valid", WARNING),
            (soon, "certificate-expires-soon", WARNING),
            (other, "key-mismatch", ERROR),
            (directory, "tls-file-unreadable", ERROR),
        ):
            self.assertEqual((code, severity), (found.code, found.severity))


RULES = """\
connector_rules:
- {name: one, protocol: HTTP, port: 8181, selector: name = other}
- {name: two, suffix: x, protocol: HTTPS, port: 8182, key_file: /k, cert_file: /c, include_request_headers: yes,
   preprocessing: {classify: yes, steps: [{set: {field: meta.a, value: 1.10}}]}}
"""
SENDER = "{id: a, vendor: v, product: p, when: {headers: {x-a: '*'}}}"
KEPT = SavedSet("edge", {"site": "fra"}, ("two",), "rules.yaml", RULES, (("/s/a.yaml", SENDER),))


class LastSetTests(SynchronousTestCase):
    """What was in use."""

    def setUp(self) -> None:
        self.directory = os.path.abspath(self.mktemp())

    def keep(self, content: bytes) -> None:
        """Write the file."""
        write_state(self.directory, LAST_SET, content)

    def test_none(self) -> None:
        """Where nothing was kept there is none."""
        self.assertIsNone(read_last_set(self.directory))

    def test_whole(self) -> None:
        """It has the connectors that there were, whichever their selectors match now, and all of each; and senders."""
        self.keep(KEPT.encode())
        found = read_last_set(self.directory)
        assert found is not None
        self.assertEqual(("edge", {"site": "fra"}), (found.router, found.labels))
        (two,) = found.connectors
        self.assertEqual(
            ("edge-two-x", "two", 8182, "/k", "/c"), (two.name, two.rule, two.port, two.key_file, two.cert_file)
        )
        self.assertTrue(two.include_request_headers and two.preprocessing.classify)
        (step,) = two.preprocessing.steps
        assert isinstance(step.set, SetField)
        self.assertEqual(b"1.10", bytes(step.set.value))
        self.assertEqual(["a"], [entry.id for entry in found.senders])

    def test_bad(self) -> None:
        """What is damaged, of a later version, or has rules that are not good here is told, and not used."""
        whole = json.loads(KEPT.encode())
        for content, problem in (
            (b"", "is damaged"),
            (b"\xff", "is damaged"),
            (KEPT.encode()[:-30], "is damaged"),
            (b"{}", "is damaged"),
            (json.dumps(whole | {"version": 2}).encode(), "of version 2"),
            (json.dumps(whole | {"rules": ["two", "three"]}).encode(), "not good here"),
            (json.dumps(whole | {"text": RULES.replace("8182", "0")}).encode(), "not good here"),
        ):
            self.keep(content)
            self.assertIn(problem, str(self.assertRaises(ConfigError, read_last_set, self.directory)))
