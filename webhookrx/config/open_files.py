"""
How many connections the limit on open files leaves room for.
"""

from __future__ import annotations

import resource
from dataclasses import replace

from webhookrx.errors import ConfigError
from webhookrx.settings import Observer, Settings

#: Files that a process has open whatever its settings are, those included that it opens for a moment: to read
#: settings, and for connections that are refused, or whose end is under way. A third of them is usual.
_OF_A_PROCESS = 64

#: Files of an observer; a spool has six, and besides them those of the observer behind it.
_OF_AN_OBSERVER = 8

#: Connections of operators, who are let in when senders have taken all there are.
_OF_OPERATORS = 16

#: Connections below which it is not worth to begin.
_LEAST = 16


def most_open_files() -> int | None:
    """
    Raise the limit on open files of this process, and of those that it starts, as far as it may be raised.

    @return: the limit; None when there is none, or it can't be told, as in a sandbox.
    """
    try:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    except OSError:
        return None
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError):
            pass  # a sandbox forbids it, or the system knows better than its own hard limit
    return None if soft == resource.RLIM_INFINITY else soft


def fit_connections(settings: Settings, open_files: int | None) -> tuple[Settings, str]:
    """
    Lower the limit on connections to what the limit on open files has room for.

    @param open_files: what L{most_open_files} returns.
    @return: the settings, and a sentence on what was lowered; an empty one when nothing was.
    @raise ConfigError: there is no room for any.
    """
    wanted = settings.limits.connections
    if open_files is None:
        return settings, ""
    own = own_files(settings)
    left = open_files - own
    if left >= wanted:
        return settings, ""
    files = f"The process may open {open_files} files, and needs up to {own} itself"
    how = "Raise the hard limit on open files (ulimit -Hn, LimitNOFILE=)"
    if left < _LEAST:
        raise ConfigError(f"{files}, which leaves too few for connections. {how}.")
    lowered = replace(settings, limits=replace(settings.limits, connections=left))
    return lowered, f"{files}: so there can be {left} connections and not {wanted}. {how}, or set connections={left}."


def own_files(settings: Settings) -> int:
    """Return how many files a process needs besides the connections of senders."""
    endpoints = len({listener.inner for source in settings.sources for listener in source.listeners})
    observers = sum(map(_observers, settings.observers))
    operators = _OF_OPERATORS + 1 if settings.admin is not None else 0
    return _OF_A_PROCESS + endpoints + observers * _OF_AN_OBSERVER + operators


def _observers(observer: Observer) -> int:
    return 1 if observer.inner is None else 1 + _observers(observer.inner)
