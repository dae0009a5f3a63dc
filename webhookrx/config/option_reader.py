"""
Raw options as people write them, and one reader that gives each its value, its origin and what is wrong with it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, TypeVar

from webhookrx.config.files import absolute
from webhookrx.config.option import Kind
from webhookrx.config.options import BY_NAME, parse_flag
from webhookrx.diagnostics import ERROR, WARNING, Diagnostic, Path, nearest, path_text, quoted
from webhookrx.errors import ConfigError
from webhookrx.quantities import format_duration, parse_duration

COMMAND_LINE = "command line"
DEFAULT = "default"

T = TypeVar("T")


class Origin(NamedTuple):
    """
    Where an option was written.

    @ivar path: the option as its user spells it: C{("--paths",)} or C{("sources", 0, "paths")}.
    @ivar file: L{COMMAND_LINE} or the path of a file; empty for a default.
    @ivar line: of the file, from 1; 0 on the command line.
    """

    path: Path = ()
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        if self.file == COMMAND_LINE:
            return f"{path_text(self.path)}, {COMMAND_LINE}"
        return f"{self.file}:{self.line}" if self.file else DEFAULT


NOWHERE = Origin()
"""Of what is not about one option."""


class ConfigProblems(ConfigError):
    """
    Everything that is wrong, one line each.

    @ivar errors: in the order in which they were found; at least one.
    """

    def __init__(self, errors: Sequence[Diagnostic]) -> None:
        first = errors[0]
        super().__init__(first.sentence, option=first.field, where=first.where)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "\n".join(each.text for each in self.errors)


@dataclass(slots=True)
class Problems:
    """The errors and warnings of a configuration, each once."""

    errors: list[Diagnostic] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)

    def add(self, *diagnostics: Diagnostic) -> None:
        """Note errors and warnings."""
        for found in diagnostics:
            known = self.errors if found.severity == ERROR else self.warnings
            if found not in known:
                known.append(found)

    def error(self, sentence: str, origin: Origin, code: str = "") -> None:
        """Note that a setting can't be used."""
        self.add(Diagnostic(code, ERROR, origin.path, sentence, origin.line, file=origin.file))

    def warn(self, sentence: str, origin: Origin) -> None:
        """Note what is allowed but probably not meant."""
        self.add(Diagnostic("", WARNING, origin.path, sentence, origin.line, file=origin.file))

    def attempt(self, origin: Origin, call: Callable[..., T], *args: object) -> T | None:
        """Return what the call returns; None when it raised L{ConfigError}, which is noted."""
        try:
            return call(*args)
        except ConfigError as error:
            self.error(str(error), origin)
            return None

    def raise_errors(self) -> None:
        """
        @raise ConfigProblems: there is an error.
        """
        if self.errors:
            raise ConfigProblems(self.errors)


@dataclass(frozen=True, slots=True)
class RawValue:
    """
    One value as text. Its C{repr} never shows the text: it may be a token.

    @ivar text: C{yes} or C{no} for a flag, C{NAME=VALUE} for a limit or a label.
    """

    text: str = field(repr=False)
    origin: Origin


#: The options of one layer: the values of each, at least one, by the name of the option.
RawOptions: TypeAlias = Mapping[str, tuple[RawValue, ...]]


@dataclass(frozen=True, slots=True)
class RawSource:
    """
    One item of C{sources:}.

    @ivar origin: the item as a whole: C{sources[0]} and its first line.
    @ivar name: what C{name:} says; None without it.
    """

    origin: Origin
    name: RawValue | None
    options: RawOptions


@dataclass(frozen=True, slots=True)
class RawAlarm:
    """
    One item of C{alarms:}.

    @ivar origin: the item as a whole.
    @ivar values: what it says, by key.
    """

    origin: Origin
    values: Mapping[str, RawValue]


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """
    A configuration file.

    @ivar options: those at the top level: the service's own, and a source's as defaults for all sources.
    @ivar name: what C{name:} at the top level says, for the one source of a file without C{sources:}.
    @ivar sources: the items of C{sources:}; None without that key.
    @ivar alarms: the items of C{alarms:}.
    @ivar alarm_targets: the URLs of C{alarm_targets:}, by name.
    """

    options: RawOptions
    name: RawValue | None = None
    sources: tuple[RawSource, ...] | None = None
    alarms: tuple[RawAlarm, ...] = ()
    alarm_targets: Mapping[str, RawValue] = field(default_factory=dict)


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


class OptionReader:
    """
    The options of one source, or of the service: the highest layer that has an option decides, and is remembered.

    @ivar layers: command line, item of C{sources:}, top level of the file, the highest first.
    @ivar problems: takes what is wrong.
    @ivar effective: the options that were read so far.
    """

    def __init__(
        self, layers: Sequence[RawOptions], problems: Problems, section: str = "", origin: Origin = NOWHERE
    ) -> None:
        """
        @param section: the name of the source; empty for the service.
        @param origin: the whole that these options belong to, for errors about what is not there.
        """
        self.layers = tuple(layers)
        self.problems = problems
        self.effective: list[Effective] = []
        self.section = section
        self._origin = origin
        self._raw: ChainMap[str, tuple[RawValue, ...]] = ChainMap(*(dict(layer) for layer in layers))

    def raw(self, name: str) -> tuple[RawValue, ...]:
        """Return what was written for an option; nothing for its default."""
        return self._raw.get(name, ())

    def origin(self, name: str) -> Origin:
        """Return where an option was written; the whole for its default."""
        raw = self.raw(name)
        return raw[0].origin if raw else self._origin

    def error(self, name: str, sentence: str) -> None:
        """Note that an option can't be used."""
        self.problems.error(sentence, self.origin(name))

    def warn(self, name: str, sentence: str) -> None:
        """Note that an option is probably not meant."""
        self.problems.warn(sentence, self.origin(name))

    def attempt(self, name: str, call: Callable[..., T], *args: object) -> T | None:
        """Return what the call returns; None when it raised L{ConfigError}, which is noted for the option."""
        return self.problems.attempt(self.origin(name), call, *args)

    def show(self, name: str, value: str) -> None:
        """Add an option to the effective settings."""
        raw = self.raw(name)
        self.effective.append(Effective(self.section, name, value, str(raw[0].origin if raw else NOWHERE)))

    def value(self, name: str) -> str | None:
        """Return the text of an option that takes one value; None for its default."""
        raw = self.raw(name)
        if len(raw) > 1 and BY_NAME[name].kind is not Kind.FLAG:
            self.error(name, "It is given twice, but takes one value.")
        return raw[0].text if raw else None

    def parsed(self, name: str, parse: Callable[[str], T]) -> T | None:
        """
        Return the parsed value of an option; None for its default, and for a mistake, which is noted.

        @param parse: raises L{ConfigError}.
        """
        text = self.value(name)
        return None if text is None else self.attempt(name, parse, text)

    def text(self, name: str, default: str) -> str:
        """Return the value of an option that takes one of its choices, or any text."""
        text = self.value(name)
        value = default if text is None else text
        choices = BY_NAME[name].choices
        if choices and value not in choices:
            near = nearest(value, choices)
            self.error(name, f"{quoted(value)} is not one of {', '.join(choices)}. {near}".strip())
            value = default
        self.show(name, value)
        return value

    def flag(self, name: str, default: bool) -> bool:
        """Return the value of a flag."""
        value = self.parsed(name, parse_flag)
        value = default if value is None else value
        self.show(name, yes_or_no(value))
        return value

    def duration(self, name: str, default: float) -> float:
        """Return the seconds that an option takes, more than 0."""
        seconds = self.parsed(name, _duration)
        seconds = default if seconds is None else seconds
        self.show(name, format_duration(seconds))
        return seconds

    def path(self, name: str) -> str | None:
        """Return the absolute path that an option names; None for its default."""
        text = self.value(name)
        if text == "":
            self.error(name, "It is empty; a name is needed.")
            return None
        value = None if text is None else absolute(text)
        self.show(name, value or BY_NAME[name].default)
        return value

    def paths(self, name: str) -> tuple[str, ...]:
        """Return the absolute paths that an option names, in their order."""
        paths: list[str] = []
        for value in self.raw(name):
            if value.text:
                paths.append(absolute(value.text))
            else:
                self.problems.error("It is empty; a name is needed.", value.origin)
        self.show(name, " ".join(paths) or BY_NAME[name].default)
        return tuple(paths)


def _duration(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if not seconds:
        raise ConfigError(f"{quoted(text)} is too short; write more than 0, such as 30s.")
    return seconds


def yes_or_no(value: bool) -> str:
    """Return a flag as it is written."""
    return "yes" if value else "no"
