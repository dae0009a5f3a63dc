"""
Sources with guards, for tests: a sender of our own, that signs as most do.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from textwrap import dedent

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import LOOPBACK, errors_of, start, write_text
from webhookrx.config.resolve import Resolved
from webhookrx.settings import GuardSettings

WHEN = "when: {headers: {x-demo-event: '*'}}"

#: Definitions by their ids.
SENDERS = {
    "demo": "verify: {at: 'header:x-demo-signature', prefix: sha256=}\ndelivery: ['header:x-demo-delivery']\n",
    "demo-urls": "verify: {at: 'header:x-demo-signature', signed: '{url}{body}'}\n",
    "demo-base64": "verify: {at: 'header:x-demo-signature', key: base64}\n",
    "demo-tokens": "verify: {at: 'header:x-demo-token', algorithm: equal}\n",
    "demo-asks": (
        "handshake:\n"
        "- {kind: verification, when: {method: GET, query: {hub.mode: ^subscribe$, hub.challenge: '*'}}, signed: no,\n"
        "   equal: 'query:hub.verify_token', text: '{query:hub.challenge}'}\n"
    ),
    "demo-settings": (
        "settings:\n"
        "  topics: {kind: list, needed: yes, meaning: The topics that may send.}\n"
        "  confirm: {kind: flag, meaning: Whether to confirm.}\n"
        "  audience: {meaning: Whom tokens are for.}\n"
    ),
    "demo-once": "behaviour: {retries: none}\n",
    "demo-by-status": "behaviour: {retries: by-status, retried: [503]}\n",
    "demo-always": "behaviour: {retries: by-status, retried: [429]}\n",
    "demo-plain": "",
}

SECRET = "c4nary"


class GuardCase(SynchronousTestCase):
    """A directory with definitions of senders and files of secrets."""

    def setUp(self) -> None:
        self.directory = os.path.abspath(self.mktemp())
        self.senders = os.path.join(self.directory, "senders")
        for name, members in SENDERS.items():
            text = f"id: {name}\nvendor: demo\nproduct: {name}\n{WHEN}\n{members}"
            write_text(self.senders, f"{name}.yaml", text)
        self.secrets = self.write("secrets", f"one = {SECRET}\n")

    def write(self, name: str, text: str, mode: int = 0o600) -> str:
        """Write a file of the directory; return its path."""
        return write_text(self.directory, name, text, mode)

    def config(self, text: str, port: str = LOOPBACK) -> str:
        """Write a configuration file with these lines; return its path."""
        lines = dedent(text).strip("\n")
        return self.write("x.yaml", f"port: '{port}'\nsenders: {self.senders}\n{lines}\n")

    def start(self, text: str, port: str = LOOPBACK) -> Resolved:
        """Resolve a configuration file with these lines."""
        return start(config=self.config(text, port))

    def guard(self, text: str) -> GuardSettings | None:
        """Return the guard of its one source."""
        (source,) = self.start(text).settings.sources
        return source.guard

    def errors(self, text: str, port: str = LOOPBACK) -> Sequence[str]:
        """Return what is wrong with it: line, option and sentence of each, without the directory."""
        found = errors_of(config=self.config(text, port))
        return [f"{each.line}: {each.field}: {each.sentence}".replace(f"{self.directory}/", "") for each in found]

    def warnings(self, text: str, port: str = LOOPBACK) -> Sequence[str]:
        """Return its warnings, without the directory."""
        return [each.replace(f"{self.directory}/", "") for each in self.start(text, port).settings.warnings]
