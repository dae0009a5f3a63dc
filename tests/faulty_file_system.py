"""The operating system, with faults on demand."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from webhookrx.filesystem import FileSystem

#: Every call that may be planned.
CALLS = (
    "open",
    "close",
    "control",
    "dup",
    "fstat",
    "statvfs",
    "fchmod",
    "lseek",
    "flock",
    "fsync",
    "fdatasync",
    "pread",
    "pwrite",
    "set_blocking",
    "writev",
)


def looked_at(fd: int) -> None:
    """
    Stand for a sync. Whether a disk did it can't be seen from here, so that none has to; but C{fd} must be open.
    """
    os.fstat(fd)


class FaultyFileSystem(FileSystem):
    """
    The real file system, but calls fail as planned, and a sync does not reach the disk.

    @ivar plans: name of a call to what its next calls do: raise an exception; for C{writev}, take so many bytes only;
        for others, return that in place of the real thing. C{None}, and the end of the plan, is the real call.
    @ivar calls: name and first argument of each call.
    @ivar descriptors: those that it opened and did not close.
    @ivar poisoned: those of them that failed to sync.
    @ivar synced_again: how often a descriptor was synced that had failed to.
    """

    fsync = staticmethod(looked_at)
    fdatasync = staticmethod(looked_at)

    def __init__(self, **plans: Sequence[Any]) -> None:
        self.plans = {name: list(plan) for name, plan in plans.items()}
        self.calls: list[tuple[str, Any]] = []
        self.descriptors: set[int] = set()
        self.poisoned: set[int] = set()
        self.synced_again = 0
        for name in CALLS:
            setattr(self, name, self._planned(name, getattr(self, name)))

    def named(self, name: str) -> list[Any]:
        """Return the first argument of each call of that name."""
        return [argument for called, argument in self.calls if called == name]

    def wait_writable(self, fd: int) -> None:
        """Note that somebody waited."""
        self.calls.append(("wait_writable", fd))

    def _planned(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.calls.append((name, args[0]))
            plan = self.plans.get(name)
            step = plan.pop(0) if plan else None
            self._watch(name, args[0], step)
            if isinstance(step, Exception):
                if name == "close":
                    # Linux closes it, whatever it says.
                    real(*args)
                raise step
            if step is not None and name == "writev":
                fd, pieces = args
                return os.write(fd, b"".join(pieces)[:step])
            if step is not None:
                return step
            result = real(*args)
            if name in ("open", "dup"):
                self.descriptors.add(result)
            return result

        return call

    def _watch(self, name: str, argument: Any, step: object) -> None:
        if name == "close":
            self.descriptors.discard(argument)
            self.poisoned.discard(argument)
        elif name == "fdatasync":
            self.synced_again += argument in self.poisoned
            if isinstance(step, Exception):
                self.poisoned.add(argument)
