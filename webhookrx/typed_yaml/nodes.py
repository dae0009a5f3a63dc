"""
The text of a YAML file to nodes with positions, within bounds that hold for hostile files, too.

The nodes are made from the events of the parser, not by its composer, which recurses, and follows aliases without end.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import yaml

from webhookrx.diagnostics import Position, quoted_short

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of a file."""

DEEPEST: Final = 64
MOST_VALUES: Final = 200_000
"""Nodes of a file, with and without following its aliases; a long text counts as several."""

_TOO_DEEP: Final = f"Lists and mappings are nested deeper than {DEEPEST}."

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

#: Characters that no text may hold: control characters, and halves of surrogate pairs, which can't be encoded.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")


class Broken(Exception):
    """
    The file, or the rest of it, can't be read.

    @ivar code: of L{webhookrx.diagnostics.FILE_CODES}.
    """

    def __init__(self, code: str, position: Position, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.position = position
        self.sentence = sentence


class ScalarNode:
    """
    A text, with quotes and escapes undone.

    @ivar style: C{'"'}, C{"'"}, C{"|"} or C{">"}; empty for plain text.
    """

    __slots__ = ("end", "position", "style", "tag", "text")

    def __init__(self, event: Any) -> None:
        self.text: str = event.value
        self.style: str = event.style or ""
        self.position = _position(event.start_mark)
        self.end = _position(event.end_mark)
        self.tag: str | None = event.tag

    @property
    def weight(self) -> int:
        return 1 + len(self.text) // 64

    def is_nothing(self) -> bool:
        """Tell whether it is empty, or null, without quotes."""
        return not self.style and self.text in ("", "~", "null", "Null", "NULL")


class SequenceNode:
    """A list."""

    __slots__ = ("items", "position", "tag")
    weight = 1

    def __init__(self, event: Any) -> None:
        self.items: list[Node] = []
        self.position = _position(event.start_mark)
        self.tag: str | None = event.tag


class MappingNode:
    """
    Keys and values.

    @ivar in_braces: it is written as C{{key: value}}.
    @ivar pairs: as they are written.
    @ivar members: keys as they are meant to key node and value, with those of C{<<}; filled when the mapping is read.
    """

    __slots__ = ("in_braces", "members", "pairs", "position", "tag")
    weight = 1

    def __init__(self, event: Any) -> None:
        self.in_braces: bool = event.flow_style
        self.pairs: list[tuple[Node, Node]] = []
        self.members: dict[str, tuple[ScalarNode, Node]] = {}
        self.position = _position(event.start_mark)
        self.tag: str | None = event.tag


Node: TypeAlias = "ScalarNode | SequenceNode | MappingNode"


def decode(data: bytes) -> str:
    """
    Return the text of a file.

    @raise Broken: it is too large, is not UTF-8 or holds control characters.
    """
    if len(data) > LARGEST:
        raise Broken("file-too-large", Position(), f"The file is larger than {LARGEST // 1024**2} MiB.")
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()
        raise Broken("not-utf8", _position_behind(before), "The file is not UTF-8 text.") from None
    found = _CONTROL.search(text.replace("\r\n", "\n") if "\r" in text else text)
    if found is not None:
        raise Broken("control-character", _position_behind(found.string[: found.start()]), unwanted(found[0]))
    return text


def control_character(text: str) -> str | None:
    """Return the first character of a text that is not allowed."""
    found = None if text.isprintable() else _CONTROL.search(text)
    return None if found is None else found[0]


def unwanted(character: str) -> str:
    """Return the sentence on a control character."""
    return f"The control character U+{ord(character):04X} is not allowed."


def compose(text: str) -> Node:
    """
    Return the root node of a file.

    @raise Broken: it is not YAML, holds nothing or several documents, or too much.
    """
    composer = _Composer()
    for event in _events(text):
        composer.take(event)
    root = composer.root
    if root is None or (isinstance(root, ScalarNode) and root.is_nothing()):
        raise Broken("empty-file", Position(), "The file holds nothing.")
    return root


def _events(text: str) -> Iterator[Any]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        said = ", ".join(filter(None, (getattr(error, "context", None), getattr(error, "problem", None))))
        # The name of an alias or a tag may be a token without quotes.
        said = re.sub(r"(alias|anchor|handle) (['\"]).*?\2", r"\1 (not shown)", said)
        position = _position(mark) if mark else Position()
        # From 6.0.4 on PyYAML has a bound of its own, which a text of nothing but brackets meets before ours.
        if "maximum nesting depth" in said:
            raise Broken("too-deep", position, _TOO_DEEP) from None
        raise Broken("yaml-syntax", position, f"This is not YAML: {said}.") from None


class _Composer:
    """Makes nodes of events in their order."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._open: list[SequenceNode | MappingNode] = []
        self._keys: list[Node | None] = []
        self._anchors: dict[str, Node] = {}
        self._count = 0

    def take(self, event: Any) -> None:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._add(ScalarNode(event), event)
        elif kind is yaml.MappingStartEvent:
            self._begin(MappingNode(event), event)
        elif kind is yaml.SequenceStartEvent:
            self._begin(SequenceNode(event), event)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._open.pop()
            self._keys.pop()
        elif kind is yaml.AliasEvent:
            self._alias(event)
        elif kind is yaml.DocumentStartEvent and self.root is not None:
            raise Broken("several-documents", _position(event.start_mark), "The file holds more than one document.")

    def _begin(self, node: SequenceNode | MappingNode, event: Any) -> None:
        self._add(node, event)
        if len(self._open) >= DEEPEST:
            raise Broken("too-deep", node.position, _TOO_DEEP)
        self._open.append(node)
        self._keys.append(None)

    def _alias(self, event: Any) -> None:
        position = _position(event.start_mark)
        node = self._anchors.get(event.anchor)
        if node is None:
            raise Broken(
                "bad-alias",
                position,
                "Nothing before it has this name; a text that begins with * is written in quotes.",
            )
        if node in self._open:
            raise Broken("bad-alias", position, "It stands inside of what it stands for.")
        self._hang(node, position)

    def _add(self, node: Node, event: Any) -> None:
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        self._hang(node, node.position)

    def _hang(self, node: Node, position: Position) -> None:
        self._count += 1
        if self._count > MOST_VALUES:
            raise too_many(position)
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        if isinstance(parent, SequenceNode):
            parent.items.append(node)
        elif self._keys[-1] is None:
            self._keys[-1] = node
        else:
            parent.pairs.append((self._keys[-1], node))
            self._keys[-1] = None


def too_many(position: Position) -> Broken:
    """Return the error for a file that holds too much."""
    sentence = f"The file holds more than {MOST_VALUES:,} values, once its aliases are followed."
    return Broken("too-many-values", position, sentence)


def shown_node(node: Node) -> str:
    """Return a node in words."""
    if isinstance(node, ScalarNode):
        return quoted_short(node.text)
    return "a list" if isinstance(node, SequenceNode) else "a mapping"


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def _position_behind(text: str) -> Position:
    return Position(text.count("\n") + 1, len(text) - text.rfind("\n"))
