"""
The known senders, and the format of their data files, as Markdown tables: C{python -m webhookrx.senders.tables}.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Final

import msgspec
from msgspec import inspect

from webhookrx.diagnostics import ENTRY_CODES
from webhookrx.intake.json_body import decode_exactly
from webhookrx.senders.answer_definition import Behaviour, RefusedAnswer, SenderAnswer
from webhookrx.senders.compiled import compile_sender
from webhookrx.senders.conditions import Conditions
from webhookrx.senders.data_file import When
from webhookrx.senders.definition import (
    SEVERITIES,
    Decode,
    MessageRule,
    SenderDefinition,
    Setting,
    Severity,
    SignedWith,
    Time,
)
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.handshake_definition import Handshake, HandshakeWhen, Proof
from webhookrx.senders.http_file import read_http_file
from webhookrx.senders.severities import USUAL_WORDS
from webhookrx.senders.signatures.scheme import SignatureScheme, SignedTime
from webhookrx.senders.split_definition import Split
from webhookrx.senders.splitting import Splitter
from webhookrx.text import table

_PARTS: Final = (
    (SenderDefinition, "A data file"),
    (When, "`when`, and an element of it when it is a list"),
    (Decode, "An element of `decode`"),
    (Time, "An element of `time`"),
    (MessageRule, "An element of `message` that is a mapping"),
    (Severity, "An element of `severity`"),
    (Setting, "Each of `settings`"),
    (SignedWith, "`signed_with`"),
    (Split, "`split`, and an element of it when it is a list"),
    (SignatureScheme, "`verify`, and an element of it when it is a list"),
    (SignedTime, "`time` in `verify`"),
    (Handshake, "An element of `handshake`"),
    (HandshakeWhen, "`when` of an element of `handshake`"),
    (Proof, "`proof` of an element of `handshake`"),
    (SenderAnswer, "`answer`, and an element of it when it is a list"),
    (RefusedAnswer, "`refused` of an `answer`"),
    (Behaviour, "`behaviour`"),
)


def sender_table() -> str:
    """Return the table of the senders that come with the package, by id."""
    rows = (
        (
            f"`{definition.id}`",
            _linked(definition),
            f"`{definition.vendor}`" if definition.vendor else "",
            f"`{definition.product}`" if definition.product else "",
            "; *or* ".join(map(_told_by, compile_sender(definition).alternatives))
            or "JSON that no other definition matches",
            definition.recorded_from,
        )
        for definition in builtin_definitions()
    )
    return table(("id", "requests", "`meta.vendor`", "`meta.product`", "told by", "seen from"), rows)


def entry_table() -> str:
    """Return a table for each type of a data file, in the order of the file."""
    return "\n".join(f"{title}:\n\n{_type_table(part)}" for part, title in _PARTS)


def severity_table() -> str:
    """Return the table of severities, lowest first, with the words that mean them without being in a map."""
    rows = []
    for name, known in SEVERITIES.items():
        words = sorted(word for word, meaning in USUAL_WORDS.items() if meaning == known and word != name)
        rows.append((f"`{name}`", str(known[0]), f"`{known[1]}`", ", ".join(f"`{word}`" for word in words)))
    return table(("name", "`log.severity_number`", "`log.severity_text`", "also written as"), rows)


def entry_code_table() -> str:
    """Return the table of what can be wrong with a data file, besides what can be wrong with any file."""
    return table(("code", "meaning"), ((f"`{code.word}`", code.meaning) for code in ENTRY_CODES))


def _linked(definition: SenderDefinition) -> str:
    return f"[{definition.description}]({definition.source})" if definition.source else definition.description


def _told_by(when: Conditions) -> str:
    parts = [
        f"`{name.decode('ascii')}`" + (f" with `{value.pattern}`" if value else "") for name, value in when.headers
    ]
    if when.any_header:
        parts.append(" or ".join(f"`{name.decode('ascii')}`" for name in sorted(when.any_header)))
    parts += [
        f"query parameter `{name}`" + (f" with `{value.pattern}`" if value else "") for name, value in when.parameters
    ]
    if when.content_type:
        parts.append(f"`{when.content_type}`")
    if when.path is not None:
        parts.append(f"path `{when.path.pattern}`")
    if when.body_keys:
        parts.append(", ".join(f"`{name}`" for name in sorted(when.body_keys)))
    if when.query is not None:
        parts.append(f"`{when.query.text}`")
    return "; ".join(parts)


def _type_table(part: type[msgspec.Struct]) -> str:
    info = inspect.type_info(part)
    assert isinstance(info, inspect.StructType)
    rows = []
    for field in info.fields:
        kind, description = field.type, ""
        if isinstance(kind, inspect.Metadata):
            description = (kind.extra_json_schema or {}).get("description", "")
            kind = kind.type
        rows.append((f"`{field.name}`", _kind(kind), "yes" if field.required else "", _default(field), description))
    return table(("member", "what it is", "needed", "default", "meaning"), rows)


def _kind(kind: Any) -> str:
    if isinstance(kind, inspect.Metadata):
        return _kind(kind.type)
    if isinstance(kind, inspect.UnionType):
        kinds = [_kind(each) for each in kind.types if not isinstance(each, inspect.NoneType)]
        return " or ".join([*(each.removesuffix(", see below") for each in kinds[:-1]), kinds[-1]])
    if isinstance(kind, inspect.VarTupleType):
        listed = _kind(kind.item_type)
        return f"list of {listed}s" if listed in ("text", "number") else "list, see below"
    if isinstance(kind, inspect.DictType):
        value = kind.value_type
        is_any = isinstance(value, inspect.UnionType | inspect.AnyType)
        return f"{'value' if is_any else _kind(value).partition(',')[0]}s by name"
    if isinstance(kind, inspect.StructType):
        return "mapping, see below"
    if isinstance(kind, inspect.BoolType):
        return "yes or no"
    if isinstance(kind, inspect.AnyType):
        return "value"
    return "number" if isinstance(kind, inspect.IntType) else "text"


def _default(field: inspect.Field) -> str:
    if isinstance(field.default, bool):
        return "`yes`" if field.default else "`no`"
    return f"`{field.default}`" if isinstance(field.default, str | int) and field.default != "" else ""


if __name__ == "__main__":
    print("\n".join((sender_table(), entry_table(), severity_table(), entry_code_table())), end="")


def split_table() -> str:
    """Return the table of the senders that put several events into a body, and what goes along with each event."""
    rows = []
    for definition in builtin_definitions():
        if definition.splits:
            ways = "; *else* ".join(map(_split_way, definition.splits))
            rows.append((f"`{definition.id}`", ways, ", ".join(f"`{name}`" for name in _envelope_members(definition))))
    return table(("sender", "events", "members of envelopes in its samples"), rows)


def _split_way(split: Split) -> str:
    if split.by != "value":
        carried = f", with {', '.join(f'`{name}`' for name in split.carry)} of those before" if split.carry else ""
        return _WAYS[split.by] + carried
    decoded = f", {split.decode.replace('+', ' and ')} undone" if split.decode else ""
    inside = f", then `{split.inside}` in each" if split.inside else ""
    return f"`{split.at}`{decoded}{inside}"


_WAYS: Final = {
    "lines": "lines",
    "documents": "JSON documents one after another",
    "bulk": "pairs of lines: an action, and its document",
    "frames": "frames, each behind the number of its bytes",
}


def _envelope_members(definition: SenderDefinition) -> list[str]:
    """Return the paths of the members of all envelopes in the samples of a definition, without what is in them."""
    splitter = Splitter(definition.splits)
    home = files("webhookrx.senders") / "data"
    found: dict[str, None] = {}
    for sample in definition.samples:
        head, _, body = read_http_file((home / sample).read_bytes())
        bundle = splitter.split(body, Evidence(head, {}, body, None, None).media_type)
        for event in bundle.events if bundle is not None else ():
            if event.around.envelope:
                found |= dict.fromkeys(_paths(decode_exactly(event.around.envelope), event.around.path))
    return list(found)


def _paths(envelope: Any, way: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths of members, those of an object on the way to the event in its place."""
    step, *rest = [each for each in way if not each.isdigit()] or [""]
    for name, value in envelope.items():
        if name == step and isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in _paths(value, tuple(rest)))
        else:
            yield name
