"""
Nodes of YAML, for parts of a rule that are taken out and put back as they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import yaml

_YES: Final = ("yes", "on", "true")
_WIDTH: Final = 1 << 30
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_STRING: Final = "tag:yaml.org,2002:str"
_INTEGER: Final = "tag:yaml.org,2002:int"
_FLAG: Final = "tag:yaml.org,2002:bool"
_NULL: Final = "tag:yaml.org,2002:null"
_MAPPING: Final = "tag:yaml.org,2002:map"
_SEQUENCE: Final = "tag:yaml.org,2002:seq"


def composed(text: str) -> Any:
    """Return the root node of a text that L{webhookrx.typed_yaml} has read: it is not too deep for a composer that
    recurses."""
    return yaml.compose(text, Loader=_LOADER)


def block(text: str) -> Any:
    """Return a text that is written in lines of its own."""
    return yaml.ScalarNode(_STRING, text, style="|")


def members_of(node: Any, *, as_written: bool = False) -> dict[str, Any]:
    """
    Return the values of a mapping by their keys; nothing for what is none.

    @param as_written: C{-} in a key is not C{_}, as in labels.
    """
    if not isinstance(node, yaml.MappingNode):
        return {}
    pairs = [(key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]
    return {key.value if as_written else key_of(key): value for key, value in pairs}


def key_of(node: Any) -> str:
    """Return a key of a rule; empty for what is no text."""
    return str(node.value).replace("-", "_") if isinstance(node, yaml.ScalarNode) else ""


def items_of(node: Any) -> list[Any]:
    """Return the items of a list; nothing for what is none."""
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def text_of(node: Any) -> str:
    """Return a scalar as text, and what should be none in YAML."""
    if not isinstance(node, yaml.ScalarNode):
        return written(node).strip()
    return "" if node.tag == _NULL and not node.style else str(node.value)


def is_yes(node: Any) -> bool:
    """Return whether a flag is set."""
    return isinstance(node, yaml.ScalarNode) and str(node.value).lower() in _YES


def scalar(text: str) -> Any:
    """Return a text, or a number, which is written without quotes."""
    tag = _INTEGER if text.isascii() and text.isdigit() and (text == "0" or text[0] != "0") else _STRING
    return yaml.ScalarNode(tag, text, style="|" if "\n" in text else None)


def flag(is_set: bool) -> Any:
    """Return a flag; None for one that is not set."""
    return yaml.ScalarNode(_FLAG, "true") if is_set else None


def mapping(pairs: Sequence[tuple[Any, Any]], *, keep: bool = False) -> Any:
    """Return a mapping; None for an empty one, unless it is to be kept."""
    return yaml.MappingNode(_MAPPING, list(pairs), flow_style=not pairs) if pairs or keep else None


def sequence(items: Iterable[Any]) -> Any:
    """Return a list; None for an empty one."""
    kept = list(items)
    return yaml.SequenceNode(_SEQUENCE, kept, flow_style=False) if kept else None


def with_members(node: Any, changes: Mapping[str, Any], type: type[msgspec.Struct]) -> Any:
    """Return a copy of a mapping with some members changed, None being one that is not there any more."""
    pairs = list(node.value) if isinstance(node, yaml.MappingNode) else []
    there = [key_of(key) for key, _ in pairs]
    pairs = [(key, changes.get(key_of(key), value)) for key, value in pairs]
    pairs += [(scalar(name), value) for name, value in changes.items() if name not in there]
    order = {field.name: number for number, field in enumerate(msgspec.structs.fields(type))}
    pairs.sort(key=lambda pair: order.get(key_of(pair[0]), len(order)))
    return mapping([pair for pair in pairs if pair[1] is not None])


def written(node: Any) -> str:
    """Return a node as YAML."""
    text: str = yaml.serialize(node, Dumper=_DUMPER, allow_unicode=True, width=_WIDTH)
    # A scalar by itself ends with the mark of the end of a document.
    return text.removesuffix("...\n")
