"""
Whether the endpoints and paths of a source carry what its guard asks for: tokens unseen, and client certificates.
"""

from __future__ import annotations

from collections.abc import Sequence

from webhookrx.config.guards.context import GuardContext
from webhookrx.config.option_reader import OptionReader
from webhookrx.config.source_endpoints import SourceListener
from webhookrx.diagnostics import quoted
from webhookrx.intake.path_patterns import has_group
from webhookrx.settings import GuardSettings, Source


def check_open(
    options: OptionReader, source: Source, listeners: Sequence[SourceListener], context: GuardContext
) -> None:
    """
    Note every plain-HTTP endpoint that would get tokens or secrets in plain text (specification §5.1).

    @param context: what guards share.
    """
    has_tokens = bool(source.auth_tokens or (source.guard and source.guard.tokens))
    has_secrets = source.guard is not None and _shows_secrets(source.guard, context)
    if context.plaintext or not (has_tokens or has_secrets):
        return
    what = "Tokens" if has_tokens else "Secrets of the sender"
    names = ("auth-token", "auth-token-file") if has_tokens else ("secrets-file",)
    given = options.origin(next(name for name in names if options.raw(name)))
    for each in listeners:
        if each.listener.tls is not None:
            continue
        name = quoted(each.listener.text)
        origin = each.origin if options.raw("port") else given
        if each.endpoint.local:
            options.problems.warn(f"{what} travel over plain HTTP to {name}; only this machine can reach it.", origin)
        else:
            options.problems.error(
                f"{what} would travel over plain HTTP to {name}: use TLS, listen on 127.0.0.1, or set "
                "--allow-plaintext-token if a proxy in front speaks TLS.",
                origin,
            )


def _shows_secrets(guard: GuardSettings, context: GuardContext) -> bool:
    # It takes megabytes of memory, which a receiver without guards does not need.
    from webhookrx.config.guards.secret_files import shows_secrets

    return shows_secrets(guard, context.keys)


def check_clients(options: OptionReader, source: Source, listeners: Sequence[SourceListener]) -> None:
    """Note every endpoint on which no client would show a certificate, although only some clients may come."""
    if source.guard is None or not source.guard.allow_clients:
        return
    for each in listeners:
        tls = each.listener.tls
        if tls is None or not tls.peer_verify:
            options.error(
                "allow-client",
                f"On {quoted(each.listener.text)} no client shows a certificate, so that all would be refused; it "
                "needs TLS with tls-peer-verify.",
            )


def check_token_group(options: OptionReader, source: Source) -> None:
    """Note path patterns without the group in which the token is to be: every request to them would be refused."""
    place = source.guard.token_place if source.guard is not None else None
    if place is None or place.kind != "path":
        return
    for pattern in source.paths:
        if not has_group(pattern, place.name):
            sentence = f"The path {quoted(pattern)} has no group {quoted(place.name)}, such as (?P<{place.name}>[^/]+)."
            options.error("auth-token-in", sentence)
