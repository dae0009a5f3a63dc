"""
The settings of a relay: frozen values, made of the options of its command; nothing is opened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from webhookrx.config.endpoints import admin_listener
from webhookrx.config.observers import KnownObservers, read_observers
from webhookrx.config.option import Kind, Option, OptionScope
from webhookrx.config.option_reader import OptionReader, Problems, RawOptions
from webhookrx.diagnostics import quoted
from webhookrx.quantities import format_duration
from webhookrx.relay.registry import FindKind, build_consumer, find_kind
from webhookrx.settings import Listener, Observer, Settings
from webhookrx.text import table

_DEFAULTS: Final = Settings((), ())

#: What all brokers take as the name of a group.
_GROUP: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")

OPTIONS: Final = (
    Option(
        "from",
        OptionScope.COMMAND,
        Kind.TEXT,
        "where messages come from: a kafka:, nats: or redis: spec string",
        value="BROKER",
    ),
    Option("to", OptionScope.COMMAND, Kind.TEXT, "where they go: the spec string of any observer", value="OBSERVER"),
    Option(
        "group",
        OptionScope.COMMAND,
        Kind.TEXT,
        "the name that all relays have in common which share the work",
        value="NAME",
    ),
    Option(
        "dead",
        OptionScope.COMMAND,
        Kind.TEXT,
        "where messages go that OBSERVER refuses for good: the spec string of another one; "
        "may be left out only when OBSERVER is a spool, which keeps them itself",
        value="SPEC",
    ),
    Option(
        "ack",
        OptionScope.COMMAND,
        Kind.TEXT,
        "how safe a message is before it is settled in the broker",
        value="LEVEL",
        default=_DEFAULTS.ack,
        choices=("durable", "written", "queued"),
    ),
    Option(
        "admin",
        OptionScope.COMMAND,
        Kind.TEXT,
        "where to serve /livez, /readyz and /metrics: an endpoint string or a port number",
        value="ENDPOINT",
    ),
    Option(
        "drain-timeout",
        OptionScope.COMMAND,
        Kind.TIME,
        "how long the batch under way may take when the relay stops",
        value="TIME",
        default=format_duration(_DEFAULTS.drain_timeout),
    ),
    Option(
        "pidfile",
        OptionScope.COMMAND,
        Kind.FILE,
        "write the number of the process into this file while it runs",
        value="FILE",
    ),
    Option(
        "umask",
        OptionScope.COMMAND,
        Kind.TEXT,
        "the permissions that files it makes do not have, in octal, such as 027",
        value="MASK",
        default="that of the process",
    ),
    Option(
        "check",
        OptionScope.COMMAND,
        Kind.FLAG,
        "validate everything without opening anything, print what would run, and exit with 0 or 1",
        default="no",
    ),
)
"""The options of the command, from which its help and the table of the docs are made."""


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """
    What a relay does.

    @ivar source: the spec string of the broker.
    @ivar dead: where messages go that C{target} refuses for good; None if that is a spool.
    @ivar admin: the endpoint for operators; None without one.
    @ivar drain_timeout: seconds that the batch under way may take at the end.
    @ivar warnings: sentences on what is allowed but probably not meant.
    """

    source: str
    group: str
    target: Observer
    dead: Observer | None
    ack: str
    admin: Listener | None
    drain_timeout: float
    warnings: tuple[str, ...] = ()

    @property
    def observers(self) -> tuple[Observer, ...]:
        """The observer, and that of dead letters."""
        return (self.target,) if self.dead is None else (self.target, self.dead)


def resolve_relay(
    given: RawOptions, known: KnownObservers, environ: Mapping[str, str], find: FindKind = find_kind
) -> RelaySettings:
    """
    Make the settings of the options of the command, each given once.

    @param environ: environment variables.
    @raise webhookrx.config.option_reader.ConfigProblems: everything that is wrong.
    """
    problems = Problems()
    options = OptionReader([given], problems)
    group = _group(options)
    source = _needed(options, "from", "the broker, such as kafka:kafka://host:9092/topic")
    if source and group:
        options.attempt("from", build_consumer, source, group, find)
    ack = options.text("ack", _DEFAULTS.ack)
    target = _observer(options, "to", known, environ, ack) if _needed(options, "to", "an observer") else None
    dead = _observer(options, "dead", known, environ, ack) if options.raw("dead") else None
    if target is not None and target.name != "spool" and not options.raw("dead"):
        options.error(
            "to",
            "--dead is missing: where messages go that the observer refuses for good, such as "
            "--dead file:dead-letters.jsonl. Only a spool keeps them itself.",
        )
    if target is not None and dead is not None and (target.name, target.args) == (dead.name, dead.args):
        options.error("dead", "It is the same as --to, which has refused those messages.")
    for name, observer in (("to", target), ("dead", dead)):
        if observer is not None and source and _writes_to(observer, source):
            options.error(name, "It is the same as --from, from where each message would come again, without an end.")
    admin = admin_listener(options, ())
    drain_timeout = options.duration("drain-timeout", _DEFAULTS.drain_timeout)
    problems.raise_errors()
    assert target is not None
    warnings = tuple(each.text for each in problems.warnings)
    return RelaySettings(source, group, target, dead, ack, admin, drain_timeout, warnings)


def _needed(options: OptionReader, name: str, what: str) -> str:
    text = options.value(name) or ""
    if not text:
        options.error(name, f"--{name} is missing: {what}.")
    return text


def _group(options: OptionReader) -> str:
    name = _needed(options, "group", "the name that the relays have in common which share the work")
    if name and not _GROUP.fullmatch(name):
        options.error("group", f"{quoted(name)} is not the name of a group: up to 100 ASCII letters, digits, - and _.")
        return ""
    return name


def _writes_to(observer: Observer, source: str) -> bool:
    """Tell whether an observer, or the one behind a spool, writes where a relay reads, as far as their URLs tell."""
    last = observer if observer.inner is None else observer.inner
    if not source.startswith(f"{last.name}:") or len(last.args) != 1:
        return False
    servers, path = _place(last.args[0])
    read_servers, read_path = _place(source.partition(":")[2])
    return path == read_path and not servers.isdisjoint(read_servers)


def _place(url: str) -> tuple[set[str], str]:
    """Return servers and path of a URL, which may have options behind it."""
    servers, _, path = url.partition("://")[2].partition("/")
    return {*servers.lower().split(",")}, path.partition(":")[0]


def _observer(
    options: OptionReader, name: str, known: KnownObservers, environ: Mapping[str, str], ack: str
) -> Observer | None:
    """Read an observer as a receiver does, with all its checks."""
    one = OptionReader([{"observer": options.raw(name)}], options.problems)
    return next(iter(read_observers(one, known, environ, ack)), None)


def relay_option_table() -> str:
    """Return the options as a Markdown table, in the order of C{--help}."""
    rows = (
        (
            f"`{f'--{option.name} {option.value}'.rstrip()}`",
            option.default,
            option.help + (f": {', '.join(f'`{choice}`' for choice in option.choices)}" if option.choices else ""),
        )
        for option in OPTIONS
    )
    return table(("option", "default", "meaning"), rows)
