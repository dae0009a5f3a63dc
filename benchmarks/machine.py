"""
What figures were measured on and with.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from statistics import median

from benchmarks.tools import Tools, Unavailable, program

OURS = ("webhookrx", "Twisted", "httptools", "msgspec", "google-re2", "pyOpenSSL")
PEERS = ("uvicorn", "httptools", "uvloop", "orjson", "tornado", "aiohttp", "granian")

_VERSIONS = """
import json, platform, sys
from importlib.metadata import PackageNotFoundError, version
found = {"Python": platform.python_version()}
for name in sys.argv[1:]:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(found))
"""


def describe(tools: Tools, directory: str) -> dict[str, str]:
    """
    Return what there is to know of the machine and of the programs.

    @param directory: on the disk that messages are written to.
    """
    cores = f"{os.cpu_count()} cores; server on {tools.cores.server}, load on {tools.cores.load}"
    seen = {
        "measured": time.strftime("%Y-%m-%d"),
        "machine": f"{_processor()}, {cores}",
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "disk": f"{_file_system(directory)}, {sync_ms(directory):.2f} ms for an append of 16 KiB with fdatasync",
        "Python": f"{platform.python_version()}, {platform.python_compiler()}",
        "packages": ", ".join(f"{name} {found}" for name in OURS if (found := _version(name))),
    }
    if tools.reactor or tools.options:
        seen["options"] = " ".join((f"--reactor={tools.reactor}" if tools.reactor else "", *tools.options)).strip()
    if tools.peers_python is not None:
        seen["peers"] = _versions(tools.peers_python, PEERS)
    seen["programs"] = ", ".join(filter(None, (_said("nginx", "-v"), _said("wrk", "-v"), _said("strace", "-V"))))
    return seen


def sync_ms(directory: str) -> float:
    """Return the milliseconds that the disk takes for what C{--ack durable} does with a batch; the median of thirty."""
    path = os.path.join(directory, f".sync-{os.getpid()}")
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    try:
        times = []
        for _ in range(30):
            began = time.perf_counter()
            os.write(descriptor, b"x" * 16384)
            os.fdatasync(descriptor)
            times.append(time.perf_counter() - began)
        return median(times) * 1e3
    finally:
        os.close(descriptor)
        os.unlink(path)


def _processor() -> str:
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"^model name\s*:\s*(.+)$", file.read(), re.MULTILINE)
        if found is not None:
            return found[1].strip()
    return platform.machine()


def _file_system(directory: str) -> str:
    """Return the type of the file system that a directory is on, from the longest mount point above it."""
    best = ("", "unknown")
    with suppress(OSError), open("/proc/mounts", encoding="utf-8") as file:
        for line in file:
            _, point, kind, *_ = line.split()
            inside = os.path.realpath(directory).startswith(point.rstrip("/") + "/")
            if inside and len(point) >= len(best[0]):
                best = (point, kind)
    return best[1]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _versions(python: str, names: Sequence[str]) -> str:
    if python == sys.executable:
        return ", ".join(f"{name} {found}" for name in names if (found := _version(name)))
    said = subprocess.run((python, "-c", _VERSIONS, *names), capture_output=True, text=True, check=True).stdout
    return ", ".join(f"{name} {found}" for name, found in json.loads(said).items())


def _said(name: str, option: str) -> str:
    """Return the name and version in the first line that a program prints."""
    try:
        path = program(name)
    except Unavailable:
        return ""
    ended = subprocess.run((path, option), capture_output=True, text=True)
    found = re.search(r"\d+\.\d+[.\d]*", ended.stderr + ended.stdout)
    return f"{name} {found[0]}" if found else name
