"""
Whether observers may write where they are to, asked by C{--check} alone: a start finds out when it opens them.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from webhookrx.diagnostics import quoted
from webhookrx.settings import Observer


class User(NamedTuple):
    """Who a process will be."""

    uid: int
    gid: int

    @property
    def name(self) -> str:
        """For people."""
        try:
            return f"{pwd.getpwuid(self.uid).pw_name} (uid {self.uid})"
        except KeyError:
            return f"uid {self.uid}"


def run_as(uid: int | None = None, gid: int | None = None) -> User:
    """
    Return who C{twistd} will be.

    @param uid: of its option of that name; None for who it is now.
    @param gid: the same; None for the group of the user.
    """
    if uid is None:
        return User(os.geteuid(), os.getegid() if gid is None else gid)
    if gid is None:
        try:
            gid = pwd.getpwuid(uid).pw_gid
        except KeyError:
            gid = os.getegid()
    return User(uid, gid)


def unwritable(observers: Iterable[Observer], user: User) -> list[str]:
    """Return a sentence for each file and directory of these observers that this user may not write."""
    paths = [path for observer in observers for path in _paths(observer)]
    return [
        f"{quoted(path)} may not be written by {user.name}, who webhookrx will run as."
        for path, may in zip(paths, _may_write(paths, user), strict=True)
        if not may
    ]


def _paths(observer: Observer) -> list[str]:
    """Return what an observer of ours writes, and the one behind it."""
    own = [observer.args[0]] if observer.name in ("file", "spool") and observer.args else []
    return own if observer.inner is None else own + _paths(observer.inner)


def _may_write(paths: Sequence[str], user: User) -> list[bool]:
    """Ask the system. As another user, which only root can become, a process of its own does."""
    if user.uid == os.geteuid() or os.geteuid() != 0:
        return [_is_writable(path) for path in paths]
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups(_groups(user))
            os.setgid(user.gid)
            os.setuid(user.uid)
            os.write(writing, bytes(_is_writable(path) for path in paths))
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as answers:
        told = answers.read()
    os.waitpid(child, 0)
    # What it could not tell is not held against anybody.
    return [bool(each) for each in told] if len(told) == len(paths) else [True] * len(paths)


def _groups(user: User) -> list[int]:
    try:
        return os.getgrouplist(pwd.getpwuid(user.uid).pw_name, user.gid)
    except KeyError:
        return [user.gid]


def _is_writable(path: str) -> bool:
    """Tell whether a file can be written, or made; a directory, whether files can be made in it."""
    if not os.path.lexists(path):
        path = os.path.dirname(path)
    mode = os.W_OK | os.X_OK if os.path.isdir(path) else os.W_OK
    return os.access(path, mode, effective_ids=True)
