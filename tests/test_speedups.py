"""Tests for L{webhookrx.speedups}."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from types import ModuleType

from twisted.trial.unittest import SynchronousTestCase

from webhookrx import speedups
from webhookrx.http.resources import DIRECT
from webhookrx.intake import json_body, pairs
from webhookrx.message.macros import RESERVED_PREFIXES
from webhookrx.speedups import PURE, compiled

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "speedups")


def _missing(**environment: str) -> str:
    """Return why a new interpreter has no compiled path."""
    return subprocess.run(
        [sys.executable, "-c", "from webhookrx.speedups import missing; print(missing)"],
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


#: Runs code in two other interpreters, one after the other.
_IN_OTHERS = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
path = "import sys; sys.path[:] = " + repr(sys.path) + "; "
found = []
for _ in range(2):
    number = interpreters.create()
    found.append(interpreters.run_string(number, path + {code!r}))
    interpreters.destroy(number)
print(found)
"""


class PureTests(SynchronousTestCase):
    """C{WEBHOOKRX_PURE} decides whether the compiled path is used."""

    def test_any_other_value_turns_it_off(self) -> None:
        """With C{1} there is no compiled path, and the reason names the variable."""
        self.assertEqual(_missing(**{PURE: "1"}), "WEBHOOKRX_PURE is set")

    def test_zero_and_nothing_leave_it_on(self) -> None:
        """With C{0} or nothing the reason never names the variable."""
        for value in ("0", ""):
            self.assertNotIn(PURE, _missing(**{PURE: value}))


class LoadTests(SynchronousTestCase):
    """Without a compiled path there is a reason for people."""

    def missing(self, result: ModuleType | ImportError) -> str:
        """Return why there is none if an import ends so."""

        def import_module(name: str) -> ModuleType:
            self.assertEqual("webhookrx._speedups", name)
            if isinstance(result, ImportError):
                raise result
            return result

        self.patch(speedups, "import_module", import_module)
        self.patch(os, "environ", {})
        loaded, why = speedups._load()
        self.assertIs(None, loaded)
        return why

    def test_not_built(self) -> None:
        """A module that is not there was not built."""
        self.assertIn("it was not built", self.missing(ModuleNotFoundError("No module")))

    def test_not_loadable(self) -> None:
        """A module of another machine can't be loaded, and the reason is Python's."""
        self.assertEqual("it can't be loaded: no GLIBC_9.9", self.missing(ImportError("no GLIBC_9.9")))

    def test_stale(self) -> None:
        """A module in which a function is missing or takes something else was built of other sources."""
        self.assertRegex(self.missing(ModuleType("_speedups")), r"built of other sources, with another .*\bline\b")
        module = ModuleType("_speedups")
        for name in speedups._FUNCTIONS:
            setattr(module, name, getattr(compiled, name, None))
        module.line = module.name_table  # type: ignore[attr-defined]
        if compiled is not None:
            self.assertIn("with another line: install", self.missing(module))

    def test_other_interpreters(self) -> None:
        """Another interpreter in the process, with a lock of its own from Python 3.12 on, can have the module, too."""
        if compiled is None:
            self.skipTest("the compiled path is not in use")
        code = "from webhookrx import _speedups; assert _speedups.compact_object(b'[ 1 ]') == b'[1]'"
        # Coverage can't be measured in them.
        environment = {name: value for name, value in os.environ.items() if name != "COVERAGE_PROCESS_START"}
        done = subprocess.run(
            [sys.executable, "-c", _IN_OTHERS.format(code=code)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual((0, "", "[None, None]\n"), (done.returncode, done.stderr, done.stdout))

    def test_in_use(self) -> None:
        """What is shown is one of two: the compiled path, or pure Python and why."""
        self.assertEqual("compiled" if compiled is not None else f"pure Python: {speedups.missing}", speedups.in_use)


class LimitTests(SynchronousTestCase):
    """What C code says again of Python's limits is what Python says."""

    def limit(self, file: str, name: str) -> int:
        """Return a number from the sources."""
        with open(os.path.join(SOURCES, file), encoding="utf-8") as source:
            text = source.read()
        found = re.search(rf"\b{name} = ([0-9 *]+)", text)
        assert found is not None, name
        return math.prod(int(factor) for factor in found[1].split("*"))

    def test_limits(self) -> None:
        """No limit is above Python's: what Python begins to refuse, C has to leave to it."""
        for file, name, limit in (
            ("speedups.h", "MAX_BODY", json_body.MAX_JSON),
            ("speedups.h", "MAX_NESTING", json_body.MAX_DEPTH),
            ("speedups.h", "UNLOCKED_SIZE", DIRECT),
            ("json.c", "MAX_SEPARATORS", json_body.MAX_ELEMENTS),
            ("json.c", "MAX_DIGITS", json_body.MAX_DIGITS),
            ("json.c", "FEW_INTEGERS", json_body._FEW_INTEGERS),
            ("line.c", "MAX_PAIRS", pairs.MAX_PAIRS),
            ("line.c", "MAX_REPEATED", pairs._ALWAYS_REPEATED),
        ):
            self.assertLessEqual(self.limit(file, name), limit, name)

    def test_reserved_prefixes(self) -> None:
        """The prefixes of names that only the receiver sets have the form that C{is_special} in line.c looks for."""
        for prefix in RESERVED_PREFIXES:
            self.assertRegex(prefix, r"\Awebhook\.[^.]+\.\Z")
