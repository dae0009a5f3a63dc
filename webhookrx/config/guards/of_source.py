"""
The options of a guard as a source of the collector form has them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from webhookrx.config.files import absolute
from webhookrx.config.guard_options import GUARD_OPTIONS, guard_rows
from webhookrx.config.guards.context import GuardContext
from webhookrx.config.option_reader import OptionReader
from webhookrx.config.options import parse_flag
from webhookrx.config.source_tokens import SourceTokens
from webhookrx.diagnostics import ERROR, Diagnostic, quoted
from webhookrx.guard.sender_fit import URL_NOT_SIGNED, may_sign_url
from webhookrx.guard.words import NEED_SENDER, GuardWords
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
    if not given.has_names and not any(options.raw(option.name) for option in GUARD_OPTIONS):
        _show(options, None)
        return SourceGuard(None)
    if _holds_secrets(options):
        return SourceGuard(None)
    # It takes megabytes of memory, which a receiver without guards does not need.
    from webhookrx.config.guards.resolve import resolve_guard

    words = _words(options)
    read = resolve_guard(words, given.tokens, given.has_names, context)
    for found in read.found:
        _note(options, found)
    _show(options, read.guard)
    watched = {} if read.guard is None else {**given.watched, **read.watched}
    return SourceGuard(read.guard, tuple(_OPTIONS[name] for name in words.without_sender), watched)


def _holds_secrets(options: OptionReader) -> bool:
    """Note values that may be secrets where names of files are wanted. They are not quoted."""
    values = options.raw("secrets-file")
    wrong = [each for each in values if not each.text.startswith("/") and not os.path.lexists(absolute(each.text))]
    for value in wrong:
        sentence = "There is no such file; it takes the name of a file with secrets, and never a secret itself."
        options.problems.error(sentence, value.origin)
    return bool(wrong)


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
    rows = guard_rows(GuardSettings() if guard is None else guard)
    rows["secrets-file"] = files or "none"
    for name, value in rows.items():
        options.show(name, value)


def check_misplaced(guards: Sequence[tuple[OptionReader, SourceGuard]]) -> None:
    """
    Note every option about a sender that no source with a sender has. One at the top of a file may be the default of
    some source, and without effect for others. So is C{public_url} where no sender signs its URL.
    """
    signing = {id(options.raw("public-url")) for options, guard in guards if _signs_url(guard)}
    for options, guard in guards:
        values = options.raw("public-url")
        if values and _has_sender(guard) and id(values) not in signing:
            options.problems.error(URL_NOT_SIGNED, values[0].origin)
    if not any(guard.misplaced for _, guard in guards):
        return
    about = [_OPTIONS[name] for name in NEED_SENDER]
    used = {id(options.raw(name)) for options, guard in guards for name in about if _has_sender(guard)}
    for options, guard in guards:
        for name in guard.misplaced:
            values = options.raw(name)
            if values and id(values) not in used:
                options.problems.error("It is about a sender, and there is none: give sender, too.", values[0].origin)


def _has_sender(guard: SourceGuard) -> bool:
    return guard.guard is not None and guard.guard.sender is not None


def _signs_url(guard: SourceGuard) -> bool:
    sender = None if guard.guard is None else guard.guard.sender
    return sender is not None and may_sign_url(sender)
