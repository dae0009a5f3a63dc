"""
The compiled path under AddressSanitizer and UndefinedBehaviorSanitizer.

C{python -m tests.sanitizers tests.http tests.intake} builds it so with clang, else with gcc, into a directory of its
own, and runs these tests by trial. An error ends the process with a report. A leak of memory that C{speedups/} has
allocated is a failure. Needs a compiler with its runtimes, on Debian C{clang} or C{gcc}.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parent.parent
NAME = "webhookrx._speedups"

MODULE: Final = "WEBHOOKRX_SANITIZED"
"""The environment variable that names the module to use in the place of the installed one."""

_FLAGS = ("-std=c11", "-shared", "-fPIC", "-g", "-O1", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all")

#: A frame of ours in the report of a leak.
_OURS = re.compile(r"^\s+#\d+ .*/speedups/\w+\.[ch]:", re.MULTILINE)


def compiler() -> str:
    """
    Return the compiler to use.

    @raise SystemExit: there is none.
    """
    for name in ("clang", "gcc"):
        if shutil.which(name):
            return name
    raise SystemExit("There is neither clang nor gcc.")


def build(by: str, sanitizers: str = "address,undefined", *flags: str) -> str:
    """
    Build the module with sanitizers, unless that is done, and return its file.

    @param by: the compiler.
    @raise subprocess.CalledProcessError: it fails, and has said why.
    """
    sources = sorted(glob(f"{ROOT}/speedups/*.c"))
    command = [by, *_FLAGS, *flags, f"-fsanitize={sanitizers}", f"-I{sysconfig.get_path('include')}", *sources]
    digest = hashlib.sha256("\0".join(command).encode())
    for path in sorted(glob(f"{ROOT}/speedups/*")):
        digest.update(Path(path).read_bytes())
    directory = Path(tempfile.gettempdir(), "webhookrx-sanitized", digest.hexdigest()[:16])
    module = directory / "_speedups.so"
    if not module.exists():
        directory.mkdir(parents=True, exist_ok=True)
        unfinished = directory / f"{os.getpid()}.so"
        subprocess.run([*command, "-o", unfinished], check=True)
        unfinished.rename(module)
    return str(module)


def environment(module: str, runtime: str, environ: Mapping[str, str], **options: object) -> dict[str, str]:
    """
    Return the environment of a process that uses a module that was built with sanitizers.

    @param runtime: the shared library of the sanitizers, which must be loaded before anything else.
    @param options: of AddressSanitizer.
    """
    text = ":".join(f"{name}={value}" for name, value in options.items())
    kept = {name: value for name, value in environ.items() if name != "WEBHOOKRX_PURE"}
    # Objects in memory of their own, rather than in the pools of Python, so that their ends are known.
    return {**kept, MODULE: module, "LD_PRELOAD": runtime, "PYTHONMALLOC": "malloc", "ASAN_OPTIONS": text}


def use() -> None:
    """Use the module that the environment names; to be called before anything of webhookrx is imported."""
    spec = importlib.util.spec_from_file_location(NAME, os.environ[MODULE])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[NAME] = module


def runtime(by: str) -> str:
    """Return the shared library of a compiler's AddressSanitizer."""
    name = "libclang_rt.asan-x86_64.so" if by == "clang" else "libasan.so"
    name = name.replace("x86_64", os.uname().machine)
    return subprocess.run([by, f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()


def run(tests: Sequence[str]) -> int:
    """Run tests under the sanitizers and return the exit status. C{--portable} in front: as without SSE2."""
    by = compiler()
    flags = ["-shared-libasan"] if by == "clang" else []
    if tests[0] == "--portable":
        flags, tests = [*flags, "-U__SSE2__"], tests[1:]
    module = build(by, "address,undefined", *flags)
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [sys.executable, "-m", "tests.sanitizers", *tests],
            cwd=ROOT,
            env={
                **environment(
                    module,
                    runtime(by),
                    os.environ,
                    detect_leaks=1,
                    log_path=f"{directory}/report",
                ),
                # Python and other extensions leave much behind at their end; only what is ours counts.
                "LSAN_OPTIONS": "exitcode=0",
            },
        )
        reports = "".join(Path(path).read_text() for path in sorted(glob(f"{directory}/report*")))
    leaks = [each for each in reports.split("\n\n") if " leak of " in each and _OURS.search(each)]
    if "ERROR: AddressSanitizer" in reports or "runtime error" in reports:
        print(reports)
    print("\n\n".join(leaks) or "No leak of the compiled path.")
    return done.returncode or bool(leaks)


def _trial(tests: Sequence[str]) -> None:
    use()
    from twisted.scripts.trial import run as run_trial

    with tempfile.TemporaryDirectory() as directory:
        sys.argv = ["trial", f"--temp-directory={directory}/trial", *tests]
        run_trial()


if __name__ == "__main__":
    if MODULE in os.environ:
        _trial(sys.argv[1:])
    else:
        sys.exit(run(sys.argv[1:]))
