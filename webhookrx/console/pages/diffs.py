"""
Differences of two texts, line by line, bounded in time and size, for C{templates/_diff.html}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple

import msgspec

from webhookrx.console.rules.saved import unsaved_rule
from webhookrx.management.rule_documents import document_of, document_yaml
from webhookrx.message.escapes import escape

SAME: Final = "same"
ADDED: Final = "added"
REMOVED: Final = "removed"
SKIPPED: Final = "skipped"
"""The kinds of lines; one that is skipped says how many it stands for."""

MOST_LINES: Final = 400
"""Lines of one difference that are shown."""

LONGEST_LINE: Final = 400
"""Characters of a line that are shown."""

_MOST_COMPARED: Final = 1000
_MOST_PAIRS: Final = 4000
"""Lines that are compared, and pairs of lines that are the same: difflib's time grows with both."""


class DiffLine(NamedTuple):
    """
    A line of a difference.

    @ivar kind: L{SAME}, L{ADDED}, L{REMOVED} or L{SKIPPED}.
    @ivar text: what a reader can take for nothing else: no character in it turns others around.
    """

    kind: str
    text: str


def text_diff(before: str | None, after: str | None, context: int = 3) -> list[DiffLine]:
    """
    Return what has become of a text; nothing when it is the same.

    @param before: None when it was not there.
    @param after: None when it is not there any more.
    @param context: lines that are the same and shown around those that are not; below 0 for all.
    """
    old, new = _lines(before), _lines(after)
    if old == new:
        return []
    return _bounded(_with_context(_compared(old, new), context))


def document_diff(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, context: int = 3
) -> list[DiffLine]:
    """Return what has become of a document, such as one that the history keeps, as lines of YAML."""
    texts = [None if each is None else document_yaml(dict(each)) for each in (before, after)]
    return text_diff(texts[0], texts[1], context)


def change_diff(kind: str, before: Any, after: Any, context: int = 3) -> list[DiffLine]:
    """
    Return what a change in the history has changed, see L{webhookrx.console.store.history.HistoryEntry}.

    @param kind: what was changed, such as C{rule}.
    """
    if kind == "rule":
        as_written = all(each is None or "yaml" in each for each in (before, after))
        return text_diff(_rule_text(before, as_written), _rule_text(after, as_written), context)
    documents = [each if each is None or isinstance(each, dict) else {"value": each} for each in (before, after)]
    return document_diff(documents[0], documents[1], context)


def _rule_text(entry: Mapping[str, Any] | None, as_written: bool) -> str | None:
    """Return a rule of the history: as it was written if both sides were, so that comments don't look like changes."""
    if entry is None:
        return None
    manager = str(entry.get("manager", ""))
    head = "" if manager in ("", "ui") else f"# manager: {manager}\n"
    return head + (str(entry["yaml"]) if as_written else document_yaml(_in_order(entry)))


def _in_order(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a rule with its fields in their order, which the history does not keep."""
    try:
        return document_of(unsaved_rule(entry).rule)
    except msgspec.ValidationError:  # of a version that knew other fields
        return dict(entry["rule"])


def _lines(text: str | None) -> list[str]:
    if not text:
        return []
    return text.removesuffix("\n").split("\n")


def _compared(old: Sequence[str], new: Sequence[str]) -> list[DiffLine]:
    """Return all lines of both, those that are the same once."""
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    one, other = old[first : len(old) - last], new[first : len(new) - last]
    lines = [DiffLine(SAME, text) for text in old[:first]]
    for tag, i, j, k, m in _steps(one, other):
        if tag == "equal":
            lines += [DiffLine(SAME, text) for text in one[i:j]]
        else:
            lines += [DiffLine(REMOVED, text) for text in one[i:j]]
            lines += [DiffLine(ADDED, text) for text in other[k:m]]
    return lines + [DiffLine(SAME, text) for text in old[len(old) - last :]]


def _steps(one: Sequence[str], other: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    counts = Counter(one)
    pairs = sum(counts[text] for text in other)
    if len(one) + len(other) > _MOST_COMPARED or pairs > _MOST_PAIRS:
        return [("replace", 0, len(one), 0, len(other))]
    return SequenceMatcher(None, one, other, autojunk=False).get_opcodes()


def _with_context(lines: Sequence[DiffLine], context: int) -> list[DiffLine]:
    if context < 0:
        return list(lines)
    near = [False] * len(lines)
    for index, line in enumerate(lines):
        if line.kind != SAME:
            for each in range(max(0, index - context), min(len(lines), index + context + 1)):
                near[each] = True
    kept: list[DiffLine] = []
    skipped = 0
    for line, is_near in zip(lines, near, strict=True):
        if is_near:
            if skipped:
                kept.append(_skipped(skipped))
                skipped = 0
            kept.append(line)
        else:
            skipped += 1
    return [*kept, _skipped(skipped)] if skipped else kept


def _bounded(lines: Sequence[DiffLine]) -> list[DiffLine]:
    shown = [DiffLine(line.kind, _shown(line.text)) for line in lines[:MOST_LINES]]
    left = len(lines) - len(shown)
    return [*shown, DiffLine(SKIPPED, f"{left:,} more lines are not shown")] if left else shown


def _skipped(count: int) -> DiffLine:
    return DiffLine(SKIPPED, "1 line that is the same" if count == 1 else f"{count:,} lines that are the same")


def _shown(text: str) -> str:
    return escape(text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…")
