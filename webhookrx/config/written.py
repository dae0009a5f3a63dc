"""
What someone wrote for an option at one place, and in a whole file, before anything is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from webhookrx.config.problems import Place


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
