"""
A disk that forgets: what a crash of the machine may leave of what a program has done.

The model, which is meant to be harsher than any real file system:

  - What was written to a file is lost, or kept, in pieces: each 512 bytes of it, by its place in the file, on its
    own, in any order, until an C{fsync} or C{fdatasync} of that file is back which began after the write was back.
    Then data and size are kept for good. A piece that is lost shows what the disk had there before: older bytes, or
    zeros where the file has grown.
  - The size of a file that has grown may be that of all writes, although bytes are lost, or just hold what was kept.
    Truncating is kept or lost as any write.
  - A name (of a new file, of a directory, of one that is renamed or removed) is kept or lost on its own, in any
    order, until an C{fsync} of I{its directory} is back. Syncing the file does not keep its name. Two changes of the
    same name are in order: the second is not kept without the first. A rename is never half done.
  - What an overwritten piece held two writes ago can come back, as long as no sync was between; what was never
    written can't: blocks of other files do not show up, as no journaling file system lets them. Bytes that were
    synced don't rot.
  - A sync that fails leaves what it was to keep as it was, lost or not; but the kernel takes it for clean, so that no
    later sync keeps it.
  - A call that was under way when the power went has happened in full, in part or not at all.

C{-shm} files of SQLite are memory that happens to have a name; they are written through C{mmap}, SQLite makes them
anew when the last process was not there to end well, and here they are always lost.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from tests.system.torture.strace import Call
from tests.system.torture.subject import TOKEN_IN_BYTES

#: Bytes that a disk writes whole or not at all.
SECTOR = 512

#: Later than everything.
NEVER = 1 << 62

_STATUS = re.compile(rb"HTTP/1\.1 (\d\d\d) ")


@dataclass(eq=False)
class Inode:
    """A file or a directory, whatever its names."""

    is_directory: bool
    size: int = 0


@dataclass(eq=False)
class Change:
    """
    One change of one file or directory.

    @ivar begin: when it began; C{end}, when it was back; C{kept}, since when it can't be lost.
    @ivar forgotten: a sync of it has failed, and no later one can mean it.
    """

    inode: Inode
    begin: int
    end: int
    kept: int = field(default=NEVER, init=False)
    forgotten: bool = field(default=False, init=False)


@dataclass(eq=False)
class Write(Change):
    """Bytes at a place."""

    offset: int
    data: bytes


@dataclass(eq=False)
class Truncate(Change):
    """A new size."""

    size: int


@dataclass(eq=False)
class Names(Change):
    """Names of a directory that come, and go where they stand for None, together."""

    names: dict[str, Inode | None]


@dataclass
class State:
    """What is on a disk: paths below its root to bytes, None for a directory."""

    files: dict[str, bytes | None]

    def write(self, directory: str) -> None:
        """Make it real."""
        for path, content in sorted(self.files.items()):
            place = os.path.join(directory, path)
            if content is None:
                os.mkdir(place)
            else:
                with open(place, "wb") as file:
                    file.write(content)


class Disk:
    """
    Follows a program by its system calls, and knows at any time what could be left of what it did.

    @param root: the directory that is looked at; it is there already, is empty, and stays.
    @ivar acknowledged: the tokens that got a 200, with when that was sent.
    @ivar failed_syncs: how many syncs have failed.
    @ivar doubtful: a process was killed inside a call; whether that has happened is known to nobody.
    @ivar moments: when something changed or was told; a crash anywhere else looks like one of those.
    """

    def __init__(self, root: str) -> None:
        self.acknowledged: list[tuple[int, str]] = []
        self.failed_syncs = 0
        self.doubtful = False
        self._root_path = root
        self._root = Inode(True)
        self._names: dict[Inode, dict[str, Inode]] = {self._root: {}}
        self._changes: list[Change] = []
        self._open: dict[int, tuple[Inode, bool]] = {}
        self._asked: dict[str, list[str]] = {}
        self._moments: set[int] = set()

    @property
    def moments(self) -> list[int]:
        return sorted(self._moments)

    def acknowledged_before(self, moment: int) -> list[str]:
        """Return the tokens whose 200 may have left the machine by then."""
        return [token for at, token in self.acknowledged if at < moment]

    # -- following -----------------------------------------------------------------------------------------------

    def follow(self, calls: Iterable[Call]) -> None:
        """Follow one process from its beginning; its descriptors end with it, what it wrote does not."""
        self._open.clear()
        self._asked.clear()
        for call in calls:
            if call.error and call.name in ("fsync", "fdatasync"):
                self._forget(call)
            if call.error or (call.result is None and call.name in ("openat", "recvfrom")):
                continue
            step = getattr(self, f"_on_{call.name}", None)
            if step is not None:
                before = len(self._changes)
                step(call)
                self.doubtful |= call.result is None and len(self._changes) > before

    def _on_openat(self, call: Call) -> None:
        assert call.result is not None
        (path,) = call.paths()
        found = self._find(path)
        if found is None:
            return
        directory, name = found
        inode = self._names[directory].get(name) if name else directory
        if inode is None:
            inode = Inode(False)
            self._change_names(directory, call, {name: inode})
        elif b"O_TRUNC" in call.arguments:
            self._add(Truncate(inode, call.begin, call.end, 0))
            inode.size = 0
        self._open[call.result] = (inode, b"O_APPEND" in call.arguments)

    def _on_close(self, call: Call) -> None:
        self._open.pop(call.fd, None)

    def _on_write(self, call: Call) -> None:
        inode, appends = self._open.get(call.fd, (None, False))
        if inode is not None:
            assert appends, "a place that is not known"
            self._wrote(inode, call, inode.size)

    _on_writev = _on_write

    def _on_pwrite64(self, call: Call) -> None:
        inode, _ = self._open.get(call.fd, (None, False))
        if inode is not None:
            self._wrote(inode, call, call.number(-1))

    _on_pwritev = _on_pwrite64

    def _wrote(self, inode: Inode, call: Call, offset: int) -> None:
        data = call.data()
        self._add(Write(inode, call.begin, call.end, offset, data))
        inode.size = max(inode.size, offset + len(data))

    def _on_ftruncate(self, call: Call) -> None:
        inode, _ = self._open.get(call.fd, (None, False))
        if inode is not None:
            inode.size = call.number(-1)
            self._add(Truncate(inode, call.begin, call.end, inode.size))

    def _on_fsync(self, call: Call) -> None:
        inode, _ = self._open.get(call.fd, (None, False))
        if inode is not None and call.result == 0:
            for change in self._changes:
                if change.inode is inode and change.end < call.begin and not change.forgotten:
                    change.kept = min(change.kept, call.end)
            self._moments |= {call.begin, call.end + 1}

    _on_fdatasync = _on_fsync

    def _forget(self, call: Call) -> None:
        """A sync has failed."""
        self.failed_syncs += 1
        inode, _ = self._open.get(call.fd, (None, False))
        for change in self._changes:
            if change.inode is inode and change.begin < call.end and change.kept == NEVER:
                change.forgotten = True

    def _on_mkdir(self, call: Call) -> None:
        found = self._find(call.paths()[-1])
        if found is not None:
            inode = Inode(True)
            self._names[inode] = {}
            self._change_names(found[0], call, {found[1]: inode})

    _on_mkdirat = _on_mkdir

    def _on_unlink(self, call: Call) -> None:
        found = self._find(call.paths()[-1])
        if found is not None:
            self._change_names(found[0], call, {found[1]: None})

    _on_unlinkat = _on_unlink

    def _on_rename(self, call: Call) -> None:
        old, new = (self._find(path) for path in call.paths())
        if old is not None and new is not None:
            assert old[0] is new[0], "a rename from one directory to another"
            self._change_names(old[0], call, {old[1]: None, new[1]: self._names[old[0]][old[1]]})

    _on_renameat = _on_renameat2 = _on_rename

    def _on_recvfrom(self, call: Call) -> None:
        tokens = TOKEN_IN_BYTES.findall(call.data())
        self._asked.setdefault(call.place, []).extend(token.decode() for token in tokens)

    def _on_sendto(self, call: Call) -> None:
        # It may have been sent as soon as the call began.
        for status in _STATUS.findall(b"".join(call.texts()[:1])):
            asked = self._asked.get(call.place)
            if asked:
                token = asked.pop(0)
                if status == b"200":
                    self.acknowledged.append((call.begin, token))
                    self._moments.add(call.begin + 1)

    def _find(self, path: str) -> tuple[Inode, str] | None:
        """Return the directory and the name of a path; None when it is none of ours. The root has no name."""
        path = os.path.normpath(path)
        if path != self._root_path and not path.startswith(self._root_path + os.sep):
            return None
        if path.endswith("-shm"):
            return None
        *parents, name = os.path.relpath(path, self._root_path).split(os.sep)
        inode = self._root
        for parent in parents:
            inode = self._names[inode][parent]
        return inode, "" if name == "." else name

    def _change_names(self, directory: Inode, call: Call, names: dict[str, Inode | None]) -> None:
        self._add(Names(directory, call.begin, call.end, names))
        _apply_names(self._names[directory], names)

    def _add(self, change: Change) -> None:
        self._changes.append(change)
        self._moments |= {change.begin + 1, change.end + 1}

    def without_syncs(self) -> None:
        """Act from now on as if nothing had ever been synced: what a program would get away with that does not sync."""
        for change in self._changes:
            change.kept = NEVER

    # -- crashing ------------------------------------------------------------------------------------------------

    def crash(self, moment: int, fate: Fate) -> State:
        """Return one state that the disk may be in when the power goes at that moment."""
        by_inode: dict[Inode, list[Change]] = {}
        for change in self._changes:
            if change.begin < moment:
                by_inode.setdefault(change.inode, []).append(change)
        state = State({})
        self._leave(self._root, "", by_inode, moment, fate, state)
        return state

    def _leave(
        self, directory: Inode, path: str, by_inode: dict[Inode, list[Change]], moment: int, fate: Fate, state: State
    ) -> None:
        names: dict[str, Inode] = {}
        for change in fate.names([each for each in by_inode.get(directory, []) if isinstance(each, Names)], moment):
            _apply_names(names, change.names)
        for name, inode in names.items():
            place = os.path.join(path, name)
            if inode.is_directory:
                state.files[place] = None
                self._leave(inode, place, by_inode, moment, fate, state)
            else:
                state.files[place] = fate.content(by_inode.get(inode, []), moment)


class Fate:
    """
    Decides what is lost.

    @param kind: C{"nothing"} unsynced is kept, C{"everything"} is, each file's first few changes are (C{"prefix"}), any
        of them (C{"subset"}), or any pieces of them (C{"torn"}).
    """

    KINDS = ("nothing", "everything", "prefix", "subset", "torn")

    def __init__(self, kind: str, random: Random) -> None:
        self.kind = kind
        self._random = random
        self._share = random.choice((0.1, 0.5, 0.9))

    def names(self, changes: list[Names], moment: int) -> list[Names]:
        """Return the changes of a directory that are kept."""
        if self.kind == "everything":
            return changes
        all_lost = self.kind == "nothing" or self._random.random() < 0.3
        lost: set[str] = set()
        kept = []
        for change in changes:
            if change.kept < moment or not (all_lost or lost & change.names.keys() or self._random.random() < 0.3):
                kept.append(change)
            else:
                lost |= change.names.keys()
        return kept

    def content(self, changes: list[Change], moment: int) -> bytes:
        """Return what is left of a file."""
        content = bytearray()
        full_size = self.kind in ("subset", "torn") and self._random.random() < 0.5
        size = 0
        pending = sum(change.kept >= moment for change in changes)
        first = self._random.randint(0, pending)
        number = 0
        for change in changes:
            kept = change.kept < moment
            if not kept:
                number += 1
            if isinstance(change, Truncate):
                if kept or self._keeps(number, first):
                    del content[change.size :]
                    content.extend(bytes(change.size - len(content)))
                    size = change.size
            elif isinstance(change, Write):
                size = max(size, change.offset + len(change.data))
                if kept or (self.kind != "torn" and self._keeps(number, first)):
                    _put(content, change.offset, change.data)
                elif self.kind == "torn":
                    self._put_pieces(content, change)
        if full_size:
            content.extend(bytes(max(0, size - len(content))))
        return bytes(content)

    def _keeps(self, number: int, first: int) -> bool:
        if self.kind == "prefix":
            return number <= first
        return self.kind == "everything" or (self.kind != "nothing" and self._random.random() < self._share)

    def _put_pieces(self, content: bytearray, change: Write) -> None:
        begin, end = change.offset, change.offset + len(change.data)
        while begin < end:
            stop = min(end, (begin // SECTOR + 1) * SECTOR)
            if self._random.random() < self._share:
                _put(content, begin, change.data[begin - change.offset : stop - change.offset])
            begin = stop


def _put(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _apply_names(names: dict[str, Inode], change: dict[str, Inode | None]) -> None:
    for name, inode in change.items():
        if inode is None:
            names.pop(name, None)
        else:
            names[name] = inode
