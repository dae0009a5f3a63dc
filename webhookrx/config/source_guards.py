"""
The options of a guard as a source of the collector form has them, and those of the service that guards share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from webhookrx.config.files import absolute, read_file, signature_of
from webhookrx.config.guard_files import NetworkList, read_network_list
from webhookrx.config.guard_options import GUARD_OPTIONS
from webhookrx.config.guard_report import guard_rows
from webhookrx.config.guard_secrets import KnownKeys
from webhookrx.config.guards import GuardContext, resolve_guard
from webhookrx.config.option_reader import OptionReader
from webhookrx.config.options import parse_flag
from webhookrx.config.source_tokens import SourceTokens
from webhookrx.diagnostics import ERROR, Diagnostic, quoted
from webhookrx.guard.words import NEED_SENDER, GuardWords
from webhookrx.intake.networks import LIST_NAME
from webhookrx.settings import GuardSettings, Signature

_OPTIONS = {option.yaml_keys[0]: option.name for option in GUARD_OPTIONS}
"""The name of each option, by its name in a rule."""


class SourceGuard(NamedTuple):
    """
    The guard of a source, and what is to be said of it beside other sources.

    @ivar guard: None for a plain source.
    @ivar misplaced: options that it has although there is no sender that they could be about.
    @ivar watched: the state of each of its files from just before it was read, by absolute path.
    """

    guard: GuardSettings | None
    misplaced: tuple[str, ...] = ()
    watched: Mapping[str, Signature] = MappingProxyType({})


def read_guard(options: OptionReader, given: SourceTokens, context: GuardContext) -> SourceGuard:
    """
    Return the guard of a source. Mistakes are noted, but for misplaced options.

    @param given: its tokens.
    """
    words = _words(options)
    if not given.has_names and not any(options.raw(option.name) for option in GUARD_OPTIONS):
        _show(options, None)
        return SourceGuard(None)
    read = resolve_guard(words, given.tokens, given.has_names, context)
    for found in read.found:
        _note(options, found)
    _show(options, read.guard)
    watched = {} if read.guard is None else {**given.watched, **read.watched}
    return SourceGuard(read.guard, tuple(_OPTIONS[name] for name in words.without_sender), watched)


def _words(options: OptionReader) -> GuardWords:
    return GuardWords(
        sender=options.value("sender") or "",
        secrets_file=tuple(absolute(value.text) for value in options.raw("secrets-file")),
        verify=options.value("verify") or "",
        handshake=options.parsed("handshake", parse_flag),
        split=options.value("split") or "",
        idempotency=options.value("idempotency") or "",
        quota=_texts(options, "quota"),
        allow=_texts(options, "allow"),
        allow_clients=_texts(options, "allow-client"),
        has_tokens=bool(options.raw("auth-token") or options.raw("auth-token-file")),
        auth_token_in=options.value("auth-token-in") or "",
        public_url=options.value("public-url") or "",
        sender_settings=_settings(options),
    )


def _texts(options: OptionReader, name: str) -> tuple[str, ...]:
    return tuple(value.text for value in options.raw(name))


def _settings(options: OptionReader) -> Mapping[str, tuple[str, ...]]:
    settings: dict[str, tuple[str, ...]] = {}
    for value in options.raw("sender-setting"):
        name, equals, text = value.text.partition("=")
        if equals and name:
            settings[name] = (*settings.get(name, ()), text)
        else:
            options.problems.error(f"{quoted(value.text)} is not of the form NAME=VALUE.", value.origin)
    return settings


def _note(options: OptionReader, found: Diagnostic) -> None:
    """Note what is wrong, at the value that it is about."""
    option, *more = found.path
    raw = options.raw(_OPTIONS[str(option)])
    index = more[0] if more and isinstance(more[0], int) and more[0] < len(raw) else 0
    origin = raw[index].origin if raw else options.origin(_OPTIONS[str(option)])
    note = options.problems.error if found.severity == ERROR else options.problems.warn
    note(found.sentence, origin)


def _show(options: OptionReader, guard: GuardSettings | None) -> None:
    """Add the options to the effective settings; secrets and tokens are not among them."""
    files = " ".join(absolute(value.text) for value in options.raw("secrets-file"))
    options.show("secrets-file", files or "none")
    for name, value in guard_rows(GuardSettings() if guard is None else guard).items():
        options.show(name, value)


class NetworkLists(NamedTuple):
    """
    The lists of networks of the service.

    @ivar networks: those of each list, by its name.
    @ivar watched: the state of each file from just before it was read, by absolute path.
    """

    networks: Mapping[str, tuple[str, ...]]
    watched: Mapping[str, Signature]


def read_network_lists(options: OptionReader) -> NetworkLists:
    """Return the lists of networks of the service. Mistakes are noted."""
    listed: dict[str, NetworkList] = {}
    networks: dict[str, tuple[str, ...]] = {}
    watched: dict[str, Signature] = {}
    for value in options.raw("network"):
        name, equals, where = value.text.partition("=")
        if not equals or not where:
            options.problems.error(f"{quoted(value.text)} is not a list of networks; write NAME=FILE.", value.origin)
        elif not LIST_NAME.fullmatch(name):
            sentence = f"{quoted(name)} is not the name of a list: it begins with a letter, and has up to 64 letters, "
            options.problems.error(f"{sentence}digits, '.', '_' and '-'.", value.origin)
        elif name in listed:
            options.problems.error(f"The list {quoted(name)} is given twice.", value.origin)
        else:
            found = listed[name] = _network_list(name, where)
            watched[found.file] = signature_of(found.file)
            networks[name] = options.problems.attempt(value.origin, read_network_list, found) or ()
    options.show("network", " ".join(f"{each.name}={each.file}" for each in listed.values()) or "none")
    return NetworkLists(networks, watched)


def read_keys(options: OptionReader) -> KnownKeys:
    """Return the public keys of senders that the service knows. Mistakes are noted."""
    options.paths("signing-certs")
    found = [
        options.problems.attempt(each.origin, read_file, absolute(each.text)) for each in options.raw("signing-certs")
    ]
    return KnownKeys(tuple(each[0] for each in found if each is not None), options.flag("fetch-keys", False))


def _network_list(name: str, where: str) -> NetworkList:
    file, hash_sign, at = where.rpartition("#")
    if hash_sign and (at == "" or at.startswith("/")):
        return NetworkList(name, absolute(file), at)
    return NetworkList(name, absolute(where))


def check_misplaced(guards: Sequence[tuple[OptionReader, SourceGuard]]) -> None:
    """
    Note every option about a sender that no source with a sender has. One at the top of a file may be the default of
    some source, and without effect for others.
    """
    used = {id(options.raw(name)) for options, guard in guards for name in _ABOUT_SENDERS if _has_sender(guard)}
    for options, guard in guards:
        for name in guard.misplaced:
            values = options.raw(name)
            if values and id(values) not in used:
                options.problems.error("It is about a sender, and there is none: give sender, too.", values[0].origin)


_ABOUT_SENDERS = tuple(_OPTIONS[name] for name in NEED_SENDER)


def _has_sender(guard: SourceGuard) -> bool:
    return guard.guard is not None and guard.guard.sender is not None
