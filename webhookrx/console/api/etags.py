"""
ETags of what people change: a letter for what is counted, and its number.
"""

from __future__ import annotations

import re
from typing import Final

from webhookrx.console.api.problems import BAD_CALL, IF_MATCH_MISSING, ApiProblem
from webhookrx.console.api.route import ApiCall

_ETAG: Final = re.compile(r"([gr])([0-9]{1,15})")


def etag_number(call: ApiCall, kind: str) -> int:
    """
    Return the generation or revision of C{If-Match}.

    @param kind: C{g} or C{r}.
    @raise ApiProblem: it is missing, or no ETag of that kind.
    """
    if call.if_match is None:
        raise ApiProblem(IF_MATCH_MISSING)
    found = _ETAG.fullmatch(call.if_match)
    if found is None or found[1] != kind:
        raise ApiProblem(BAD_CALL, f'If-Match takes the ETag of an answer, such as "{kind}17".')
    return int(found[2])
