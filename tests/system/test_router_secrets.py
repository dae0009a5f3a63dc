"""
The real program as a router whose rules name a sender and its secrets.
"""

from __future__ import annotations

import os

from tests.system.receiver import post, wait_until
from tests.system.routers import Router, RouterCase, free_ports, put, rule
from tests.system.test_secrets import Sender

GOOD = b"one = number-0\n"


class RouterSecretTests(RouterCase):
    """
    Connectors that verify what their sender has signed.
    """

    def setUp(self) -> None:
        super().setUp()
        self.port, self.other = free_ports(2)
        self.secrets = ""

    def router_with(self, content: bytes | None, *options: str) -> Router:
        """Return a router with one verifying rule, and these secrets."""
        router = self.router(*options)
        self.secrets = router.path("secrets")
        if content is not None:
            put(self.secrets, content)
        router.write(self.rule())
        return router

    def rule(self, **members: object) -> dict[str, object]:
        """Return the rule."""
        return rule(
            "github",
            self.port,
            "/in",
            sender="github",
            secrets_file=self.secrets,
            preprocessing={"classify": True},
            **members,
        )

    def status(self, secret: str) -> int:
        """Return what a request is answered that is signed with a secret."""
        return self.ask(self.port, Sender(secret).request(b'{"a":1}')).status

    def test_verified(self) -> None:
        """What is signed is stored, as proved; nothing else is."""
        router = self.router_with(GOOD).start()
        self.assertEqual((200, 401), (self.status("number-0"), self.status("number-1")))
        self.assertEqual(401, self.ask(self.port, post(b'{"a":1}')).status)
        (message,) = router.messages()
        self.assertEqual("proved", message["meta"]["classify"]["confidence"])
        sender = message["meta"]["sender"]
        self.assertEqual(("github", "signature", "one"), (sender["id"], sender["verified"], sender["secret"]))

    def test_new_secret(self) -> None:
        """A change of the file is taken without a signal."""
        router = self.router_with(GOOD).start()
        before = router.reloads()
        put(self.secrets, b"two = number-1\n")
        router.wait_for_reload(before, "the change is seen")
        self.assertEqual((401, 200), (self.status("number-0"), self.status("number-1")))

    def test_gate(self) -> None:
        """Secrets that are gone close the gate: what runs stays with the old ones, until they are there again."""
        router = self.router_with(GOOD).start()
        os.rename(self.secrets, f"{self.secrets}.gone")
        told = router.take(self.rule(), rule("new", self.other))
        self.assertIn("[secrets-file-missing]", told)
        state, reasons = router.health()
        self.assertEqual("degraded", state)
        self.assertIn("The router is blocked: ", reasons)
        self.assertEqual((200, 401), (self.status("number-0"), self.status("number-1")))
        before = router.reloads()
        put(self.secrets, b"two = number-1\n")
        router.wait_for_reload(before, "the gate opens")
        self.assertEqual("ready", router.health()[0])
        self.assertEqual((401, 200), (self.status("number-0"), self.status("number-1")))
        self.assertEqual(200, self.ask(self.other, post(b"x", "/events")).status)
        self.assertNotIn("number-", router.log())

    def test_start(self) -> None:
        """A start without secrets opens no connector that would need them, and opens it once they are there."""
        router = self.router_with(None).start()
        state, reasons = router.health()
        self.assertEqual("not_ready", state)
        self.assertIn("does not exist", reasons)
        self.assertRaises(ConnectionRefusedError, self.status, "number-0")
        before = router.reloads()
        put(self.secrets, GOOD)
        router.wait_for_reload(before, "the gate opens")
        self.assertEqual(200, self.status("number-0"))

    def test_last_good_set(self) -> None:
        """A start with broken rules verifies by the secrets as they are now; they were never stored."""
        router = self.router_with(GOOD, "--state-dir", "state").start()
        kept_file = router.path("state/connectors.json")
        self.assertEqual(200, self.status("number-0"))
        wait_until(lambda: os.path.exists(kept_file), "the set is kept")
        router.stop()
        with open(kept_file) as file:
            kept = file.read()
        self.assertIn(self.secrets, kept)
        self.assertNotIn("number-0", kept)
        put(self.secrets, b"two = number-1\n")
        router.write_text("connector_rules: [")
        router.start()
        self.assertEqual((401, 200), (self.status("number-0"), self.status("number-1")))
