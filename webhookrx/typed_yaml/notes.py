"""
What is wrong with a file so far, and how much of it was visited.
"""

from __future__ import annotations

from typing import Final

from webhookrx.diagnostics import Diagnostic, Path, Position, diagnose
from webhookrx.typed_yaml.nodes import MOST_VALUES, Broken, Node, Scalar, control_character, too_many, unwanted

MOST_MISTAKES: Final = 1000


class Notes:
    """
    Takes what is wrong.

    @ivar taken: what was found, in the order of the search.
    """

    def __init__(self) -> None:
        self.taken: list[Diagnostic] = []
        self._left = MOST_VALUES

    def add(self, code: str, position: Position, path: Path, sentence: str) -> None:
        """
        Note one more.

        @raise Broken: there are too many to be of use.
        """
        if len(self.taken) >= MOST_MISTAKES:
            sentence = f"More than {MOST_MISTAKES:,} mistakes were found; nothing behind this place was looked at."
            raise Broken("too-many-mistakes", position, sentence)
        self.taken.append(diagnose(code, path, sentence, position.line, position.column))

    def visit(self, node: Node) -> None:
        """
        Count a node.

        @raise Broken: there are too many, once aliases are followed.
        """
        self._left -= node.weight
        if self._left < 0:
            raise too_many(node.position)

    def clean(self, node: Scalar, path: Path) -> str | None:
        """Return a text; None, which is noted, when there is something in it that is not allowed."""
        if not self.is_untagged(node, path):
            return None
        found = control_character(node.text)
        if found is not None:
            self.add("control-character", node.position, path, unwanted(found))
            return None
        return node.text

    def is_untagged(self, node: Node, path: Path) -> bool:
        """Tell whether a node has no tag; one that it has is noted."""
        if node.tagged:
            sentence = "YAML tags are not used here; a text that begins with ! is written in quotes."
            self.add("yaml-tag", node.position, path, sentence)
        return not node.tagged
