"""
All observers that a spec string can name: ours, those of plugins, and the spool in front of any of them.
"""

from __future__ import annotations

from functools import partial

from webhookrx.interfaces import IMessageObserver
from webhookrx.observers import registry
from webhookrx.settings import ALONE, Group, Observer

SPOOL = "spool"


def known_names() -> list[str]:
    """Return every name that a spec string may begin with, sorted."""
    return sorted({SPOOL, *registry.known_names()})


def build_observer(observer: Observer, ack: str, group: Group = ALONE) -> IMessageObserver:
    """
    Make an observer from its parsed spec string; nothing is opened yet.

    @param ack: the C{--ack} level. An observer behind a spool always reports when messages are durable, as far as it
        can, since the spool removes them then.
    @param group: which of how many workers it is for: they share files, standard output and the directories of spools.
    @raise webhookrx.errors.ConfigError: the name, an argument or an option is unknown or wrong, or a plugin is broken.
    """
    if observer.name != SPOOL:
        return registry.build(observer, ack, group)
    # It imports SQLite.
    from webhookrx.spool.workers import build_spool

    assert observer.inner is not None  # the parser has seen to it
    return build_spool(observer, partial(registry.build, observer.inner, "durable", group), group)
