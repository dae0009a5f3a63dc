"""
Nodes of a YAML file to values of wanted types, with a diagnostic for everything that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, TypeAlias

from msgspec import inspect

from webhookrx.diagnostics import Diagnostic, Path, Position, diagnose, quoted_short, suggestion
from webhookrx.quantities import read_flag
from webhookrx.typed_yaml.nodes import (
    MOST_VALUES,
    Broken,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    control_character,
    shown_node,
    too_many,
    unwanted,
)
from webhookrx.typed_yaml.value_types import (
    NODES,
    WORDS,
    bare,
    core_value,
    default_of,
    fields_of,
    shape_of,
    stand_in,
    whole_number,
)

MOST_MISTAKES: Final = 1000


def as_written(key: str) -> str:
    """Return a key as it is."""
    return key


def with_underscores(key: str) -> str:
    """Return a key with C{_} for C{-}, which mean the same."""
    return key.replace("-", "_")


class MistakeList:
    """
    The mistakes of one file, within bounds: a hostile file may have very many.

    @ivar found: in the order of the search.
    @ivar shown_key: returns as much of a key as is safe to show: it may hold a secret.
    """

    def __init__(self, shown_key: Callable[[str], str] = as_written, plain_tags: Collection[str] = frozenset()) -> None:
        """
        @param plain_tags: tags without effect; others are mistakes.
        """
        self.found: list[Diagnostic] = []
        self.shown_key = shown_key
        self._plain_tags = plain_tags
        self._left = MOST_VALUES

    def add(self, code: str, position: Position, path: Path, sentence: str) -> None:
        """
        Add a mistake.

        @raise Broken: there are too many.
        """
        if len(self.found) >= MOST_MISTAKES:
            sentence = f"More than {MOST_MISTAKES:,} mistakes were found; nothing behind this place was looked at."
            raise Broken("too-many-mistakes", position, sentence)
        self.found.append(diagnose(code, path, sentence, position.line, position.column))

    def visit(self, node: Node) -> None:
        """
        Count a node, as often as aliases lead to it.

        @raise Broken: there are too many.
        """
        self._left -= node.weight
        if self._left < 0:
            raise too_many(node.position)

    def clean(self, node: ScalarNode, path: Path) -> str | None:
        """Return the text of a scalar; None, with a mistake, for a tag or a control character."""
        if not self.is_untagged(node, path):
            return None
        found = control_character(node.text)
        if found is not None:
            self.add("control-character", node.position, path, unwanted(found))
            return None
        return node.text

    def is_untagged(self, node: Node, path: Path) -> bool:
        """Tell whether a node has no tag; a tag is a mistake."""
        if node.tag is None or node.tag in self._plain_tags:
            return True
        sentence = "YAML tags are not used here; a text that begins with ! is written in quotes."
        self.add("yaml-tag", node.position, path, sentence)
        return False


#: A key as it is meant, the same as it is written, and the value.
Member: TypeAlias = tuple[str, ScalarNode, Node]


def members(node: MappingNode, path: Path, spelled: Callable[[str], str], mistakes: MistakeList) -> Iterator[Member]:
    """
    Yield the members of a mapping, each key once; those of C{<<} come last (YAML 1.1, merge key). C{node.members} has
    them from then on.

    @param spelled: turns a key as it is written into the key that is meant.
    """
    node.members = {}
    merges: list[Node] = []
    for key, key_node, value in _written(node, path, spelled, mistakes, merges):
        first = node.members.get(key)
        if first is None:
            node.members[key] = key_node, value
            yield key, key_node, value
        else:
            shown = mistakes.shown_key(key)
            sentence = f"The key {quoted_short(shown)} is given twice, first in line {first[0].position.line}."
            mistakes.add("duplicate-key", key_node.position, (*path, shown[:80]), sentence)
    for other in _merged(merges, path, mistakes):
        for key, key_node, value in _written(other, path, spelled, mistakes, None):
            if key not in node.members:
                node.members[key] = key_node, value
                yield key, key_node, value


def _written(
    node: MappingNode, path: Path, spelled: Callable[[str], str], mistakes: MistakeList, merges: list[Node] | None
) -> Iterator[Member]:
    for key_node, value in node.pairs if mistakes.is_untagged(node, path) else ():
        mistakes.visit(key_node)
        if not isinstance(key_node, ScalarNode):
            mistakes.add("bad-key", key_node.position, path, "A key is plain text.")
        elif key_node.text == "<<" and not key_node.style:
            if merges is None:
                mistakes.add("bad-merge", key_node.position, path, "What << takes in has a << of its own.")
            else:
                merges.append(value)
        elif mistakes.clean(key_node, path) is not None:
            yield spelled(key_node.text), key_node, value


def _merged(merges: list[Node], path: Path, mistakes: MistakeList) -> Iterator[MappingNode]:
    for merge in merges:
        for other in merge.items if isinstance(merge, SequenceNode) else (merge,):
            if isinstance(other, MappingNode):
                yield other
            else:
                sentence = "<< takes a mapping, or a list of mappings."
                mistakes.add("bad-merge", other.position, path, sentence)


class TypedReader:
    """
    Reads the nodes of one file.
    """

    def __init__(self, mistakes: MistakeList) -> None:
        self._mistakes = mistakes
        self._readers: Final[dict[Any, Callable[[Any, Any, Path], Any]]] = {
            inspect.StrType: self._text,
            inspect.IntType: self._number,
            inspect.BoolType: self._flag,
            inspect.AnyType: self._any,
            inspect.DictType: self._dict,
            inspect.VarTupleType: self._tuple,
            inspect.StructType: self._struct,
            inspect.UnionType: self._union,
        }

    def read(self, root: Node, wanted: Any) -> Any:
        """
        Return the root as a value of a type; None when it is not a mapping.

        @raise Broken: the file holds too much.
        """
        if not isinstance(root, MappingNode):
            self._mistakes.add("wrong-type", root.position, (), f"The file holds {shown_node(root)}; it takes keys.")
            return None
        return self._struct(root, shape_of(wanted), ())

    def _value(self, node: Node, shape: Any, path: Path) -> Any:
        shape = bare(shape)
        self._mistakes.visit(node)
        return self._readers[type(shape)](node, shape, path)

    def _text(self, node: Node, shape: Any, path: Path) -> Any:
        text = self._scalar(node, shape, path, "a text")
        return "" if text is None else text

    def _number(self, node: Node, shape: Any, path: Path) -> Any:
        least, most = shape.ge, shape.le
        wanted = "a whole number" + ("" if least is None or most is None else f" from {least} to {most}")
        text = self._scalar(node, shape, path, wanted)
        if text is None:
            return stand_in(shape)
        number = whole_number(text)
        if number is None:
            return self._wrong(node, shape, path, wanted)
        if (least is not None and number < least) or (most is not None and number > most):
            self._mistakes.add("bad-value", node.position, path, f"{text} is out of range; it takes {wanted}.")
            return stand_in(shape)
        return number

    def _flag(self, node: Node, shape: Any, path: Path) -> Any:
        text = self._scalar(node, shape, path, "yes or no")
        if text is None:
            return False
        value = read_flag(text)
        return self._wrong(node, shape, path, "yes or no") if value is None else value

    def _any(self, node: Node, shape: Any, path: Path) -> Any:
        if isinstance(node, ScalarNode):
            text = self._mistakes.clean(node, path)
            try:
                return text if text is None or node.style else core_value(text)
            except ValueError as error:
                self._mistakes.add("bad-value", node.position, path, str(error))
                return None
        if isinstance(node, SequenceNode):
            return list(self._items(node, shape, path))
        return {
            key: self._value(value, shape, (*path, key))
            for key, _, value in members(node, path, as_written, self._mistakes)
        }

    def _dict(self, node: Node, shape: Any, path: Path) -> Any:
        if not isinstance(node, MappingNode):
            return self._wrong(node, shape, path, "keys and values")
        return {
            key: self._present(value, shape.value_type, (*path, key))
            for key, _, value in members(node, path, as_written, self._mistakes)
        }

    def _tuple(self, node: Node, shape: Any, path: Path) -> Any:
        if not isinstance(node, SequenceNode):
            return self._wrong(node, shape, path, "a list")
        return tuple(self._items(node, shape.item_type, path))

    def _items(self, node: SequenceNode, shape: Any, path: Path) -> Iterator[Any]:
        if self._mistakes.is_untagged(node, path):
            for index, item in enumerate(node.items):
                yield self._present(item, shape, (*path, index))

    def _present(self, node: Node, shape: Any, path: Path) -> Any:
        """Read a value that must be there."""
        if isinstance(node, ScalarNode) and node.is_nothing() and not isinstance(bare(shape), inspect.AnyType):
            self._mistakes.add("missing-value", node.position, path, "It has no value.")
            return stand_in(bare(shape))
        return self._value(node, shape, path)

    def _union(self, node: Node, shape: Any, path: Path) -> Any:
        for member in map(bare, shape.types):
            if isinstance(node, NODES.get(type(member), ())):
                return self._value(node, member, path)
        words = " or ".join(WORDS[type(bare(member))] for member in shape.types if type(bare(member)) in WORDS)
        return self._wrong(node, shape, path, words)

    def _struct(self, node: Node, shape: Any, path: Path) -> Any:
        if not isinstance(node, MappingNode):
            return self._wrong(node, shape, path, "keys and values")
        fields = fields_of(shape.cls)
        values: dict[str, Any] = {}
        for key, key_node, value in members(node, path, with_underscores, self._mistakes):
            field = fields.get(key)
            if field is None:
                sentence = f"There is no key {quoted_short(key_node.text)} here. {suggestion(key, fields)}"
                self._mistakes.add("unknown-key", key_node.position, (*path, key[:80]), sentence)
            elif (
                isinstance(value, ScalarNode)
                and value.is_nothing()
                and not isinstance(bare(field.type), inspect.AnyType)
            ):
                values[field.name] = self._nothing(value, field, (*path, key))
            else:
                values[field.name] = self._value(value, field.type, (*path, key))
        for field in fields.values():
            if field.required and field.name not in values:
                sentence = f'The key "{field.encode_name}" is missing.'
                self._mistakes.add("missing-key", node.position, (*path, field.encode_name), sentence)
                values[field.name] = stand_in(bare(field.type))
        return shape.cls(**values)

    def _nothing(self, node: ScalarNode, field: inspect.Field, path: Path) -> Any:
        if field.required:
            self._mistakes.add("missing-value", node.position, path, "It has no value.")
            return stand_in(bare(field.type))
        self._mistakes.add("no-value", node.position, path, "It has no value, so its default holds; leave the key out.")
        return default_of(field)

    def _scalar(self, node: Node, shape: Any, path: Path, wanted: str) -> str | None:
        if not isinstance(node, ScalarNode):
            self._wrong(node, shape, path, wanted)
            return None
        return self._mistakes.clean(node, path)

    def _wrong(self, node: Node, shape: Any, path: Path, wanted: str) -> Any:
        self._mistakes.add("wrong-type", node.position, path, f"It is {shown_node(node)}; it takes {wanted}.")
        return stand_in(shape)
