"""
Raw options as people write them, and one reader that gives each its value, its origin and its mistakes.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, TypeVar

from webhookrx.config.files import absolute
from webhookrx.config.options import BY_NAME, Kind, parse_flag
from webhookrx.diagnostics import nearest, quoted
from webhookrx.errors import ConfigError
from webhookrx.quantities import format_duration, parse_duration

COMMAND_LINE = "command line"

T = TypeVar("T")


class Place(NamedTuple):
    """
    Where something was written.

    @ivar option: the option as its user spells it: C{"--paths"} or C{"sources[0].paths"}.
    @ivar where: C{"command line"}, C{"FILE:LINE"}, or nothing for a default.
    """

    option: str
    where: str


class ConfigProblems(ConfigError):
    """
    Everything that is wrong, one line each.

    @ivar errors: the problems in the order in which they were found; at least one.
    """

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        first = errors[0]
        super().__init__(first.problem, option=first.option, where=first.where)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


@dataclass(slots=True)
class Problems:
    """Takes errors and warnings while a configuration is read; the same text at one place counts once."""

    errors: list[ConfigError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def error(self, problem: str, place: Place) -> None:
        """Note that a setting can't be used."""
        error = ConfigError(problem, option=place.option, where=place.where)
        if str(error) not in {str(known) for known in self.errors}:
            self.errors.append(error)

    def warn(self, problem: str, place: Place) -> None:
        """Note what is allowed but probably not meant."""
        text = str(ConfigError(problem, option=place.option, where=place.where))
        if text not in self.warnings:
            self.warnings.append(text)

    def attempt(self, place: Place, call: Callable[..., T], *args: object) -> T | None:
        """Return what the call returns; None when it raised L{ConfigError}, which is noted at that place."""
        try:
            return call(*args)
        except ConfigError as error:
            self.error(error.problem, Place(error.option or place.option, error.where or place.where))
            return None

    def raise_errors(self) -> None:
        """
        @raise ConfigProblems: there is an error.
        """
        if self.errors:
            raise ConfigProblems(self.errors)


@dataclass(frozen=True, slots=True)
class Text:
    """
    One value as text, and where it was written. Its C{repr} never shows the text: it may be a token.
    """

    text: str = field(repr=False)
    where: str


@dataclass(frozen=True, slots=True)
class Written:
    """
    All values of one option at one place.

    @ivar label: the option as its user spells it.
    @ivar values: at least one; a flag has C{yes} or C{no}, a limit C{NAME=VALUE}.
    """

    label: str
    values: tuple[Text, ...]

    @property
    def place(self) -> Place:
        """Where the first value was written."""
        return self.place_of(self.values[0])

    def place_of(self, value: Text) -> Place:
        """Where one of the values was written."""
        return Place(self.label, value.where)


#: What was written at one place, by the name of the option.
Layer: TypeAlias = Mapping[str, Written]


@dataclass(frozen=True, slots=True)
class Entry:
    """
    One item of C{sources:}.

    @ivar place: the item as a whole: C{sources[0]} and its first line.
    @ivar name: what C{name:} says; None without it.
    @ivar values: its options.
    """

    place: Place
    name: Text | None
    values: Layer


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """
    A configuration file.

    @ivar values: the options at the top level: the service's own, and a source's as defaults for all sources.
    @ivar name: what C{name:} at the top level says, for the one source of a file without C{sources:}.
    @ivar entries: the items of C{sources:}; None without that key.
    """

    values: Layer
    name: Text | None = None
    entries: tuple[Entry, ...] | None = None


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
