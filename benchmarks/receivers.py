"""
What is measured: webhookrx as a user starts it, in its forms and versions.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from benchmarks import certificates, releases
from benchmarks.lines import NESTED, Lines
from benchmarks.servers import OUTPUT, Server
from benchmarks.tools import Tools, Unavailable


@dataclass(frozen=True, kw_only=True)
class Webhookrx(Server):
    """
    webhookrx, in one form or the other.

    @ivar pure: without its compiled module.
    @ivar release: one of L{releases.COMMITS}; None: the one to measure.
    """

    pure: bool = False
    release: str | None = None

    @property
    def is_webhookrx(self) -> bool:
        """See L{Server.is_webhookrx}."""
        return True

    @property
    def compiles(self) -> bool:
        """See L{Server.compiles}."""
        return not self.pure and self.release is None

    def environment(self, output: str) -> dict[str, str]:
        """See L{Server.environment}."""
        inherited = super().environment(output)
        return {**inherited, "WEBHOOKRX_PURE": "1"} if self.pure else inherited

    def twistd_command(self, tools: Tools) -> tuple[str, ...]:
        """
        Return the beginning of the command line.

        @raise Unavailable: the release can't be had here.
        """
        return tools.twistd_command() if self.release is None else tools.twistd_command(releases.twistd(self.release))


@dataclass(frozen=True, kw_only=True)
class Receiver(Webhookrx):
    """
    The form with sources.

    @ivar paths: its path patterns.
    @ivar options: more options.
    @ivar secrets: a source that hears GitHub alone has these; none: any source.
    """

    ack: str = "written"
    paths: tuple[str, ...] = ("/events",)
    options: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    def command(self, tools: Tools, directory: str, port: int) -> tuple[str, ...]:
        """Return the command line that README shows, with the options of the case."""
        for option in self.options:
            if option.startswith("--") and option.partition("=")[0] not in tools.receiver_help:
                raise Unavailable(f"this webhookrx has no {option.partition('=')[0]}")
        config, secrets = os.path.join(directory, "config.yaml"), os.path.join(directory, "secrets")
        with open(config, "w", encoding="utf-8") as file:
            file.write("source: webhook-json\npaths:\n")
            file.writelines(f"  - '{path}'\n" for path in self.paths)
            if self.secrets:
                file.write(f"sender: github\nsecrets_file: {secrets}\n")
        if self.secrets:
            if "--secrets-file" not in tools.receiver_help:
                raise Unavailable("this webhookrx has no --secrets-file")
            with open(os.open(secrets, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                file.writelines(f"secret-{number} = {secret}\n" for number, secret in enumerate(self.secrets))
        if self.tls is None:
            endpoint = f"tcp:{port}:interface=127.0.0.1"
        else:
            key, certificate = certificates.files(self.tls)
            endpoint = f"ssl:{port}:interface=127.0.0.1:privateKey={key}:certKey={certificate}"
        return (
            *self.twistd_command(tools), "--config", config, "--port", endpoint, "--ack", self.ack,
            *_common_options(directory), *self.options, *tools.options,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RouterReceiver(Webhookrx):
    """
    The form with a connector from a rules file.

    @ivar preprocessing: what is done to each message, in YAML.
    """

    lines: Lines = NESTED
    preprocessing: str = "{}"

    def command(self, tools: Tools, directory: str, port: int) -> tuple[str, ...]:
        """Write a file with one rule and return the command line that docs/how-to/router.md shows."""
        if "--rules" not in tools.receiver_help:
            raise Unavailable("this webhookrx has no --rules")
        rules = os.path.join(directory, "rules.yaml")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(_RULES.format(port=port, preprocessing=self.preprocessing))
        return (
            *self.twistd_command(tools), "--rules", rules, "--router-name", "bench", "--ack", "written",
            *_common_options(directory), *tools.options,
        )  # fmt: skip


_RULES = """\
connector_rules:
  - name: bench
    protocol: HTTP
    port: {port}
    paths: [/events]
    preprocessing: {preprocessing}
"""


def _common_options(directory: str) -> tuple[str, ...]:
    output = os.path.join(directory, OUTPUT)
    return ("--observer", f"file:{output}", "--limit", "connections_per_peer=10000")
