"""
Rules as documents: as JSON that is stored and compared, and as YAML that people write, comments and all.

A document is what L{msgspec} makes of a rule: its keys in the order of the fields, without those that have their
default. A number with a fraction or an exponent is a C{Raw}, so that it keeps its digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import yaml

from webhookrx.router.rules.rule import Rule
from webhookrx.router.rules.rules_file import RulesReading, read_rule

Document: TypeAlias = "dict[str, Any]"

_WIDTH: Final = 1 << 30
"""Columns at which PyYAML would break a line: none, since a break may change a text that is read line by line."""

_PLAIN: Final = re.compile(r"[A-Za-z_/][\w./@ =-]*(?<! )", re.ASCII)
"""Texts that are no number in any YAML. The words among them that stand for values are for PyYAML to see."""

_COMMENT: Final = re.compile(r"\s*#")
_OTHER_BREAKS: Final = re.compile("\r(?!\n)|[\x85\u2028\u2029]")

_decode: Final = msgspec.json.Decoder(float_hook=lambda text: msgspec.Raw(text.encode())).decode


def document_of(rule: Rule) -> Document:
    """Return a rule as a document."""
    document: Document = _decode(msgspec.json.encode(rule))
    return document


def encode_document(document: Document) -> bytes:
    """Return a document as JSON."""
    return msgspec.json.encode(document)


def decode_document(data: bytes | str) -> Document:
    """
    Return the document in a JSON text.

    @raise msgspec.DecodeError: it is not JSON, or no object.
    """
    document = _decode(data)
    if not isinstance(document, dict):
        raise msgspec.DecodeError("A document is an object.")
    return document


def document_yaml(document: Document) -> str:
    """Return a document as the one YAML text that we write for it; it is read as the same rule again."""
    text: str = yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=_WIDTH
    )
    return text


def rules_yaml(texts: Iterable[str]) -> str:
    """Return a rules file with these rules, each a YAML text."""
    items = "".join(map(_item, texts))
    return f"version: 1\nconnector_rules:\n{items}" if items else "version: 1\nconnector_rules: []\n"


def texts_as_written(data: bytes, reading: RulesReading) -> list[str]:
    """
    Return the text of each rule of a file, with the comments in it and right above it.

    A rule that says something else by itself, since an alias in it has its anchor in another rule, or one that is not
    written as an item in a block, gets the text that we write for it.

    @param data: the file.
    @param reading: what has been read of it, without errors.
    """
    text = data.decode("utf-8-sig").replace("\r\n", "\n")
    lines = [] if _OTHER_BREAKS.search(text) else text.split("\n")
    starts = [reading.position(rule.name) for rule in reading.rules]
    texts = []
    for number, (rule, start) in enumerate(zip(reading.rules, starts, strict=True)):
        following = starts[number + 1].line - 1 if number + 1 < len(starts) else len(lines)
        written = _lines_of_item(lines, start.line - 1, start.column - 1, following)
        texts.append(written if written and _is_of(written, rule) else document_yaml(document_of(rule)))
    return texts


def _is_of(text: str, rule: Rule) -> bool:
    reading = read_rule(text.encode(), "")
    return reading.value == rule


def _lines_of_item(lines: Sequence[str], row: int, column: int, following: int) -> str:
    """Return the lines of an item of a list in a block, as far to the left as they go; empty when it is not one."""
    if row >= len(lines) or lines[row][:column].strip() != "-":
        return ""
    dash = lines[row].index("-")
    first = row
    while first > 0 and _is_above(lines[first - 1], dash):
        first -= 1
    is_last = following == len(lines)
    while not is_last and following > row + 1 and _is_above(lines[following - 1], dash):
        following -= 1
    end = row + 1
    while end < following and _is_inside(lines[end], dash):
        end += 1
    while is_last and end > row + 1 and _is_behind(lines[end - 1], dash):
        end -= 1
    kept = [line.strip() for line in lines[first:row]] + [lines[row][column:]]
    for line in lines[row + 1 : end]:
        if line[:column].strip():
            if not _COMMENT.match(line):
                return ""
            line = line.strip()
        else:
            line = line[column:]
        kept.append(line)
    return "\n".join(kept).rstrip() + "\n"


def _is_above(line: str, dash: int) -> bool:
    """Tell whether a line is a comment that belongs to what is below it."""
    return bool(_COMMENT.match(line)) and line.index("#") <= dash


def _is_inside(line: str, dash: int) -> bool:
    return not line.strip() or bool(_COMMENT.match(line)) or len(line) - len(line.lstrip()) > dash


def _is_behind(line: str, dash: int) -> bool:
    """Tell whether a line at the end of the list is not of its last item."""
    return not line.strip() or (bool(_COMMENT.match(line)) and line.index("#") < dash)


def _item(text: str) -> str:
    """Return the text of a rule as an item of the list in a rules file."""
    lines = []
    begun = False
    for line in text.rstrip("\n").split("\n"):
        if begun or not line.strip() or _COMMENT.match(line):
            lines.append(f"    {line}" if begun else f"  {line}")
        else:
            lines.append(f"  - {line}")
            begun = True
    return "".join(f"{line}\n" if line.strip() else "\n" for line in lines)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes documents."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything in full: an alias is no help to a reader."""
        return True


def _text_node(dumper: Any, text: str) -> Any:
    style = None if _PLAIN.fullmatch(text) else "|" if "\n" in text else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _number_node(dumper: Any, number: msgspec.Raw) -> Any:
    text = bytes(number).decode()
    # By the tag that PyYAML itself would give to the text, since any other would be written out.
    return dumper.represent_scalar(dumper.resolve(yaml.ScalarNode, text, (True, False)), text)


_Dumper.add_representer(str, _text_node)
_Dumper.add_representer(msgspec.Raw, _number_node)
