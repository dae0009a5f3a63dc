"""
What is wrong with a configuration, gathered so that one start shows all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from webhookrx.errors import ConfigError

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
