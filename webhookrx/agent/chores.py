"""
How the agent works beside the receiver: in the background, in threads, and now and then. What fails is logged, and ends
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import LoopingCall
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.failure import Failure

_log = Logger()

_T = TypeVar("_T")


def in_background(work: Coroutine[Any, Any, object]) -> Deferred[object]:
    """
    Do some work whose result nobody waits for.

    @return: fires when it has ended, however it has; cancelled, it ends the work.
    """
    return Deferred.fromCoroutine(work).addErrback(_failed)


def in_thread(reactor: Any, call: Callable[..., _T], *args: object) -> Deferred[_T]:
    """Return what a call returns that reads, writes or computes for long."""
    return deferToThreadPool(reactor, reactor.getThreadPool(), call, *args)


def to_its_end(work: Deferred[_T]) -> Deferred[_T]:
    """
    Return what fires as some work does. Cancelled, it leaves the work alone, which goes on to its end: a thread can't
    be stopped half way.
    """
    waiting: Deferred[_T] = Deferred()

    def ended(result: Any) -> None:
        if not waiting.called:
            waiting.callback(result)
        elif isinstance(result, Failure):
            _failed(result)

    work.addBoth(ended)
    return waiting


def timer_of(reactor: Any, work: Callable[[], Coroutine[Any, Any, object]]) -> LoopingCall:
    """Return what does some work now and then, and again after it has failed; it is not started."""
    timer = LoopingCall(lambda: in_background(work()))
    timer.clock = reactor
    return timer


def _failed(failure: Failure) -> None:
    if not failure.check(CancelledError):
        _log.failure("The agent of the console has failed", failure)
