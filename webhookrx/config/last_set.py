"""
The last good set of connectors, as it is kept for the next start.

It is the rules file that they came from, and the names of the rules that this router had connectors of; no key, and no
certificate, is in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from webhookrx.config.state_dir import read_state
from webhookrx.errors import ConfigError
from webhookrx.router.rules.router import Connector, connector_of
from webhookrx.senders.definition import SenderDefinition

LAST_SET: Final = "connectors.json"
"""The name of the file."""

_VERSION: Final = 1


class Kept(msgspec.Struct, frozen=True):
    """
    What is in the file.

    @ivar router: the name of the router.
    @ivar labels: its labels.
    @ivar rules: the names of the rules with connectors.
    @ivar file: what the rules file was called.
    @ivar text: what was in it.
    @ivar senders: name and text of each data file of the operator's.
    @ivar allow_slow_patterns: whether the rules were read so.
    @ivar version: of this format.
    """

    router: str
    labels: Mapping[str, str]
    rules: tuple[str, ...]
    file: str
    text: str
    senders: tuple[tuple[str, str], ...] = ()
    allow_slow_patterns: bool = False
    version: int = _VERSION


class LastSet(msgspec.Struct, frozen=True):
    """
    What was in use.

    @ivar router: the name of the router, C{labels} its labels.
    @ivar senders: kinds of senders that the operator knows.
    """

    router: str
    labels: Mapping[str, str]
    connectors: Sequence[Connector]
    senders: tuple[SenderDefinition, ...]


def encoded(kept: Kept) -> bytes:
    """Return what goes into the file."""
    return msgspec.json.format(msgspec.json.encode(kept)) + b"\n"


def last_set(directory: str) -> LastSet | None:
    """
    Return what the file in a directory holds; None when there is none.

    @raise ConfigError: it can't be used.
    """
    content = read_state(directory, LAST_SET)
    return None if content is None else _decoded(content)


def _decoded(content: bytes) -> LastSet:
    try:
        kept = msgspec.json.decode(content, type=Kept)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{LAST_SET} is damaged: {error}.") from None
    if kept.version != _VERSION:
        raise ConfigError(f"{LAST_SET} is of version {kept.version}, which is not known here.")
    # It needs YAML, which is not small.
    from webhookrx.router.rules.rules_file import read_rules
    from webhookrx.senders.definitions import all_definitions

    reading = read_rules(kept.text.encode(), kept.file, allow_slow_patterns=kept.allow_slow_patterns)
    rules = {rule.name: rule for rule in reading.rules}
    if not reading.valid or not rules.keys() >= set(kept.rules):
        raise ConfigError(f"{LAST_SET} has rules that are not good here.")
    connectors = [connector_of(kept.router, rules[name]) for name in kept.rules]
    senders, _ = all_definitions((), [(file, text.encode()) for file, text in kept.senders])
    return LastSet(kept.router, kept.labels, connectors, tuple(senders))
