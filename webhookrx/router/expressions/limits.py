"""
What a program may cost.

Work is counted in the units of L{webhookrx.work}: those of each operation when the block that it stands in begins, and
those of what is long, or many, where it is read or made.
"""

from __future__ import annotations

from typing import Final

import msgspec

from webhookrx.work import MOST_FOR_STEP

MAX_SOURCE: Final = 64 * 1024
"""Characters of a program."""

MAX_NESTING: Final = 64
"""How deep blocks, parentheses and operands of a program may nest; far from the interpreter's own limit."""

MAX_PATTERNS: Final = 100
"""Regular expressions, globs and formats of moments of a program."""

MAX_DEPTH: Final = 128
"""How deep a value that a program makes may nest, as deep as a body may (L{webhookrx.intake.json_body.MAX_DEPTH})."""

MAX_INTEGER: Final = 2**63 - 1
MIN_INTEGER: Final = -(2**63)
"""Integers that arithmetic takes and makes. Others are left alone as long as they are only moved."""

OPERATION: Final = 250
"""Units of an operation of a program, with what it does to a short text."""

SHORT: Final = 64
"""Characters of a text that an operation takes or makes for nothing."""

ELEMENT: Final = 130
"""Units of an element of a list or an object that is copied, looked at or made."""

CONTAINER: Final = 800
"""Units of an object or a list that is copied, whatever is in it."""

CALL: Final = 800
"""Units of what a function does for each of its results, such as a pair or a column."""


SLOW_PATH: Final = 1000
"""Units of a field that is not found at once: by a name with dots, in a list, or not at all."""


class RunLimits(msgspec.Struct, frozen=True):
    """
    Bounds of one run.

    @ivar operations: of a program. There are no loops, so none is done twice, and a longer program does not compile.
    @ivar work: units.
    @ivar text: characters of one text that an operation takes or makes.
    @ivar elements: of one list or object that an operation takes or makes, those within others counted.
    """

    operations: int = 10_000
    work: int = MOST_FOR_STEP
    text: int = 1024 * 1024
    elements: int = 10_000
