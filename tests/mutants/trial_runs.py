"""
Runs of trial on a copy of the tree that has one file changed.
"""

from __future__ import annotations

import compileall
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.mutant import Fate, Mutant

_IGNORED = shutil.ignore_patterns(".*", "__pycache__", "_trial_temp*", "build", "dist", "*.egg-info")
#: Bytes of memory that a run may take. A bound for processor time would make the clock for it coarse, which tests read.
_MEMORY = 4 * 1024**3


class TestsDoNotPass(Exception):
    """They fail without any mutant, so nothing could be learned."""


class TreeCopy:
    """
    A copy of a tree in a directory of its own, for one run at a time.

    @param root: the tree.
    @param slack: seconds that a run may take in any case, beside five times what is usual.
    """

    def __init__(self, root: Path, slack: float = 10.0) -> None:
        self._slack = slack
        self._work = Path(tempfile.mkdtemp(prefix="mutants-"))
        self.tree = self._work / "tree"
        shutil.copytree(root, self.tree, ignore=_IGNORED)
        # What is not changed is compiled once.
        compileall.compile_dir(self.tree, quiet=2)

    def remove(self) -> None:
        """Remove it."""
        shutil.rmtree(self._work, ignore_errors=True)

    def time_of(self, tests: str) -> float:
        """
        Run tests on the tree as it is; return the seconds.

        @param tests: a name for trial.
        @raise TestsDoNotPass: with the end of what trial said.
        """
        began = time.monotonic()
        status, output = self._trial(tests, 600.0)
        if status != 0:
            raise TestsDoNotPass(f"{tests} without a mutant:\n{output[-2000:]}")
        return time.monotonic() - began

    def fate_of(self, mutant: Mutant, usual: Mapping[str, float]) -> Fate:
        """
        Run tests until the first that fails.

        @param usual: names for trial, in the order in which they are run, each to its seconds without a mutant. What
            needs far more has run into an endless loop or wait.
        """
        file = self.tree / mutant.path
        # Python knows what it has compiled by size and second of change, which two mutants may have in common.
        Path(cache_from_source(str(file))).unlink(missing_ok=True)
        file.write_text(mutant.mutated, encoding="utf-8")
        try:
            for tests, seconds in usual.items():
                status, _ = self._trial(tests, self._slack + 5.0 * seconds)
                if status is None:
                    return Fate.TIMED_OUT
                if status != 0:
                    return Fate.KILLED
            return Fate.SURVIVED
        finally:
            file.write_text(mutant.source, encoding="utf-8")

    def _trial(self, tests: str, limit: float) -> tuple[int | None, str]:
        """
        Run trial.

        @param limit: seconds that it may take.
        @return: its status, None if it was not done by then; and its output.
        """
        trial = [sys.executable, "-m", "twisted.trial", "-x", "--temp-directory", str(self._work / "trial"), tests]
        # Hypothesis draws the same examples each time where it sees CI.
        environment = {**os.environ, "CI": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            process = subprocess.Popen(
                trial,
                cwd=self.tree,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                resource.prlimit(process.pid, resource.RLIMIT_AS, (_MEMORY, _MEMORY))
                status: int | None = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                _end_group(process)
            output.seek(0)
            text = output.read()
        return status, text


def fates_of(
    mutants: Sequence[Mutant],
    root: Path,
    tests_of: Callable[[Path, str], list[str]],
    jobs: int,
    say: Callable[[str], object],
) -> list[Fate]:
    """
    Return the fate of each.

    @param root: the tree; it is copied, and left as it is.
    @param tests_of: from the root and a path to names for trial, in the order in which they are run.
    @param jobs: how many run at a time.
    @param say: told of each when it is known, in one piece, from any thread.
    @raise TestsDoNotPass: not even without them.
    """
    tests = {mutant.path: tests_of(root, mutant.path) for mutant in mutants}
    names = sorted({name for chosen in tests.values() for name in chosen})
    copies = [TreeCopy(root) for _ in range(jobs)]
    free: SimpleQueue[TreeCopy] = SimpleQueue()
    for copy in copies:
        free.put(copy)
    with ExitStack() as stack:
        for copy in copies:
            stack.callback(copy.remove)
        pool = stack.enter_context(ThreadPoolExecutor(jobs))

        def time_of(name: str) -> float:
            with _one_of(free) as copy:
                return copy.time_of(name)

        def fate_of(mutant: Mutant) -> Fate:
            with _one_of(free) as copy:
                began = time.monotonic()
                fate = copy.fate_of(mutant, {name: usual[name] for name in tests[mutant.path]})
            lines = [f"{time.monotonic() - began:5.1f} s  {fate.value}: {mutant.path}:{mutant.line}"]
            if fate is Fate.SURVIVED:
                lines.append(mutant.diff)
            say("\n".join(lines))
            return fate

        usual = dict(zip(names, pool.map(time_of, names), strict=True))
        return list(pool.map(fate_of, mutants))


@contextmanager
def _one_of(free: SimpleQueue[TreeCopy]) -> Iterator[TreeCopy]:
    copy = free.get()
    try:
        yield copy
    finally:
        free.put(copy)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End it, and whatever it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
