"""
The definition of a function of the language: its arguments, its options, and its implementation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from webhookrx.router.expressions.run import SHORT, OperationError, Run
from webhookrx.router.expressions.values import long_text

Apply: TypeAlias = Callable[..., Any]
"""Takes the L{Run}, a value for each argument, and options by name; raises L{OperationError}."""

MANY: Final = 16
"""The most arguments of a function that takes any number."""

_AS_APPLY_SAYS: Final[Mapping[str, type]] = MappingProxyType({})


class Check(NamedTuple):
    """A check of an option that is a text, and words for what the option has or is."""

    allows: Callable[[str], bool]
    words: str


_NO_CHECKS: Final[Mapping[str, Check]] = MappingProxyType({})

ONE: Final = Check(lambda text: len(text) == 1, "has one character")
SOME: Final = Check(bool, "has at least one character")
SEPARATOR: Final = Check(
    lambda text: text[:1] not in ("", " ", "'", '"'), "has one character, neither a blank nor a quote"
)


def one_of(*choices: str) -> Check:
    """Return the check of an option that takes one of some texts."""
    return Check(choices.__contains__, f"is one of {', '.join(choices)}")


class Function(msgspec.Struct, frozen=True):
    """
    A function.

    @ivar usage: its arguments and options, for the docs.
    @ivar summary: its value, for the docs.
    @ivar apply: the implementation. With L{constants} it is a factory: it takes the constants and the options, and
        returns the implementation.
    @ivar least: number of arguments.
    @ivar most: number of arguments.
    @ivar options: names of options, and the type of each: the keyword parameters of L{apply}, unless given. Options are
        written as constants, but for those of the type C{object}, which may be any expression.
    @ivar constants: the arguments, counted from 0, that are texts or lists of texts, written as constants.
    @ivar folds: a call with constants only is evaluated when it is compiled, since its value never changes.
    @ivar checks: of options that are texts.
    """

    name: str
    usage: str
    summary: str
    apply: Apply
    least: int = 1
    most: int = 1
    options: Mapping[str, type] = _AS_APPLY_SAYS
    constants: range = range(0)
    checks: Mapping[str, Check] = _NO_CHECKS
    folds: bool = False

    def __post_init__(self) -> None:
        if self.options is _AS_APPLY_SAYS:
            msgspec.structs.force_setattr(self, "options", _keywords(self.apply))


def _keywords(apply: Apply) -> dict[str, type]:
    """Return the keyword parameters of a function, each with the type of its default, or C{object}."""
    parameters = inspect.signature(apply).parameters.values()
    given = {each.name: type(each.default) for each in parameters if each.kind is each.KEYWORD_ONLY}
    return {name: kind if kind in (str, bool, tuple) else object for name, kind in given.items()}


def text_argument(run: Run, value: Any) -> str:
    """
    Return an argument that is a text.

    @raise OperationError: the argument is not a text, or too long.
    """
    if type(value) is not str:
        raise OperationError("The argument is no text; string() makes one.")
    return long_text(run, value) if len(value) > SHORT else value


def text_list(run: Run, value: Any) -> list[Any]:
    """
    Return an argument that is a text or a list, as a list. Its elements are not checked.

    @raise OperationError: the argument is neither, is empty, or too long.
    """
    if type(value) is str:
        return [value]
    if type(value) not in (list, tuple) or not value:
        raise OperationError("The argument is a text, or a list of texts that is not empty.")
    if len(value) > run.limits.elements:
        raise run.too_many("A list")
    return list(value)
