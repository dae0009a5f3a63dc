"""
What several pages say of routers: names in paths and queries, the words for how they do, and commands to paste.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

from webhookrx.console.pages.api_calls import in_path
from webhookrx.console.pages.form import Form
from webhookrx.console.pages.rendering import query_string
from webhookrx.console.routers.routes import MadeEnrolment
from webhookrx.console.routers.shown import ShownRouter
from webhookrx.query.query_lexer import written

BADGES: Final[Mapping[str, str]] = {
    "pending": "warn",
    "disabled": "quiet",
    "duplicate": "bad",
    "away": "bad",
    "failed": "bad",
    "blocked": "bad",
    "applying": "warn",
    "none": "quiet",
    "applied": "good",
}
"""The kind of badge of each word of L{webhookrx.console.routers.shown.STANDINGS}."""

MEANINGS: Final[Mapping[str, str]] = {
    "pending": "it waits for consent",
    "disabled": "it gets nothing, and its certificate does not count",
    "duplicate": "two processes use its certificate",
    "away": "it has not been heard of for a minute",
    "failed": "it could not take or apply its newest rules",
    "blocked": "a file that a rule names is not in place",
    "applying": "new rules are being applied",
    "none": "it has had no rules yet",
    "applied": "it runs its newest rules",
}

DIRECTORY: Final = "/var/lib/webhookrx/console"
"""Where a router that systemd starts keeps what is of its console."""


def path_of(router: ShownRouter) -> str:
    """Return the path of the page of a router; one that waits has no name that counts."""
    return f"/routers/{in_path(router.guid if router.state == 'pending' else router.name)}"


def tap_path(name: str) -> str:
    """Return the path of the page that taps one router."""
    return f"/tap{query_string(routers=f'name = {written(name)}')}"


def typed_labels(form: Form) -> list[tuple[str, str]]:
    """Return the labels of a form as they were typed; rows without anything are left out."""
    pairs = zip(form.all("key"), form.all("value"), strict=False)
    return [pair for pair in pairs if any(pair)]


class RouterCommands:
    """
    Commands that make a host a router, to be pasted in a shell there.

    @ivar console: the option C{--console}, a placeholder where the console does not know it.
    """

    def __init__(self, made: MadeEnrolment) -> None:
        self._token = made.token
        self.console = made.console or "https://HOST:PORT"
        self.knows_url = bool(made.console)

    @property
    def try_it(self) -> str:
        """Starts a router in the current directory, in the foreground."""
        return (
            f"(umask 077; mkdir -p console; echo {shlex.quote(self._token)} > console-token)\n"
            "twistd -n --pidfile= webhookrx --console-dir console --console-token-file console-token \\\n"
            f"    --console {shlex.quote(self.console)} --observer file:messages.jsonl"
        )

    @property
    def credential(self) -> str:
        """Has systemd give the token to the service that is installed, which enrols when it starts."""
        return (
            "install -d -m 0700 /etc/webhookrx/secrets\n"
            "install -d /etc/systemd/system/webhookrx.service.d\n"
            f"(umask 077; echo {shlex.quote(self._token)} > /etc/webhookrx/secrets/console-token)\n"
            "cat > /etc/systemd/system/webhookrx.service.d/console.conf <<'END'\n"
            "[Service]\n"
            "LoadCredential=console-token:/etc/webhookrx/secrets/console-token\n"
            "END\n"
            "cat >> /etc/webhookrx/webhookrx.yaml <<'END'\n"
            f"console: {self.console}\n"
            "console_token_file: ${env:CREDENTIALS_DIRECTORY}/console-token\n"
            "END\n"
            "systemctl daemon-reload\n"
            "systemctl restart webhookrx"
        )

    @property
    def enrol(self) -> str:
        """Enrols by hand, before the receiver starts."""
        return (
            f"(umask 077; mkdir -p {DIRECTORY}; echo {shlex.quote(self._token)} > console-token)\n"
            f"webhookrx enrol --console {shlex.quote(self.console)} --token-file console-token \\\n"
            f"    --console-dir {DIRECTORY}\n"
            "rm console-token"
        )

    @property
    def start(self) -> str:
        """Starts the receiver that was enrolled by hand."""
        return (
            f"twistd -n --pidfile= webhookrx --console {shlex.quote(self.console)} --console-dir {DIRECTORY} \\\n"
            "    --key-directory /etc/webhookrx/tls --observer file:/var/log/webhooks"
        )
