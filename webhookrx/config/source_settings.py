"""
The options of one source made into a L{Source}, apart from its endpoints.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from webhookrx.config.files import absolute, read_file
from webhookrx.config.problems import Place, Problems
from webhookrx.config.tls_files import OTHERS
from webhookrx.config.values import Effective, Values, origin
from webhookrx.config.written import Layer, Written
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.intake.pattern_checks import health_path_problem
from webhookrx.intake.tokens import check_token, parse_token_file
from webhookrx.settings import Source

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
