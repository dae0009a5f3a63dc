"""
What C{--check} says would come of a guard, in sentences. Secrets and tokens are never shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from webhookrx.config.guards.context import KnownKeys
from webhookrx.config.guards.secret_files import verifier_of
from webhookrx.intake.path_patterns import PathPatterns
from webhookrx.quantities import format_duration
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.handshake_definition import Handshake
from webhookrx.senders.handshakes.costs import cost_of_refusal, deadline_against
from webhookrx.senders.signatures.code_verifiers import WITHOUT_SECRETS
from webhookrx.senders.signatures.scheme import PUBLIC_KEY_ALGORITHMS, SignatureScheme
from webhookrx.senders.signatures.token_algorithms import is_public
from webhookrx.senders.signatures.verifier import Verifier
from webhookrx.settings import GuardSettings, Settings, Source

#: A path of a definition that is one path alone.
_ONE_PATH: Final = re.compile(r"\^((?:[A-Za-z0-9/_-]|\\\.)+)\$")


def guard_plan(source: Source, guard: GuardSettings, settings: Settings) -> Iterator[str]:
    """
    Yield what would come of the guard of a source, a line each.

    @param guard: that of the source.
    @param settings: all of them, without a mistake.
    """
    if guard.sender is not None:
        yield _verification(guard, guard.sender, KnownKeys(settings.signing_certs, settings.fetch_keys))
        yield from _questions(guard, guard.sender, source.paths)
        yield deadline_against(guard.sender, settings.limits.answer_time)
        yield f"Refusals: {cost_of_refusal(guard.sender)}"
    if guard.tokens:
        names = ", ".join(token.name for token in guard.tokens)
        needed = "A token is" if len(guard.tokens) == 1 else f"One of {len(guard.tokens)} tokens is"
        yield f"{needed} needed at {guard.token_place} ({names})."
    if guard.idempotency is not None:
        where = "in memory alone: without state-dir a restart forgets them"
        kept = where if settings.state_dir is None else f"and kept in {settings.state_dir}"
        yield f"Ids of deliveries are remembered for {format_duration(guard.idempotency)}, {kept}."


def _verification(guard: GuardSettings, sender: SenderDefinition, keys: KnownKeys) -> str:
    if guard.verify == "off":
        told = f"Requests of {sender.id} are not verified{', although they could be' if sender.verify else ''}"
        if guard.tokens or guard.allow_clients:
            return f"{told}."
        return f"{told}, and no token is needed: whoever reaches the port can send as {sender.id}."
    verifier = verifier_of(guard, guard.secrets, keys)
    ways = " or ".join(_scheme(way.scheme.scheme) for way in verifier.ways)
    known = _counted(len(verifier.names), _kind_of_keys(verifier)) + (
        f" ({', '.join(verifier.names)})" if verifier.names else ""
    )
    told = f"Requests of {sender.id} are verified by {ways}, with {known}"
    if guard.verify == "note":
        told += "; others are taken, too, and say so"
    if verifier.unused:
        told += f"; not used, since only a weaker scheme takes them: {', '.join(verifier.unused)}"
    return f"{told}."


def _kind_of_keys(verifier: Verifier) -> str:
    """Return what proves requests: keys that are no secrets, or secrets."""
    schemes = [way.scheme.scheme for way in verifier.ways]
    public = (
        scheme.code in WITHOUT_SECRETS
        or (scheme.code == "jwt" and is_public(scheme.algorithms))
        or scheme.algorithm in PUBLIC_KEY_ALGORITHMS
        for scheme in schemes
    )
    return "key" if all(public) else "secret"


def _scheme(scheme: SignatureScheme) -> str:
    at = f" at {', '.join(scheme.places)}" if scheme.places else ""
    if scheme.code:
        return f"{scheme.code}{at}"
    return f"the secret itself{at}" if scheme.algorithm == "equal" else f"{scheme.algorithm}{at}"


def _questions(guard: GuardSettings, sender: SenderDefinition, paths: Sequence[str]) -> Iterator[str]:
    if not sender.handshake:
        return
    kinds = ", ".join(dict.fromkeys(each.kind for each in sender.handshake))
    yield f"Questions of {sender.id} are {'answered' if guard.handshake else 'not answered'}: {kinds}."
    for path in filter(None, map(_fixed_path, sender.handshake if guard.handshake else ())):
        if PathPatterns(paths).match(path.encode("ascii")) is None:
            yield f"{sender.id} asks at {path}, which is not among the paths: the question gets 404."


def _fixed_path(handshake: Handshake) -> str | None:
    """Return the one path at which a question comes; None for any path."""
    found = _ONE_PATH.fullmatch(handshake.when.path)
    return found and found[1].replace("\\", "")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
