"""
C{python -m tests.fuzz TARGET [libFuzzer options]}.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable

import atheris

from tests import sanitizers
from tests.fuzz.words import dictionary

#: The targets of L{tests.fuzz.compiled}, which can't be imported without the module that it is for.
COMPILED = ("head", "json", "line", "text")

#: Room for the code of Python and for the shadow of its memory.
_OPTIONS = ("-timeout=10", "-rss_limit_mb=4096")


def main(arguments: list[str]) -> None:
    _, name, *options = [*arguments, ""]
    if name in COMPILED and sanitizers.MODULE not in os.environ:
        _use_sanitizers()
    targets = _targets(name)
    if name not in targets:
        raise SystemExit(f"usage: python -m tests.fuzz {'|'.join((*targets, *COMPILED))} [libFuzzer options]")
    run, seeds = targets[name]
    options = [option for option in options if option]
    if not any(os.path.exists(option) for option in options):
        options += [_corpus(name, seeds), f"-dict={_dictionary(name)}"]
    atheris.Setup([arguments[0], *_OPTIONS, *options], run)
    atheris.Fuzz()


def _use_sanitizers() -> None:
    """Start again, with a module that is built with sanitizers, and with their runtime in atheris."""
    module = sanitizers.build("clang", "fuzzer-no-link,address,undefined")
    runtime = os.path.join(atheris.path(), "asan_with_fuzzer.so")
    environment = sanitizers.environment(module, runtime, os.environ, detect_leaks=0)
    os.execve(sys.executable, [sys.executable, "-m", "tests.fuzz", *sys.argv[1:]], environment)


def _targets(name: str) -> dict[str, tuple[Callable[[bytes], None], list[bytes]]]:
    if name in COMPILED:
        # The branches in C are what counts; to watch those in Python, too, would take nearly all the time.
        sanitizers.use()
        from tests.fuzz import compiled

        return compiled.TARGETS
    # Only what is imported in here is watched for new branches.
    with atheris.instrument_imports(include=["webhookrx"]):
        from tests.fuzz import values, wire

        return {**wire.TARGETS, **values.TARGETS}


def _dictionary(name: str) -> str:
    path = os.path.join(_directory("words"), name)
    with open(path, "w", encoding="ascii") as file:
        file.write(dictionary(name))
    return path


def _directory(name: str) -> str:
    directory = os.path.join(tempfile.gettempdir(), "webhookrx-fuzz", name)
    os.makedirs(directory, exist_ok=True)
    return directory


def _corpus(name: str, seeds: list[bytes]) -> str:
    directory = _directory(name)
    for seed in seeds:
        with open(os.path.join(directory, hashlib.sha256(seed).hexdigest()[:16]), "wb") as file:
            file.write(seed)
    return directory


if __name__ == "__main__":
    main(sys.argv)
