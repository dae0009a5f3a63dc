"""
What someone wrote for an option at one place, before anything is made of it.
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
