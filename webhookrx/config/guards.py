"""
Reads the options that say who may send to a source, and what its sender asks for.
"""

from __future__ import annotations

from webhookrx.config.files import absolute, public_warning, read_file
from webhookrx.config.guard_options import GUARD_OPTIONS
from webhookrx.config.option_reader import OptionReader, RawValue
from webhookrx.config.quota_text import quota_members, quota_of, show_quota
from webhookrx.diagnostics import nearest, quoted
from webhookrx.guard.quota import SourceQuota
from webhookrx.senders.definition import SenderDefinition
from webhookrx.settings import GuardSettings, NetworkList

DEFAULTS = GuardSettings()


def read_guard(options: OptionReader) -> GuardSettings | None:
    """Return the guard of a source; None when it has none of these options. Mistakes are noted."""
    is_guarded = any(options.raw(option.name) for option in GUARD_OPTIONS)
    sender = _sender(options)
    guard = GuardSettings(
        sender,
        secret_files=_secret_files(options),
        verify=options.text("verify", DEFAULTS.verify),
        handshake=options.flag("handshake", sender is not None),
        split=options.text("split", DEFAULTS.split),
        idempotency=_idempotency(options),
        quota=_quota(options),
        allow=_texts(options, "allow"),
        allow_clients=_texts(options, "allow-client"),
        token_place=options.text("auth-token-in", DEFAULTS.token_place),
        public_url=_public_url(options),
        sender_settings=_settings(options),
    )
    return guard if is_guarded else None


def read_networks(options: OptionReader) -> tuple[NetworkList, ...]:
    """Return the lists of networks of the service. Mistakes are noted."""
    found: dict[str, NetworkList] = {}
    for value in options.raw("network"):
        name, equals, where = value.text.partition("=")
        if not equals or not name or not where:
            options.problems.error(f"{quoted(value.text)} is not a list of networks; write NAME=FILE.", value.origin)
        elif name in found:
            options.problems.error(f"The list {quoted(name)} is given twice.", value.origin)
        else:
            file, hash_, at = where.rpartition("#")
            if not hash_ or not (at == "" or at.startswith("/")):
                file, at = where, ""
            found[name] = NetworkList(name, absolute(file), at)
    options.show("network", " ".join(f"{each.name}={each.file}" for each in found.values()) or "none")
    return tuple(found.values())


def _sender(options: OptionReader) -> SenderDefinition | None:
    name = options.value("sender")
    options.show("sender", name or "none")
    if name is None:
        return None
    # It reads the data files of all known senders.
    from webhookrx.senders.definitions import builtin_definitions

    known = {definition.id: definition for definition in builtin_definitions()}
    if name not in known:
        near = nearest(name, known)
        options.error("sender", f"There is no sender {quoted(name)}. {near}".rstrip())
    return known.get(name)


def _secret_files(options: OptionReader) -> tuple[tuple[str, bytes], ...]:
    files = []
    for value in options.raw("secrets-file"):
        path = absolute(value.text)
        content = options.problems.attempt(value.origin, read_file, path)
        if content is not None:
            data, mode = content
            warning = public_warning(path, mode)
            if warning:
                options.problems.warn(warning, value.origin)
            files.append((path, data))
    options.show("secrets-file", " ".join(absolute(value.text) for value in options.raw("secrets-file")) or "none")
    return tuple(files)


def _idempotency(options: OptionReader) -> float | None:
    if options.raw("idempotency"):
        return options.duration("idempotency", 0.0)
    options.show("idempotency", "none")
    return None


def _texts(options: OptionReader, name: str) -> tuple[str, ...]:
    texts = tuple(value.text for value in options.raw(name))
    options.show(name, " ".join(texts) or "all")
    return texts


def _pairs(options: OptionReader, name: str) -> list[tuple[str, RawValue, str]]:
    """Return name, whole value and text of each C{NAME=TEXT}."""
    pairs = []
    for value in options.raw(name):
        word, equals, text = value.text.partition("=")
        if equals and word:
            pairs.append((word, value, text))
        else:
            options.problems.error(f"{quoted(value.text)} is not of the form NAME=VALUE.", value.origin)
    options.show(name, " ".join(value.text for _, value, _ in pairs) or "none")
    return pairs


def _quota(options: OptionReader) -> SourceQuota | None:
    found = [options.problems.attempt(value.origin, quota_members, value.text) for value in options.raw("quota")]
    members = [member for each in found if each is not None for member in each]
    quota = None
    if found and None not in found:
        quota = options.attempt("quota", quota_of, members)
    options.show("quota", "none" if quota is None else show_quota(quota))
    return quota


def _settings(options: OptionReader) -> dict[str, tuple[str, ...]]:
    settings: dict[str, tuple[str, ...]] = {}
    for word, _, text in _pairs(options, "sender-setting"):
        settings[word] = (*settings.get(word, ()), text)
    return settings


def _public_url(options: OptionReader) -> str:
    url = options.value("public-url") or DEFAULTS.public_url
    options.show("public-url", url or "none")
    return url
