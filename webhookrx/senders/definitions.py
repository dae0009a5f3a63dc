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
    @return: the entry, None when it can't be used; and all that is wrong with the file.
    """
    reading = read_typed(data, file, SenderDefinition)
    return _checked(reading)


def all_definitions(
    builtin: Iterable[SenderDefinition], own: Iterable[tuple[str, bytes]]
) -> tuple[list[SenderDefinition], list[Diagnostic]]:
    """
    Join an operator's data files with entries of the package. An entry of the operator's takes the place of one with
    the same id.

    @param own: name and bytes of each file.
    @return: the entries that can be used, by id; and all that is wrong with the files. Of two with one id, the second
        file has the error.
    """
    entries = {entry.id: entry for entry in builtin}
    homes: dict[str, str] = {}
    diagnostics: list[Diagnostic] = []
    for file, data in sorted(own):
        reading = read_typed(data, file, SenderDefinition)
        entry, found = _checked(reading)
        diagnostics += found
        if entry is None:
            continue
        home = homes.setdefault(entry.id, file)
        if home == file:
            entries[entry.id] = entry
        else:
            sentence = f"{home} has an entry with the id {entry.id!r} too."
            diagnostics += reading.located([diagnose("entry-twice", ("id",), sentence)])
    return [entries[name] for name in sorted(entries)], diagnostics


def _checked(reading: Reading[SenderDefinition]) -> tuple[SenderDefinition | None, list[Diagnostic]]:
    entry = reading.value
    if entry is None:
        return None, reading.diagnostics
    try:
        compile_sender(entry)
    except BadDefinition as error:
        return None, [*reading.diagnostics, *reading.located(error.problems)]
    return entry, reading.diagnostics


@lru_cache(maxsize=1)
def builtin_definitions() -> tuple[SenderDefinition, ...]:
    """
    Return the entries that come with the package, by id. They are read once.

    @raise ValueError: one of the files can't be used, which is a mistake in the package.
    """
    entries = []
    for name, data in builtin_files():
        entry, diagnostics = read_definition(data, name)
        if entry is None:
            raise ValueError("; ".join(map(str, diagnostics)))
        entries.append(entry)
    return tuple(sorted(entries, key=lambda entry: entry.id))


def builtin_files() -> list[tuple[str, bytes]]:
    """Return name and bytes of each data file of the package, by name."""
    directory = files("webhookrx.senders").joinpath("data")
    found = [entry for entry in directory.iterdir() if entry.name.endswith(".yaml")] if directory.is_dir() else []
    return [(entry.name, entry.read_bytes()) for entry in sorted(found, key=lambda entry: entry.name)]
