"""
What senders ask before they send, what they want to hear, and what they do with it, as Markdown tables.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from webhookrx.senders.answer_definition import Behaviour, SenderAnswer
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.handshake_definition import Handshake
from webhookrx.text import table

_MARK: Final = "*"


def handshake_table() -> str:
    """Return the table of questions, by sender."""
    rows = (
        (
            f"`{definition.id}`",
            f"`{handshake.kind}`",
            _question(handshake),
            "yes" if handshake.must_be_signed else "",
            _told(handshake),
        )
        for definition in builtin_definitions()
        for handshake in definition.handshake
    )
    return table(("sender", "kind", "question", "signed", "answer"), rows)


def answer_table() -> str:
    """Return the table of answers to messages, by sender."""
    rows = (
        (f"`{definition.id}`", _requests(answer), _body(answer, answer.status), _refused(answer))
        for definition in builtin_definitions()
        for answer in definition.answers
    )
    return table(("sender", "of requests", "a stored message", "a refused one"), rows)


def behaviour_table() -> str:
    """Return the table of what senders do with answers, by sender."""
    rows = (
        (f"`{definition.id}`", *_behaviour(definition.behaviour))
        for definition in builtin_definitions()
        if definition.behaviour is not None
    )
    return table(("sender", "waits", "sends again", "stops after", "besides"), rows)


def _question(handshake: Handshake) -> str:
    when = handshake.when
    parts = [f"header `{name}`" + _like(value) for name, value in when.headers.items()]
    parts += [f"query `{name}`" + _like(value) for name, value in when.query.items()]
    if when.path:
        parts.append(f"path `{when.path}`")
    if when.only_keys:
        parts.append(f"exactly {', '.join(f'`{name}`' for name in when.only_keys)}")
    if when.body_keys:
        parts.append(", ".join(f"`{name}`" for name in when.body_keys))
    if when.body:
        parts.append(f"`{when.body}`")
    if when.empty_body:
        parts.append("no body")
    if handshake.equal:
        parts.append(f"`{handshake.equal}` is a verify token")
    return f"{when.method}" + (f": {'; '.join(parts)}" if parts else "")


def _like(pattern: str) -> str:
    return "" if pattern == "*" else f" with `{pattern}`"


def _told(handshake: Handshake) -> str:
    told = _body(handshake, handshake.status)
    if handshake.proof is not None:
        how = "SHA-256" if handshake.proof.algorithm == "sha256" else "HMAC"
        told += f"; `{{proof}}`: {how} of `{handshake.proof.of}`, {handshake.proof.encoding}"
    return told


def _body(answer: Handshake | SenderAnswer, status: int) -> str:
    if answer.json is not None:
        told = f"{status} `{_json(answer.json)}`"
    elif answer.text:
        told = f"{status} text `{answer.text}`"
    else:
        told = f"{status}, empty"
    kind = answer.content_type
    lines = [f"`{name}: {value}`" for name, value in answer.reply.items()]
    return "; ".join([told + (f", `{kind}`" if kind else ""), *lines])


def _json(json: dict[str, Any]) -> str:
    return msgspec.json.encode(json).decode()


def _requests(answer: SenderAnswer) -> str:
    when = answer.when
    return "all" if when is None else f"`{when.content_type}`" if when.content_type else "some"


def _refused(answer: SenderAnswer) -> str:
    if answer.refused is None:
        return ""
    return "empty" if answer.refused.json is None else f"`{_json(answer.refused.json)}`"


def _behaviour(behaviour: Behaviour) -> tuple[str, str, str, str]:
    again = {"none": "never", "yes": "yes", "": ""}.get(behaviour.retries)
    if again is None:
        again = "after " + ", ".join(map(str, behaviour.retried))
    stops = ", ".join(map(str, behaviour.disabled_by))
    cells = ((behaviour.deadline, "deadline"), (again, "retries"), (stops, "disabled_by"), (behaviour.note, "note"))
    return tuple(_marked(text, name, behaviour) for text, name in cells)  # type: ignore[return-value]  # four of them


def _marked(text: str, name: str, behaviour: Behaviour) -> str:
    return f"{text} {_MARK}" if text and name in behaviour.unconfirmed else text


if __name__ == "__main__":
    print("\n".join((handshake_table(), answer_table(), behaviour_table())), end="")
