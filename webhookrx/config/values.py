"""
The options of one source, or of the service: the highest place that holds an option decides, and is remembered.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from typing import NamedTuple

from webhookrx.config.files import absolute
from webhookrx.config.options import BY_NAME, Kind, parse_flag
from webhookrx.config.problems import COMMAND_LINE, Place, Problems
from webhookrx.config.written import Layer, Text, Written
from webhookrx.diagnostics import nearest, quoted
from webhookrx.errors import ConfigError
from webhookrx.quantities import format_duration, parse_duration

DEFAULT = "default"


class Effective(NamedTuple):
    """
    A setting as it will be, for C{--check}.

    @ivar section: the name of its source; empty for the service's own.
    @ivar name: the option, or C{limit NAME}.
    @ivar value: for people; secrets are C{***}.
    @ivar origin: C{"default"}, C{"--option, command line"} or C{"FILE:LINE"}.
    """

    section: str
    name: str
    value: str
    origin: str


class Values:
    """
    What was written, the highest place first.

    @ivar problems: takes what is wrong.
    @ivar effective: what was asked for so far.
    """

    def __init__(self, layers: Sequence[Layer], problems: Problems, section: str, place: Place) -> None:
        """
        @param place: the whole that these options belong to, for errors about what is not there.
        """
        self.layers = tuple(layers)
        self.problems = problems
        self.effective: list[Effective] = []
        self.section = section
        self._place = place
        self._written: ChainMap[str, Written] = ChainMap(*(dict(layer) for layer in layers))

    def written(self, name: str) -> Written | None:
        """Return what was written for an option; None for its default."""
        return self._written.get(name)

    def place(self, name: str) -> Place:
        """Return where an option was written; the whole for its default."""
        written = self.written(name)
        return self._place if written is None else written.place

    def show(self, name: str, value: str) -> None:
        """Remember how an option came out."""
        written = self.written(name)
        where = origin(None if written is None else written.place)
        self.effective.append(Effective(self.section, name, value, where))

    def texts(self, name: str) -> tuple[Text, ...]:
        """Return all values of an option; none for its default."""
        written = self.written(name)
        if written is None:
            return ()
        if len(written.values) > 1 and not BY_NAME[name].repeat and BY_NAME[name].kind is not Kind.FLAG:
            self.problems.error("It is there twice, but takes one value.", written.place)
        return written.values

    def text(self, name: str, default: str) -> str:
        """Return the value of an option that takes one of its choices, or any text."""
        texts = self.texts(name)
        value = texts[0].text if texts else default
        choices = BY_NAME[name].choices
        if choices and value not in choices:
            self.problems.error(
                f"{quoted(value)} is not one of {', '.join(choices)}. {nearest(value, choices)}".strip(),
                self.place(name),
            )
            value = default
        self.show(name, value)
        return value

    def flag(self, name: str, default: bool) -> bool:
        """Return the value of a flag."""
        texts = self.texts(name)
        value = self.problems.attempt(self.place(name), parse_flag, texts[0].text) if texts else None
        value = default if value is None else value
        self.show(name, yes_or_no(value))
        return value

    def duration(self, name: str, default: float) -> float:
        """Return the seconds that an option takes, more than 0."""
        texts = self.texts(name)
        value = self.problems.attempt(self.place(name), _duration, texts[0].text) if texts else None
        value = default if value is None else value
        self.show(name, format_duration(value))
        return value

    def path(self, name: str) -> str | None:
        """Return the absolute path that an option names; None for its default."""
        texts = self.texts(name)
        if texts and not texts[0].text:
            self.problems.error("It is empty; a name is needed.", self.place(name))
            return None
        value = absolute(texts[0].text) if texts else None
        self.show(name, value or BY_NAME[name].default)
        return value


def _duration(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if not seconds:
        raise ConfigError(f"{quoted(text)} is no time to do anything in; it takes more than 0, such as 30s.")
    return seconds


def yes_or_no(value: bool) -> str:
    """Return a flag as it is written."""
    return "yes" if value else "no"


def origin(place: Place | None) -> str:
    """Return where an effective value came from, for people; None stands for the default."""
    if place is None:
        return DEFAULT
    return f"{place.option}, {COMMAND_LINE}" if place.where == COMMAND_LINE else place.where
