"""
All sources of a configuration: each made on its own, then checked together.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from webhookrx.config.files import Snapshot, absolute, read_file
from webhookrx.config.option_reader import ConfigFile, Effective, Entry, Layer, Place, Problems, Values, Written, origin
from webhookrx.config.pem import OTHERS, check_tls_files
from webhookrx.config.source_endpoints import (
    PlacedListener,
    check_tokens,
    share_endpoints,
    source_listeners,
)
from webhookrx.diagnostics import ERROR, quoted
from webhookrx.errors import ConfigError
from webhookrx.intake.pattern_checks import NO_SLASH, NOT_LINEAR, check_patterns, health_path_problem
from webhookrx.intake.tokens import check_token, parse_token_file
from webhookrx.settings import TLS, Source

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


_HOW_TO_ALLOW = (
    "Write it without look-around, references to groups, atomic groups and very large repetitions, or say "
    "allow_slow_patterns: yes (--allow-slow-patterns)."
)


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
    _check_shared_patterns(patterns, slow, listeners, problems)
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


DEFAULTS = Source()

COMMON_PROXY_HEADER = "x-forwarded-for"
"""What C{--proxy-header yes} stands for."""

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""C{token} of RFC 9110 §5.6.2."""

#: Options that change how a body is parsed, which C{webhook} does not do.
_PARSING_OPTIONS = ("prefix", "on-parse-error", "keep-message")


@dataclass(frozen=True, slots=True)
class PlacedPattern:
    """A path pattern and where it was written."""

    text: str
    place: Place


def source_options(values: Values, patterns: tuple[PlacedPattern, ...]) -> Source:
    """
    Make a source without endpoints; what is wrong is noted, and a default stands in for it.

    @param patterns: from L{path_patterns}.
    """
    return Source(
        name=values.section,
        source=values.text("source", DEFAULTS.source),
        paths=tuple(pattern.text for pattern in patterns),
        prefix=_prefix(values),
        auth_tokens=_auth_tokens(values),
        include_request_headers=values.flag("include-request-headers", DEFAULTS.include_request_headers),
        proxy_header=_proxy_header(values),
        on_parse_error=values.text("on-parse-error", DEFAULTS.on_parse_error),
        keep_message=values.text("keep-message", DEFAULTS.keep_message),
        health=_health(values),
    )


def path_patterns(values: Values) -> tuple[PlacedPattern, ...]:
    """Return the patterns of a source in their order, JSON lists taken apart."""
    written = values.written("paths")
    if written is None:
        values.show("paths", " ".join(DEFAULTS.paths))
        return tuple(PlacedPattern(text, values.place("paths")) for text in DEFAULTS.paths)
    patterns: list[PlacedPattern] = []
    for value in written.values:
        place = written.place_of(value)
        if value.text.startswith("["):
            texts = values.problems.attempt(place, _json_list, value.text) or []
        else:
            texts = [value.text]
        patterns += [PlacedPattern(text, place) for text in texts]
    values.show("paths", " ".join(pattern.text for pattern in patterns))
    return tuple(patterns)


def check_parsing_options(sources: list[tuple[Source, Values]], problems: Problems) -> None:
    """
    Note every parsing option that reaches no C{webhook-json} source: as a default at the top of a file it may also
    stand above C{webhook} sources, for which it says nothing.
    """
    for name in _PARSING_OPTIONS:
        heard = {id(values.written(name)) for source, values in sources if source.source == "webhook-json"}
        for _, values in sources:
            written = values.written(name)
            if written is not None and id(written) not in heard:
                problems.error("It needs source webhook-json; webhook does not parse the body.", written.place)


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


def _prefix(values: Values) -> str:
    texts = values.texts("prefix")
    prefix = texts[0].text if texts else DEFAULTS.prefix
    values.show("prefix", prefix or "(empty)")
    return prefix


def _health(values: Values) -> str:
    texts = values.texts("health")
    path = texts[0].text if texts else DEFAULTS.health
    problem = health_path_problem(path) if texts else None
    if problem is not None:
        values.problems.error(problem, values.place("health"))
        path = DEFAULTS.health
    values.show("health", path or "none")
    return path


def _proxy_header(values: Values) -> str | None:
    texts = values.texts("proxy-header")
    name = texts[0].text.strip().lower() if texts else ""
    if name in ("", "no"):
        values.show("proxy-header", "none")
        return None
    if name == "yes":
        name = COMMON_PROXY_HEADER
    if not _HEADER_NAME.fullmatch(name):
        values.problems.error(f"{quoted(name)} is not the name of a header.", values.place("proxy-header"))
        return None
    if name == "authorization":
        values.problems.error(
            '"authorization" carries the token; a client address never stands there.', values.place("proxy-header")
        )
        return None
    values.show("proxy-header", name)
    return name


def _auth_tokens(values: Values) -> tuple[bytes, ...]:
    """
    Return the tokens of the highest place that gives any, by option or file: a lower place does not add to them, so
    that a source with a token of its own never accepts the others' too.
    """
    layer: Layer = next(
        (each for each in values.layers if "auth-token" in each or "auth-token-file" in each),
        {},
    )
    tokens: dict[bytes, None] = {}
    for name, read in (("auth-token", _given_tokens), ("auth-token-file", _tokens_of_files)):
        written = layer.get(name)
        found = read(written, values.problems) if written is not None else []
        tokens.update(dict.fromkeys(found))
        where = origin(None if written is None else written.place)
        shown = "none" if written is None else _shown(name, written)
        values.effective.append(Effective(values.section, name, shown, where))
    return tuple(tokens)


def _shown(name: str, written: Written) -> str:
    if name == "auth-token":
        return " ".join("***" for _ in written.values)
    return " ".join(absolute(value.text) for value in written.values)


def _given_tokens(written: Written, problems: Problems) -> list[bytes]:
    tokens = []
    for value in written.values:
        place = written.place_of(value)
        token = value.text.encode()
        problem = check_token(token)
        if problem is not None:
            problems.error(problem, place)
        if place.option.startswith("--"):
            problems.warn(
                "Every user of this machine can see the token in the process list; use --auth-token-file.", place
            )
        tokens.append(token)
    return tokens


def _tokens_of_files(written: Written, problems: Problems) -> list[bytes]:
    tokens: list[bytes] = []
    for value in written.values:
        place = written.place_of(value)
        path = absolute(value.text)
        content = problems.attempt(place, read_file, path)
        if content is None:
            continue
        data, mode = content
        if mode & OTHERS:
            problems.warn(f"{quoted(path)} can be read or written by every user: chmod 640 or less.", place)
        found = problems.attempt(place, _parse_tokens, path, data) or []
        tokens += found
    return tokens


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


def _check_shared_patterns(
    patterns: Mapping[str, Sequence[PlacedPattern]],
    slow: Collection[str],
    listeners: Sequence[PlacedListener],
    problems: Problems,
) -> None:
    """
    Check the patterns of each endpoint in the order in which they are tried: those of one source after another.

    @param patterns: by the name of the source.
    @param slow: the names of those sources whose patterns need not run on RE2.
    """
    groups: dict[str, tuple[str, ...]] = {}
    for each in listeners:
        groups[each.listener.inner] = (*groups.get(each.listener.inner, ()), each.source)
    # A source whose endpoint is wrong still has its patterns looked at.
    together = {*groups.values(), *((name,) for name in patterns)}
    for names in sorted(together):
        # What is hidden among some of them is hidden among all of them: say it once.
        if any(set(names) < set(others) for others in together):
            continue
        owners = [name for name in names for _ in patterns[name]]
        placed = [pattern for name in names for pattern in patterns[name]]
        checked = check_patterns([pattern.text for pattern in placed])
        for error in checked.errors:
            place = placed[error.index].place
            if error.kind != NOT_LINEAR:
                problems.error(error.text, place)
            elif owners[error.index] in slow:
                problems.warn(error.text, place)
            else:
                problems.error(f"{error.text} {_HOW_TO_ALLOW} [path-not-linear]", place)
        for warning in checked.warnings:
            note = problems.error if warning.kind == NO_SLASH else problems.warn
            note(warning.text, placed[warning.index].place)
