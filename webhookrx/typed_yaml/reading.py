"""
A file as a value of a type, and the position of each part of it in the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from webhookrx.diagnostics import ERROR, Diagnostic, Path, Position, diagnose, has_errors, in_order
from webhookrx.typed_yaml.nodes import Broken, MappingNode, Node, ScalarNode, SequenceNode, compose, decode
from webhookrx.typed_yaml.text_positions import TextPositions
from webhookrx.typed_yaml.typed_reader import MistakeList, TypedReader

T = TypeVar("T")


class Reading(Generic[T]):
    """
    A file as a value, and the position of each part of it.

    @ivar value: None for a file with errors.
    @ivar partial: the value in spite of errors: an empty value of its type stands in for each wrong or missing part, so
        that the rest can be checked. None when the file is not a mapping.
    @ivar diagnostics: all mistakes, in the order of the file.
    """

    def __init__(self, file: str, text: str, root: Node | None, partial: T | None, found: list[Diagnostic]) -> None:
        self.partial = partial
        self.diagnostics = in_order(msgspec.structs.replace(each, file=file) for each in found)
        self.value = None if has_errors(found) else partial
        self._file = file
        self._text = text
        self._positions: TextPositions | None = None
        self._root = root
        self._unsound = frozenset(each.path for each in found if each.severity == ERROR and each.path)

    def is_sound(self, path: Path) -> bool:
        """Tell whether a part of C{partial} comes from the file, and does not stand in for a mistake."""
        return not self._unsound or not any(path[:length] in self._unsound for length in range(len(path) + 1))

    def is_whole(self, path: Path) -> bool:
        """Tell whether a part of C{partial} and everything in it comes from the file."""
        return self.is_sound(path) and not any(each[: len(path)] == path for each in self._unsound)

    def position(self, path: Path) -> Position:
        """Return the position of a value; that of the nearest part around it when it is not in the file."""
        node = self._nodes(path)[-1]
        return Position() if node is None else node.position

    def key_position(self, path: Path) -> Position:
        """Return the position of the key of a value; that of the value when it has no key."""
        nodes = self._nodes(path)
        holder = nodes[-2] if len(nodes) == len(path) + 1 > 1 else None
        return holder.members[str(path[-1])][0].position if isinstance(holder, MappingNode) else self.position(path)

    def text_position(self, path: Path, line: int, column: int) -> Position:
        """
        Return the position in the file of a place in a text value.

        @param line: of the text, from 1.
        @param column: in that line, from 1.
        """
        nodes = self._nodes(path)
        if len(nodes) == len(path) + 1 and isinstance(nodes[-1], ScalarNode):
            if self._positions is None:
                self._positions = TextPositions(self._text)
            return self._positions.position(nodes[-1], line, column)
        return self.position(path)

    def located(self, found: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Return the diagnostics of checks of the value with their positions, each once, in the order of the file."""
        return in_order(map(self._located, found))

    def _located(self, found: Diagnostic) -> Diagnostic:
        if found.line:
            place = self.text_position(found.path, found.line, found.column)
        else:
            place = self.key_position(found.path) if found.of_key else self.position(found.path)
        return msgspec.structs.replace(found, file=self._file, line=place.line, column=place.column)

    def _nodes(self, path: Path) -> list[Node | None]:
        """Return the nodes from the root along a path, as far as it leads."""
        nodes: list[Node | None] = [self._root]
        for name in path:
            holder = nodes[-1]
            if isinstance(holder, MappingNode) and name in holder.members:
                nodes.append(holder.members[str(name)][1])
            elif isinstance(holder, SequenceNode) and isinstance(name, int) and name < len(holder.items):
                nodes.append(holder.items[name])
            else:
                break
        return nodes


def read_typed(data: bytes, file: str, type: type[T]) -> Reading[T]:
    """
    Read a file.

    @param file: its name, for diagnostics.
    @param type: a C{msgspec.Struct} whose fields are texts, whole numbers, flags, any values, other such types, and
        tuples, dicts by text and unions of these.
    """
    mistakes = MistakeList()
    text, root, partial = "", None, None
    try:
        text = decode(data)
        root = compose(text)
        partial = TypedReader(mistakes).read(root, type)
    except Broken as broken:
        mistakes.found.append(diagnose(broken.code, (), broken.sentence, broken.position.line, broken.position.column))
    return Reading(file, text, root, partial, mistakes.found)
