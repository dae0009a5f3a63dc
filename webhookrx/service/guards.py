"""
The guards of sources, made of their settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from msgspec.structs import replace

from webhookrx.guard.guard import Guard
from webhookrx.guard.parts import GuardParts
from webhookrx.guard.quota import Buckets, take_question
from webhookrx.intake.client_patterns import ClientPatterns
from webhookrx.intake.judge import SourceRules
from webhookrx.intake.networks import AllowList, parse_network
from webhookrx.intake.tokens import TokenCheck
from webhookrx.senders.compiled import CompiledSender, compile_sender
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.handshakes import Handshakes, SenderAnswers
from webhookrx.senders.signatures.code_verifiers import KeySource
from webhookrx.senders.signatures.verifier import Verifier
from webhookrx.senders.splitting import splitter_for
from webhookrx.service.subscriptions import Subscriptions
from webhookrx.settings import GuardSettings, Source


class GuardMaker:
    """
    Makes guards. What several of them have in common is made once.

    @param buckets: returns those of all quotas and questions; called for guards that need them.
    @param keys: where public keys of senders come from that are no secrets of a source.
    @param wall_clock: nanoseconds since the epoch.
    @param clock: seconds on the monotonic clock.
    @param subscriptions: those of SNS that wait; None: nobody looks after them.
    """

    def __init__(
        self,
        buckets: Callable[[], Buckets],
        keys: KeySource | None,
        wall_clock: Callable[[], int],
        clock: Callable[[], float],
        subscriptions: Subscriptions | None = None,
    ) -> None:
        self._buckets = buckets
        self._keys = keys
        self._wall_clock = wall_clock
        self._clock = clock
        self._subscriptions = subscriptions
        self._senders: dict[str, CompiledSender] = {}
        self._allow_lists: dict[tuple[tuple[str, tuple[str, ...]], ...], AllowList] = {}

    def guard(self, source: Source, guard: GuardSettings, rules: SourceRules) -> Guard:
        """
        Return the guard of a source.

        @param guard: its settings.
        @param rules: those of the source, without tokens.
        @raise webhookrx.senders.signatures.named_secrets.SecretError: its secrets can't be used; settings that were
            checked have no such.
        """
        parts = GuardParts(
            allow=self._allow_list(guard.allow) if guard.allow else None,
            clients=ClientPatterns(guard.allow_clients) if guard.allow_clients else None,
            tokens=TokenCheck(guard.tokens, guard.token_place) if guard.tokens else None,
            quota=guard.quota,
            buckets=None if guard.quota is None else self._buckets(),
            window=guard.idempotency,
        )
        return Guard(rules, self._with_sender(source.name, guard, parts), self._wall_clock, self._clock)

    def _allow_list(self, allow: Mapping[str, tuple[str, ...]]) -> AllowList:
        key = tuple(allow.items())
        if key not in self._allow_lists:
            networks = {item: [parse_network(text) for text in texts] for item, texts in key}
            self._allow_lists[key] = AllowList(networks)
        return self._allow_lists[key]

    def _compiled(self, definition: SenderDefinition) -> CompiledSender:
        known = self._senders.get(definition.id)
        if known is None or known.definition != definition:
            known = self._senders[definition.id] = compile_sender(definition)
        return known

    def _with_sender(self, name: str, guard: GuardSettings, parts: GuardParts) -> GuardParts:
        definition, settings, url = guard.sender, guard.sender_settings, guard.public_url
        sender = None if definition is None else self._compiled(definition)
        parts = replace(parts, sender=sender, splitter=splitter_for(guard.split, sender))
        if definition is None:
            return parts
        verifier = None
        if guard.verify != "off":
            verifier = Verifier(definition, guard.secrets, public_url=url, settings=settings, keys=self._keys)
        stored = None
        if self._subscriptions is not None and any(scheme.code == "sns" for scheme in definition.schemes):
            stored = partial(self._subscriptions.stored, settings)
        handshakes = None
        if guard.handshake:
            take = partial(take_question, self._buckets(), name)
            handshakes = Handshakes(
                definition, guard.secrets, settings=settings, public_url=url, source=name, take=take
            )
        return replace(
            parts,
            verifier=verifier,
            stored=stored,
            secrets=len(guard.secrets),
            must_verify=guard.verify == "required",
            handshakes=handshakes,
            answers=SenderAnswers(definition, settings=settings) or None,
        )
