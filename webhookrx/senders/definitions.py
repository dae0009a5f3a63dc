"""
Data files of senders: those of the package, read and checked, and an operator's own, which take their place by id.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

from webhookrx.diagnostics import Diagnostic, diagnose
from webhookrx.senders.compiled import BadDefinition, compile_sender
from webhookrx.senders.definition import SenderDefinition
from webhookrx.typed_yaml import Reading, read_typed


def read_definition(data: bytes, file: str) -> tuple[SenderDefinition | None, list[Diagnostic]]:
    """
    Read a data file.

    @param file: its name, for what is wrong.
    @return: the definition, None when it can't be used; and all that is wrong with the file.
    """
    reading = read_typed(data, file, SenderDefinition)
    return _checked(reading)


def all_definitions(
    builtin: Iterable[SenderDefinition], own: Iterable[tuple[str, bytes]]
) -> tuple[list[SenderDefinition], list[Diagnostic]]:
    """
    Join an operator's data files with the definitions of the package. A definition of the operator replaces one of the
    same id.

    @param own: name and bytes of each file.
    @return: the usable definitions, by id; and all that is wrong with the files. Of two with one id, the second file
        has the error.
    """
    definitions = {definition.id: definition for definition in builtin}
    homes: dict[str, str] = {}
    diagnostics: list[Diagnostic] = []
    for file, data in sorted(own):
        reading = read_typed(data, file, SenderDefinition)
        definition, found = _checked(reading)
        diagnostics += found
        if definition is None:
            continue
        home = homes.setdefault(definition.id, file)
        if home == file:
            definitions[definition.id] = definition
        else:
            sentence = f"{home} has a definition with the id {definition.id!r} too."
            diagnostics += reading.located([diagnose("entry-twice", ("id",), sentence)])
    return [definitions[name] for name in sorted(definitions)], diagnostics


def _checked(reading: Reading[SenderDefinition]) -> tuple[SenderDefinition | None, list[Diagnostic]]:
    definition = reading.value
    if definition is None:
        return None, reading.diagnostics
    try:
        compile_sender(definition)
    except BadDefinition as error:
        return None, [*reading.diagnostics, *reading.located(error.problems)]
    return definition, reading.diagnostics


@lru_cache(maxsize=1)
def builtin_definitions() -> tuple[SenderDefinition, ...]:
    """
    Return the definitions that come with the package, by id. They are read once.

    @raise ValueError: one of the files can't be used, which is a mistake in the package.
    """
    definitions = []
    for name, data in builtin_files():
        definition, diagnostics = read_definition(data, name)
        if definition is None:
            raise ValueError("; ".join(map(str, diagnostics)))
        definitions.append(definition)
    return tuple(sorted(definitions, key=lambda definition: definition.id))


def builtin_names() -> list[str]:
    """Return the ids of the definitions that come with the package; none of them is read."""
    return [name.removesuffix(".yaml") for name in _builtin_file_names()]


@lru_cache(maxsize=128)
def builtin_definition(name: str) -> SenderDefinition | None:
    """
    Return the definition of an id that comes with the package; None if there is none. It is read once, and no other is.

    @raise ValueError: its file can't be used, which is a mistake in the package.
    """
    if name not in builtin_names():
        return None
    data = files("webhookrx.senders").joinpath("data", f"{name}.yaml").read_bytes()
    definition, diagnostics = read_definition(data, f"{name}.yaml")
    if definition is None:
        raise ValueError("; ".join(map(str, diagnostics)))
    return definition


def builtin_files() -> list[tuple[str, bytes]]:
    """Return name and bytes of each data file of the package, by name."""
    directory = files("webhookrx.senders").joinpath("data")
    return [(name, directory.joinpath(name).read_bytes()) for name in _builtin_file_names()]


def _builtin_file_names() -> list[str]:
    directory = files("webhookrx.senders").joinpath("data")
    names = [entry.name for entry in directory.iterdir()] if directory.is_dir() else []
    return sorted(name for name in names if name.endswith(".yaml"))
