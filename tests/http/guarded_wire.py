"""
A site with one guarded source, and a sender at the other end of each connection, all in memory.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from zope.interface import implementer

from tests.http.wire import AtOnce, Wire, post
from webhookrx.guard.guard import Guard
from webhookrx.guard.parts import GuardParts
from webhookrx.guard.quota import BUCKETS_SIZE, Buckets, take_question
from webhookrx.http.guarded_resource import GuardedResource
from webhookrx.http.resources import RecordRequest, RootResource
from webhookrx.http.time_slices import TimeSlices
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.judge import SourceRules
from webhookrx.interfaces import Claim, IDeliveryWindow, Told
from webhookrx.senders.compiled import compile_sender
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.definitions import builtin_definitions, read_definition
from webhookrx.senders.handshakes import Handshakes, SenderAnswers
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.senders.signatures.signing import sign
from webhookrx.senders.signatures.verifier import Verifier
from webhookrx.senders.splitting import splitter_for

NOW = 1_767_323_045
"""The wall clock of guards, in seconds."""

PEER = Peer("192.0.2.7", 40000, False)


def sender_named(name: str) -> SenderDefinition:
    """Return a definition of the package."""
    return next(definition for definition in builtin_definitions() if definition.id == name)


def sender_of(text: str) -> SenderDefinition:
    """Return the definition in a data file, but for what every one has."""
    start = "id: test\nvendor: Test\nproduct: Test\nsource: https://example.com\n"
    definition, problems = read_definition((start + text).encode(), "test.yaml")
    assert definition is not None, problems
    return definition


@implementer(IDeliveryWindow)
class Window:
    """
    An L{IDeliveryWindow} in memory.

    @ivar stored: keys that are known.
    @ivar under_way: keys that are claimed, with those who wait for them.
    @ivar settled: what was settled, in order.
    """

    def __init__(self) -> None:
        self.stored: set[bytes] = set()
        self.under_way: dict[bytes, list[Told]] = {}
        self.settled: list[bool] = []

    def claim(self, key: bytes, window: float, told: Told) -> Claim:
        if key in self.stored:
            return Claim.KNOWN
        if key in self.under_way:
            self.under_way[key].append(told)
            return Claim.UNDER_WAY
        self.under_way[key] = []
        return Claim.NEW

    def settle(self, key: bytes, stored: bool) -> None:
        self.settled.append(stored)
        waiting = self.under_way.pop(key)
        if stored:
            self.stored.add(key)
            for told in waiting:
                told(Claim.KNOWN)
        elif waiting:
            self.under_way[key] = waiting[1:]
            waiting[0](Claim.NEW)


def handshakes_of(sender: SenderDefinition, secrets: list[NamedSecret], **given: Any) -> Handshakes:
    """Return the questions of a sender, with a bucket of their own."""
    buckets = Buckets(bytearray(BUCKETS_SIZE))
    return Handshakes(sender, secrets, source="guarded", take=partial(take_question, buckets, "guarded"), **given)


class GuardedWire(Wire):
    """
    A site with one guarded source, C{guarded}, at C{/in} and whatever is below.

    @param sender: its definition.
    @param secrets: by name; C{None} as a whole: nothing is verified.
    @param split: see L{splitter_for}.
    @param pattern: its path pattern.
    @param parts: further ones of its guard.
    """

    def __init__(
        self,
        sender: SenderDefinition | None = None,
        secrets: dict[str, bytes] | None = None,
        *,
        split: str = "no",
        pattern: str = "/in(?:/.*)?",
        rules: dict[str, Any] | None = None,
        public_url: str = "",
        slices: TimeSlices | None = None,
        record: RecordRequest | None = None,
        resource: dict[str, Any] | None = None,
        **parts: Any,
    ) -> None:
        super().__init__(slices=slices)
        self.window = Window()
        self.now = NOW
        self.rules = SourceRules(
            **{
                "name": "guarded",
                "parse_json": True,
                "body_limit": self.limits.body,
                "unpack_ratio": self.limits.unpack_ratio,
                **(rules or {}),
            }
        )
        compiled = None if sender is None else compile_sender(sender)
        named = [NamedSecret(name, value) for name, value in (secrets or {}).items()]
        self.named = {secret.name: secret for secret in named}
        keys = [secret for secret in named if not secret.is_verify_token]
        if sender is not None:
            parts.setdefault("handshakes", handshakes_of(sender, named) if sender.handshake else None)
            parts.setdefault("answers", SenderAnswers(sender) or None)
        self.verifier = None
        if sender is not None and keys:
            self.verifier = Verifier(sender, keys, public_url=public_url)
        self._parts = GuardParts(
            sender=compiled,
            verifier=self.verifier,
            secrets=max(1, len(keys)),
            splitter=splitter_for(split, compiled),
            **parts,
        )
        self._pattern, self._slices, self._record = pattern, slices or AtOnce(), record
        self.guard_with(self.rules, **(resource or {}))

    def guard_with(self, rules: SourceRules, **options: Any) -> None:
        """Put the source behind a guard; C{options} are further ones of its resource."""
        self.guard = Guard(rules, self._parts, lambda: self.now * 10**9, self.clock.seconds)
        self.resource = GuardedResource(
            self.guard,
            self.window,
            self.consumer,
            self.traffic,
            self._receipt,
            self._slices,
            record=self._record,
            **options,
        )
        self.root = RootResource([(self._pattern, self.resource)], self.traffic)
        self.site.use(self.root, self.limits)

    def signed(self, body: bytes, secret: str, headers: bytes = b"", target: bytes = b"/in") -> bytes:
        """Return a POST request, signed now as its sender does."""
        assert self.verifier is not None
        path, _, query = target.partition(b"?")
        lines = dict(line.split(b": ", 1) for line in headers.lower().split(b"\r\n") if line)
        head = Head(b"POST", path, query or None, list(lines.items()), PEER)
        signed = sign(self.verifier, self.named[secret], head, {}, body, self.now * 10**9)
        lines.update(signed.headers)
        return post(signed.body, target, b"".join(b"%s: %s\r\n" % line for line in lines.items()))
