"""
Tests for L{webhookrx.shared_memory}.
"""

from __future__ import annotations

import os
import signal

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.shared_memory import LOCK_FILES, ByteLock, KeyLocks, map_memory, memory_file


class MemoryTests(SynchronousTestCase):
    """
    Tests for L{memory_file} and L{map_memory}.
    """

    def test_shared(self) -> None:
        """What is written in one map of a file is in all of them, also once its descriptor is closed."""
        fd = memory_file("test", 4096)
        one, other = map_memory(fd, 4096), map_memory(fd, 4096)
        os.close(fd)
        one[7:10] = b"abc"
        self.assertEqual(b"\0abc\0", other[6:11])

    def test_size_is_final(self) -> None:
        """Nobody can make the file shorter, which would end all processes that have a map of it."""
        fd = memory_file("test", 4096)
        self.addCleanup(os.close, fd)
        self.assertRaises(OSError, os.ftruncate, fd, 0)

    def test_alone(self) -> None:
        """Memory without a file is nobody else's."""
        memory = map_memory(None, 4096)
        memory[:3] = b"abc"
        self.assertEqual(b"\0\0\0", map_memory(None, 4096)[:3])


class ByteLockTests(SynchronousTestCase):
    """
    Tests for L{ByteLock}.
    """

    def test_one_at_a_time(self) -> None:
        """One of several has the lock; the others are told soon, and may have it once it is given back."""
        fd = memory_file("test", 1)
        self.addCleanup(os.close, fd)
        one, other = ByteLock(fd), ByteLock(fd)
        self.addCleanup(other.close)
        self.assertEqual((True, False), (one.acquire(), other.acquire()))
        one.release()
        self.assertTrue(other.acquire())
        other.release()
        self.assertTrue(one.acquire())
        one.close()
        self.assertTrue(other.acquire())


class KeyLocksTests(SynchronousTestCase):
    """
    Tests for L{KeyLocks}.
    """

    def setUp(self) -> None:
        self.fds = [memory_file("test", 0) for _ in range(LOCK_FILES)]
        for fd in self.fds:
            self.addCleanup(os.close, fd)

    def test_keys(self) -> None:
        """Each key has a lock of its own, and who has one does not matter for the others."""
        one, other = KeyLocks(self.fds), KeyLocks(self.fds)
        self.addCleanup(other.close)
        keys = [os.urandom(16) for _ in range(200)] + [b"\xff" * 16, bytes(16)]
        for key in keys:
            self.assertEqual((True, False), (one.acquire(key), other.acquire(key)))
        for key in keys[::2]:
            one.release(key)
        self.assertEqual([True, False] * 101, [other.acquire(key) for key in keys])
        one.close()
        self.assertEqual([True] * 101, [other.acquire(key) for key in keys[1::2]])

    def test_killed(self) -> None:
        """The locks of a process that is killed are free at once."""
        key, (told, tell) = os.urandom(16), os.pipe()
        child = os.fork()
        if not child:
            try:
                KeyLocks(self.fds).acquire(key)
                os.write(tell, b"x")
                signal.pause()
            finally:
                os._exit(1)
        os.read(told, 1)
        os.close(told)
        os.close(tell)
        locks = KeyLocks(self.fds)
        self.addCleanup(locks.close)
        self.assertFalse(locks.acquire(key))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self.assertTrue(locks.acquire(key))
