"""
What an option is: its name on the command line and in a YAML file, and what it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What an option takes."""

    FLAG = "yes or no"
    TEXT = "text"
    FILE = "file name"
    DIRECTORY = "directory name"
    LIMITS = "names and values"
    LABELS = "labels and values"
    SETTINGS = "names and values, or lists of them"
    NETWORKS = "names and files"
    TIME = "a time such as 30s"


class OptionScope(Enum):
    """
    Whether an option is for a source, which may have it anywhere in a YAML file; for the service, at its top level; or
    for the command line alone.
    """

    SOURCE = "source"
    SERVICE = "service"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Option:
    """
    An option.

    @ivar name: that on the command line, with C{-}.
    @ivar help: one line, no full stop.
    @ivar value: the word for its value in help texts; empty for a flag.
    @ivar default: in words.
    @ivar choices: the allowed values; empty: all that fit the kind.
    @ivar repeat: it may be given several times, or as a YAML list.
    @ivar plural: another YAML key of the same meaning.
    @ivar secret: its value is never shown.
    """

    name: str
    scope: OptionScope
    kind: Kind
    help: str
    value: str = ""
    default: str = "none"
    choices: tuple[str, ...] = ()
    short: str = ""
    repeat: bool = False
    plural: str = ""
    secret: bool = False

    @property
    def is_spec(self) -> bool:
        """Whether its value is an endpoint or observer string."""
        return self.name in ("port", "admin", "observer")

    @property
    def yaml_keys(self) -> tuple[str, ...]:
        """Its keys in a YAML file, with C{_}; the first is the usual one."""
        if self.scope is OptionScope.COMMAND:
            return ()
        key = self.name.replace("-", "_")
        return (self.plural, key) if self.plural else (key,)
