"""
What a function of the language is: its arguments, its options, and what it does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

from webhookrx.router.expressions.run import SHORT, OperationError, Run
from webhookrx.router.expressions.values import long_text

Apply: TypeAlias = Callable[..., Any]
"""Takes the L{Run}, a value for each argument, and options by name; raises L{OperationError}."""

MANY: Final = 16
"""Arguments that a function takes at most which takes any number."""

_AS_APPLY_SAYS: Final[Mapping[str, type]] = MappingProxyType({})
_NO_CHOICES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({})

Check: TypeAlias = Callable[[str], bool]
"""Tells whether a text is what an option takes."""

_NO_CHECKS: Final[Mapping[str, tuple[Check, str]]] = MappingProxyType({})

ONE: Final[tuple[Check, str]] = (lambda text: len(text) == 1, "one character")
SOME: Final[tuple[Check, str]] = (bool, "at least one character")
SEPARATOR: Final[tuple[Check, str]] = (
    lambda text: text[:1] not in ("", " ", "'", '"'),
    "one character, neither a blank nor a quote",
)
"""Checks of options, and what they want."""


class Function(msgspec.Struct, frozen=True):
    """
    A function.

    @ivar usage: its arguments and options, as people write them.
    @ivar summary: what it returns, in one sentence.
    @ivar apply: does it. For one with L{constants} it makes what does it: it takes the constants and the options.
    @ivar least: number of arguments.
    @ivar most: number of arguments.
    @ivar options: names of options, and the type of each: the keyword parameters of L{apply}, unless given. They are
        written as constants, but for those that are C{object}, which are worked out.
    @ivar constants: which arguments, counted from 0, are texts or lists of texts written as constants.
    @ivar folds: a call with constants only is done when it is compiled; what it makes can't be changed.
    @ivar checks: what an option that is a text has to be.
    @ivar choices: what an option that is a text may be.
    """

    name: str
    usage: str
    summary: str
    apply: Apply
    least: int = 1
    most: int = 1
    options: Mapping[str, type] = _AS_APPLY_SAYS
    constants: range = range(0)
    checks: Mapping[str, tuple[Check, str]] = _NO_CHECKS
    choices: Mapping[str, tuple[str, ...]] = _NO_CHOICES
    folds: bool = False

    def __post_init__(self) -> None:
        if self.options is _AS_APPLY_SAYS:
            msgspec.structs.force_setattr(self, "options", _keywords(self.apply))


def _keywords(apply: Apply) -> dict[str, type]:
    """Return the keyword parameters of a function, and the type of each: that of its default, if it may be written."""
    parameters = inspect.signature(apply).parameters.values()
    given = {each.name: type(each.default) for each in parameters if each.kind is each.KEYWORD_ONLY}
    return {name: kind if kind in (str, bool, tuple) else object for name, kind in given.items()}


def text_argument(run: Run, value: Any) -> str:
    """
    Return an argument that is a text.

    @raise OperationError: it is none, or too long.
    """
    if type(value) is not str:
        raise OperationError("The argument is no text; string() makes one.")
    return long_text(run, value) if len(value) > SHORT else value


def text_list(run: Run, value: Any) -> list[Any]:
    """
    Return an argument that is a text or a list, as a list. Its elements are not looked at.

    @raise OperationError: it is neither, is empty, or too long.
    """
    if type(value) is str:
        return [value]
    if type(value) not in (list, tuple) or not value:
        raise OperationError("The argument is a text, or a list of texts that is not empty.")
    if len(value) > run.limits.elements:
        raise run.too_many("A list")
    return list(value)
