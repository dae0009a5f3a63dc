"""
Checks of C{split} in the definition of a sender.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhookrx.diagnostics import Diagnostic, Path, diagnose
from webhookrx.query import line_and_column
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.locator import LocatorError, parse_pointer
from webhookrx.senders.split_definition import SPLIT_DECODINGS, WAYS, Split

_BELONGS = (("at", "value"), ("decode", "value"), ("carry", "documents"))


def split_problems(definition: SenderDefinition) -> Iterator[Diagnostic]:
    """Yield what is wrong with the ways of a definition to take bodies apart."""
    for number, split in enumerate(definition.splits):
        home: Path = ("split", number) if isinstance(definition.split, tuple) else ("split",)
        yield from _problems(split, home)
        if split.by == "lines" and number < len(definition.splits) - 1:
            yield _problem((*home, "by"), "Every body has lines, so no way behind this one is ever tried.")


def _problems(split: Split, home: Path) -> Iterator[Diagnostic]:
    if split.by not in WAYS:
        yield _problem((*home, "by"), f"{split.by!r} is not one of {', '.join(WAYS)}.")
        return
    if split.decode and split.decode not in SPLIT_DECODINGS:
        yield _problem((*home, "decode"), f"{split.decode!r} is not one of {', '.join(SPLIT_DECODINGS)}.")
    if split.by == "value":
        yield from _star_problems(split.at, (*home, "at"))
    if split.inside:
        yield from _star_problems(split.inside, (*home, "inside"))
        if not split.decode:
            yield _problem((*home, "inside"), "inside is for events that decode makes of texts.")
    for name, way in _BELONGS:
        if getattr(split, name) and split.by != way:
            yield _problem((*home, name), f"{name} is for by: {way} alone.")


def _star_problems(pointer: str, path: Path) -> Iterator[Diagnostic]:
    try:
        steps = parse_pointer(pointer)
    except LocatorError as error:
        yield diagnose("entry-place", path, str(error), *line_and_column(pointer, error.column))
        return
    if "*" not in steps:
        yield _problem(path, "A step * must stand for the elements of an array.")


def _problem(path: Path, sentence: str) -> Diagnostic:
    return diagnose("entry-split", path, sentence)
