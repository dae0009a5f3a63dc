"""
JSON files as lookup tables of programs. A program that is compiled asks for them; no message ever reads one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from webhookrx.intake.json_body import PayloadError, parse_strict_json
from webhookrx.router.expressions.function import Function
from webhookrx.router.expressions.run import OperationError, Run
from webhookrx.router.expressions.values import Rows, Table

Files: TypeAlias = Callable[[str], Any]
"""Returns the value of a JSON file by its absolute path; raises L{OperationError} for an unknown path."""


def tables_of(contents: Mapping[str, bytes]) -> Files:
    """
    Return the values of JSON files by path; each file is parsed once.

    @param contents: of the files, by path.
    """
    values: dict[str, Any] = {}

    def table(path: str) -> Any:
        if path not in values:
            if path not in contents:
                raise OperationError("The file was not read with the rules.")
            values[path] = table_of(contents[path])
        return values[path]

    return table


def table_of(content: bytes) -> Any:
    """
    Return the value of a JSON file, for many messages to share.

    @raise OperationError: the file is not JSON, or neither an object nor a list; one sentence about the file.
    """
    try:
        value = parse_strict_json(content)
    except PayloadError as error:
        raise OperationError(str(error).replace("The body", "The file")) from None
    if type(value) not in (dict, list):
        raise OperationError("The file holds neither an object nor a list.")
    return _shared(value)


def _shared(value: Any) -> Any:
    if type(value) is dict:
        return Table((name, _shared(member)) for name, member in value.items())
    return Rows(map(_shared, value)) if type(value) is list else value


def no_files(path: str) -> Any:
    """Return an empty object, for checks of a program without its files."""
    return Table()


def _cache_json_file(constants: tuple[Any, ...], files: Files, **options: Any) -> Callable[[Run], Any]:
    path = constants[0]
    if not isinstance(path, str) or not path.startswith("/"):
        raise OperationError("The path of a file is absolute: it begins with a slash.")
    value = files(path)
    return lambda _: value


FILE_FUNCTIONS: Final = (
    Function(
        "cache_json_file",
        '"path"',
        'The contents of a JSON file on the router, an object or a list: `cache_json_file("/etc/teams.json")[$HOST]`. '
        "The router reads it with the rules, and again when it changes.",
        _cache_json_file,
        constants=range(1),
    ),
)
