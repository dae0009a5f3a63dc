"""
A mistake in rules, before it is known where in a file it stands.
"""

from __future__ import annotations

from typing import NamedTuple

from webhookrx.typed_yaml import Path


class Mistake(NamedTuple):
    """
    One thing that is wrong, or probably not meant.

    @ivar code: a word of the catalogue.
    @ivar path: what it is about, from the whole file down, such as C{("connector_rules", 0, "port")}.
    @ivar line: in the text of that, from 1; 0 when it is not about a place in a text.
    @ivar column: the same for the column.
    @ivar of_key: it is about the key and not the value.
    """

    code: str
    path: Path
    sentence: str
    line: int = 0
    column: int = 0
    of_key: bool = False
