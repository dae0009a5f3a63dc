"""
All observers that a spec string can name: ours, those of plugins, and the spool in front of any of them.
"""

from __future__ import annotations

from functools import partial

from webhookrx.config.observers import KnownObservers
from webhookrx.config.specs import quoted_spec
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.interfaces import IMessageObserver
from webhookrx.message.identity import is_unique
from webhookrx.observers import registry
from webhookrx.promises import weaknesses
from webhookrx.settings import ALONE, Group, Observer

SPOOL = "spool"


def known_names() -> list[str]:
    """Return every name that a spec string may begin with, sorted."""
    return sorted({SPOOL, *registry.known_names()})


def known(*, with_promises: bool) -> KnownObservers:
    """Return all observers for the configuration, see L{check_observer}."""
    return KnownObservers(known_names(), partial(check_observer, with_promises=with_promises), registry.find_spec)


def build_observer(observer: Observer, ack: str, group: Group = ALONE) -> IMessageObserver:
    """
    Make an observer from its parsed spec string; nothing is opened yet.

    @param ack: the C{--ack} level. An observer behind a spool always reports when messages are durable, as far as it
        can, since the spool removes them then.
    @param group: which of how many workers it is for: they share files, standard output and the directories of spools.
    @raise webhookrx.errors.ConfigError: the name, an argument or an option is unknown or wrong, or a plugin is broken.
    """
    if observer.name != SPOOL:
        if registry.find_spec(observer.name).needs_spool:
            raise ConfigError(
                f"observer {observer.name!r} needs the large batches that a spool gathers, and works only behind one: "
                f"write spool:DIR:observer=SPEC, with {quoted_spec(observer.text)} as SPEC"
            )
        return registry.build(observer, ack, group)
    # It imports SQLite.
    from webhookrx.spool.workers import build_spool

    assert observer.inner is not None  # the parser has seen to it
    return build_spool(observer, partial(registry.build, observer.inner, "durable", group), group)


def check_observer(observer: Observer, ack: str, *, with_promises: bool) -> list[str]:
    """
    Make an observer only to see what is wrong with it.

    @param with_promises: look at what it promises, too. At the start this is done once it is open, when it is final.
    @return: sentences on what is allowed but probably not meant.
    @raise ConfigError: as L{build_observer}.
    """
    built = build_observer(observer, ack)
    return [*_of_id(observer.inner or observer), *(weaknesses(built, ack) if with_promises else ())]


def _of_id(observer: Observer) -> list[str]:
    """Warn of ids that may repeat, since a store keeps only the first message of each."""
    template = dict(observer.options).get("id", "")
    if "$" not in template or is_unique(template):
        return []
    warning = (
        f"observer {observer.name!r}: id={quoted(template)} may be equal for different messages. The store takes the "
        "second for a copy of the first, and does not keep it. A message for which it is empty gets an id of its own"
    )
    return [warning]
