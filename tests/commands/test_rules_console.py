"""C{rules pull}, C{rules diff} and C{rules push}, on the routes of a console without a wire."""

from __future__ import annotations

import os
import ssl
from typing import Any
from unittest.mock import patch

from tests.commands.running import CommandCase, Ran, run_command
from tests.console.rules.calling import RulesCalls
from webhookrx.commands.console_client import ConsoleClient, ConsoleError, _refusal
from webhookrx.errors import ConfigError

RULES = """\
    connector_rules:
      # of b
      - {name: b, protocol: HTTP, port: 8081}
      - {name: c, protocol: HTTP, port: 8082}
"""
TOKEN = "wrxp_secret"


class ConsoleCase(CommandCase):
    """A console with nothing in it, and a file with a token."""

    def setUp(self) -> None:
        """Make both."""
        super().setUp()
        self.call = RulesCalls(self)  # type: ignore[arg-type]
        self.write("token", TOKEN + "\n")
        os.chmod("token", 0o600)
        self.asked: list[tuple[str, str]] = []

        def exchange(_: ConsoleClient, method: str, target: str, body: bytes | None, headers: dict[str, str]) -> Any:
            self.asked.append((method, target))
            self.assertEqual(f"Bearer {TOKEN}", headers["Authorization"])
            yaml = body.decode() if body is not None and "yaml" in headers["Content-Type"] else None
            if_match = headers["If-Match"].strip('"') if "If-Match" in headers else None
            found = self.call(method, target.removeprefix("/api/v1"), yaml=yaml, if_match=if_match, headers=headers)
            return found.status, f'"{found.etag}"' if found.etag else "", found.body

        self.patch(ConsoleClient, "_exchange", exchange)

    def rules(self, verb: str, *arguments: str, stdin: bytes = b"") -> Ran:
        """Run a verb on this console."""
        console = ("--console", "https://console.example.net", "--token-file", "token")
        ran = run_command("rules", verb, *arguments, *console, stdin=stdin)
        self.assertNotIn(TOKEN, ran.out + ran.err)
        return ran


class PushTests(ConsoleCase):
    """C{rules push} and C{rules diff}."""

    def test_push(self) -> None:
        """A push makes rules and says so; the next one changes nothing."""
        self.write("rules.yaml", RULES)
        told = "+ b\n+ c\n0 rules as they were; 2 new, 0 changed, 0 deleted\nThe console is at revision 1.\n"
        self.assertEqual((0, told, ""), self.rules("push", "rules.yaml", "--note", "first"))
        told = "2 rules as they were; 0 new, 0 changed, 0 deleted\nThe console is at revision 1.\n"
        self.assertEqual((0, told, ""), self.rules("push", "rules.yaml"))

    def test_diff(self) -> None:
        """A diff says what a push would do, changes nothing, and has status 1 until there is nothing to do."""
        self.write("rules.yaml", RULES)
        ran = self.rules("diff", "rules.yaml")
        self.assertEqual((1, "+ b\n+ c\n0 rules as they were; 2 new, 0 changed, 0 deleted\n"), (ran.status, ran.out))
        self.assertEqual({"GET"}, {method for method, _ in self.asked})
        self.rules("push", "rules.yaml")
        self.assertEqual(0, self.rules("diff", "rules.yaml").status)
        self.write("rules.yaml", "connector_rules: [{name: b, protocol: HTTP, port: 9000}]")
        ran = self.rules("diff", "rules.yaml")
        self.assertEqual(1, ran.status)
        self.assertIn("~ b\n    ~ port = 9000 (was 8081)\n  c is not in the file; --prune deletes it\n", ran.out)
        self.assertIn("- c\n", self.rules("diff", "rules.yaml", "--prune").out)

    def test_digits(self) -> None:
        """A number that was pushed is as the file says: with all its digits, and larger than a float can be."""
        steps = "preprocessing: {steps: [{set: {field: log.body.x, value: [1.10, 1e400]}}]}"
        self.write("rules.yaml", f"connector_rules: [{{name: b, protocol: HTTP, port: 8081, {steps}}}]")
        self.assertEqual(0, self.rules("push", "rules.yaml").status)
        self.assertEqual(0, self.rules("diff", "rules.yaml").status)
        self.write(
            "rules.yaml", f"connector_rules: [{{name: b, protocol: HTTP, port: 8081, {steps}}}]".replace("10", "1")
        )
        for verb in ("diff", "push"):
            told = "~ preprocessing.steps"
            self.assertIn(told, self.rules(verb, "rules.yaml").out)

    def test_findings(self) -> None:
        """What is wrong with a file is told with its name and place, and the status is 1."""
        self.write("rules.yaml", "connector_rules:\n  - {name: b, protocol: FTP, port: 8081}\n")
        told = "rules.yaml:2:25: error: connector_rules[0].protocol: "
        ran = self.rules("push", "rules.yaml")
        self.assertEqual((1, True), (ran.status, told in ran.err), ran)
        ran = self.rules("diff", "rules.yaml")
        self.assertEqual((1, True), (ran.status, told in ran.out), ran)

    def test_conflict(self) -> None:
        """Rules of other managers are a conflict, and are named; C{--take-over} changes them."""
        self.call("POST", "/rules", {"name": "b", "protocol": "HTTP", "port": 9000})
        self.write("rules.yaml", RULES)
        ran = self.rules("push", "rules.yaml")
        self.assertEqual((3, True), (ran.status, "! b is of ui; --take-over changes it\n" in ran.err), ran)
        self.assertEqual(0, self.rules("push", "rules.yaml", "--take-over").status)

    def test_dry_run(self) -> None:
        """A dry run changes nothing and says so."""
        ran = self.rules("push", "-", "--dry-run", "--json", stdin=b"connector_rules: []")
        self.assertEqual((0, True), (ran.status, '"dry_run":true' in ran.out), ran)
        ran = self.rules("push", "-", "--dry-run", stdin=b"connector_rules: [{name: b, protocol: HTTP, port: 8081}]")
        self.assertIn("Nothing was changed", ran.out)
        self.assertEqual({}, self.call.console.rulebook.saved.rules)

    def test_pull(self) -> None:
        """A pull writes what was pushed, comments and all, and a push of that changes nothing."""
        self.write("rules.yaml", RULES)
        self.rules("push", "rules.yaml")
        self.assertEqual((0, "", ""), self.rules("pull", "pulled.yaml"))
        self.assertEqual(0, self.rules("diff", "pulled.yaml").status)
        ran = self.rules("pull", "-")
        self.assertEqual((0, True), (ran.status, "# of b" in ran.out))
        with open("pulled.yaml") as file:
            self.assertEqual(ran.out, file.read())


class ArgumentTests(ConsoleCase):
    """What is wrong with arguments has status 2, and nothing is asked."""

    def test_wrong(self) -> None:
        """A URL without TLS or with a password, a token of several words, and a CA that is none are told."""
        self.write("many", "a token\nof two lines")
        self.write("rules.yaml", RULES)
        https = "https://console.example.net"
        for arguments, told in (
            (("--console", "http://console.example.net", "--token-file", "token"), "begins with https"),
            (("--console", "https://a:b@console.example.net", "--token-file", "token"), "no password"),
            (("--console", f"{https}/api", "--token-file", "token"), "https://HOST"),
            (("--console", https, "--token-file", "none"), "does not exist"),
            (("--console", https, "--token-file", "many"), "does not hold an API token"),
            (("--console", https, "--token-file", "token", "--ca", "rules.yaml"), "no CA certificate"),
            (("--console", "http://127.0.0.1:1", "--token-file", "token", "--ca", "token"), "https"),
        ):
            ran = run_command("rules", "pull", "-", *arguments)
            self.assertEqual((2, True), (ran.status, told in ran.err), ran)
            self.assertNotIn(TOKEN, ran.err)
        self.assertEqual([], self.asked)

    def test_options(self) -> None:
        """A name of a manager and a note are checked before anything is sent."""
        self.write("rules.yaml", RULES)
        for option, value in (("--manager", "a b"), ("--manager", ""), ("--note", "a\nb"), ("--note", "x" * 501)):
            self.assertEqual(2, self.rules("push", "rules.yaml", option, value).status)
        self.assertEqual([], self.asked)

    def test_open_token(self) -> None:
        """A token that everybody can read is used, with a warning."""
        os.chmod("token", 0o644)
        ran = self.rules("pull", "-")
        self.assertEqual((0, True), (ran.status, "chmod 640" in ran.err))


class RefusalTests(CommandCase):
    """What a console, or something else, says no with."""

    def test_statuses(self) -> None:
        """Each refusal has the status that scripts go by; what is no console counts as not reached."""
        for status, answer, expected in (
            (401, b'{"code": "not_signed_in"}', 2),
            (403, b'{"code": "forbidden"}', 2),
            (409, b'{"code": "conflict"}', 3),
            (412, b'{"code": "stale"}', 3),
            (422, b'{"code": "invalid"}', 1),
            (429, b'{"code": "too_many"}', 4),
            (507, b'{"code": "disk_full"}', 4),
            (302, b"", 4),
            (404, b"<html>", 4),
            (403, b"[]", 4),
        ):
            self.assertEqual(expected, _refusal(status, answer).status, (status, answer))

    def test_trust(self) -> None:
        """Certificates and host names are always verified."""
        context = ConsoleClient("https://console.example.net", "x")._tls
        assert context is not None
        self.assertEqual((ssl.CERT_REQUIRED, True), (context.verify_mode, context.check_hostname))

    def test_unreachable(self) -> None:
        """A console that can't be reached has a status of its own."""
        client = ConsoleClient("https://console.example.net", "x")
        with patch(
            "http.client.HTTPSConnection.request", side_effect=ConnectionRefusedError(111, "Connection refused")
        ):
            error = self.assertRaises(ConsoleError, client.request, "GET", "/rules")
        self.assertEqual(4, error.status)
        self.assertIn("Connection refused", str(error))

    def test_loopback(self) -> None:
        """Without TLS only this machine is spoken to."""
        for url in ("http://127.0.0.1:8080", "http://[::1]:8080", "http://localhost"):
            ConsoleClient(url, "x")
        for url in ("http://127.0.0.1.example.net", "http://10.0.0.1", "ftp://127.0.0.1", "https://", "https://h:x"):
            self.assertRaises(ConfigError, ConsoleClient, url, "x")
