"""
System calls of the real program, by C{strace}: written down, delayed, or made to fail.
"""

from __future__ import annotations

import codecs
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from tests.system.receiver import PATIENCE, wait_until
from tests.system.torture.proof import Skipped

STRACE = shutil.which("strace")

#: What changes a disk or the world outside, and what is heard from there.
WATCHED = (
    "openat,close,write,writev,pwrite64,pwritev,pwritev2,ftruncate,fallocate,fsync,fdatasync,"
    "rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,link,linkat,sendto,sendmsg,recvfrom"
)

_SHOWN = ("-f", "-q", "-yy", "-v", "-s", "16777216")

_LINE = re.compile(rb"(\d+) +(?:<\.\.\. (\w+) resumed>(.*)|(\w+)\((.*))", re.DOTALL)
_RESULT = re.compile(
    rb"^(.*)\)\s+= (-?\d+|\?)(?:<.*>)?(?:\(deleted\))?(?: (E[A-Z0-9]+) \([^()]*\))?(?: \([A-Z]+\))*$", re.DOTALL
)
_UNFINISHED = re.compile(rb"\s*<(?:unfinished|detached) \.\.\.>$")
#: What stands behind the arguments when the process was killed and strace never got to write the result.
_WITHOUT_RESULT = re.compile(rb"\)\s*(?:=\s*(?:\?.*)?)?$")
_STRING = rb'"([^"\\]*(?:\\.[^"\\]*)*)"'
_TEXT = re.compile(_STRING, re.DOTALL)
_IOV = re.compile(rb"iov_base=" + _STRING, re.DOTALL)
_FD = re.compile(rb"(-?\d+|AT_FDCWD)<(TCP[^\]]*\]|[^>]*)>")


@dataclass
class Call:
    """
    One system call.

    @ivar begin: when it began, and C{end}, when it was back: numbers that grow. A call that never came back has the
    end of the recording. @ivar result: what it returned, None when it never came back; negative when it failed with
    C{error}.
    """

    name: str
    arguments: bytes
    begin: int
    end: int
    result: int | None
    error: str = ""

    @property
    def fd(self) -> int:
        """The descriptor that comes first."""
        found = _FD.match(self.arguments)
        return int(found[1]) if found and found[1] != b"AT_FDCWD" else -1

    @property
    def place(self) -> str:
        """What the descriptor that comes first stands for: a path, or both ends of a connection."""
        found = _FD.match(self.arguments)
        return found[2].decode() if found else ""

    def texts(self) -> list[bytes]:
        """Return all strings among its arguments."""
        return [_unescaped(text) for text in _TEXT.findall(self.arguments)]

    def paths(self) -> list[str]:
        """Return the paths that it names, absolute."""
        base = ""
        found = []
        for piece in re.finditer(_FD.pattern + b"|" + _STRING, self.arguments, re.DOTALL):
            if piece[3] is None:
                base = piece[2].decode()
            else:
                found.append(os.path.join(base, _unescaped(piece[3]).decode()))
        return found

    def data(self) -> bytes:
        """Return the bytes that it wrote or got: as many as it says."""
        pieces = _IOV.findall(self.arguments) if b"iov_base=" in self.arguments else _TEXT.findall(self.arguments)[:1]
        data = b"".join(map(_unescaped, pieces))
        return data if self.result is None else data[: max(self.result, 0)]

    def number(self, place: int) -> int:
        """Return a numeric argument, counted from the end: -1 is the last."""
        return int(self.arguments.rstrip().rsplit(b", ", -place)[place].split()[0])


def _unescaped(text: bytes) -> bytes:
    return codecs.escape_decode(text)[0] if b"\\" in text else text


def read_calls(path: str, begin: int = 0) -> Iterator[Call]:
    """Yield the calls of a recording, by when they were back; numbers grow from C{begin}."""
    waiting: dict[bytes, Call] = {}
    number = begin
    with open(path, "rb") as file:
        # A recording that is cut off inside a line ends before that line.
        lines = file.read().split(b"\n")[:-1]
    for number, line in enumerate(lines, begin):
        found = _LINE.match(line)
        if found is None:
            continue
        pid, resumed, rest, name, arguments = found.groups()
        if name is not None:
            begun = _begun(arguments)
            if begun is not None:
                waiting[pid] = Call(name.decode(), begun, number, number, None)
            else:
                yield _ended(Call(name.decode(), b"", number, number, None), arguments, number)
        elif pid in waiting and waiting[pid].name == resumed.decode():
            call = waiting.pop(pid)
            begun = _begun(call.arguments + rest)
            if begun is not None:
                call.arguments = begun
                call.end = number + 1
                yield call
                continue
            yield _ended(call, call.arguments + rest, number)
    for call in waiting.values():
        call.end = number + 1
        yield call


def _begun(text: bytes) -> bytes | None:
    """Return the arguments of a call that was not back; None when it was."""
    if _RESULT.match(text) and not _UNFINISHED.search(text):
        return None
    return _WITHOUT_RESULT.sub(b"", _UNFINISHED.sub(b"", text))


def _ended(call: Call, text: bytes, number: int) -> Call:
    found = _RESULT.match(text)
    assert found is not None  # who calls has looked
    call.arguments = found[1]
    call.end = number
    call.result = None if found[2] == b"?" else int(found[2])
    call.error = (found[3] or b"").decode()
    return call


@cache
def need_strace() -> str:
    """
    Return where C{strace} is.

    @raise Skipped: it is not installed, or may not be used.
    """
    if STRACE is None:
        raise Skipped("strace is not installed")
    tried = subprocess.run([STRACE, "-f", "-o", "/dev/null", "true"], capture_output=True, text=True, timeout=PATIENCE)
    if tried.returncode:
        raise Skipped(f"strace may not be used here: {tried.stderr.strip()}")
    return STRACE


def recording_prefix(path: str, *injections: str) -> list[str]:
    """
    Return what a program must run under so that its calls are written to C{path}, and some are made to fail.

    C{-D}: the program stays our child, so that a signal goes to it and not to C{strace}.

    @raise Skipped: there is no C{strace}.
    """
    failing = (part for injection in injections for part in ("-e", f"inject={injection}"))
    return [need_strace(), "-D", "--seccomp-bpf", *_SHOWN, "-e", f"trace={WATCHED}", *failing, "-o", path]


def slowing_prefix(*injections: str) -> list[str]:
    """
    Return what a program must run under so that some calls take long, and nothing else does.

    @param injections: what C{-e inject=} takes.
    @raise Skipped: there is no C{strace}.
    """
    calls = ",".join(injection.partition(":")[0] for injection in injections)
    slowing = (part for injection in injections for part in ("-e", f"inject={injection}"))
    quiet = ("-f", "-qq", "-e", "signal=none", "-o", os.devnull)
    return [need_strace(), "-D", "--seccomp-bpf", *quiet, "-e", f"trace={calls}", *slowing]


def wait_for_end(path: str, pid: int) -> None:
    """Wait until C{strace} has written down the end of a process."""
    ending = re.compile(rb"^%d +\+\+\+ (killed|exited)" % pid, re.MULTILINE)

    def has_ended() -> bool:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - 4096))
            return bool(ending.search(file.read()))

    wait_until(has_ended, "strace has written all")


class Attached:
    """
    C{strace} on a process that runs, with calls that fail or take long; a context manager.

    @param injections: what C{-e inject=} takes. The C{when=} of one is counted for each thread.
    @param watched: calls that are written down, too.
    @param paths: only calls that have to do with these files; all if there are none.
    @ivar path: the recording.
    """

    def __init__(self, pid: int, injections: Sequence[str], watched: str = "", paths: Sequence[str] = ()) -> None:
        handle, self.path = tempfile.mkstemp(prefix="webhookrx-strace-")
        os.close(handle)
        failing = ",".join(injection.partition(":")[0] for injection in injections)
        self._command = [
            need_strace(),
            *_SHOWN,
            "-p",
            str(pid),
            "-o",
            self.path,
            "-e",
            f"trace={','.join(filter(None, (failing, watched)))}",
            *(part for injection in injections for part in ("-e", f"inject={injection}")),
            *(part for path in paths for part in ("-P", path)),
        ]
        self._pid = pid
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Attached:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            wait_until(lambda: self._is_attached() or self._has_ended(), "strace is attached")
        except BaseException:
            self.detach()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()
        os.remove(self.path)

    def detach(self) -> None:
        """Let the process go on alone."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.communicate(timeout=PATIENCE)
            self._process = None

    def injected(self) -> int:
        """Return how many calls were made to fail so far."""
        with open(self.path, "rb") as file:
            return file.read().count(b"(INJECTED)")

    def _is_attached(self) -> bool:
        assert self._process is not None
        tasks = f"/proc/{self._pid}/task"
        return all(_tracer_of(f"{tasks}/{task}/status") == self._process.pid for task in os.listdir(tasks))

    def _has_ended(self) -> bool:
        assert self._process is not None
        if self._process.poll() is None:
            return False
        raise Skipped(f"strace can't attach: {self._process.communicate()[1].decode().strip()}")


def _tracer_of(status: str) -> int:
    try:
        with open(status) as file:
            return next(int(line.split()[1]) for line in file if line.startswith("TracerPid:"))
    except FileNotFoundError:
        return 0
