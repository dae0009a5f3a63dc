"""
C{webhookrx try --config}: what the sources of a configuration make of a recorded request.
"""

from __future__ import annotations

import argparse
import os
import time
from datetime import datetime
from typing import Final, TextIO
from urllib.parse import quote

from msgspec.structs import replace

from webhookrx.commands.recorded_request import RecordedRequest
from webhookrx.commands.terminal import DONE, FAILED, print_json, safe
from webhookrx.commands.trial_report import curl_command, print_trial, trial_facts
from webhookrx.config.observers import KnownObservers, ObserverSpec
from webhookrx.config.option_reader import COMMAND_LINE, Origin, RawValue
from webhookrx.config.resolve import Environment, resolve
from webhookrx.diagnostics import quoted
from webhookrx.errors import NO_MATCHING_PATH, WebhookrxError
from webhookrx.http.answers import KEEP, AnswerWriter, refusal
from webhookrx.intake.urlencoded import parse_query
from webhookrx.senders.signatures.named_secrets import SecretError
from webhookrx.senders.signatures.signing import sign
from webhookrx.service.masks import path_mask
from webhookrx.settings import Settings
from webhookrx.trials.trial import DROPPED, HANDSHAKE, REFUSED, STORED, TrialRequest, run_trial
from webhookrx.trials.trial_source import TakenPath, TracedSource, taken_paths, traced_source

CANT_BE_JUDGED: Final = 2
"""The exit status when no source, or no single one, is there to judge a request, or a recording does not tell."""

ANSWERED: Final = 3
"""The exit status for a question, which is answered and not stored."""

_STATUSES: Final = {STORED: DONE, HANDSHAKE: ANSWERED, REFUSED: FAILED, DROPPED: FAILED}


def try_config(asked: argparse.Namespace, request: RecordedRequest, out: TextIO, err: TextIO) -> int:
    """
    Try a request with the sources of a configuration.

    @raise WebhookrxError: it can't be judged; the text says why.
    """
    settings = read_settings(asked.config)
    paths = taken_paths(settings, request.head.path, name=asked.source, port=asked.port)
    if len(paths) > 1:
        names = ", ".join(f"{quoted(each.source.name)} at {each.listener.text}" for each in paths)
        raise WebhookrxError(f"Several sources take this path: {names}. Choose one with --source or --port.")
    if not paths:
        return _tell_unknown_path(request, settings, asked, out)
    (taken,) = paths
    source = taken.source
    if source.health.encode() == request.head.path and request.head.method in (b"GET", b"HEAD", b"OPTIONS"):
        raise WebhookrxError(f"It is a health check of the source {quoted(source.name)}, and no message.")
    return try_taken(taken, settings, request, asked, out, err)


def read_settings(path: str) -> Settings:
    """
    Return the settings in a file, without its observers: nothing is stored.

    @raise webhookrx.config.option_reader.ConfigProblems: all mistakes together.
    @raise WebhookrxError: a router does not take its rules.
    """
    given = {"config": path, "observer": "stdout"}
    options = {name: (RawValue(text, Origin((f"--{name}",), COMMAND_LINE)),) for name, text in given.items()}
    observers = KnownObservers(("stdout",), lambda *_: (), lambda _: ObserverSpec())
    environment = Environment(os.environ, datetime.now().astimezone(), observers, checks_only=True)
    settings = resolve(options, environment).settings
    if settings.blocked:
        raise WebhookrxError(f"A router would not take these rules: {' '.join(each.text for each in settings.blocked)}")
    return settings


def _tell_unknown_path(request: RecordedRequest, settings: Settings, asked: argparse.Namespace, out: TextIO) -> int:
    writer = AnswerWriter()
    at = time.time_ns() if request.at is None else request.at
    writer.at(at / 10**9)
    answer = writer.bytes_of(refusal(NO_MATCHING_PATH), KEEP)
    path = path_mask(settings)(request.head.path).decode("latin-1")
    if asked.json:
        facts = {
            "request": {"method": request.head.method.decode(), "target": path, "bytes": len(request.body)},
            "outcome": REFUSED,
            "reason": NO_MATCHING_PATH.word,
            "stored": False,
            "answer": {"status": NO_MATCHING_PATH.status, "bytes": answer.decode()},
            "messages": [],
        }
        print_json(out, facts)
    else:
        print(safe(f"request    {request.head.method.decode()} {path}, {len(request.body):,} bytes"), file=out)
        print(f"\noutcome    it would be refused: 404 {NO_MATCHING_PATH.word}: {NO_MATCHING_PATH.detail}", file=out)
        print("\nanswer\n" + answer.decode().replace("\r\n", "\n"), file=out)
    return FAILED


def try_taken(
    taken: TakenPath, settings: Settings, request: RecordedRequest, asked: argparse.Namespace, out: TextIO, err: TextIO
) -> int:
    """
    Try a request with the source that takes its path.

    @raise WebhookrxError: it can't be signed as it should be.
    """
    traced = traced_source(taken, settings)
    secure = taken.listener.tls is not None
    head = replace(request.head, peer=replace(request.head.peer, secure=secure))
    tried = TrialRequest(
        head,
        request.body,
        request.at,
        knows_address=asked.peer is not None,
        knows_client=head.peer.client is not None or not secure,
    )
    if asked.sign is not None:
        tried = _signed(tried, taken, traced, asked.sign, is_shown=asked.curl)
    if asked.curl:
        command, left_out = curl_command(tried, taken)
        print(command, file=out)
        if left_out:
            print(f"It is without {', '.join(left_out)}: add what is to be sent there.", file=err)
        return DONE
    trial = run_trial(traced.trial, tried)
    if asked.json:
        print_json(out, trial_facts(tried, taken, trial, traced.processing))
    else:
        print_trial(tried, taken, trial, traced.processing, out)
    return _STATUSES.get(trial.fate, CANT_BE_JUDGED)


def _signed(
    request: TrialRequest, taken: TakenPath, traced: TracedSource, name: str, *, is_shown: bool
) -> TrialRequest:
    """
    Return a request as its sender would sign it.

    @param is_shown: it is for people to see.
    @raise WebhookrxError: it can't be signed so.
    """
    at = time.time_ns() if request.at is None else request.at
    verifier = traced.trial.guard_at(lambda: at).parts.verifier
    guard = taken.source.guard
    if verifier is None or guard is None:
        raise WebhookrxError(f"The source {quoted(taken.source.name)} checks no signatures.")
    secret = next((each for each in guard.secrets if each.name == name), None)
    if secret is None:
        names = ", ".join(quoted(each.name) for each in guard.secrets) or "none"
        raise WebhookrxError(f"There is no secret {quoted(name)}; the names are: {names}.")
    if is_shown and verifier.shows_secret:
        raise WebhookrxError("This sender sends the secret itself, which is shown to nobody.")
    head = request.head
    query = parse_query(head.query or b"")
    try:
        signed = sign(verifier, secret, head, query, request.body, at)
    except SecretError as error:
        raise WebhookrxError(str(error)) from None
    headers = [(each, value) for each, value in head.headers if each not in signed.headers]
    pairs = [pair for pair in (head.query or b"").split(b"&") if pair]
    for parameter, value in signed.parameters.items():
        encoded = quote(parameter, safe="").encode()
        pairs = [pair for pair in pairs if pair.partition(b"=")[0] != encoded]
        pairs.append(encoded + b"=" + quote(value, safe="").encode())
    head = replace(head, headers=(*headers, *signed.headers.items()), query=b"&".join(pairs))
    return replace(request, head=head, body=signed.body, at=at, signed=frozenset(signed.headers))
