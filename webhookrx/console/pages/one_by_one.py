"""
Work on what is large, for pages: apart from the reactor, and one piece after the other. Threads share the lock of one
interpreter, so that the reactor would wait for each of several whenever the network has something for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from twisted.internet.defer import DeferredLock
from twisted.internet.threads import deferToThread

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

#: All consoles of a process have one interpreter.
_one: Final = DeferredLock()


async def one_by_one(
    work: Callable[_Arguments, _Result], *arguments: _Arguments.args, **options: _Arguments.kwargs
) -> _Result:
    """Return what some work returns, once it has its turn."""
    await _one.acquire()
    try:
        done: _Result = await deferToThread(work, *arguments, **options)
        return done
    finally:
        _one.release()
