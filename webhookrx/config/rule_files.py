"""
The keys, certificates and JSON files that connector rules name, and the last good set of connectors.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from webhookrx.config import pem
from webhookrx.config.files import LAST_SET, Snapshot, read_file, read_state
from webhookrx.diagnostics import Diagnostic, diagnose, quoted_short
from webhookrx.errors import ConfigError
from webhookrx.router.expressions import OperationError, table_of
from webhookrx.router.rules.router import Connector, connector_of
from webhookrx.router.steps.step_compiler import json_files
from webhookrx.senders.definition import SenderDefinition
from webhookrx.settings import TLS

if TYPE_CHECKING:
    from webhookrx.router.rules.rules_file import RulesReading

_VERSION: Final = 1
"""Of the format of the last good set."""


def check_rule_files(
    reading: RulesReading, connectors: Sequence[Connector], now: datetime, files: Snapshot
) -> list[Diagnostic]:
    """
    Check the keys and certificates of connectors; mistakes have the place of their rule in the rules file.

    @param connectors: those of one router, by the rules of that file.
    @param now: the time with its zone, for the dates of certificates.
    @param files: reads keys and certificates.
    """
    # Checking an RSA key takes up to a second, and all connectors may have the same.
    checked: dict[TLS, list[Diagnostic]] = {}
    diagnostics: list[Diagnostic] = []
    for connector in connectors:
        tls = tls_of(connector)
        if tls is None:
            continue
        if tls not in checked:
            checked[tls] = pem.check_tls_files(tls, now, files)
        diagnostics += (reading.in_rule(connector.rule, found) for found in checked[tls])
    return diagnostics


def read_json_files(
    reading: RulesReading, connectors: Sequence[Connector]
) -> tuple[dict[str, bytes], list[Diagnostic]]:
    """
    Return the content of the JSON files that expressions of connectors name, by path, and what is wrong with others, at
    the place of the step in the rules file.

    @param connectors: those of one router, by the rules of that file.
    """
    contents, unusable = json_contents(connectors)
    diagnostics: list[Diagnostic] = []
    for connector in connectors if unusable else ():
        for number, step in enumerate(connector.preprocessing.steps):
            member = ("preprocessing", "steps", number, "expression")
            diagnostics += (
                reading.in_rule(connector.rule, msgspec.structs.replace(unusable[path], path=member))
                for path in json_files(step)
                if path in unusable
            )
    return contents, diagnostics


def json_contents(connectors: Iterable[Connector]) -> tuple[dict[str, bytes], dict[str, Diagnostic]]:
    """
    Return the content of the JSON files that expressions of connectors name, and what is wrong with the others, both by
    path.
    """
    contents: dict[str, bytes] = {}
    unusable: dict[str, Diagnostic] = {}
    for path in dict.fromkeys(path for connector in connectors for path in json_files_of(connector)):
        problem = _read_json_file(path, contents)
        if problem is not None:
            unusable[path] = problem
    return contents, unusable


def json_files_of(connector: Connector) -> tuple[str, ...]:
    """Return the paths of the JSON files that expressions of a connector name."""
    return tuple(dict.fromkeys(path for step in connector.preprocessing.steps for path in json_files(step)))


def _read_json_file(path: str, contents: dict[str, bytes]) -> Diagnostic | None:
    """Add the content of a file, or return what is wrong with it."""
    try:
        content = read_file(path)[0]
        table_of(content)
    except ConfigError as error:
        code = "json-file-unusable" if os.path.lexists(path) else "json-file-missing"
        return diagnose(code, (), error.problem, named=path)
    except OperationError as error:
        sentence = f"{quoted_short(path)} can't be used: {error.problem}"
        return diagnose("json-file-unusable", (), sentence, named=path)
    contents[path] = content
    return None


def tls_of(connector: Connector) -> TLS | None:
    """Return the key and certificate of a connector; None for plain HTTP."""
    if connector.protocol != "HTTPS":
        return None
    ca_file = connector.ca_file or None
    return TLS(connector.key_file, connector.cert_file, peer_verify=ca_file is not None, ca_file=ca_file)


class SavedSet(msgspec.Struct, frozen=True):
    """
    The last good set as a file: a rules file, and which of its rules had connectors here. It holds no keys.

    @ivar router: the name of the router; C{labels} are its labels.
    @ivar rules: the names of the rules with connectors.
    @ivar file: the name of the rules file; C{text} is its content.
    @ivar senders: name and text of each data file of the operator's.
    @ivar allow_slow_patterns: see the option of this name.
    """

    router: str
    labels: Mapping[str, str]
    rules: tuple[str, ...]
    file: str
    text: str
    senders: tuple[tuple[str, str], ...] = ()
    allow_slow_patterns: bool = False
    version: int = _VERSION

    def encode(self) -> bytes:
        """Return the content of the file."""
        return msgspec.json.format(msgspec.json.encode(self)) + b"\n"


class LastSet(msgspec.Struct, frozen=True):
    """
    The last good set of connectors.

    @ivar router: the name of the router; C{labels} are its labels.
    @ivar senders: the sender definitions of the operator.
    """

    router: str
    labels: Mapping[str, str]
    connectors: Sequence[Connector]
    senders: tuple[SenderDefinition, ...]


def read_last_set(directory: str) -> LastSet | None:
    """
    Return the last good set that a state directory holds; None without one.

    @raise ConfigError: it can't be used.
    """
    content = read_state(directory, LAST_SET)
    return None if content is None else _decoded(content)


def _decoded(content: bytes) -> LastSet:
    try:
        kept = msgspec.json.decode(content, type=SavedSet)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{LAST_SET} is damaged: {error}.") from None
    if kept.version != _VERSION:
        raise ConfigError(f"{LAST_SET} is of version {kept.version}, which is not known here.")
    # YAML takes a megabyte of memory, which a router without data files and rules does not need.
    from webhookrx.router.rules.rules_file import read_rules
    from webhookrx.senders.definitions import all_definitions

    reading = read_rules(kept.text.encode(), kept.file, allow_slow_patterns=kept.allow_slow_patterns)
    rules = {rule.name: rule for rule in reading.rules}
    if not reading.valid or not rules.keys() >= set(kept.rules):
        raise ConfigError(f"{LAST_SET} has rules that are not good here.")
    connectors = [connector_of(kept.router, rules[name]) for name in kept.rules]
    senders, _ = all_definitions((), [(file, text.encode()) for file, text in kept.senders])
    return LastSet(kept.router, kept.labels, connectors, tuple(senders))
