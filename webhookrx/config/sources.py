"""
Makes the sources of a configuration, each on its own, then checks them together.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from webhookrx.config.files import Snapshot
from webhookrx.config.guards.context import GuardContext
from webhookrx.config.guards.of_source import SourceGuard, check_misplaced, read_guard
from webhookrx.config.option_reader import (
    ConfigFile,
    Effective,
    OptionReader,
    Problems,
    RawOptions,
    RawSource,
    RawValue,
)
from webhookrx.config.pem import check_tls_files
from webhookrx.config.source_access import check_clients, check_open, check_token_group
from webhookrx.config.source_endpoints import (
    SourceListener,
    share_endpoints,
    source_listeners,
)
from webhookrx.config.source_tokens import read_source_tokens
from webhookrx.diagnostics import ERROR, quoted
from webhookrx.errors import ConfigError
from webhookrx.intake.pattern_checks import check_patterns, health_path_problem
from webhookrx.settings import TLS, Signature, Source

DEFAULTS = Source()

COMMON_PROXY_HEADER = "x-forwarded-for"
"""What C{--proxy-header yes} stands for."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""C{token} of RFC 9110 §5.6.2."""

#: Options that change how a body is parsed, which C{webhook} does not do.
_PARSING_OPTIONS = ("prefix", "on-parse-error", "keep-message")

_HOW_TO_ALLOW = (
    "Write it without look-around, references to groups, atomic groups and very large repetitions, or say "
    "allow_slow_patterns: yes (--allow-slow-patterns)."
)


@dataclass(frozen=True, slots=True)
class _SourceDraft:
    """
    A source on its own, not yet checked beside the others.

    @ivar patterns: its path patterns in their order, JSON lists taken apart.
    @ivar guard: that of the source, and what is to be said of it beside others.
    """

    options: OptionReader
    patterns: tuple[RawValue, ...]
    source: Source
    listeners: list[SourceListener]
    guard: SourceGuard


class ResolvedSources(NamedTuple):
    """
    The sources of a configuration.

    @ivar sources: in the order of the file.
    @ivar effective: each option of each with its origin.
    @ivar watched: the state of each file of secrets and tokens from just before it was read, by absolute path.
    """

    sources: tuple[Source, ...] = ()
    effective: Sequence[Effective] = ()
    watched: Mapping[str, Signature] = MappingProxyType({})


def resolve_sources(
    command_line: RawOptions,
    file: ConfigFile,
    problems: Problems,
    *,
    now: datetime,
    tls_files: Snapshot,
    context: GuardContext,
) -> ResolvedSources:
    """
    Return the sources of a configuration. Mistakes are noted.

    @param tls_files: reads keys and certificates.
    @param context: what guards share.
    """
    drafts = [_draft(options, context) for options in _readers(command_line, file, problems)]
    _check_parsing_options(drafts, problems)
    check_misplaced([(draft.options, draft.guard) for draft in drafts])
    for draft in drafts:
        check_open(draft.options, draft.source, draft.listeners, context)
        check_clients(draft.options, draft.source, draft.listeners)
        check_token_group(draft.options, draft.source)
    listeners = share_endpoints([each for draft in drafts for each in draft.listeners], problems)
    patterns = {draft.source.name: draft.patterns for draft in drafts}
    slow = {draft.source.name for draft in drafts if draft.options.flag("allow-slow-patterns", False)}
    _check_shared_patterns(patterns, slow, listeners, problems)
    _check_files(listeners, problems, now, tls_files)
    sources = tuple(
        replace(
            draft.source,
            listeners=tuple(each.listener for each in listeners if each.source == draft.source.name),
        )
        for draft in drafts
    )
    return ResolvedSources(
        sources,
        [effective for draft in drafts for effective in draft.options.effective],
        {path: signature for draft in drafts for path, signature in draft.guard.watched.items()},
    )


def _readers(command_line: RawOptions, file: ConfigFile, problems: Problems) -> list[OptionReader]:
    """Return the options of each source, each with a unique name."""
    if file.sources is None:
        name = DEFAULTS.name if file.name is None else _checked_name(file.name, problems)
        return [OptionReader((command_line, file.options), problems, name)]
    found: dict[str, OptionReader] = {}
    for number, source in enumerate(file.sources, 1):
        options = OptionReader((command_line, source.options, file.options), problems, origin=source.origin)
        name = _source_name(source, options, number)
        if name in found:
            origin = source.origin if source.name is None else source.name.origin
            problems.error(f"Another source has the name {quoted(name)} already.", origin)
            name = f"{name}-{number}"
        options.section = name
        found[name] = options
    return list(found.values())


def _source_name(source: RawSource, options: OptionReader, number: int) -> str:
    if source.name is not None:
        return _checked_name(source.name, options.problems)
    variant = options.raw("source")
    return f"{variant[0].text if variant else DEFAULTS.variant}-{number}"


def _checked_name(name: RawValue, problems: Problems) -> str:
    if not _NAME.fullmatch(name.text):
        problems.error(
            f"{quoted(name.text)} is not a valid name: up to 64 letters, digits, '.', '_' and '-', beginning with a "
            "letter or digit.",
            name.origin,
        )
    return name.text


def _draft(options: OptionReader, context: GuardContext) -> _SourceDraft:
    """Make a source without endpoints; defaults stand in for mistakes, which are noted."""
    listeners = source_listeners(options)
    patterns = _path_patterns(options)
    tokens = read_source_tokens(options)
    guard = read_guard(options, tokens, context)
    source = Source(
        name=options.section,
        variant=options.text("source", DEFAULTS.variant),
        paths=tuple(pattern.text for pattern in patterns),
        prefix=_prefix(options),
        auth_tokens=tokens.plain if guard.guard is None else (),
        include_request_headers=options.flag("include-request-headers", DEFAULTS.include_request_headers),
        proxy_header=_proxy_header(options),
        on_parse_error=options.text("on-parse-error", DEFAULTS.on_parse_error),
        keep_message=options.text("keep-message", DEFAULTS.keep_message),
        health=_health(options),
        guard=guard.guard,
    )
    return _SourceDraft(options, patterns, source, listeners, guard)


def _path_patterns(options: OptionReader) -> tuple[RawValue, ...]:
    patterns: list[RawValue] = []
    for value in options.raw("paths"):
        if value.text.startswith("["):
            texts = options.problems.attempt(value.origin, _json_list, value.text) or []
            patterns += [RawValue(text, value.origin) for text in texts]
        else:
            patterns.append(value)
    if not options.raw("paths"):
        patterns = [RawValue(text, options.origin("paths")) for text in DEFAULTS.paths]
    options.show("paths", " ".join(pattern.text for pattern in patterns))
    return tuple(patterns)


def _json_list(text: str) -> list[str]:
    try:
        patterns = msgspec.json.decode(text, type=list[str])
    except msgspec.MsgspecError:
        raise ConfigError(
            f"{quoted(text)} begins with [ but is not a JSON list of strings, such as "
            '["/events", "/events/(?P<HOST>.*)"].'
        ) from None
    if not patterns:
        raise ConfigError("The list is empty; a source without a pattern would refuse everything.")
    return patterns


def _prefix(options: OptionReader) -> str:
    prefix = options.value("prefix") or DEFAULTS.prefix
    options.show("prefix", prefix or "(empty)")
    return prefix


def _health(options: OptionReader) -> str:
    path = options.value("health")
    problem = None if path is None else health_path_problem(path)
    if problem is not None:
        options.error("health", problem)
    if path is None or problem is not None:
        path = DEFAULTS.health
    options.show("health", path or "none")
    return path


def _proxy_header(options: OptionReader) -> str | None:
    name = (options.value("proxy-header") or "no").strip().lower()
    if name in ("", "no"):
        options.show("proxy-header", "none")
        return None
    if name == "yes":
        name = COMMON_PROXY_HEADER
    if not _HEADER_NAME.fullmatch(name):
        options.error("proxy-header", f"{quoted(name)} is not the name of a header.")
        return None
    if name == "authorization":
        options.error("proxy-header", '"authorization" carries the token; a client address never stands there.')
        return None
    options.show("proxy-header", name)
    return name


def _check_parsing_options(drafts: list[_SourceDraft], problems: Problems) -> None:
    """
    Note every parsing option that no C{webhook-json} source uses. One at the top of a file may be the default of some
    source, and without effect for C{webhook} sources.
    """
    for name in _PARSING_OPTIONS:
        used = {id(draft.options.raw(name)) for draft in drafts if draft.source.variant == "webhook-json"}
        for draft in drafts:
            values = draft.options.raw(name)
            if values and id(values) not in used:
                problems.error("It needs source webhook-json; webhook does not parse the body.", values[0].origin)


def _check_files(listeners: list[SourceListener], problems: Problems, now: datetime, files: Snapshot) -> None:
    """Check the files of each TLS setting once; a mistake has the place of the option that names the file."""
    settings: dict[TLS, SourceListener] = {}
    for each in listeners:
        if each.listener.tls is not None:
            settings.setdefault(each.listener.tls, each)
    for tls, each in settings.items():
        for found in check_tls_files(tls, now, files):
            note = problems.error if found.severity == ERROR else problems.warn
            note(found.sentence, each.tls_origins.get(found.field, each.origin))


def _check_shared_patterns(
    patterns: Mapping[str, Sequence[RawValue]],
    slow: Collection[str],
    listeners: Sequence[SourceListener],
    problems: Problems,
) -> None:
    """
    Check the patterns of each endpoint in the order in which requests try them, source by source.

    @param patterns: by the name of the source.
    @param slow: the names of those sources whose patterns need not run on RE2.
    """
    groups: dict[str, tuple[str, ...]] = {}
    for each in listeners:
        groups[each.listener.socket] = (*groups.get(each.listener.socket, ()), each.source)
    # The patterns of a source without a usable endpoint are checked, too.
    together = {*groups.values(), *((name,) for name in patterns)}
    for names in sorted(together):
        # A pattern hidden among some sources is hidden among all of them: report it once.
        if any(set(names) < set(others) for others in together):
            continue
        owners = [name for name in names for _ in patterns[name]]
        placed = [pattern for name in names for pattern in patterns[name]]
        for found in check_patterns([pattern.text for pattern in placed]):
            index = int(found.path[0])
            origin = placed[index].origin
            if found.code == "path-not-linear" and owners[index] not in slow:
                problems.error(f"{found.sentence} {_HOW_TO_ALLOW}", origin, found.code)
            elif found.severity == ERROR and found.code != "path-not-linear":
                problems.error(found.sentence, origin)
            else:
                problems.warn(found.sentence, origin)
