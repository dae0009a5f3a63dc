"""
Copies of a store: made while the console runs, checked before they are used, and put in its place.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress

from webhookrx.config.files import sync_directory
from webhookrx.console.store.database import APPLICATION, StoreWriter, connect
from webhookrx.console.store.files import PARTS
from webhookrx.console.store.history import newest_revision
from webhookrx.console.store.schema import VERSION
from webhookrx.diagnostics import quoted
from webhookrx.errors import CannotStart, StoreUnavailable, UnusableFile


def copy_store(source: str, target: str) -> int:
    """
    Copy a store as it is at one moment, also while a console writes to it.

    @param target: it appears once the copy is complete, checked and on disk.
    @return: the newest revision in the copy.
    @raise CannotStart: it can't be copied, or the target is there already; the text says why.
    """
    if os.path.lexists(target):
        raise CannotStart(f"{quoted(target)} is there already.")
    new = f"{target}.new"
    try:
        for part in PARTS:
            with suppress(FileNotFoundError):
                os.unlink(new + part)  # left by a process that was killed
        os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            _copy(source, new)
            revision = check_store(new)
            _sync(new)
            os.rename(new, target)
        except BaseException:
            for part in PARTS:
                with suppress(OSError):
                    os.unlink(new + part)
            raise
        sync_directory(os.path.dirname(os.path.abspath(target)))
    except sqlite3.Error as error:
        raise CannotStart(f"{quoted(source)} can't be copied to {quoted(target)}: {error}.") from None
    except OSError as error:
        raise CannotStart(f"{quoted(target)} can't be written: {error.strerror}.") from None
    return revision


def _copy(source: str, target: str) -> None:
    # In one step: it reads one state, and holds no writer up. In several it would begin again after each write.
    with closing(connect(source, "ro")) as reader, closing(connect(target)) as writer:
        reader.backup(writer)
        # The copy stands alone, without a log beside it.
        writer.execute("PRAGMA journal_mode=DELETE").fetchall()


def check_store(path: str) -> int:
    """
    Check whether a file is an undamaged store, and return its newest revision.

    @raise CannotStart: it is none, or of a later version.
    """
    if not os.path.isfile(path):
        raise CannotStart(f"There is no file {quoted(path)}.")
    try:
        with closing(connect(path, "ro")) as db:
            (application,) = db.execute("PRAGMA application_id").fetchone()
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if application != APPLICATION:
                raise CannotStart(f"{quoted(path)} is no store of a console.")
            if version > VERSION:
                raise CannotStart(f"{quoted(path)} was made by a later version of webhookrx.")
            (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise CannotStart(f"{quoted(path)} is damaged: {found}.")
            return newest_revision(db)
    except sqlite3.Error as error:
        raise CannotStart(f"{quoted(path)} can't be used: {error}.") from None


def replace_store(path: str, copy: str) -> int:
    """
    Put a copy in the place of a store, which is kept under the name C{PATH.replaced}. The caller has the lock of it.

    @return: the revision of the copy.
    @raise CannotStart: the copy can't be used, or the files can't be written.
    """
    check_store(copy)
    ready = f"{path}.restored"
    with suppress(FileNotFoundError):
        os.unlink(ready)  # left by a process that was killed
    revision = copy_store(copy, ready)
    try:
        if os.path.lexists(path):
            with suppress(StoreUnavailable, UnusableFile):
                StoreWriter(path).close()  # brings its log into the file
            os.replace(path, f"{path}.replaced")
        for part in PARTS[1:]:
            with suppress(FileNotFoundError):
                os.unlink(path + part)  # of the old file: SQLite would take it for that of the new one
        os.rename(ready, path)
        sync_directory(os.path.dirname(path))
    except OSError as error:
        raise CannotStart(f"{quoted(path)} can't be replaced: {error.strerror}.") from None
    return revision


def _sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
