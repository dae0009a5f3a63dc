"""
Passwords: hashed and verified by argon2 in two threads, with few who wait for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

from webhookrx.console.api.problems import too_many

THREADS: Final = 2
MOST_WAITING: Final = 8

#: 19 MiB, two passes, one lane: OWASP's Password Storage Cheat Sheet; some 90 ms.
_HASHER: Final = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)

#: Of a text that nobody has: who is unknown takes as long as who is known.
NOBODY: Final = "$argon2id$v=19$m=19456,t=2,p=1$RaNsa3NIjXuz+HGVyv1R1Q$ip9udz/PxIoGZuHUfmkIiOpCFGEqP9meh4A1ERgUog4"

T = TypeVar("T")


def hash_password(password: str) -> str:
    """Return the argon2 hash of a password. It takes long: not for the reactor's thread."""
    return _HASHER.hash(password)


def verify_password(stored: str, password: str) -> tuple[bool, bool]:
    """Return whether a password is that of a hash, and whether the hash is to be made anew. It takes long."""
    try:
        _HASHER.verify(stored, password)
    except (VerificationError, InvalidHashError):
        return False, False
    return True, _HASHER.check_needs_rehash(stored)


class Passwords:
    """
    The threads that hash.

    @param reactor: gets their results.
    """

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._pool = ThreadPool(0, THREADS, "webhookrx-console-passwords")
        self._under_way = 0

    def start(self) -> None:
        """Allow threads; they are made when there is something to do."""
        self._pool.start()

    def stop(self) -> None:
        """End the threads, once they have done what they do."""
        if self._pool.started:
            self._pool.stop()

    async def hash(self, password: str) -> str:
        """
        Return the hash of a password.

        @raise ApiProblem: too many wait.
        """
        return await self._run(hash_password, password)

    async def verify(self, stored: str | None, password: str) -> tuple[bool, bool]:
        """
        See L{verify_password}.

        @param stored: None takes as long, and is never right.
        @raise ApiProblem: too many wait.
        """
        right, old = await self._run(verify_password, stored or NOBODY, password)
        return right and stored is not None, old

    async def _run(self, work: Callable[..., T], *arguments: str) -> T:
        if self._under_way >= THREADS + MOST_WAITING:
            raise too_many("Too many passwords are being checked.", 2)
        self._under_way += 1
        try:
            result: T = await deferToThreadPool(self._reactor, self._pool, work, *arguments)
            return result
        finally:
            self._under_way -= 1
