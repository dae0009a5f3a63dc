"""
Consumers by name, each imported only when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final

from webhookrx.config.observers import parse_observer
from webhookrx.config.specs import split_raw, unescaped
from webhookrx.diagnostics import quoted, suggestion
from webhookrx.errors import ConfigError
from webhookrx.relay.consumer import BrokerOptions, Consumer, ConsumerKind

NAMES: Final = ("kafka", "nats", "redis")
"""First words of the spec strings; C{CONSUMER} of the module of each name here is its L{ConsumerKind}."""

#: Returns the kind of consumer by its name.
FindKind = Callable[[str], ConsumerKind]


def find_kind(name: str) -> ConsumerKind:
    """
    Return a kind of consumer.

    @raise ConfigError: there is none of that name.
    """
    if name not in NAMES:
        raise ConfigError(f"There is no broker {quoted(name)} to relay from. {suggestion(name, NAMES)}")
    kind: ConsumerKind = import_module(f"webhookrx.relay.{name}").CONSUMER
    return kind


def build_consumer(text: str, group: str, find: FindKind = find_kind) -> Consumer:
    """
    Make a consumer from its spec string, without opening anything.

    @param group: the relays that share the work have the same.
    @raise ConfigError: the name, an argument or an option is unknown or wrong, or a package is missing.
    """
    kind = find(unescaped(split_raw(text)[0]))
    parsed = parse_observer(text, lambda _: kind.spec)
    options = dict(parsed.options)
    BrokerOptions(parsed.name, options).check_known(kind.spec.options)
    return kind.build(parsed.text, parsed.args, options, group)
