"""
The table of all functions, and their calls: checked, and compiled to closures.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from webhookrx.diagnostics import Position
from webhookrx.router.expressions.csv_functions import CSV_FUNCTIONS
from webhookrx.router.expressions.data_functions import ADDRESS_FUNCTIONS, DATA_FUNCTIONS
from webhookrx.router.expressions.event_functions import EVENT_FUNCTIONS
from webhookrx.router.expressions.field_functions import FIELD_FUNCTIONS, FieldCall
from webhookrx.router.expressions.function import MANY, Function
from webhookrx.router.expressions.json_files import FILE_FUNCTIONS
from webhookrx.router.expressions.kv_functions import KV_FUNCTIONS
from webhookrx.router.expressions.paths import Evaluate
from webhookrx.router.expressions.patterns import PATTERN_FUNCTIONS
from webhookrx.router.expressions.program_tree import Call, Expression, ListOf, Literal, start
from webhookrx.router.expressions.run import ExpressionError, OperationError, Run, located
from webhookrx.router.expressions.text_functions import TEXT_FUNCTIONS
from webhookrx.router.expressions.time_functions import TIME_FUNCTIONS
from webhookrx.work import Work

if TYPE_CHECKING:
    from webhookrx.router.expressions.compiler import Compiler
    from webhookrx.router.expressions.run import RunLimits

FUNCTIONS: Final[dict[str, Function]] = {
    function.name: function
    for functions in (
        FIELD_FUNCTIONS,
        DATA_FUNCTIONS,
        TEXT_FUNCTIONS,
        PATTERN_FUNCTIONS,
        KV_FUNCTIONS,
        CSV_FUNCTIONS,
        EVENT_FUNCTIONS,
        TIME_FUNCTIONS,
        ADDRESS_FUNCTIONS,
        FILE_FUNCTIONS,
    )
    for function in functions
}

FOREIGN: Final = {
    "rename": "Write meta.new = move(meta.old).",
    "replace": "Write str_replace().",
    "contains": "Write includes().",
    "strip": "Write str_strip().",
    "trim": "Write str_strip().",
    "split": "Write parse_csv(), with delimiter=.",
    "length": "Write len().",
    "now": 'Write get_timestamp(stamp="recvd"), when the message came.',
    "uuid7": "Write uuid().",
    "set_pri": "Set log.severity_number and log.severity_text.",
    "update_metric": "It is left out; a Probe step counts messages.",
    "metrics_labels": "It is left out; a Probe step counts messages.",
    "dedup_metrics_labels": "It is left out; a Probe step counts messages.",
    "load_vars": "It is left out; set the variables.",
    "has_sdata": "Messages of a router have no structured data.",
    "get_sdata": "Messages of a router have no structured data.",
    "failure_info": "A step that fails is counted, and may be noted: on_error: tag.",
    "failure_info_enable": "A step that fails is counted, and may be noted: on_error: tag.",
    "format_cef": "It is left out; write texts with +.",
    "format_leef": "It is left out; write texts with +.",
    "format_xml": "It is left out; write texts with +.",
    "parse_windows_eventlog_xml": "It is left out; parse_xml() reads any XML.",
    "json_object": 'Write json() or an object: {"name": value}.',
}
"""Names that people try, most of them FilterX's, and the way to do it here."""


def function_table() -> str:
    """Return the table of functions for the docs."""
    lines = ["| function | what it returns |", "|---|---|"]
    for function in FUNCTIONS.values():
        usage = f"{function.name}({function.usage})".replace("|", "\\|")
        lines.append(f"| `{usage}` | {function.summary} |")
    return "".join(f"{line}\n" for line in lines)


_OF_FIELDS: Final = frozenset(function.name for function in FIELD_FUNCTIONS)
_ONLY_FIELDS: Final = ("unset", "move")
_TYPE_WORDS: Final[dict[type, str]] = {bool: "true or false", str: "a text", tuple: "a list of constants"}
_NO_CONSTANT: Final = object()


def compiled_call(call: Call, compiler: Compiler) -> Evaluate:
    """
    Return a function that evaluates a call.

    @raise ExpressionError: there is no such function, or it takes other arguments.
    """
    function = _function(call)
    _check_count(function, call)
    if function.name in _OF_FIELDS:
        return _of_fields(function, call, compiler)
    options = {name: _option(function, name, position, given) for name, position, given in call.options}
    worked_out = {name: compiler.value(given) for name, _, given in call.options if function.options[name] is object}
    constants = tuple(_constant_argument(function, call.arguments[index]) for index in _constants(function, call))
    try:
        if function.name == "cache_json_file":
            apply: Callable[..., Any] = function.apply(constants, compiler.files, **options)
        elif function.constants:
            apply = function.apply(constants, **options)
        else:
            apply = partial(function.apply, **options) if options else function.apply
    except OperationError as error:
        place = call.arguments[function.constants[0]] if function.constants else call
        raise located(start(place), error) from None
    if function.folds and all(isinstance(each, Literal) for each in call.arguments):
        return _folded(apply, call, compiler.limits)
    rest = [compiler.value(each) for index, each in enumerate(call.arguments) if index not in function.constants]
    return _applied(apply, rest, worked_out, call.position)


def _folded(apply: Callable[..., Any], call: Call, limits: RunLimits) -> Evaluate:
    run = Run({}, limits, Work())
    try:
        value = apply(run, *(each.value for each in call.arguments if isinstance(each, Literal)))
    except OperationError as error:
        raise located(start(call.arguments[0]), error) from None
    return lambda run: value


def has_patterns(call: Call) -> bool:
    """Tell whether a call has regular expressions or formats, which are compiled with it."""
    return call.name in FUNCTIONS and bool(FUNCTIONS[call.name].constants)


def _function(call: Call) -> Function:
    function = FUNCTIONS.get(call.name)
    if function is not None:
        return function
    name = call.name[:40]
    hint = FOREIGN.get(name)
    if hint is None:
        close = get_close_matches(name.lower(), FUNCTIONS, 1)
        hint = f"Did you mean {close[0]}()?" if close else ""
    raise ExpressionError(f"There is no function '{name}'. {hint}".rstrip(), call.position)


def _check_count(function: Function, call: Call) -> None:
    if function.least <= len(call.arguments) <= function.most:
        return
    if function.most == MANY:
        wanted = f"{function.least} to {MANY}" if function.least != 1 else f"up to {MANY}"
    elif function.least == function.most:
        wanted = str(function.least)
    else:
        wanted = f"{function.least} or {function.most}"
    arguments = "argument" if wanted == "1" else "arguments"
    problem = f"{function.name}({function.usage}) takes {wanted} {arguments}, not {len(call.arguments)}."
    raise ExpressionError(problem, call.position)


def _constants(function: Function, call: Call) -> list[int]:
    return [index for index in function.constants if index < len(call.arguments)]


def _constant(expression: Expression) -> Any:
    """Return the value of a constant, a list as a tuple; C{_NO_CONSTANT} for any other expression."""
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, ListOf) and all(isinstance(each, Literal) for each in expression.elements):
        return tuple(each.value for each in expression.elements if isinstance(each, Literal))
    return _NO_CONSTANT


def _constant_argument(function: Function, given: Expression) -> Any:
    constant = _constant(given)
    if type(constant) is str or (type(constant) is tuple and constant and {type(each) for each in constant} == {str}):
        return constant
    raise ExpressionError(f"{function.name}() takes a text here that is written in the program.", start(given))


def _option(function: Function, name: str, position: Position, given: Expression) -> Any:
    wanted = function.options.get(name)
    if wanted is None:
        there = f"it has {', '.join(function.options)}" if function.options else "it has none"
        raise ExpressionError(f"{function.name}() has no option '{name[:40]}'; {there}.", position)
    if wanted is dict or wanted is object:
        return None
    constant = _constant(given)
    if type(constant) is not wanted:
        raise ExpressionError(f"The option '{name}' is {_TYPE_WORDS[wanted]}, written in the program.", start(given))
    check = function.checks.get(name)
    if check is not None and isinstance(constant, str) and not check.allows(constant):
        raise ExpressionError(f"The option '{name}' {check.words}.", start(given))
    return constant


def _of_fields(function: Function, call: Call, compiler: Compiler) -> Evaluate:
    fields = []
    for argument in call.arguments:
        field = compiler.path(argument, may_be_missing=function.name == "isset")
        if field is None and function.name in _ONLY_FIELDS:
            raise ExpressionError(f"{function.name}() takes a field, such as log.body.user.", start(argument))
        if field is not None and field.is_root and function.name in _ONLY_FIELDS:
            raise ExpressionError("'log' and 'meta' can't be removed as a whole.", start(argument))
        fields.append(field)
    constants = {name: _option(function, name, position, given) for name, position, given in call.options}
    options = {name: given for name, _, given in call.options}
    made: Evaluate = function.apply(FieldCall(call, tuple(fields), options, constants, compiler.peek, compiler.fresh))
    return made


def _applied(
    apply: Callable[..., Any], arguments: list[Evaluate], options: dict[str, Evaluate], position: Position
) -> Evaluate:
    if len(arguments) == 1 and not options:
        argument = arguments[0]

        def applied_to_one(run: Run) -> Any:
            value = argument(run)
            try:
                return apply(run, value)
            except OperationError as error:
                raise located(position, error) from None

        return applied_to_one

    def applied(run: Run) -> Any:
        values = [argument(run) for argument in arguments]
        given = {name: option(run) for name, option in options.items()}
        try:
            return apply(run, *values, **given)
        except OperationError as error:
            raise located(position, error) from None

    return applied
