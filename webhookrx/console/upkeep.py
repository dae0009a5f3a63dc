"""
What is done to a console's files by commands: make, back up, restore, and adopt routers that know a later revision.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Final

from webhookrx.config.files import read_file, read_state, write_state
from webhookrx.console.key_backup import decrypt_keys, encrypt_keys
from webhookrx.console.routers.authority import KEY_FILES, authority_of, load_authority, make_authority
from webhookrx.console.routers.records import ADOPTION, read_revisions
from webhookrx.console.store.copies import check_store, copy_store, replace_store
from webhookrx.console.store.files import StoreFiles, lock_store
from webhookrx.console.store.history import Author, Change, StoreTransaction
from webhookrx.diagnostics import quoted
from webhookrx.errors import CannotStart

HIGHEST_REVISION: Final = (1 << 53) - (1 << 32)
"""Beyond it no counter is raised: it is no revision that a console has made."""

_COMMAND: Final = Author("root", "command")


def init_console(path: str) -> None:
    """
    Make the keys and the store of a new console.

    @param path: of the database, absolute.
    @raise CannotStart: there is one already, or the files can't be written.
    """
    if os.path.lexists(path):
        raise CannotStart(f"There is a console in {quoted(path)} already.")
    directory = os.path.dirname(path)
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
    except OSError as error:
        raise CannotStart(f"{quoted(directory)} can't be made: {error.strerror}.") from None
    # The database last: without it, an init that was interrupted is run again.
    make_authority(directory, datetime.now(UTC))
    StoreFiles(path, make=True).close()


def back_up(path: str, target: str, keys: str = "", passphrase_file: str = "") -> int:
    """
    Copy the store of a console, which may run, and its keys.

    @param keys: the file for the keys, encrypted; empty for none.
    @return: the revision of the copy.
    @raise CannotStart: something can't be read or written, or a file is there already.
    """
    check_store(path)
    if keys:
        if os.path.lexists(keys):
            raise CannotStart(f"{quoted(keys)} is there already.")
        directory = os.path.dirname(path)
        load_authority(directory)
        files = {name: read_state(directory, name) or b"" for name in KEY_FILES}
        backup = encrypt_keys(files, _passphrase(passphrase_file))
        try:
            write_state(os.path.dirname(keys), os.path.basename(keys), backup)
        except OSError as error:
            raise CannotStart(f"{quoted(keys)} can't be written: {error.strerror or error}.") from None
    return copy_store(path, target)


def restore(path: str, copy: str, keys: str = "", passphrase_file: str = "", *, replace: bool = False) -> int:
    """
    Put a copy, and with it keys, in the place of a console that does not run.

    @param replace: a console that is there is replaced; its database is kept as C{PATH.replaced}.
    @return: the revision of the copy.
    @raise CannotStart: the copy or the keys can't be used, or a console is there or runs; nothing is changed then.
    """
    directory = os.path.dirname(path)
    if os.path.lexists(path) and not replace:
        raise CannotStart(f"There is a console in {quoted(path)} already; --replace puts the copy in its place.")
    check_store(copy)
    files: dict[str, bytes] = {}
    if keys:
        files = decrypt_keys(read_file(keys)[0], _passphrase(passphrase_file))
        authority_of(files)
    for name in KEY_FILES if files else ():
        there = read_state(directory, name)
        if there not in (None, files[name]) and not replace:
            raise CannotStart(f"{quoted(os.path.join(directory, name))} is another key; --replace replaces it.")
    lock = lock_store(path)
    try:
        for name in KEY_FILES if files else ():
            write_state(directory, name, files[name])
        # Without its keys no router would talk to it.
        load_authority(directory)
        return replace_store(path, copy)
    except OSError as error:
        raise CannotStart(f"The keys can't be written: {error.strerror or error}.") from None
    finally:
        lock.release()


def adopt(path: str) -> tuple[int, int]:
    """
    Raise the revision above the highest that a router has applied, so that routers take bundles of a console that an
    older backup was restored to. That is needed if one has had any that it was not given here.

    @return: the revisions before and after; the same when nothing was needed.
    @raise CannotStart: the console runs, or a router tells of a revision that no console can have.
    """
    files = StoreFiles(path)
    try:

        def raise_revision(transaction: StoreTransaction) -> tuple[int, int]:
            before, adopted = read_revisions(transaction.db)
            heard, is_needed = transaction.execute(
                "SELECT coalesce(max(applied_revision), 0), total(applied_revision > max(bundle_revision, ?))"
                " FROM router",
                (adopted,),
            ).fetchone()
            if not is_needed:
                return before, before
            if heard >= HIGHEST_REVISION:
                raise CannotStart(f"A router tells of revision {heard}, which no console has made.")
            above = max(before, heard) + 1
            change = Change(*ADOPTION, "update", before, above)
            return before, transaction.revise(_COMMAND, [change], "adopt", number=above)

        return files.writer.write(raise_revision)
    finally:
        files.close()


def _passphrase(path: str) -> bytes:
    return read_file(path)[0].strip(b"\r\n")
