"""
Tests for L{webhookrx.config.guards.of_connector}, with the routers whose connectors they guard.
"""

from __future__ import annotations

import os

from tests.config.guards.cases import SECRET, SENDERS, WHEN
from tests.config.starting import write_text
from tests.config.test_router_form import PLAIN, RouterCase
from webhookrx.config.check import check_report
from webhookrx.config.files import LAST_SET, write_state
from webhookrx.guard.quota import SourceQuota
from webhookrx.intake.token_places import TokenPlace
from webhookrx.intake.tokens import NamedToken
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.settings import TLS, GuardSettings, Settings

PATHS = {
    "secrets-file-missing": "/no/such",
    "secrets-file-unusable": "DIR",
    "secret-unusable": "DIR/secrets",
    "token-file-missing": "/no/such",
    "token-file-unusable": "DIR",
}
"""The file that is named as the reason of a closed gate, by code; none for others."""


class GuardedRouterCase(RouterCase):
    """A router that knows the senders of tests, and a file with a secret of one."""

    def setUp(self) -> None:
        super().setUp()
        self.senders = self.path("senders")
        for name, members in SENDERS.items():
            write_text(self.senders, f"{name}.yaml", f"id: {name}\nvendor: demo\nproduct: {name}\n{WHEN}\n{members}")
        self.secrets = write_text(self.directory, "secrets", f"one = {SECRET}\n")
        self.tokens = write_text(self.directory, "tokens", "edge = t0ken\n")

    def rule(self, fields: str, rule: str = PLAIN) -> str:
        """Return a rule with more fields."""
        return f"{rule.removesuffix('}')}, {fields}}}"

    def guarded(self, fields: str, running: Settings | None = None, **options: str) -> Settings:
        """Return the settings of a router whose one rule has these fields."""
        return self.settings(running, rules=self.rules(self.rule(fields)), senders=self.senders, **options)


class ConnectorGuardTests(GuardedRouterCase):
    """
    Tests for L{read_connector_guard}.
    """

    def test_plain(self) -> None:
        """A rule without these fields makes connectors without a guard."""
        (source,) = self.guarded("health: /a").sources
        self.assertIsNone(source.guard)

    def test_values(self) -> None:
        """Each field arrives in the guard of the connector, whose tokens are all there."""
        (source,) = self.guarded(
            f"sender: demo, secrets_file: {self.secrets}, verify: note, split: lines, idempotency: 1h, "
            f"quota: {{messages: 1/s, per: token}}, allow: ['::/0'], auth_token_file: [{self.tokens}], "
            "auth_token_in: 'query:token'",
            allow_plaintext_token="yes",
        ).sources
        guard = source.guard
        assert guard is not None and guard.sender is not None
        self.assertEqual(("demo", (NamedSecret("one", SECRET.encode()),)), (guard.sender.id, guard.secrets))
        self.assertEqual(("note", "lines", 3600.0), (guard.verify, guard.split, guard.idempotency))
        self.assertEqual((SourceQuota(1.0, per="token"), {"::/0": ("::/0",)}), (guard.quota, guard.allow))
        self.assertEqual((NamedToken("edge", b"t0ken"),), guard.tokens)
        self.assertEqual(TokenPlace("query", "token"), guard.token_place)
        self.assertEqual((), source.auth_tokens)

    def test_shown(self) -> None:
        """The files that a rule names are shown like those of a source, and nothing that is in them."""
        fields = f"sender: demo, secrets_file: {self.secrets}, auth_token_file: [{self.tokens}]"
        resolved = self.start(rules=self.rules(self.rule(fields)), senders=self.senders, allow_plaintext_token="yes")
        shown = {row.name: row.value for row in resolved.effective if row.section}
        self.assertEqual((self.secrets, self.tokens), (shown["secrets-file"], shown["auth-token-file"]))
        self.assertNotIn(SECRET, str(shown))

    def test_public_url(self) -> None:
        """It is for senders that sign it, and a mistake for others."""
        for sender, problem in (("demo-urls", ""), ("demo", "[public-url-not-used]")):
            fields = f"sender: {sender}, secrets_file: {self.secrets}, public_url: 'https://a'"
            settings = self.guarded(fields)
            self.assertEqual(not problem, bool(settings.sources))
            self.assertIn(problem, "".join(each.text for each in settings.blocked))
            for source in settings.sources:
                assert source.guard is not None
                self.assertEqual("https://a", source.guard.public_url)

    def test_clients(self) -> None:
        """A CA file makes the connector ask for client certificates."""
        key, cert = self.pair()
        rule = f"{{name: t, protocol: HTTPS, port: 8443, key_file: {key}, cert_file: {cert}, ca_file: {cert}, "
        rules = self.rules(rule + "allow_clients: ['*.example.net']}")
        (source,) = self.settings(rules=rules).sources
        self.assertEqual(TLS(key, cert, peer_verify=True, ca_file=cert), source.listeners[0].tls)
        self.assertEqual(GuardSettings(allow_clients=("*.example.net",)), source.guard)
        missing = self.settings(rules=self.rules(rule.replace(f"ca_file: {cert}", "ca_file: /no/ca") + "}"))
        self.assertIn('ca_file: "/no/ca" does not exist', missing.blocked[0].text)

    def test_networks(self) -> None:
        """Lists of networks are the router's, and watched."""
        networks = write_text(self.directory, "networks", "192.0.2.0/24\n")
        settings = self.guarded("allow: [office]", network=f"office={networks}")
        self.assertEqual(GuardSettings(allow={"office": ("192.0.2.0/24",)}), settings.sources[0].guard)
        self.assertIn(networks, settings.watched)

    def test_mistakes(self) -> None:
        """What is wrong on this machine has its place in the rules file, its code, and blocks the router."""
        cases = (
            ("sender: demo2", "sender", "sender-unknown"),
            ("sender: demo-plain, verify: note", "verify", "sender-lacks"),
            ("sender: demo-settings", "sender", "sender-setting"),
            ("sender: demo-settings, sender_settings: {topics: [a], b: c}", "sender_settings.b", "sender-setting"),
            (f"sender: demo-urls, secrets_file: {self.secrets}", "sender", "needs-public-url"),
            ("sender: demo, secrets_file: /no/such", "secrets_file", "secrets-file-missing"),
            (f"sender: demo, secrets_file: [{self.directory}]", "secrets_file", "secrets-file-unusable"),
            (f"sender: demo-base64, secrets_file: {self.secrets}", "secrets_file", "secret-unusable"),
            ("sender: demo", "sender", "no-secret"),
            ("auth_token_file: /no/such", "auth_token_file", "token-file-missing"),
            (f"auth_token_file: {self.directory}", "auth_token_file", "token-file-unusable"),
            (f"auth_token_file: {self.tokens}", "auth_token_file", "token-in-the-open"),
            (f"sender: demo-tokens, secrets_file: {self.secrets}", "secrets_file", "token-in-the-open"),
            ("allow: ['::/0', office]", "allow[1]", "networks-unknown"),
        )
        for fields, field, code in cases:
            settings = self.guarded(fields)
            (blocked,) = settings.blocked
            self.assertIn(f"connector_rules[0].{field}: ", blocked.text)
            self.assertTrue(blocked.text.endswith(f" [{code}]"), blocked)
            self.assertEqual(PATHS.get(code, ""), blocked.path.replace(self.directory, "DIR"), fields)
            self.assertEqual((), settings.sources)
            (closed,) = settings.closed
            self.assertIn('Connector "lab-hooks-hooks" is closed: ', closed.sentence)
            self.assertNotIn(SECRET, f"{settings}")

    def test_warnings(self) -> None:
        """What is not meant to be, but does no harm, is a warning."""
        os.chmod(self.secrets, 0o644)
        settings = self.guarded(f"sender: demo, secrets_file: {self.secrets}")
        self.assertEqual((), settings.blocked)
        (warning,) = settings.warnings[1:]
        self.assertIn("[secrets-file-open]", warning)

    def test_check(self) -> None:
        """A report has what differs from the default, with its line; and no secret."""
        path = self.rules(self.rule(f"sender: demo, secrets_file: {self.secrets}"))
        report = check_report(self.start(rules=path, senders=self.senders))
        self.assertRegex(report, r"\n  sender +demo +\(.*rules\.yaml:2\)\n")
        self.assertRegex(report, r"\n  verify +required +\(.*rules\.yaml:2\)\n")
        self.assertNotIn("public-url", report)
        self.assertNotIn(SECRET, report)


class GuardGateTests(GuardedRouterCase):
    """
    Files of secrets that are missing, or change.
    """

    def setUp(self) -> None:
        super().setUp()
        self.fields = f"sender: demo, secrets_file: {self.secrets}"

    def test_watched(self) -> None:
        """A file of secrets or tokens is watched, so that a new secret needs no signal."""
        settings = self.guarded(f"{self.fields}, auth_token_file: {self.tokens}", allow_plaintext_token="yes")
        self.assertTrue({self.secrets, self.tokens} <= settings.watched.keys())

    def test_while_it_runs(self) -> None:
        """A file that can no longer be read leaves the old secrets in use, says so, and is waited for."""
        before = self.guarded(self.fields)
        os.unlink(self.secrets)
        after = self.guarded(self.fields, before)
        self.assertEqual(before.sources, after.sources)
        (blocked,) = after.blocked
        self.assertIn(f'"{self.secrets}" does not exist. [secrets-file-missing]', blocked.text)
        self.assertIn(f"The router is blocked: {blocked.text}", after.warnings)
        self.assertIn(self.secrets, after.watched)
        write_text(self.directory, "secrets", "two = other\n")
        opened = self.guarded(self.fields, after)
        assert opened.sources[0].guard is not None
        self.assertEqual(((), ("two",)), (opened.blocked, tuple(each.name for each in opened.sources[0].guard.secrets)))

    def test_last_good_set(self) -> None:
        """The last good set names files and holds no secret; a start from it reads the files again."""
        state = self.path("state")
        good = self.guarded(self.fields, state_dir=state)
        assert good.router is not None
        self.assertIn(self.secrets.encode(), good.router.good)
        self.assertNotIn(SECRET.encode(), good.router.good)
        write_state(state, LAST_SET, good.router.good)
        write_text(self.directory, "secrets", "two = other\n")
        rules = self.rules("{name: broken")
        (source,) = self.settings(rules=rules, senders=self.senders, state_dir=state).sources
        assert source.guard is not None
        self.assertEqual((NamedSecret("two", b"other"),), source.guard.secrets)
        os.unlink(self.secrets)
        settings = self.settings(rules=rules, senders=self.senders, state_dir=state)
        self.assertEqual((), settings.sources)
        self.assertEqual(f'"{self.secrets}" does not exist.', settings.closed[0].reason)
        self.assertIn(self.secrets, settings.watched)

    def test_senders_of_the_last_set(self) -> None:
        """A start from the last good set has the senders of that set, whatever has become of their files."""
        state = self.path("state")
        good = self.guarded(self.fields, state_dir=state)
        assert good.router is not None
        write_state(state, LAST_SET, good.router.good)
        (source,) = self.settings(rules=self.rules("{name: broken"), state_dir=state).sources
        assert source.guard is not None and source.guard.sender is not None
        self.assertEqual("demo", source.guard.sender.id)
