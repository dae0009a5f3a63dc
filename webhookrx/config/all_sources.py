"""
All sources of a configuration: each made on its own, then judged together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime

from webhookrx.config.files import Snapshot
from webhookrx.config.problems import Place, Problems
from webhookrx.config.shared_endpoints import check_shared_patterns, share_endpoints
from webhookrx.config.source_endpoints import PlacedListener, check_tokens, source_listeners
from webhookrx.config.source_settings import (
    DEFAULTS,
    PlacedPattern,
    check_parsing_options,
    path_patterns,
    source_options,
)
from webhookrx.config.tls_files import check_tls_files
from webhookrx.config.values import Effective, Values
from webhookrx.config.written import ConfigFile, Entry, Layer
from webhookrx.diagnostics import ERROR, quoted
from webhookrx.settings import TLS, Source

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class _Draft:
    """A source on its own, not yet judged beside the others."""

    values: Values
    patterns: tuple[PlacedPattern, ...]
    source: Source
    listeners: list[PlacedListener]


def resolve_sources(
    command_line: Layer,
    file: ConfigFile,
    problems: Problems,
    *,
    now: datetime,
    plaintext_token: bool,
    tls_files: Snapshot,
) -> tuple[tuple[Source, ...], list[Effective]]:
    """
    Return the sources in the order of the file, and each option of each with its origin. What is wrong is noted.

    @param plaintext_token: tokens may come over plain HTTP from other machines.
    @param tls_files: reads keys and certificates.
    """
    drafts = [_draft(values) for values in _all_values(command_line, file, problems)]
    check_parsing_options([(draft.source, draft.values) for draft in drafts], problems)
    for draft in drafts:
        check_tokens(draft.values, draft.source, draft.listeners, allowed=plaintext_token)
    listeners = share_endpoints([each for draft in drafts for each in draft.listeners], problems)
    patterns = {draft.source.name: draft.patterns for draft in drafts}
    slow = {draft.source.name for draft in drafts if draft.values.flag("allow-slow-patterns", False)}
    check_shared_patterns(patterns, slow, listeners, problems)
    _check_files(listeners, problems, now, tls_files)
    sources = tuple(
        replace(
            draft.source,
            listeners=tuple(each.listener for each in listeners if each.source == draft.source.name),
        )
        for draft in drafts
    )
    return sources, [effective for draft in drafts for effective in draft.values.effective]


def _draft(values: Values) -> _Draft:
    listeners = source_listeners(values)
    patterns = path_patterns(values)
    return _Draft(values, patterns, source_options(values, patterns), listeners)


def _all_values(command_line: Layer, file: ConfigFile, problems: Problems) -> list[Values]:
    """Return the options of each source, under a name that no other has."""
    if file.entries is None:
        name = DEFAULTS.name
        if file.name is not None:
            name = _name(file.name.text, Place("name", file.name.where), problems)
        return [Values((command_line, file.values), problems, name, Place("", ""))]
    found: dict[str, Values] = {}
    for number, entry in enumerate(file.entries, 1):
        values = Values((command_line, entry.values, file.values), problems, "", entry.place)
        name = _entry_name(entry, values, number, problems)
        if name in found:
            place = _name_place(entry)
            problems.error(f"Another source has the name {quoted(name)} already.", place)
            name = f"{name}-{number}"
        values.section = name
        found[name] = values
    return list(found.values())


def _entry_name(entry: Entry, values: Values, number: int, problems: Problems) -> str:
    if entry.name is not None:
        return _name(entry.name.text, _name_place(entry), problems)
    written = values.written("source")
    variant = DEFAULTS.source if written is None else written.values[0].text
    return f"{variant}-{number}"


def _name_place(entry: Entry) -> Place:
    return entry.place if entry.name is None else Place(f"{entry.place.option}.name", entry.name.where)


def _name(text: str, place: Place, problems: Problems) -> str:
    if not _NAME.fullmatch(text):
        problems.error(
            f"{quoted(text)} is no name: letters, digits, '.', '_' and '-', 64 at most, a letter or digit first.",
            place,
        )
    return text


def _check_files(listeners: list[PlacedListener], problems: Problems, now: datetime, files: Snapshot) -> None:
    """Look once at the files of each TLS setting, and blame the option that names the file."""
    settings: dict[TLS, PlacedListener] = {}
    for each in listeners:
        if each.listener.tls is not None:
            settings.setdefault(each.listener.tls, each)
    for tls, each in settings.items():
        for found in check_tls_files(tls, now, files):
            place = each.tls_places.get(found.field, each.place)
            note = problems.error if found.severity == ERROR else problems.warn
            note(found.sentence, place)
