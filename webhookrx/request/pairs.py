"""
The name-value pairs in a body that is JSON.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from webhookrx.message.macros import ALIASES, HARD_MACROS, RESERVED, RESERVED_PREFIXES, is_reserved
from webhookrx.message.message import Value
from webhookrx.request.payload import (
    MAX_DEPTH,
    PayloadError,
    count_brackets,
    decode_exactly,
    has_too_many_values,
    parse_json,
)

LONG: Final = 1024
"""Bytes of a body whose arrays are worth leaving as text; in a shorter one, looking for them takes as long."""

#: Names that a payload may not set.
_NEVER_TAKEN: Final = HARD_MACROS | RESERVED

_ARRAY: Final = ord("[")

_decode_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def name_budget(body_length: int) -> int:
    """
    Return how many bytes the names around nested members may take in all, for a body of that many bytes. Each member
    repeats them, so that ten megabytes could otherwise become gigabytes.
    """
    return 256 * 1024 + 4 * body_length


def flatten(value: dict[str, Value], prefix: str, into: dict[str, Value], budget: int) -> int:
    """
    Set the members of an object as pairs: nested objects joined by C{.}, C{prefix} in front, in the order of the
    document, so that the last of two that meet under one name wins. Arrays, and objects without members, are values.
    A soft macro's second name sets that macro. What a payload may not set is left out.

    @param value: no deeper than L{MAX_DEPTH}.
    @param into: where the pairs are set.
    @param budget: how many characters the names around nested members may take in all, see L{name_budget}.
    @return: how many members were left out.
    @raise PayloadError: the names take more.
    """
    special, dotted = _special_keys(prefix)
    if special is not None and special.isdisjoint(value) and not (dotted and "." in "".join(value)):
        _set_plain(value, prefix, into, budget)
        return 0
    left_out: list[str] = []
    _set_guarded(value, prefix, into, left_out, budget)
    return len(left_out)


@lru_cache(maxsize=1024)
def _special_keys(prefix: str) -> tuple[frozenset[str] | None, bool]:
    """
    Return the keys to look out for, since with C{prefix} in front they are special names or the beginning of one, None
    for all keys; and whether any other key with a dot in it is one to look out for too.
    """
    if prefix.startswith(RESERVED_PREFIXES):
        return None, True
    tails = [name[len(prefix) :] for name in (*_NEVER_TAKEN, *ALIASES, *RESERVED_PREFIXES) if name.startswith(prefix)]
    return frozenset(tails) | {tail.partition(".")[0] for tail in tails}, any("." in tail for tail in tails)


def _set_plain(members: dict[str, Value], path: str, into: dict[str, Value], budget: int) -> int:
    """
    Do the work of L{flatten} for an object in which no name is special.

    @param path: what comes before the names.
    @return: what is left of the budget.
    """
    for key, member in members.items():
        if type(member) is dict and member:
            name = path + key
            budget = _set_plain(member, name + ".", into, _spend(budget, name, member))
        else:
            into[path + key] = member
    return budget


def _set_guarded(members: dict[str, Value], path: str, into: dict[str, Value], left_out: list[str], budget: int) -> int:
    """Do the same for an object in which names may be special."""
    for key, member in members.items():
        name = path + key
        if name in _NEVER_TAKEN or name.startswith(RESERVED_PREFIXES):
            left_out.append(name)  # with all that is in it: what expands dots would see it below the receiver's own
        elif type(member) is dict and member:
            budget = _spend(budget, name, member)
            name += "."
            # Below a dot, only names that begin with C{webhook.} are special.
            if name.startswith("webhook."):
                budget = _set_guarded(member, name, into, left_out, budget)
            else:
                budget = _set_plain(member, name, into, budget)
        else:
            into[ALIASES.get(name, name)] = member
    return budget


def _spend(budget: int, name: str, members: dict[str, Value]) -> int:
    """
    Return what is left of the budget once a name is repeated in front of that many members.

    @raise PayloadError: nothing is.
    """
    # What is not plain comes out as an escape of six bytes.
    budget -= len(members) * (len(name) if name.isascii() and name.isprintable() else 6 * len(name))
    if budget < 0:
        raise PayloadError("The names in the body are too long once nested objects are joined.")
    return budget


def set_pairs(body: bytes, prefix: str, into: dict[str, Value]) -> int:
    """
    Set the pairs of a body, and return how many members were left out because a payload may not set them. The elements
    of an array are C{<prefix>1}, C{<prefix>2}, and so on; objects among them stay whole.

    @param into: where the pairs are set; some of them may be when this raises.
    @raise PayloadError: it is neither a JSON object nor a JSON array, or it is too deep or too large for pairs.
    """
    value = parse_json(body) if len(body) < LONG else _read_long(body)
    if type(value) is dict:
        return flatten(value, prefix, into, name_budget(len(body)))
    if type(value) is not list:
        raise PayloadError("The body is JSON, but neither an object nor an array.")
    left_out = 0
    for number, element in enumerate(value, 1):
        name = f"{prefix}{number}"
        if is_reserved(name):
            left_out += 1
        else:
            into[name] = element
    return left_out


def _read_long(body: bytes) -> Value:
    """
    Read a body as L{parse_json} does, but leave arrays that are members of it as their text: nobody looks into them,
    and text is copied many times faster than values are made of it and text of those.
    """
    if _fits_into_a_line(body) and not has_too_many_values(body):
        try:
            texts = _decode_members(body)
            # Each a copy, for which the whole body need not live on.
            return {
                name: msgspec.Raw(text) if text[0] == _ARRAY else decode_exactly(text)
                for name, text in zip(texts, map(bytes, texts.values()), strict=True)
            }
        except msgspec.MsgspecError:
            pass  # Whatever is unusual goes the usual way.
    return parse_json(body)


def _fits_into_a_line(body: bytes) -> bool:
    """
    Tell whether parts of a body, if it is JSON, can go into a line as they are: there is no line break and no escape,
    which could stand for half a character, nothing can nest too deep, and all is UTF-8.
    """
    if 0x5C in body or 0x0A in body or 0x0D in body or 0x09 in body or count_brackets(body) > MAX_DEPTH:
        return False
    try:
        return body.isascii() or bool(body.decode())
    except UnicodeDecodeError:
        return False
