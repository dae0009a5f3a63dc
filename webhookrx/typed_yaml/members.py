"""
The members of a mapping: keys that are there twice, and those that C{<<} brings in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from webhookrx.diagnostics import Path, quoted_short
from webhookrx.typed_yaml.nodes import Mapping, Node, Scalar, Sequence
from webhookrx.typed_yaml.notes import Notes

#: Key as it is meant, key as it is written, value.
Member: TypeAlias = tuple[str, Scalar, Node]


def members(node: Mapping, path: Path, spelled: Callable[[str], str], notes: Notes) -> Iterator[Member]:
    """
    Yield the members of a mapping, each key once; those that C{<<} brings in come last (YAML 1.1, merge key). They are
    in C{node.members} from then on.

    @param spelled: makes a key, as it is written, the one that is meant.
    """
    node.members = {}
    merges: list[Node] = []
    for key, key_node, value in _written(node, path, spelled, notes, merges):
        first = node.members.get(key)
        if first is None:
            node.members[key] = key_node, value
            yield key, key_node, value
        else:
            sentence = f"The key {quoted_short(key)} is there twice, first in line {first[0].position.line}."
            notes.add("duplicate-key", key_node.position, (*path, key[:80]), sentence)
    for other in _merged(merges, path, notes):
        for key, key_node, value in _written(other, path, spelled, notes, None):
            if key not in node.members:
                node.members[key] = key_node, value
                yield key, key_node, value


def _written(
    node: Mapping, path: Path, spelled: Callable[[str], str], notes: Notes, merges: list[Node] | None
) -> Iterator[Member]:
    for key_node, value in node.pairs if notes.is_untagged(node, path) else ():
        notes.visit(key_node)
        if not isinstance(key_node, Scalar):
            notes.add("bad-key", key_node.position, path, "A key is plain text.")
        elif key_node.text == "<<" and not key_node.style:
            if merges is None:
                notes.add("bad-merge", key_node.position, path, "What << takes in has a << of its own.")
            else:
                merges.append(value)
        elif notes.clean(key_node, path) is not None:
            yield spelled(key_node.text), key_node, value


def _merged(merges: list[Node], path: Path, notes: Notes) -> Iterator[Mapping]:
    for merge in merges:
        for other in merge.items if isinstance(merge, Sequence) else (merge,):
            if isinstance(other, Mapping):
                yield other
            else:
                sentence = "<< takes a mapping, or a list of mappings."
                notes.add("bad-merge", other.position, path, sentence)
