"""
What logs and recordings may not show of requests to guarded sources.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from webhookrx.intake.token_masks import PathMask, TokenMask
from webhookrx.senders.signatures.scheme import SignatureScheme
from webhookrx.settings import GuardSettings, Settings, Source

if TYPE_CHECKING:
    from webhookrx.senders.signatures.body_mask import BodyMask


def token_mask(source: Source) -> TokenMask | None:
    """
    Return what masks the token in the requests to a source, and secrets that its sender sends themselves; None for a
    source without both.
    """
    guard = source.guard
    if guard is None:
        return None
    shown = [scheme for scheme in _schemes(guard) if scheme.algorithm == "equal"]
    headers = [name for scheme in shown for name in scheme.headers]
    places = [place for scheme in shown for place in scheme.places]
    parameters = [place.removeprefix("query:") for place in places if place.startswith("query:")]
    if not (guard.tokens or headers or parameters):
        return None
    return TokenMask(guard.token_place if guard.tokens else None, source.paths, headers, parameters)


def body_mask(source: Source) -> BodyMask | None:
    """Return what masks the secrets that the sender of a source shows in bodies; None for one that shows none there."""
    if source.guard is None:
        return None
    # It takes memory that a receiver without guards does not need.
    from webhookrx.senders.signatures.body_mask import mask_for

    return mask_for(_schemes(source.guard))


def signature_headers(source: Source) -> frozenset[bytes]:
    """Return the headers, in lower case, in which the sender of a source puts signatures that are no secrets."""
    guard = source.guard
    if guard is None:
        return frozenset()
    signed = [scheme for scheme in _schemes(guard) if scheme.algorithm != "equal"]
    return frozenset(name.encode() for scheme in signed for name in scheme.headers)


def _schemes(guard: GuardSettings) -> tuple[SignatureScheme, ...]:
    return () if guard.sender is None or guard.verify == "off" else guard.sender.schemes


def path_mask(settings: Settings) -> Callable[[bytes], bytes]:
    """Return what masks the tokens in paths, for log lines."""
    secret: list[tuple[str, str]] = []
    others: list[str] = []
    for source in settings.sources:
        guard = source.guard
        if guard is not None and guard.tokens and guard.token_place.kind == "path":
            secret += [(pattern, guard.token_place.name) for pattern in source.paths]
        else:
            others += source.paths
    return PathMask(secret, others).masked if secret else bytes
