"""
All observers that a spec string can name: ours, those that others provide, and the spool in front of any of them.
"""

from __future__ import annotations

from webhookrx.config.settings import Observer
from webhookrx.interfaces import IMessageObserver
from webhookrx.observers import registry

SPOOL = "spool"


def known_names() -> list[str]:
    """Return every name that a spec string may begin with, sorted."""
    return sorted({SPOOL, *registry.known_names()})


def build(observer: Observer, ack: str) -> IMessageObserver:
    """
    Make an observer from its parsed spec string; nothing is opened yet.

    @param ack: the C{--ack} level. What a spool stands in front of always says when messages are durable, as far as it
        can: the spool removes them then.
    @raise webhookrx.errors.ConfigError: the name, an argument or an option is unknown or wrong, or a plugin is broken.
    """
    if observer.name != SPOOL:
        return registry.build(observer, ack)
    # SQLite is for those alone who have a spool.
    from webhookrx.spool.spool_observer import build_spool

    assert observer.inner is not None  # the parser has seen to it
    return build_spool(observer, registry.build(observer.inner, "durable"))
