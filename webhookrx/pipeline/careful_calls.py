"""
Calls of observers that may raise anything: what goes wrong is told, and goes no further.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.logger import Logger

from webhookrx.errors import ConfigError
from webhookrx.interfaces import IBufferingObserver, IWaitingObserver
from webhookrx.pipeline.batch import text_of

if TYPE_CHECKING:
    from webhookrx.interfaces import Backlog, IMessageObserver

_log = Logger()


def backlog_of(observer: IMessageObserver) -> Backlog | None:
    """Ask what an observer keeps for another one. One that can't tell is one that keeps nothing."""
    if IBufferingObserver.providedBy(observer):
        try:
            return observer.backlog()
        except Exception:
            _log.failure("Observer {spec} can't tell what it keeps", spec=observer.spec)
    return None


def hurry(observer: IMessageObserver) -> str:
    """Tell one that waits for something outside that it should not any more. Return what went wrong, if it did."""
    if IWaitingObserver.providedBy(observer):
        try:
            observer.hurry()
        except Exception as error:
            return text_of(error)
    return ""


def end(observer: IMessageObserver) -> list[str]:
    """Have one finish, if it keeps anything, and close it. Return what went wrong; it is closed all the same."""
    problems: list[str] = []
    for step in (observer.finish, observer.close) if IBufferingObserver.providedBy(observer) else (observer.close,):
        try:
            step()
        except BaseException as error:
            problems.append(text_of(error))
    return problems


def why_not_opened(observer: IMessageObserver, error: BaseException) -> ConfigError:
    """Return what C{open} has raised as what it should raise."""
    if isinstance(error, ConfigError):
        return error
    return ConfigError(f"observer {observer.spec} can't be opened: {text_of(error)}")
