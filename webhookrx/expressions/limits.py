"""
What a program may cost.
"""

from __future__ import annotations

from typing import Final

import msgspec

MAX_SOURCE: Final = 64 * 1024
"""Characters of a program."""

MAX_NESTING: Final = 64
"""How deep blocks, parentheses and operands of a program may nest; far from the interpreter's own limit."""

MAX_PATTERNS: Final = 100
"""Regular expressions, globs and formats of moments of a program."""

MAX_DEPTH: Final = 128
"""How deep a value that a program makes may nest, as deep as a body may (L{webhookrx.request.payload.MAX_DEPTH})."""

MAX_INTEGER: Final = 2**63 - 1
MIN_INTEGER: Final = -(2**63)
"""Integers that arithmetic takes and makes. Others are left alone as long as they are only moved."""

LONG: Final = 4096
"""From so many characters or elements on, an operation looks at the clock and at what was made so far."""

CLOCK_EVERY: Final = 64
"""After so many operations, as they are written, there is a look at the clock."""


class Limits(msgspec.Struct, frozen=True):
    """
    Bounds of one run.

    @ivar operations: of a program. There are no loops, so none is done twice, and a longer program does not compile.
    @ivar seconds: of the clock that the program was compiled with.
    @ivar text: characters of one text that an operation takes or makes.
    @ivar elements: of one list or object that an operation takes or makes, those within others counted.
    @ivar made: characters that all operations of a run may make, beyond what is short; an element of a list or an
        object counts as 64.
    """

    operations: int = 10_000
    seconds: float = 0.005
    text: int = 1024 * 1024
    elements: int = 10_000
    made: int = 8 * 1024 * 1024
