"""
The data files of senders, read and checked; and an operator's own joined with those of the package.
"""

from __future__ import annotations

from collections.abc import Iterable

from webhookrx.diagnostics import ERROR, Finding, Position
from webhookrx.senders.compiled import BadEntry, Problem, compile_entry
from webhookrx.senders.entry import Entry
from webhookrx.typed_yaml import Reading, field_text, read_typed


def read_entry(data: bytes, file: str) -> tuple[Entry | None, list[Finding]]:
    """
    Read a data file.

    @param file: its name, for findings.
    @return: the entry, None when it can't be used; and all that is wrong with the file.
    """
    reading = read_typed(data, file, Entry)
    return _checked(reading, file)


def all_entries(builtin: Iterable[Entry], own: Iterable[tuple[str, bytes]]) -> tuple[list[Entry], list[Finding]]:
    """
    Join an operator's data files with entries of the package. An entry of the operator's takes the place of one with
    the same id.

    @param own: name and bytes of each file.
    @return: the entries that can be used, by id; and all that is wrong with the files. Of two with one id, the second
        file has the error.
    """
    entries = {entry.id: entry for entry in builtin}
    homes: dict[str, str] = {}
    findings: list[Finding] = []
    for file, data in sorted(own):
        reading = read_typed(data, file, Entry)
        entry, found = _checked(reading, file)
        findings += found
        if entry is None:
            continue
        home = homes.setdefault(entry.id, file)
        if home == file:
            entries[entry.id] = entry
        else:
            sentence = f"{home} has an entry with the id {entry.id!r} too."
            findings.append(_finding(Problem("entry-twice", ("id",), sentence), reading, file))
    return [entries[name] for name in sorted(entries)], findings


def _checked(reading: Reading[Entry], file: str) -> tuple[Entry | None, list[Finding]]:
    entry = reading.value
    if entry is None:
        return None, reading.findings
    try:
        compile_entry(entry)
    except BadEntry as error:
        return None, [*reading.findings, *(_finding(problem, reading, file) for problem in error.problems)]
    return entry, reading.findings


def _finding(problem: Problem, reading: Reading[Entry], file: str) -> Finding:
    where = _position(problem, reading)
    return Finding(problem.code, ERROR, file, where.line, where.column, field_text(problem.path), problem.sentence)


def _position(problem: Problem, reading: Reading[Entry]) -> Position:
    if problem.about_name:
        return reading.key_position(problem.path)
    if not problem.line:
        return reading.position(problem.path)
    return reading.text_position(problem.path, problem.line, problem.column)
