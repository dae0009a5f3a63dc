"""The operating system, with faults on demand."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from webhookrx.observers.line_writer import FileSystem


class FaultyFileSystem(FileSystem):
    """
    The real file system, but calls fail as planned.

    @ivar plans: name of a call to what its next calls do: raise an exception, or, for C{writev}, take so many bytes
        only. C{None}, and the end of the plan, is the real call.
    @ivar calls: name and first argument of each call.
    @ivar descriptors: those that it opened and did not close.
    """

    def __init__(self, **plans: Sequence[Exception | int | None]) -> None:
        self.plans = {name: list(plan) for name, plan in plans.items()}
        self.calls: list[tuple[str, Any]] = []
        self.descriptors: set[int] = set()
        for name in ("open", "close", "fstat", "fchmod", "fsync", "fdatasync", "pread", "writev"):
            setattr(self, name, self._planned(name, getattr(os, name)))

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
            if isinstance(step, Exception):
                raise step
            if step is not None:
                fd, pieces = args
                return os.write(fd, b"".join(pieces)[:step])
            result = real(*args)
            if name == "open":
                self.descriptors.add(result)
            elif name == "close":
                self.descriptors.discard(args[0])
            return result

        return call
