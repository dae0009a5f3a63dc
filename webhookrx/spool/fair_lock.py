"""
A lock that is had in the order in which it was asked for.

A thread that lets go of a C{threading.Lock} and takes it again at once has it back before one that waits is awake.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Final


class FairLock:
    """A context manager. Who waits has it after those who came before, each of them once."""

    def __init__(self) -> None:
        self._guard: Final = Lock()
        self._is_held = False
        self._turns: deque[Lock] = deque()

    def __enter__(self) -> None:
        with self._guard:
            if not self._is_held:
                self._is_held = True
                return
            turn = Lock()
            turn.acquire()
            self._turns.append(turn)
        turn.acquire()

    def __exit__(self, *_: object) -> None:
        with self._guard:
            if self._turns:
                # It stays held, by the next one.
                self._turns.popleft().release()
            else:
                self._is_held = False
