"""
The guards of connectors, made of the fields of their rules and of the files that these name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import structs

from webhookrx.config.files import signature_of
from webhookrx.config.guards.context import GuardContext
from webhookrx.config.guards.resolve import resolve_guard
from webhookrx.config.guards.secret_files import shows_secrets
from webhookrx.config.token_files import TokenFile, read_token_file, told_apart
from webhookrx.diagnostics import ERROR, Diagnostic, diagnose
from webhookrx.errors import ConfigError
from webhookrx.guard.sender_fit import URL_NOT_SIGNED, may_sign_url
from webhookrx.intake.tokens import NamedToken
from webhookrx.router.rules.router import Connector
from webhookrx.settings import GuardSettings, Signature


class ConnectorGuard(NamedTuple):
    """
    The guard of a connector, and what is wrong with it on this machine.

    @ivar guard: None for a plain connector, and where something is wrong.
    @ivar found: what is wrong; the path of each begins at the rule.
    @ivar watched: the state of each file that it names from just before it was read, by path.
    """

    guard: GuardSettings | None
    found: tuple[Diagnostic, ...]
    watched: dict[str, Signature]

    @property
    def problem(self) -> str:
        """The first error; empty if there is none."""
        return next((each.sentence for each in self.found if each.severity == ERROR), "")


def read_connector_guard(connector: Connector, context: GuardContext) -> ConnectorGuard:
    """Return the guard of a connector."""
    words = connector.guard
    watched = {path: signature_of(path) for path in words.auth_token_file}
    tokens, found = _tokens(words.auth_token_file, words.auth_token_in)
    # A connector has no other tokens than those of a guard.
    read = resolve_guard(words, tokens, bool(tokens), context)
    watched |= read.watched
    # A field that is no list in the rules file has no index.
    found += [_of_field(each) for each in read.found]
    guard = read.guard
    if guard is not None and guard.public_url and guard.sender is not None and not may_sign_url(guard.sender):
        found.append(diagnose("public-url-not-used", ("public_url",), URL_NOT_SIGNED))
    if (
        guard is not None
        and connector.protocol == "HTTP"
        and not context.plaintext
        and shows_secrets(guard, context.keys)
    ):
        what, field = ("Tokens", "auth_token_file") if guard.tokens else ("Secrets of the sender", "secrets_file")
        sentence = f"{what} would travel over plain HTTP: write HTTPS, or set --allow-plaintext-token on the router."
        found.append(diagnose("token-in-the-open", (field,), sentence))
    usable = guard if all(each.severity != ERROR for each in found) else None
    return ConnectorGuard(usable, tuple(found), watched)


def _of_field(found: Diagnostic) -> Diagnostic:
    more = found.path[1:] if found.path[0] in ("allow", "allow_clients", "sender_settings") else ()
    return structs.replace(found, path=(found.path[0], *more))


def _tokens(paths: Iterable[str], place: str) -> tuple[list[NamedToken], list[Diagnostic]]:
    """Return the tokens of files, and what is wrong with the files."""
    files: list[tuple[str, TokenFile]] = []
    found: list[Diagnostic] = []
    for path in paths:
        try:
            read = read_token_file(path, place)
        except ConfigError as error:
            code = "token-file-unusable" if os.path.lexists(path) else "token-file-missing"
            found.append(diagnose(code, ("auth_token_file",), error.problem, named=path))
            continue
        files.append((path, read))
        if read.warning:
            found.append(diagnose("token-file-open", ("auth_token_file",), read.warning, named=path))
        if read.doubt:
            found.append(diagnose("token-doubtful", ("auth_token_file",), read.doubt, named=path))
    return told_apart(files), found
