"""
The spec string of C{clickhouse:}, and messages as rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from webhookrx.config.files import read_file
from webhookrx.config.observers import Argument, ObserverSpec, OptionText
from webhookrx.config.specs import SpecOptions
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.interfaces import LARGEST_BATCH, Wants
from webhookrx.message.encoders import encode_line, encode_object
from webhookrx.message.escapes import encode_json
from webhookrx.message.identity import message_id, parse_id
from webhookrx.message.message import Message
from webhookrx.message.rfc5424 import timestamp
from webhookrx.message.template import Template
from webhookrx.observers.batch_limits import read_limits
from webhookrx.observers.client_tls import TLS_OPTIONS, TLS_SECRETS
from webhookrx.observers.http_stores.clickhouse import LIMITS, ClickHouse
from webhookrx.observers.http_stores.exchange import Header
from webhookrx.observers.http_stores.json_texts import json_text
from webhookrx.observers.http_stores.observer import HTTPObserver, connect
from webhookrx.observers.http_stores.options import FIELD_VALUE, HTTPTarget, SecretFile, read_headers, read_target
from webhookrx.observers.secret_files import read_one_secret
from webhookrx.observers.writers import RenderLine

_SECRETS: Final = ("password_file", "headers_file")

CLICKHOUSE_SPEC = ObserverSpec(
    options=(
        "row",
        "id",
        "user",
        "async",
        "fsync",
        "quorum",
        "settings_file",
        "batch",
        "batch_size",
        "gzip",
        "allow_plaintext",
        "timeout",
        "retry_for",
        *_SECRETS,
        *TLS_OPTIONS,
    ),
    argument=Argument.URL,
    files=("settings_file", *_SECRETS, *TLS_OPTIONS),
    secrets=(*_SECRETS, *TLS_SECRETS),
    texts={
        "row": OptionText("`columns`", "`message` inserts the JSON object itself, whose names are the columns"),
        "id": OptionText("the message's id", "[template](messages.md#templates) of the column `id`"),
        "async": OptionText(
            "`no`", "`yes` lets the server gather inserts of many receivers, and waits until it has them"
        ),
        "fsync": OptionText("`no`", "`yes` if the table has `fsync_after_insert=1`: you vouch for it"),
        "quorum": OptionText("none", "how many replicas must have a part, from 2 on, or `auto`; for replicated tables"),
        "settings_file": OptionText("none", "file with further settings, one `name=value` per line; read at start"),
        "batch": OptionText("`10000`", "most messages in one insert"),
        "batch_size": OptionText("`8MiB`", "most bytes of one insert, before compression"),
    },
)

_EXAMPLE: Final = "https://clickhouse.example.com:8443/logs.messages"
_ROWS: Final = ("columns", "message")
_REASON: Final = (
    "it answers once a part is written, and not synced; fsync=yes if the table has fsync_after_insert=1, or quorum=N "
    "with replicas"
)
_GATHER: Final = 1.0
"""Seconds for which a spool gathers messages: each insert makes a part, and too many of them are refused."""

#: DB.TABLE, or TABLE; they are quoted in the query.
_TABLE: Final = re.compile(r"(?:([A-Za-z0-9_-]+)\.)?([A-Za-z0-9_-]+)")
_USER: Final = re.compile(r"[!-~]+")
_QUORUM: Final = re.compile(r"auto|[2-9]|[1-9][0-9]{1,2}")
_SETTING: Final = re.compile(r"([a-z][a-z0-9_]*)\s*=\s*(\S.*)")

#: What the observer sets itself, or what would let it take for stored what is not.
_OURS: Final = frozenset(
    """
    async_insert buffer_size compress database decompress deduplicate_insert default_format
    input_format_allow_errors_num input_format_allow_errors_ratio insert_deduplicate insert_deduplication_token
    insert_quorum param password query query_id quota_key role session_id session_timeout user wait_end_of_query
    wait_for_async_insert
    """.split()  # noqa: SIM905
)


def render_columns(message: Message, *, texts: Sequence[tuple[bytes, Callable[[Message], str]]]) -> bytes:
    """
    Return a message as a row with the columns C{id}, C{received}, C{source}, C{host} and C{message}, its JSON object.

    @param texts: the columns beside C{received} and C{message}, each with the beginning of its member.
    """
    members = b"".join(begin + encode_json(make(message)) for begin, make in texts)
    received = timestamp(message.received).encode("ascii")
    text = json_text(encode_object(message).decode())
    return b'{"received":"%b"%b,"message":%b}\n' % (received, members, text)


def read_clickhouse(args: Sequence[str], given: Mapping[str, str]) -> tuple[HTTPTarget, ClickHouse]:
    """
    Read C{clickhouse:URL/DB.TABLE[:key=value…]}, and its settings, but not the other files.

    @raise ConfigError: an argument, an option or a setting is wrong, or does not go with another.
    """
    options = SpecOptions("clickhouse", given)
    target = read_target(
        options, args, example=_EXAMPLE, secrets=_read_secrets(options), instead="user= and password_file="
    )
    path, table = _read_table(target.url, options)
    limits = read_limits(options, LIMITS)
    has_columns = options.choice("row", _ROWS, "columns") == "columns"
    if not has_columns and "id" in options:
        raise options.problem("id= goes with row=columns, whose rows have a column id")
    is_durable = options.flag("fsync", False) or "quorum" in options
    store = ClickHouse(
        render=_read_render(options) if has_columns else encode_line,
        takes_lines=True,
        limits=limits,
        gzip=options.flag("gzip", False),
        promise="durable" if is_durable else "written",
        promise_reason="" if is_durable else _REASON,
        wants=Wants(limits.messages, min(limits.size, LARGEST_BATCH), _GATHER),
        path=path,
        query=f"INSERT INTO {table} FORMAT JSONEachRow",
        settings=_read_settings(options),
        user=options.read("user", None, _read_user),
        has_same_columns=has_columns,
    )
    return target, store


def _read_secrets(options: SpecOptions) -> list[SecretFile]:
    secrets = []
    if "password_file" in options:
        if "user" not in options:
            raise options.problem("password_file= goes with user=")
        secrets.append(SecretFile("password_file", options.given["password_file"], _read_password))
    if "headers_file" in options:
        secrets.append(SecretFile("headers_file", options.given["headers_file"], read_headers))
    return secrets


def _read_password(path: str) -> list[Header]:
    password = read_one_secret(path).encode()
    if not FIELD_VALUE.fullmatch(password):
        raise ConfigError(f"{quoted(path)} begins or ends with a space, which no header field can.")
    return [(b"X-ClickHouse-Key", password)]


def _read_table(url: str, options: SpecOptions) -> tuple[str, str]:
    """Return the path of the interface, and the table for a query."""
    path = "/" + url.partition("://")[2].partition("/")[2]
    before, _, name = path.rpartition("/")
    found = _TABLE.fullmatch(name)
    if found is None:
        raise options.problem(
            f"the path of the URL does not end with a table, as in {_EXAMPLE}; names have letters, digits, _ and -"
        )
    return f"{before}/", ".".join(f"`{part}`" for part in found.groups() if part is not None)


def _read_user(text: str) -> str:
    if not _USER.fullmatch(text):
        raise ValueError("it takes the name of a user, without spaces")
    return text


def _read_render(options: SpecOptions) -> RenderLine:
    own_id: Callable[[Message], str] = message_id
    texts = (
        (b',"id":', options.read("id", own_id, parse_id)),
        (b',"source":', Template.parse("${SOURCE}").render),
        (b',"host":', Template.parse("${HOST}").render),
    )
    return partial(render_columns, texts=texts)


def _read_settings(options: SpecOptions) -> tuple[tuple[str, str], ...]:
    """Return the parameters of requests, beside query and token."""
    settings = {
        "wait_end_of_query": "1",
        # Since version 26 it gathers inserts by itself; with 0 here it would answer before it has them.
        "async_insert": "1" if options.flag("async", False) else "0",
        "wait_for_async_insert": "1",
        # A profile of the user may let it skip rows and columns in silence.
        "input_format_allow_errors_num": "0",
        "input_format_allow_errors_ratio": "0",
        "input_format_skip_unknown_fields": "0",
        # Whatever the time zone of the column is.
        "date_time_input_format": "best_effort",
    }
    quorum = options.read("quorum", None, _read_quorum)
    if quorum is not None:
        settings["insert_quorum"] = quorum
    if "settings_file" in options:
        settings |= _read_settings_file(options.given["settings_file"], options)
    return tuple(settings.items())


def _read_quorum(text: str) -> str:
    if not _QUORUM.fullmatch(text):
        raise ValueError("it takes a number of replicas from 2 to 999, or auto for more than half of them")
    return text


def _read_settings_file(path: str, options: SpecOptions) -> dict[str, str]:
    try:
        content, _ = read_file(path)
    except ConfigError as error:
        raise options.problem(f"settings_file: {error.problem}") from None
    settings = {}
    for number, line in enumerate(content.decode("utf-8-sig", "replace").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        found = _SETTING.fullmatch(text)
        where = f"settings_file: {quoted(path)}, line {number}"
        if found is None:
            raise options.problem(f"{where} is not NAME=VALUE, such as max_execution_time=60")
        if found[1] in _OURS or found[1].startswith("param_"):
            raise options.problem(f"{where}: {found[1]} is set by the observer itself, or would weaken its promise")
        settings[found[1]] = found[2]
    return settings


def build_clickhouse(spec: str, args: Sequence[str], options: Mapping[str, str], ack: str) -> HTTPObserver:
    """
    Make the observer of C{clickhouse:URL/DB.TABLE[:key=value…]}.

    @raise ConfigError: an argument, an option or a file is wrong.
    """
    observer = HTTPObserver(spec, *read_clickhouse(args, options), connect)
    observer.check()
    return observer
