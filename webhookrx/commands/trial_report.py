"""
What C{webhookrx try --config} prints of a trial, for people and for programs. No secret and no token is in it.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import msgspec

from webhookrx.commands.terminal import print_table, safe
from webhookrx.commands.traced_steps import print_steps
from webhookrx.errors import WebhookrxError
from webhookrx.intake.head import Head
from webhookrx.intake.header_masking import MASK, is_credential
from webhookrx.message.encoders import encode_line
from webhookrx.quantities import counted
from webhookrx.router.steps.traced import TracedProcessing
from webhookrx.senders.http_file import recorded
from webhookrx.senders.signatures.body_mask import CantMask
from webhookrx.service.masks import body_mask, token_mask
from webhookrx.trials.step_facts import step_facts
from webhookrx.trials.trial import DROPPED, HANDSHAKE, NOT_JUDGED, STORED, DecisionVerdict, Trial, TrialRequest
from webhookrx.trials.trial_source import TakenPath

_SECOND: Final = 10**9


def shown_target(head: Head, taken: TakenPath) -> str:
    """Return the target of a request without tokens and other credentials."""
    mask = token_mask(taken.source)
    line, _, _ = recorded(head if mask is None else mask.masked(head)).partition(b"\r\n")
    return line.split(b" ")[1].decode("latin-1")


def print_trial(
    request: TrialRequest, taken: TakenPath, trial: Trial, processing: TracedProcessing | None, out: TextIO
) -> None:
    """Print what has become of a request."""
    source = taken.source
    print(
        safe(
            f"request    {request.head.method.decode()} {shown_target(request.head, taken)}, "
            f"{len(request.body):,} bytes"
        ),
        file=out,
    )
    print(safe(f"source     {source.name} ({source.variant}), endpoint {taken.listener.text}"), file=out)
    print(f"time       {_moment(trial.at)}{_kind_of_time(request, trial)}", file=out)
    print("\ndecisions", file=out)
    print_verdicts(trial.verdicts, out)
    print(f"\noutcome    {outcome(trial)}", file=out)
    print(f"\nanswer\n{_shown_answer(trial.answer)}", file=out)
    if processing is not None and processing.before is not None and len(trial.messages) < 2:
        print_steps(processing, processing.before, out)
    elif trial.messages:
        print(f"\n{'message' if len(trial.messages) == 1 else 'messages'}", file=out)
        for message in trial.messages:
            out.write(encode_line(message).decode())


def print_verdicts(verdicts: Iterable[DecisionVerdict], out: TextIO) -> None:
    """Print decisions, each on a line."""
    print_table(out, [(each.decision.replace("_", " "), each.verdict, each.why) for each in verdicts])


def trial_facts(
    request: TrialRequest, taken: TakenPath, trial: Trial, processing: TracedProcessing | None
) -> dict[str, Any]:
    """Return the same for JSON."""
    source = taken.source
    facts: dict[str, Any] = {
        "request": {
            "method": request.head.method.decode(),
            "target": shown_target(request.head, taken),
            "bytes": len(request.body),
        },
        "source": {
            "name": source.name,
            "variant": source.variant,
            "endpoint": taken.listener.text,
            "path": taken.pattern,
        },
        "time": {"at": _moment(trial.at), "is_signed_time": trial.is_signed_time},
        "decisions": [each._asdict() for each in trial.verdicts],
        "outcome": trial.fate,
        "reason": trial.question if trial.refused is None else trial.refused.reason.word,
        "stored": trial.fate == STORED,
        "answer": {"status": trial.status, "bytes": trial.answer.decode("latin-1")},
        "messages": [_raw(encode_line(message)) for message in trial.messages],
    }
    if processing is not None and processing.before is not None:
        facts |= step_facts(processing, processing.before)
    return facts


def outcome(trial: Trial) -> str:
    """Return in a phrase what becomes of a request."""
    if trial.fate == STORED:
        return f"it would be stored: {counted(len(trial.messages), 'message')}"
    if trial.fate == HANDSHAKE:
        return f"a handshake, {trial.question}: it is answered, and nothing is stored"
    if trial.fate == DROPPED:
        return "a step drops it: it is answered like others, and nothing is stored"
    assert trial.refused is not None, "no other fate is left"
    if trial.fate == NOT_JUDGED:
        return f"it can't be judged here: {trial.refused.reason.word}"
    return f"it would be refused: {trial.status} {trial.refused.reason.word}"


def curl_command(request: TrialRequest, taken: TakenPath) -> tuple[str, list[str]]:
    """
    Return a command that sends a request, byte for byte, with its signature; and the credentials that are left out of
    it, which nobody is shown.

    @raise WebhookrxError: the source takes it by no port, or the secret in its body can't be masked.
    """
    if taken.port is None:
        raise WebhookrxError(f"{taken.listener.text} is no TCP port to which curl could send it.")
    mask = token_mask(taken.source)
    head = request.head if mask is None else mask.masked(request.head)
    left_out = [] if (head.path, head.query) == (request.head.path, request.head.query) else ["the token in the URL"]
    scheme = "http" if taken.listener.tls is None else "https"
    target = head.path.decode("latin-1") + (f"?{head.query.decode('latin-1')}" if head.query else "")
    words = ["curl", "-sS", "-X", head.method.decode()]
    has_type = False
    for raw_name, value in head.headers:
        name = raw_name.decode("latin-1")
        has_type = has_type or name == "content-type"
        if name in ("host", "content-length"):
            continue
        if value == MASK.encode() or (is_credential(name) and raw_name not in request.signed):
            left_out.append(f"the header {name}")
        else:
            words += ["-H", f"{name}: {value.decode('latin-1')}"]
    if request.body and not has_type:
        words += ["-H", "Content-Type:"]  # else curl has one of its own
    words.append(f"{scheme}://localhost:{taken.port}{target}")
    if not request.body:
        return shlex.join(words), left_out
    body = _shown_body(request.body, taken)
    if body != request.body:
        left_out.append("the secret in the body")
    encoded = base64.b64encode(body).decode()
    return f"printf %s {encoded} | base64 -d | {shlex.join([*words, '--data-binary', '@-'])}", left_out


def _shown_body(body: bytes, taken: TakenPath) -> bytes:
    mask = body_mask(taken.source)
    try:
        return body if mask is None else mask.masked(body)
    except CantMask as error:
        raise WebhookrxError(str(error)) from None


def _moment(nanoseconds: int) -> str:
    moment = datetime.fromtimestamp(nanoseconds // _SECOND, UTC)
    return moment.isoformat().replace("+00:00", "Z")


def _kind_of_time(request: TrialRequest, trial: Trial) -> str:
    if trial.is_signed_time:
        return ", when it was signed; --at tries another time"
    return "" if request.at is not None else ", now"


def _shown_answer(answer: bytes) -> str:
    return "\n".join(safe(line) for line in answer.decode("utf-8", "backslashreplace").split("\r\n")).rstrip("\n")


def _raw(line: bytes) -> Any:
    return msgspec.Raw(line.rstrip(b"\n"))
