"""
What a text must contain for a regular expression to match it, where that is easy to see.
"""

from __future__ import annotations

import re
from typing import Final

# Of anything that is not here, groups and "|" among it, nothing is easy to see.
_PIECE: Final = re.compile(
    r"""
    (?P<plain> [A-Za-z0-9_/:@,=<>~!%&;"'`\x20-]+ ) (?P<optional> [*?] )? [+?]*
    | (?: [.^$] | \\[dDwWsSbB] | \\[.*+?|/:@-] | \[ \^? [^][^\\] [^][\\]* \] ) [*+?]*
    """,
    re.VERBOSE,
)


def required_text(pattern: str) -> str:
    """
    Return a text that is, casefolded, in every casefolded text that an expression matches, as long as can easily be
    found. It is casefolded and ASCII; often it is empty.

    @param pattern: one that compiles for RE2.
    """
    longest = ""
    at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            return ""
        plain = piece["plain"] or ""
        if piece["optional"]:
            plain = plain[:-1]
        longest = max(longest, plain, key=len)
        at = piece.end()
    return longest.lower()
