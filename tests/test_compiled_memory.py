"""
Tests of what the functions of L{webhookrx.speedups.Compiled} leave behind, and what becomes of them without memory.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests import LONG
from tests.compiled_calls import CALLS, MISTAKES, Call
from webhookrx.speedups import _FUNCTIONS, compiled

try:
    _testcapi: Any = import_module("_testcapi")
except ImportError:
    _testcapi = None

_ROUNDS = 100_000 if LONG else 2_000

#: More allocations than any of the calls makes.
_ALLOCATIONS = 40


def _outcome(call: Call) -> object:
    try:
        return getattr(compiled, call.name)(*call.arguments)
    except Exception as error:
        return type(error)


def _parts(value: object) -> Iterator[object]:
    yield value
    if isinstance(value, tuple):
        for part in value:
            yield from _parts(part)


class MemoryTests(SynchronousTestCase):
    """
    Whatever a call comes to, it keeps nothing.
    """

    if compiled is None:
        skip = "the compiled path is not in use"

    def test_all(self) -> None:
        """Each function has calls here, and calls by mistake."""
        self.assertEqual(set(_FUNCTIONS), {call.name for call in CALLS})
        self.assertEqual(set(_FUNCTIONS), {call.name for call in MISTAKES})

    def test_nothing_is_kept(self) -> None:
        """After thousands of calls there are as many references to what they share, and as much memory, as before."""
        for call in (*CALLS, *MISTAKES):
            shared = list({id(part): part for part in (*_parts(call.arguments), None, True, False)}.values())
            _outcome(call)
            gc.collect()
            before = [sys.getrefcount(each) for each in shared]
            tracemalloc.start()
            try:
                self.repeat(call, 10)
                at_first, _ = tracemalloc.get_traced_memory()
                self.repeat(call, _ROUNDS)
                at_last, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            after = [sys.getrefcount(each) for each in shared]
            self.assertLess(at_last - at_first, _ROUNDS // 4, call)
            # Others in this process may use None; a call that keeps one would show by the thousands.
            changes = [abs(was - now) for was, now in zip(before, after, strict=True)]
            self.assertLess(max(changes), _ROUNDS // 4, call)

    def repeat(self, call: Call, times: int) -> None:
        """Make a call so many times."""
        function: Callable[..., object] = getattr(compiled, call.name)
        arguments = call.arguments
        for _ in range(times):
            with contextlib.suppress(TypeError):
                function(*arguments)

    def test_mistakes(self) -> None:
        """Arguments of other types or in another number are an error, whatever else is right."""
        for call in MISTAKES:
            self.assertIs(TypeError, _outcome(call), call)

    def test_without_memory(self) -> None:
        """Where one allocation fails a call says so, or gives what it would have given; later ones are as ever."""
        if _testcapi is None:
            self.skipTest("this Python can't make allocations fail")
        for call in CALLS:
            expected = repr(_outcome(call))
            found = [self.without_memory(call, number) for number in range(1, _ALLOCATIONS)]
            self.assertLessEqual({repr(each) for each in found}, {repr(MemoryError), expected, "None"}, call)
            self.assertEqual([expected] * 5, [repr(each) for each in found[-5:]], call)
            self.assertEqual(expected, repr(_outcome(call)), call)

    def without_memory(self, call: Call, number: int) -> Any:
        """Return what becomes of a call if this allocation fails, counted from 1."""
        function: Callable[..., object] = getattr(compiled, call.name)
        arguments = call.arguments
        _testcapi.set_nomemory(number, number + 1)
        try:
            result: object = function(*arguments)
        except MemoryError:
            result = MemoryError
        finally:
            _testcapi.remove_mem_hooks()
        return result
