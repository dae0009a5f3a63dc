"""
A trial of one rule apart from its routers: without the files that it names, which only they have, such as tokens,
secrets and JSON files.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from webhookrx.config.guards.context import GuardContext, KnownKeys
from webhookrx.config.guards.resolve import resolve_guard
from webhookrx.config.router_form import source_of
from webhookrx.config.rule_files import json_files_of
from webhookrx.errors import NO_MATCHING_PATH
from webhookrx.guard.words import GuardWords
from webhookrx.intake.path_patterns import PathPatterns
from webhookrx.router.rules.router import Connector, connector_of
from webhookrx.router.rules.rule import Rule
from webhookrx.settings import GuardSettings, RouterSettings, Settings
from webhookrx.trials.traced_events import MOST_EVENTS, TracedEvent, TracedEvents
from webhookrx.trials.trial import DROPPED, REFUSED, DecisionVerdict, TrialRequest, run_trial
from webhookrx.trials.trial_source import TakenPath, traced_source

_STATIC: Final = re.compile(r"/[A-Za-z0-9/_.~-]*")
"""A path of a rule that is no pattern; a dot in it means itself, too."""

_ON_ROUTERS: Final = (
    ("auth_token_file", "its tokens"),
    ("secrets_file", "the secrets of its sender, and so signatures"),
    ("allow", "the networks that it allows"),
    ("allow_clients", "the certificates of its clients"),
    ("quota", "its quota"),
    ("idempotency", "which deliveries were stored before"),
)


class RuleTrial(msgspec.Struct, frozen=True):
    """
    What a rule makes of a request.

    @ivar connector: its name on the router.
    @ivar pattern: which of its paths takes the request; empty for none.
    @ivar path: the path that the request was taken to have come to; empty for its own.
    @ivar fate: see L{Trial.fate}.
    @ivar events: each with its steps, the first L{MOST_EVENTS}; one without steps is what is stored.
    @ivar more_events: how many others there are.
    @ivar names: of all steps, in order.
    @ivar not_judged: what was left out of the decision.
    """

    connector: str
    pattern: str = ""
    path: str = ""
    fate: str = REFUSED
    status: int = NO_MATCHING_PATH.status
    reason: str = NO_MATCHING_PATH.word
    detail: str = NO_MATCHING_PATH.detail
    verdicts: tuple[DecisionVerdict, ...] = ()
    events: tuple[TracedEvent, ...] = ()
    more_events: int = 0
    names: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()


def try_rule(
    rule: Rule, request: TrialRequest, router: str, labels: dict[str, str], *, any_path: bool = False
) -> RuleTrial:
    """
    Try a request with the connector of a rule on a router.

    @param rule: it has no error.
    @param any_path: a request to a path that the rule does not take counts as one to the first of its paths that is no
        pattern.
    """
    connector = connector_of(router, rule)
    paths = PathPatterns(connector.paths)
    head, path = request.head, ""
    match = paths.match(head.path)
    if match is None and any_path:
        path = next((each for each in connector.paths if _STATIC.fullmatch(each)), "")
        head = replace(head, path=path.encode()) if path else head
        match = paths.match(head.path)
    if match is None:
        return RuleTrial(connector.name)
    guard = _guard(connector.guard)
    source = source_of(connector, guard)
    taken = TakenPath(source, source.listeners[0], connector.paths[match[0]], match[1])
    # Tables are empty where their files are elsewhere.
    tables = dict.fromkeys(json_files_of(connector), b"{}")
    settings = Settings((source,), (), router=RouterSettings(router, labels, json_files=tables))
    traced = traced_source(taken, settings, TracedEvents)
    head = replace(head, peer=replace(head.peer, secure=connector.protocol == "HTTPS"))
    trial = run_trial(traced.trial, replace(request, head=head, knows_address=False, knows_client=False))
    processing = traced.processing
    assert isinstance(processing, TracedEvents), "it is a connector"
    events = processing.events or [TracedEvent(_values(each), []) for each in trial.messages[:MOST_EVENTS]]
    refused = trial.refused
    return RuleTrial(
        connector.name,
        taken.pattern,
        path,
        trial.fate,
        trial.status,
        trial.question if refused is None else refused.reason.word,
        "" if refused is None else refused.detail,
        tuple(trial.verdicts),
        tuple(events),
        max(0, len(trial.messages) - len(events)) if trial.fate != DROPPED else 0,
        processing.names,
        tuple(_left_out(connector)),
    )


def _values(message: Any) -> dict[str, Any]:
    values: dict[str, Any] = message.values
    return values


def _guard(words: GuardWords) -> GuardSettings | None:
    """Return what of a guard needs no file: how its sender splits bodies and asks questions."""
    alone = replace(
        words,
        secrets_file=(),
        verify="off" if words.sender else "",
        idempotency="off" if words.sender else "",
        quota=(),
        allow=(),
        allow_clients=(),
        auth_token_file=(),
        has_tokens=False,
        auth_token_in="",
        public_url="",
    )
    context = GuardContext((), None, KnownKeys(), plaintext=True)
    # Some senders need a secret for the answer to a question.
    for each in (alone, replace(alone, handshake=False), GuardWords(split=words.split if not words.sender else "")):
        read = resolve_guard(each, (), False, context)
        if not any(found.severity == "error" for found in read.found):
            return read.guard
    return None


def _left_out(connector: Connector) -> list[str]:
    words = connector.guard
    found = [sentence for name, sentence in _ON_ROUTERS if getattr(words, name)]
    if json_files_of(connector):
        found.append("the JSON files that its expressions name, which are empty here")
    return found
