"""
Makes the sources of a configuration, each on its own, then checks them together.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from webhookrx.config.files import Snapshot, absolute, public_warning, read_file
from webhookrx.config.guards import read_guard
from webhookrx.config.option_reader import (
    COMMAND_LINE,
    NOWHERE,
    ConfigFile,
    Effective,
    OptionReader,
    Problems,
    RawOptions,
    RawSource,
    RawValue,
)
from webhookrx.config.pem import check_tls_files
from webhookrx.config.source_endpoints import (
    SourceListener,
    check_tokens,
    share_endpoints,
    source_listeners,
)
from webhookrx.diagnostics import ERROR, quoted
from webhookrx.errors import ConfigError
from webhookrx.intake.pattern_checks import check_patterns, health_path_problem
from webhookrx.intake.tokens import check_token, parse_token_file
from webhookrx.settings import TLS, Source

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
    """

    options: OptionReader
    patterns: tuple[RawValue, ...]
    source: Source
    listeners: list[SourceListener]


def resolve_sources(
    command_line: RawOptions,
    file: ConfigFile,
    problems: Problems,
    *,
    now: datetime,
    plaintext_token: bool,
    tls_files: Snapshot,
) -> tuple[tuple[Source, ...], list[Effective]]:
    """
    Return the sources in the order of the file, and each option of each with its origin. Mistakes are noted.

    @param plaintext_token: tokens may come over plain HTTP from other machines.
    @param tls_files: reads keys and certificates.
    """
    drafts = [_draft(options) for options in _readers(command_line, file, problems)]
    _check_parsing_options(drafts, problems)
    for draft in drafts:
        check_tokens(draft.options, draft.source, draft.listeners, allowed=plaintext_token)
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
    return sources, [effective for draft in drafts for effective in draft.options.effective]


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


def _draft(options: OptionReader) -> _SourceDraft:
    """Make a source without endpoints; defaults stand in for mistakes, which are noted."""
    listeners = source_listeners(options)
    patterns = _path_patterns(options)
    source = Source(
        name=options.section,
        variant=options.text("source", DEFAULTS.variant),
        paths=tuple(pattern.text for pattern in patterns),
        prefix=_prefix(options),
        auth_tokens=_auth_tokens(options),
        include_request_headers=options.flag("include-request-headers", DEFAULTS.include_request_headers),
        proxy_header=_proxy_header(options),
        on_parse_error=options.text("on-parse-error", DEFAULTS.on_parse_error),
        keep_message=options.text("keep-message", DEFAULTS.keep_message),
        health=_health(options),
        guard=read_guard(options),
    )
    return _SourceDraft(options, patterns, source, listeners)


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


def _auth_tokens(options: OptionReader) -> tuple[bytes, ...]:
    """
    Return the tokens of the highest layer that gives any, by option or file: a lower one does not add to them, so that
    a source with a token of its own never accepts the others' too.
    """
    layer = next((each for each in options.layers if "auth-token" in each or "auth-token-file" in each), {})
    tokens: dict[bytes, None] = {}
    for name, read in (("auth-token", _token), ("auth-token-file", _tokens_of_file)):
        values = layer.get(name, ())
        for value in values:
            tokens.update(dict.fromkeys(read(value, options.problems)))
        shown = ("***" if name == "auth-token" else absolute(value.text) for value in values)
        origin = str(values[0].origin if values else NOWHERE)
        options.effective.append(Effective(options.section, name, " ".join(shown) or "none", origin))
    return tuple(tokens)


def _token(value: RawValue, problems: Problems) -> list[bytes]:
    token = value.text.encode()
    problem = check_token(token)
    if problem is not None:
        problems.error(problem, value.origin)
    if value.origin.file == COMMAND_LINE:
        problems.warn(
            "Every user of this machine can see the token in the process list; use --auth-token-file.", value.origin
        )
    return [token]


def _tokens_of_file(value: RawValue, problems: Problems) -> list[bytes]:
    path = absolute(value.text)
    content = problems.attempt(value.origin, read_file, path)
    if content is None:
        return []
    data, mode = content
    warning = public_warning(path, mode)
    if warning:
        problems.warn(warning, value.origin)
    return problems.attempt(value.origin, _parse_tokens, path, data) or []


def _parse_tokens(path: str, data: bytes) -> list[bytes]:
    # Tokens are compared as bytes: one that is not UTF-8 is as good as any.
    tokens = parse_token_file(data.decode("utf-8", "surrogateescape"))
    if not tokens:
        raise ConfigError(f"{quoted(path)} holds no token; it takes one a line.")
    for token in tokens:
        problem = check_token(token)
        if problem is not None:
            raise ConfigError(f"{quoted(path)}: {problem}")
    return tokens


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
