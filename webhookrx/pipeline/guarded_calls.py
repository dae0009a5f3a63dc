"""
Calls of observer methods that turn any exception into a report, and any answer of C{store} into one outcome a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from twisted.logger import Logger

from webhookrx.errors import ConfigError, Rejected
from webhookrx.interfaces import IBufferingObserver, IStoreObserver, IWaitingObserver

if TYPE_CHECKING:
    from webhookrx.interfaces import Backlog, IMessageObserver
    from webhookrx.store_counts import TakenCounts

_log = Logger()


def error_text(error: object) -> str:
    """Return the text of an error, whatever it is made of; its type, when it has none."""
    try:
        return str(error) or type(error).__name__
    except BaseException:
        return type(error).__name__


def backlog_of(observer: IMessageObserver) -> Backlog | None:
    """Return what an observer keeps for another one; None when it keeps nothing, or can't tell."""
    if IBufferingObserver.providedBy(observer):
        try:
            return observer.backlog()
        except Exception:
            _log.failure("Observer {spec} can't tell what it keeps", spec=observer.spec)
    return None


def take_counts(observer: IMessageObserver) -> TakenCounts | None:
    """Return what an observer, or the one behind it, has counted since the last call; None when it counts nothing."""
    try:
        if IBufferingObserver.providedBy(observer):
            return observer.take_counts()
        if IStoreObserver.providedBy(observer):
            return observer.counts.take()
    except Exception:
        _log.failure("Observer {spec} can't tell what it has counted", spec=observer.spec)
    return None


def refused_in(count: int, outcome: object) -> int:
    """Return how many of C{count} messages were refused for good; none, where C{store} breaks its contract."""
    if not isinstance(outcome, (list, tuple)) or len(outcome) != count:
        return 0
    return sum(isinstance(entry, Rejected) for entry in outcome)


def hurry(observer: IMessageObserver) -> str:
    """Tell an observer that may wait for something outside to stop waiting. Return what went wrong, else C{""}."""
    if IWaitingObserver.providedBy(observer):
        try:
            observer.hurry()
        except Exception as error:
            return error_text(error)
    return ""


def finish_and_close(observer: IMessageObserver) -> list[str]:
    """Let an observer finish, if it keeps anything, and close it in any case. Return what went wrong."""
    problems: list[str] = []
    for step in (observer.finish, observer.close) if IBufferingObserver.providedBy(observer) else (observer.close,):
        try:
            step()
        except BaseException as error:
            problems.append(error_text(error))
    return problems


def why_not_opened(observer: IMessageObserver, error: BaseException) -> ConfigError:
    """Return what C{open} has raised as what it should raise."""
    if isinstance(error, ConfigError):
        return error
    return ConfigError(f"observer {observer.spec} can't be opened: {error_text(error)}")


def outcome_of_each(count: int, outcome: object) -> Sequence[str | None]:
    """
    Read what C{store} returned or raised, other than None, as one entry a message: None, or why it is not safe.

    An observer that breaks its contract has said nothing about its messages, so none of them is safe.
    """
    if isinstance(outcome, BaseException):
        return [error_text(outcome)] * count
    try:
        # A copy: foreign objects are read only once.
        outcomes = [None if entry is None else error_text(entry) for entry in cast("Sequence[object]", outcome)]
    except BaseException:
        return [f"store() returned {type(outcome).__name__}, not None or a list"] * count
    if len(outcomes) != count:
        return [f"store() returned {len(outcomes)} entries for {count} messages"] * count
    return outcomes


def rejects_only(outcome: object) -> bool:
    """Tell whether an observer complained of nothing but messages that it refuses for good."""
    return isinstance(outcome, (list, tuple)) and all(entry is None or isinstance(entry, Rejected) for entry in outcome)
