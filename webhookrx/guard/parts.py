"""
The parts of a guard: what a source is guarded with.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from webhookrx.guard.quota import Buckets, SourceQuota
from webhookrx.intake.client_patterns import ClientPatterns
from webhookrx.intake.networks import AllowList
from webhookrx.intake.tokens import TokenCheck
from webhookrx.senders.compiled import CompiledSender
from webhookrx.senders.handshakes import Handshakes, SenderAnswers
from webhookrx.senders.signatures.verifier import Verifier
from webhookrx.senders.splitting import Splitter


class GuardParts(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a source is guarded with, each None where it is not configured.

    @ivar allow: the networks that requests may come from.
    @ivar clients: the clients that they may come from.
    @ivar tokens: one of which each has to show.
    @ivar sender: the one kind of sender that it hears.
    @ivar verifier: checks signatures.
    @ivar secrets: by how many secrets, each of which takes its own time.
    @ivar must_verify: what is not verified is refused; else messages say so.
    @ivar quota: how much may come.
    @ivar buckets: those of all quotas; needed for one.
    @ivar handshakes: the sender's questions.
    @ivar answers: the answers that the sender wants.
    @ivar window: seconds for which deliveries are remembered.
    @ivar splitter: takes bundles apart.
    @ivar stored: is told the body of each verified request once its message is stored and answered.
    """

    allow: AllowList | None = None
    clients: ClientPatterns | None = None
    tokens: TokenCheck | None = None
    sender: CompiledSender | None = None
    verifier: Verifier | None = None
    secrets: int = 1
    must_verify: bool = True
    quota: SourceQuota | None = None
    buckets: Buckets | None = None
    handshakes: Handshakes | None = None
    answers: SenderAnswers | None = None
    window: float | None = None
    splitter: Splitter | None = None
    stored: Callable[[bytes], None] | None = None
