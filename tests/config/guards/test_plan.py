"""
Tests for L{webhookrx.config.guards.plan}.
"""

from __future__ import annotations

from tests.config.guards.cases import SECRET, GuardCase
from webhookrx.config.check import check_report
from webhookrx.config.guards.plan import guard_plan


class GuardPlanTests(GuardCase):
    """
    Tests for L{guard_plan}.
    """

    def plan(self, text: str) -> list[str]:
        """Return the plan of the one source of a configuration."""
        settings = self.start(text).settings
        (source,) = settings.sources
        assert source.guard is not None
        return list(guard_plan(source, source.guard, settings))

    def define(self, name: str, members: str) -> None:
        """Write one more definition of a sender."""
        self.write(f"senders/{name}.yaml", f"id: {name}\nvendor: demo\nproduct: x\nwhen: {{body_keys: [a]}}\n{members}")

    def test_verification(self) -> None:
        """The scheme and the names of the secrets are told, and what becomes of others; no secret is."""
        signed = "Requests of demo are verified by hmac-sha256 at header:x-demo-signature, with 1 secret (one)"
        self.assertEqual(f"{signed}.", self.plan(f"sender: demo\nsecrets_file: {self.secrets}")[0])
        noted = self.plan(f"sender: demo\nsecrets_file: {self.secrets}\nverify: note")[0]
        self.assertEqual(f"{signed}; others are taken, too, and say so.", noted)
        anyone = "and no token is needed: whoever reaches the port can send as"
        self.assertEqual(
            f"Requests of demo are not verified, although they could be, {anyone} demo.",
            self.plan("sender: demo\nverify: off")[0],
        )
        self.assertEqual(
            f"Requests of demo-plain are not verified, {anyone} demo-plain.", self.plan("sender: demo-plain")[0]
        )
        tokens = self.write("one-token", "edge = t0ken\n")
        plan = self.plan(f"sender: demo-plain\nauth_token_file: {tokens}")
        self.assertEqual("Requests of demo-plain are not verified.", plan[0])
        self.assertEqual("A token is needed at header:authorization (edge).", plan[-1])
        shown = self.plan(f"sender: demo-tokens\nsecrets_file: {self.secrets}")[0]
        self.assertIn("verified by the secret itself at header:x-demo-token, with 1 secret (one).", shown)

    def test_weaker_scheme(self) -> None:
        """A secret that only a weaker scheme would take is not used, which is told."""
        members = "verify:\n- {at: 'header:x-signature', key: whsec}\n- {at: 'header:x-token', algorithm: equal}\n"
        self.define("demo-both", members)
        secrets = self.write("both", "strong = whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0\nweak = t0ken\n")
        told = self.plan(f"sender: demo-both\nsecrets_file: {secrets}")[0]
        self.assertIn("with 1 secret (strong); not used, since only a weaker scheme takes them: weak.", told)

    def test_public_keys(self) -> None:
        """Keys that are no secrets are not called so."""
        told = self.plan("sender: aws-sns\nsender_settings: {topics: a}\nfetch_keys: yes")[0]
        self.assertIn("verified by sns, with 1 key (amazonaws.com).", told)

    def test_questions(self) -> None:
        """Questions are told by their kinds; one at a path that the source does not take is told, too."""
        self.assertIn("Questions of demo-asks are answered: verification.", self.plan("sender: demo-asks"))
        self.assertIn(
            "Questions of demo-asks are not answered: verification.", self.plan("sender: demo-asks\nhandshake: no")
        )
        asks = "handshake:\n- {kind: challenge, when: {method: GET, path: '^/\\.known/challenge$'}, text: '*'}\n"
        self.define("demo-path", asks)
        missing = "demo-path asks at /.known/challenge, which is not among the paths: the question gets 404."
        self.assertIn(missing, self.plan("sender: demo-path\npaths: /logs"))
        self.assertNotIn(missing, self.plan("sender: demo-path\npaths: [/logs, /.known/challenge]"))
        self.assertNotIn(missing, self.plan("sender: demo-path\npaths: /logs\nhandshake: no"))

    def test_behaviour(self) -> None:
        """The deadline of the sender stands against answer_time, and what a refusal costs is told."""
        self.define("demo-hasty", "behaviour: {deadline: 3s, retries: none, disabled_by: [410]}\n")
        plan = self.plan("sender: demo-hasty\nlimits: {answer_time: 20s}")
        self.assertIn("demo-hasty waits 3s for an answer, less than the 20s of answer_time", plan[1])
        self.assertIn("Refusals: demo-hasty never sends again by itself what was refused", plan[2])

    def test_idempotency(self) -> None:
        """Where ids of deliveries are kept is told, and that a restart forgets them without a directory."""
        text = f"sender: demo\nsecrets_file: {self.secrets}\nidempotency: 90m"
        self.assertIn("for 90m, in memory alone: without state-dir a restart forgets them.", self.plan(text)[-1])
        kept = self.plan(f"{text}\nstate_dir: {self.directory}")[-1]
        self.assertEqual(f"Ids of deliveries are remembered for 90m, and kept in {self.directory}.", kept)

    def test_state_dir(self) -> None:
        """A state directory that nothing needs is probably not meant."""
        (_, warning) = self.warnings(f"state_dir: {self.directory}")
        self.assertIn("state_dir: It is not used without --rules, or a source with idempotency.", warning)

    def test_tokens(self) -> None:
        """Tokens are told by their names and place."""
        tokens = self.write("tokens", "edge = t0ken\nother\n")
        (line,) = self.plan(f"auth_token_file: {tokens}\nauth_token_in: query:key")
        self.assertEqual("One of 2 tokens is needed at query:key (edge, 2).", line)

    def test_report(self) -> None:
        """The plan stands in the report, which shows no secret, whatever the sender."""
        secrets = self.write("more", f"one = {SECRET}\nverify-token = {SECRET}-2\n")
        for name, more in (
            ("demo", f"secrets_file: {secrets}"),
            ("demo-urls", f"secrets_file: {secrets}\npublic_url: https://a"),
            ("demo-tokens", f"secrets_file: {secrets}"),
            ("demo-asks", f"secrets_file: {secrets}"),
            ("demo-settings", "sender_settings: {topics: a}"),
            ("demo-plain", ""),
        ):
            report = check_report(self.start(f"sender: {name}\n{more}"))
            self.assertIn(f"\n  Requests of {name} are ", report)
            self.assertNotIn(SECRET, report)
