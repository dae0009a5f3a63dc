"""
A file as a value of a type, and where in the file each part of it stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from webhookrx.diagnostics import ERROR, Diagnostic, Path, Position, diagnose, has_errors, in_order
from webhookrx.typed_yaml.nodes import Broken, MappingNode, Node, ScalarNode, SequenceNode, compose, decode
from webhookrx.typed_yaml.text_places import TextPlaces
from webhookrx.typed_yaml.typed_reader import Notes, TypedReader

T = TypeVar("T")


class Reading(Generic[T]):
    """
    What was read.

    @ivar value: None when something in the file is wrong.
    @ivar partial: what there is in spite of it: an empty value of its type stands in for all that is wrong or missing,
        so that the rest can be looked at. None when the file is not even a mapping.
    @ivar diagnostics: what is wrong, in the order of the file.
    """

    def __init__(self, file: str, text: str, root: Node | None, partial: T | None, found: list[Diagnostic]) -> None:
        self.partial = partial
        self.diagnostics = in_order(msgspec.structs.replace(each, file=file) for each in found)
        self.value = None if has_errors(found) else partial
        self._file = file
        self._text = text
        self._places: TextPlaces | None = None
        self._root = root
        self._unsound = frozenset(each.path for each in found if each.severity == ERROR and each.path)

    def is_sound(self, path: Path) -> bool:
        """Tell whether a part of C{partial} is what the file says, and not what stands in for it."""
        return not self._unsound or not any(path[:length] in self._unsound for length in range(len(path) + 1))

    def is_whole(self, path: Path) -> bool:
        """Tell whether a part of C{partial} and everything in it is what the file says."""
        return self.is_sound(path) and not any(each[: len(path)] == path for each in self._unsound)

    def position(self, path: Path) -> Position:
        """Return where a value begins. What is not in the file is where the nearest thing is that would hold it."""
        node = self._nodes(path)[-1]
        return Position() if node is None else node.position

    def key_position(self, path: Path) -> Position:
        """Return where the key of a value begins; where the value does when it has no key."""
        nodes = self._nodes(path)
        holder = nodes[-2] if len(nodes) == len(path) + 1 > 1 else None
        return holder.members[str(path[-1])][0].position if isinstance(holder, MappingNode) else self.position(path)

    def text_position(self, path: Path, line: int, column: int) -> Position:
        """
        Return where in the file a place in a text value is.

        @param line: of the value's own text, from 1.
        @param column: in that line, from 1.
        """
        nodes = self._nodes(path)
        if len(nodes) == len(path) + 1 and isinstance(nodes[-1], ScalarNode):
            if self._places is None:
                self._places = TextPlaces(self._text)
            return self._places.place(nodes[-1], line, column)
        return self.position(path)

    def located(self, found: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Return what checks of the value have found, each once and with its place, in the order of the file."""
        return in_order(map(self._located, found))

    def _located(self, found: Diagnostic) -> Diagnostic:
        if found.line:
            place = self.text_position(found.path, found.line, found.column)
        else:
            place = self.key_position(found.path) if found.of_key else self.position(found.path)
        return msgspec.structs.replace(found, file=self._file, line=place.line, column=place.column)

    def _nodes(self, path: Path) -> list[Node | None]:
        """Return the nodes from the root along a path, as far as there are any."""
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

    @param file: its name, for what is wrong.
    @param type: a C{msgspec.Struct}, of fields that are texts, whole numbers, yes or no, any value, other such types,
        and tuples, dicts by text and unions of these.
    """
    notes = Notes()
    text, root, partial = "", None, None
    try:
        text = decode(data)
        root = compose(text)
        partial = TypedReader(notes).read(root, type)
    except Broken as broken:
        notes.taken.append(diagnose(broken.code, (), broken.sentence, broken.position.line, broken.position.column))
    return Reading(file, text, root, partial, notes.taken)
