"""
Checks requests: the schemes of a sender, with the secrets of one source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Final

from webhookrx.diagnostics import Path
from webhookrx.intake.head import Head
from webhookrx.senders.signatures.algorithms import SecretItself, algorithm_with
from webhookrx.senders.signatures.code_verifiers import (
    WITHOUT_SECRETS,
    CodeOptions,
    KeySource,
    code_verifier,
)
from webhookrx.senders.signatures.compiled_scheme import CompiledScheme
from webhookrx.senders.signatures.named_secrets import NamedSecret, SecretError
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.scheme import CODES_WITH_URL
from webhookrx.senders.signatures.scheme_compilation import compile_scheme
from webhookrx.senders.signatures.signed_request import NO_SETTINGS, Settings, SignedRequest
from webhookrx.senders.signatures.token_algorithms import is_public
from webhookrx.senders.signatures.verification import (
    CodeWay,
    LateVerification,
    SecretWay,
    SignatureWay,
    Verification,
    Way,
)
from webhookrx.yield_point import PIECE

if TYPE_CHECKING:
    from webhookrx.senders.definition import SenderDefinition

#: A place that is one header, by itself or in braces.
_HEADER: Final = re.compile(r"header:([A-Za-z0-9_-]+)(?![A-Za-z0-9_*-])")


class Verifier:
    """
    Checks requests of one source.

    The secrets alone decide which schemes count: those that one of them can be a key of; and where one of these binds
    the body, none that shows the secret itself. So nobody gets a weaker check by what a request lacks. Of several that
    count, the first counts that has anything at its places.

    @param definition: the sender, which has C{verify}.
    @param secrets: those of the source; verify tokens among them are none here.
    @param public_url: scheme, host and port as the sender knows them; with a path, the whole URL.
    @param settings: what the operator gives of the settings that the definition names.
    @param keys: where public keys come from that are no secrets of the source.
    @raise SecretError: no scheme can be used with what is given, or a secret is no key of any of them.
    @ivar ways: the schemes that count.
    @ivar takes_pieces: whether checks work on the body as it comes, see L{Verification.takes_pieces}.
    @ivar check_body: checks a short body at once, where its signature is of nothing else; None where that is not so.
    @ivar takes_wire: whether a check needs the body as it was before its C{Content-Encoding} was undone.
    @ivar names: those of the secrets that can prove a request.
    @ivar unused: those of secrets that can't, since only a weaker scheme would take them.
    """

    def __init__(
        self,
        definition: SenderDefinition,
        secrets: Sequence[NamedSecret],
        *,
        public_url: str = "",
        settings: Settings = NO_SETTINGS,
        keys: KeySource | None = None,
    ) -> None:
        self._public_url = public_url
        self._settings = settings
        usable = tuple(each for each in secrets if not each.is_verify_token)
        self.ways = _ways(definition, usable, public_url, settings, keys)
        self.names = tuple(dict.fromkeys(name for way in self.ways for name in way.keys.names))
        self.unused = tuple(each.name for each in usable if each.name not in self.names)
        self.takes_pieces = any(way.takes_pieces for way in self.ways)
        self.takes_wire = any("wire" in way.scheme.text.places for way in self.ways)
        self._only = self.ways[0] if len(self.ways) == 1 else None
        self.check_body = self._only.check_body if isinstance(self._only, SignatureWay) else None

    @property
    def shows_secret(self) -> bool:
        """Whether requests show a secret itself, so that they must not come in the open."""
        return any(way.scheme.is_equal for way in self.ways)

    @property
    def signs_url(self) -> bool:
        """Whether a way to prove a request covers the URL that it was sent to."""
        return any("url" in way.scheme.text.places or way.scheme.scheme.code in CODES_WITH_URL for way in self.ways)

    @property
    def public_url(self) -> str:
        """What stands for the URL of the source, as the operator gives it; empty without one."""
        return self._public_url

    def at(self, public_url: str) -> Verifier:
        """Return one with the same secrets for a source with another URL."""
        other = copy(self)
        other._public_url = public_url
        return other

    @property
    def binds_body(self) -> bool:
        """Whether each way to prove a request covers its body."""
        return all(way.scheme.binds_body for way in self.ways)

    def covers(self, place: str) -> bool:
        """Tell the same of a place, see L{CompiledScheme.covers}."""
        return all(way.scheme.covers(place) for way in self.ways)

    @property
    def says_when(self) -> bool:
        """Whether signatures say when they were made."""
        return any(way.scheme.moment is not None for way in self.ways)

    @property
    def header_names(self) -> tuple[bytes, ...]:
        """Names of single headers that checks look for, in lower case."""
        names: list[str] = []
        for scheme in [way.scheme.scheme for way in self.ways]:
            for text in (*scheme.places, scheme.signed, scheme.time.at if scheme.time is not None else ""):
                names += _HEADER.findall(text)
        return tuple(dict.fromkeys(name.lower().encode() for name in names))

    def check(
        self, head: Head, query: Mapping[str, str | list[str]], body: bytes, now: int, wire: bytes | None = None
    ) -> Verified | Unverified:
        """
        Check a request whose body is there: as L{begin} does, and L{Verification.finish}.

        @param query: as L{webhookrx.intake.urlencoded.parse_query} returns it.
        """
        if self.check_body is not None and len(body) <= PIECE:
            return self.check_body(head, body)
        return self.begin(head, query).finish(body, now, wire)

    def begin(self, head: Head, query: Mapping[str, str | list[str]]) -> Verification:
        """
        Begin the check of a request.

        @param query: as L{webhookrx.intake.urlencoded.parse_query} returns it.
        """
        request = SignedRequest(head, query, self._public_url, self._settings)
        if self._only is not None:
            return self._only.begin(request)
        for way in self.ways:
            if way.scheme.at_in_body:
                break
            if way.scheme.is_there(request):
                return way.begin(request)
        return LateVerification(self.ways, request)

    def request(self, head: Head, query: Mapping[str, str | list[str]]) -> SignedRequest:
        """Return a request as its signature sees it, without its body."""
        return SignedRequest(head, query, self._public_url, self._settings)

    def __repr__(self) -> str:
        return f"<Verifier with {len(self.names)} secrets>"


def asks_for_secrets(definition: SenderDefinition) -> bool:
    """Tell whether a source of a sender needs secrets of its own to check anything."""
    return any(
        scheme.code not in WITHOUT_SECRETS and not (scheme.code == "jwt" and is_public(scheme.algorithms))
        for scheme in definition.schemes
    )


def names_files(definition: SenderDefinition) -> bool:
    """Tell whether secrets of a sender are long enough to stand in files of their own, see L{read_secrets}."""
    return any(scheme.key == "pem" for scheme in definition.schemes)


def _ways(
    definition: SenderDefinition,
    secrets: tuple[NamedSecret, ...],
    public_url: str,
    settings: Settings,
    keys: KeySource | None,
) -> tuple[Way, ...]:
    """
    Return the schemes that count, with their keys.

    @raise SecretError: see L{Verifier}.
    """
    chosen = _chosen(definition, settings)
    several = len(chosen) > 1
    ways: list[Way] = []
    problems: dict[str, None] = {}
    for number in chosen:
        scheme = _compiled(definition, number)
        if "url" in scheme.text.places and not public_url:
            raise SecretError("This sender signs the URL that it sends to, which public_url must say.")
        if scheme.scheme.code:
            ways.append(CodeWay(scheme, code_verifier(CodeOptions(scheme, secrets, public_url, settings, keys))))
            continue
        usable = []
        for secret in secrets:
            try:
                algorithm_with(scheme.scheme, [secret], strict=several)
            except SecretError as error:
                if not several:
                    raise
                problems[str(error)] = None
            else:
                usable.append(secret)
        if usable:
            made = algorithm_with(scheme.scheme, usable, strict=several)
            if isinstance(made, SecretItself):
                ways.append(SecretWay(scheme, made))
            else:
                ways.append(SignatureWay(scheme, made, objects_only=definition.objects_only(scheme.scheme)))
    if any(way.scheme.binds_body for way in ways):
        ways = [way for way in ways if not way.scheme.is_equal]
    if not ways:
        raise SecretError(" ".join(problems) or "There is no secret to check requests with.")
    return tuple(ways)


def _chosen(definition: SenderDefinition, settings: Settings) -> list[int]:
    """Return the numbers of the schemes that flags choose; of all without a flag where none is set."""
    flags = [scheme.setting for scheme in definition.schemes]
    chosen = [number for number, flag in enumerate(flags) if flag and settings.get(flag) is True]
    return chosen or [number for number, flag in enumerate(flags) if not flag]


def _compiled(definition: SenderDefinition, number: int) -> CompiledScheme:
    def blame(code: str, path: Path, sentence: str, column: int) -> None:
        raise ValueError(f"{definition.id}: {sentence}")

    compiled = compile_scheme(definition.schemes[number], ("verify",), definition.settings, blame)
    assert compiled is not None, "nothing was wrong with it"
    return compiled
