"""
The spec string of the postgresql observer, read without connecting anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import unquote

from webhookrx.config.observers import Argument, ObserverSpec, OptionText
from webhookrx.config.specs import SpecOptions
from webhookrx.diagnostics import quoted
from webhookrx.message.identity import message_id, parse_id
from webhookrx.message.message import Message
from webhookrx.observers.addresses import Addresses, check_plaintext, read_addresses
from webhookrx.observers.client_tls import TLS_OPTIONS, TLS_SECRETS, ClientTLS, read_tls_if
from webhookrx.observers.postgresql.table import (
    LONGEST_NAME,
    STANDARD_COLUMNS,
    MessageTable,
    parse_columns,
    parse_unique,
)

EXAMPLE: Final = "postgresql:postgresql://db.example.com/logs/webhooks"
DEFAULT_USER: Final = "webhookrx"
DEFAULT_TIMEOUT: Final = 10.0
SHORTEST_TIMEOUT: Final = 0.1
LONGEST_TIMEOUT: Final = 3600.0
DEFAULT_RETRY_FOR: Final = 10.0
SYNCS: Final = ("on", "remote_apply")

_PORT: Final = 5432

POSTGRESQL_SPEC: Final = ObserverSpec(
    options=(
        "user",
        "password_file",
        "tls",
        "allow_plaintext",
        "columns",
        "id",
        "dedup",
        "sync",
        "create",
        "timeout",
        "retry_for",
        *TLS_OPTIONS,
    ),
    argument=Argument.URL,
    files=("password_file", *TLS_OPTIONS),
    secrets=("password_file", *TLS_SECRETS),
    texts={
        "user": OptionText(f"`{DEFAULT_USER}`", "the role to log in as"),
        "password_file": OptionText("none", "file with its password, on a line of its own; without it none is shown"),
        "tls": OptionText(
            "`yes`, `no` to this machine", "`yes` is libpq's `sslmode=verify-full`, `no` connects without TLS"
        ),
        "columns": OptionText(
            f"`{','.join(STANDARD_COLUMNS)}`",
            "columns that are filled: each of these by its name or as `NAME=id` and so on, others as `NAME=TEMPLATE`",
        ),
        "dedup": OptionText(
            "`yes`",
            "by which columns a row is known: `yes` for that of the id; several with commas, such as `id,received` for "
            "a partitioned table; `no` adds rows whatever is there",
        ),
        "sync": OptionText("`on`", "`synchronous_commit` of the session: `on` or `remote_apply`"),
        "create": OptionText("`no`", "`yes` makes the table where there is none; `--check` shows how"),
        "timeout": OptionText("`10s`", "time limit of each transaction, with its connection, here and on the server"),
    },
    note=lambda args, given: table_note(args, given),
)


@dataclass(frozen=True, slots=True)
class PostgreSQLTarget:
    """
    Where messages go, and in which form.

    @ivar tls: None to connect without.
    @ivar sync: what C{synchronous_commit} is set to.
    @ivar create: make the table where there is none.
    @ivar timeout: seconds for one transaction, with its connection where it needs one.
    @ivar retry_for: seconds from the beginning of a C{store} in which it begins further tries.
    """

    addresses: Addresses
    database: str
    table: MessageTable
    user: str = DEFAULT_USER
    password_file: str | None = None
    tls: ClientTLS | None = None
    sync: str = "on"
    create: bool = False
    timeout: float = DEFAULT_TIMEOUT
    retry_for: float = DEFAULT_RETRY_FOR


def read_postgresql(args: Sequence[str], given: Mapping[str, str]) -> PostgreSQLTarget:
    """
    Read C{postgresql:postgresql://HOST/DB/TABLE[:key=value…]}, but not the files.

    @raise webhookrx.errors.ConfigError: an argument or option is wrong, or does not go with another.
    """
    options = SpecOptions("postgresql", given)
    addresses = read_addresses(args, options, {"postgresql": _PORT}, EXAMPLE)
    database, schema, name = _read_path(addresses.path, options)
    tls = _read_tls(addresses, options)
    check_plaintext(
        options,
        ("password_file",),
        is_encrypted=tls is not None,
        is_local=addresses.are_local,
        remedy="leave out tls=no",
    )
    default: Callable[[Message], str] = message_id
    identify = options.read("id", default, parse_id)
    parse = partial(parse_columns, identify=identify, own_id="id" in options)
    columns = options.read("columns", parse(",".join(STANDARD_COLUMNS)), parse)
    try:
        unique = parse_unique(given.get("dedup", "yes"), columns)
    except ValueError as error:
        raise options.problem(f"dedup={quoted(given.get('dedup', 'yes'))}: {error}") from None
    return PostgreSQLTarget(
        addresses,
        database,
        MessageTable(schema, name, columns, unique),
        user=_read_user(options),
        password_file=given.get("password_file"),
        tls=tls,
        sync=options.choice("sync", SYNCS, "on"),
        create=options.flag("create", False),
        timeout=options.duration("timeout", DEFAULT_TIMEOUT, at_least=SHORTEST_TIMEOUT, at_most=LONGEST_TIMEOUT),
        retry_for=options.duration("retry_for", DEFAULT_RETRY_FOR, at_most=LONGEST_TIMEOUT),
    )


def table_note(args: Sequence[str], given: Mapping[str, str]) -> str:
    """Return what C{--check} prints: the table as it may be made."""
    target = read_postgresql(args, given)
    made = "is made, if there is none, as" if target.create else "can be made, and is with create=yes, as"
    return f"the table of observer 'postgresql' {made}\n{target.table.ddl()};"


def _read_path(path: str, options: SpecOptions) -> tuple[str, str | None, str]:
    """Return database, schema and table; C{%2E} and C{%2F} are a dot and a slash in a name."""
    database, slash, table = path.partition("/")
    parts = table.split(".")
    names = [unquote(part) for part in (database, *parts)]
    if not slash or "/" in table or len(parts) > 2 or not all(names):
        raise options.problem(f"the URL takes a database and a table, or SCHEMA.TABLE; write for example {EXAMPLE}")
    for name in names:
        if not name.isprintable() or len(name.encode("utf-8", "surrogateescape")) > LONGEST_NAME:
            raise options.problem(f"{name[:LONGEST_NAME]!r} is no name; it takes 1 to {LONGEST_NAME} bytes of text")
    return names[0], names[1] if len(parts) == 2 else None, names[-1]


def _read_tls(addresses: Addresses, options: SpecOptions) -> ClientTLS | None:
    given = next((key for key in TLS_OPTIONS if key in options), None)
    is_used = options.flag("tls", not addresses.are_local or given is not None)
    return read_tls_if(options, is_used=is_used, goes_with="tls=yes")


def _read_user(options: SpecOptions) -> str:
    user = options.given.get("user", DEFAULT_USER)
    if not user or not user.isprintable():
        raise options.misfit("user", "a user", "the name of a role")
    return user
