"""
What a function of the language is: its arguments, its options, and what it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from webhookrx.expressions.limits import LONG
from webhookrx.expressions.mistakes import Mistake
from webhookrx.expressions.run import Run
from webhookrx.expressions.values import long_text

Apply: TypeAlias = Callable[..., Any]
"""Takes the L{Run}, a value for each argument, and options by name; raises L{Mistake}."""

MANY: Final = 16
"""Arguments that a function takes at most which takes any number."""

_NO_OPTIONS: Final[Mapping[str, type]] = MappingProxyType({})


class Function(NamedTuple):
    """
    A function.

    @ivar usage: its arguments and options, as people write them.
    @ivar summary: what it returns, in one sentence.
    @ivar apply: does it. For one with L{constants} it makes what does it: it takes the constants and the options.
    @ivar least: number of arguments.
    @ivar most: number of arguments.
    @ivar options: names of options, and the type of each. They are written as constants.
    @ivar constants: which arguments, counted from 0, are texts or lists of texts written as constants.
    """

    name: str
    usage: str
    summary: str
    apply: Apply
    least: int = 1
    most: int = 1
    options: Mapping[str, type] = _NO_OPTIONS
    constants: range = range(0)


def text_argument(run: Run, value: Any) -> str:
    """
    Return an argument that is a text.

    @raise Mistake: it is none, or too long.
    """
    if type(value) is not str:
        raise Mistake("The argument is no text; string() makes one.")
    return long_text(run, value) if len(value) > LONG else value


def text_list(run: Run, value: Any) -> list[str]:
    """
    Return an argument that is a text or a list of texts, as a list.

    @raise Mistake: it is neither, or too long.
    """
    if type(value) is not list:
        return [text_argument(run, value)]
    if len(value) > run.limits.elements:
        raise Mistake(f"A list has more than {run.limits.elements} elements.")
    return [text_argument(run, element) for element in value]
