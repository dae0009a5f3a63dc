"""
Processing steps in words.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from webhookrx.commands.output import counted, shortened
from webhookrx.router.rules.rule import DROP, TAG, Preprocessing, Probe, SetField, Step

_LONGEST: Final = 72
"""Characters of a value or a statement that are shown."""


_ON_ERROR: Final[dict[str | None, str]] = {
    DROP: "the message is dropped",
    TAG: "the message gets a note in meta.step_errors",
}

_CLASSIFY: Final = "Classify: find out who sent the message"
_CLASSIFY_KNOWN: Final = f"{_CLASSIFY}, JSON of unknown senders left alone"
_PARSE: Final = "Parse: take time, message, severity and host of a known sender from it"


def preprocessing_words(preprocessing: Preprocessing) -> list[str]:
    """Return what is done to each message of a connector, in its order. Steps have the numbers that counters show."""
    classify = _CLASSIFY if preprocessing.classify_fallback else _CLASSIFY_KNOWN
    words = [text for text, wanted in ((classify, preprocessing.classify), (_PARSE, preprocessing.parse)) if wanted]
    return words + [f"{number}. {step_words(step)}" for number, step in enumerate(preprocessing.steps, 1)]


def step_words(step: Step) -> str:
    """Return what a step does, with its label and its condition."""
    words = ", and ".join(_kinds(step)) or "nothing"
    if step.condition is not None:
        words += f", if {step.condition}"
    if step.on_error in _ON_ERROR:
        words += f"; {_ON_ERROR[step.on_error]} when it fails"
    return f"{step.label}: {words}" if step.label else words


def _kinds(step: Step) -> list[str]:
    """Return what it does. A step that is in order has one kind."""
    words = []
    if step.select is not None:
        words.append(f"go on only with messages that match {step.select or 'anything'}")
    if step.set is not None:
        fields = (step.set,) if isinstance(step.set, SetField) else step.set
        words.append(f"set {', '.join(f'{each.field} to {_value(each.value)}' for each in fields)}")
    if step.unset is not None:
        words.append(f"unset {step.unset if isinstance(step.unset, str) else ', '.join(step.unset)}")
    if step.regex is not None:
        case = " in any case" if step.regex.ignore_case else ""
        words.append(f"match {step.regex.field} against {step.regex.pattern}{case}; its groups into {step.regex.into}")
    if step.probe is not None:
        words.append(f"count as {step.probe.name if isinstance(step.probe, Probe) else step.probe}")
    if step.classify:
        words.append(_CLASSIFY_KNOWN if step.classify_fallback is False else _CLASSIFY)
    if step.parse:
        words.append(_PARSE)
    if step.expression is not None:
        words.append(f"run {_statements(step.expression)}")
    return words


def _value(value: Any) -> str:
    return shortened(msgspec.json.encode(value).decode(), _LONGEST)


def _statements(text: str) -> str:
    first, *more = [line for line in map(str.strip, text.splitlines()) if line] or ["nothing"]
    return shortened(first, _LONGEST) + (f" … ({counted(len(more), 'more line')})" if more else "")
