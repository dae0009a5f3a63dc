"""
Receivers that are several processes, seen from outside.
"""

from __future__ import annotations

import os
import re

from tests.system.receiver import Answer, Connection, Receiver, wait_until

_SAMPLE = re.compile(r"^(webhookrx_\w+)(\{[^}]*\})? (\S+)$", re.MULTILINE)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started and that live, in the order in which they were started."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                # The name of the program, in brackets, may hold anything (proc(5)).
                state, parent, *_ = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(name))
    return sorted(found)


def workers(receiver: Receiver, count: int = 2) -> list[int]:
    """Return its workers, once there are so many."""
    wait_until(lambda: len(children(receiver.pid)) == count, f"{count} workers live")
    return children(receiver.pid)


def is_alive(pid: int) -> bool:
    """Tell whether a process has not ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def serves(pid: int, connection: Connection) -> bool:
    """Tell whether a process has the other end of a TCP connection."""
    port = connection.socket.getsockname()[1]
    with open("/proc/net/tcp") as file:
        rows = [line.split() for line in file]
    inodes = {row[9] for row in rows if row[2].endswith(f":{port:04X}") and row[3] == "01"}
    return any(f"socket:[{inode}]" in _open_files(pid) for inode in inodes)


def open_sockets(pid: int) -> int:
    """Return how many sockets a process has open."""
    return sum(name.startswith("socket:") for name in _open_files(pid))


def _open_files(pid: int) -> set[str]:
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
    return found


def ask_admin(receiver: Receiver, page: str, name: str = "admin") -> Answer:
    """Ask at its endpoint for operators, a UNIX socket in its directory."""
    with Connection(receiver.path(name)) as connection:
        # With 1.0 the body is not chunked.
        connection.send(f"GET {page} HTTP/1.0\r\n\r\n".encode())
        heard = b""
        while data := connection.socket.recv(65536):
            heard += data
    head, _, body = heard.partition(b"\r\n\r\n")
    return Answer(int(head.split()[1]), {}, body)


def metrics(receiver: Receiver) -> dict[str, float]:
    """Return all its metrics, by their names with labels."""
    text = ask_admin(receiver, "/metrics").body.decode()
    return {f"{name}{labels}": float(value) for name, labels, value in _SAMPLE.findall(text)}
