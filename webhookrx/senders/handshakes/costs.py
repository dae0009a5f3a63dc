"""
What a refusal costs with a sender, and whether it waits as long as an answer may take, in sentences for operators.
"""

from __future__ import annotations

from typing import Final

from webhookrx.quantities import format_duration, parse_duration
from webhookrx.senders.answer_definition import Behaviour
from webhookrx.senders.definition import SenderDefinition

_UNCONFIRMED: Final = " (not confirmed by a public page of the sender)"

#: The refusals that a source with these options may send, apart from those for malformed requests.
_USUAL: Final = (401, 403, 413, 429, 503)


def cost_of_refusal(definition: SenderDefinition) -> str:
    """Return what a refusal costs with this sender: one sentence, and the note of its definition."""
    behaviour = definition.behaviour or Behaviour()
    name = definition.id
    if behaviour.retries == "none":
        told = f"{name} never sends again by itself what was refused"
    elif behaviour.retries == "by-status":
        never = [status for status in _USUAL if status not in behaviour.retried]
        told = f"{name} sends again after {_listed(behaviour.retried)}"
        told += f", and never after {_listed(never)}" if never else ""
    elif behaviour.retries:
        told = f"{name} sends again what was refused"
    else:
        told = f"Whether {name} sends again what was refused is not known"
    if behaviour.disabled_by:
        told += f"; it stops for good after one {_listed(behaviour.disabled_by)}"
    if not {"retries", "retried", "disabled_by"}.isdisjoint(behaviour.unconfirmed):
        told += _UNCONFIRMED
    if not behaviour.note:
        return f"{told}."
    note = behaviour.note.removesuffix(".")
    return f"{told}. {note}{_UNCONFIRMED if 'note' in behaviour.unconfirmed else ''}."


def sends_again_after(definition: SenderDefinition, status: int) -> bool | None:
    """Tell whether a sender sends again what was refused with a status; None when that is not known."""
    behaviour = definition.behaviour
    if behaviour is None or not behaviour.retries:
        return None
    return status in behaviour.retried if behaviour.retries == "by-status" else behaviour.retries != "none"


def deadline_of(definition: SenderDefinition) -> float | None:
    """Return the seconds that a sender waits for an answer; None when that is not known."""
    behaviour = definition.behaviour
    return parse_duration(behaviour.deadline) if behaviour is not None and behaviour.deadline else None


def deadline_against(definition: SenderDefinition, answer_time: float) -> str:
    """
    Return whether a sender waits as long as an answer may take, in one sentence.

    @param answer_time: the limit of that name, in seconds.
    """
    deadline = deadline_of(definition)
    limit = format_duration(answer_time)
    if deadline is None:
        return f"How long {definition.id} waits for an answer is not known; answer_time is {limit}."
    assert definition.behaviour is not None, "it has a deadline"
    told = f"{definition.id} waits {format_duration(deadline)} for an answer"
    if "deadline" in definition.behaviour.unconfirmed:
        told += _UNCONFIRMED
    if deadline < answer_time:
        again = "" if definition.behaviour.retries == "none" else ", and may come again"
        return f"{told}, less than the {limit} of answer_time: a message that takes longer has failed there{again}."
    return f"{told}, and answer_time is {limit}."


def _listed(statuses: tuple[int, ...] | list[int]) -> str:
    words = [str(status) for status in statuses]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
