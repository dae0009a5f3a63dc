"""
The name-value pairs in a body that is JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from webhookrx.intake.json_body import PayloadError, parse_json
from webhookrx.message.escapes import encode_json
from webhookrx.message.macros import ALIASES, HARD_MACROS, PROVENANCE, RESERVED, RESERVED_PREFIXES, is_reserved
from webhookrx.message.message import Value
from webhookrx.yield_point import PIECE, count_byte, yield_point

MAX_PAIRS: Final = 10_000
"""
Pairs that a body may become. Each costs every step after this one up to some microseconds, so that this many take some
ten milliseconds.
"""

LARGEST_GROWTH: Final = 8
"""How many times its size a body may become as a message on disk, beyond a few hundred kibibytes for all the rest."""

#: Names and values of members that a payload may not set.
LeftOut: TypeAlias = Sequence[tuple[str, Value]]
NOTHING: Final[LeftOut] = ()

#: Names that a payload may not set.
_NEVER_TAKEN: Final = HARD_MACROS | RESERVED

#: Bytes of a body that may grow as it likes, and of names that may be repeated around any body.
_SMALL: Final = 16 * 1024
_ALWAYS_REPEATED: Final = 64 * 1024


#: Bytes that an escape may take more than the character that begins with this byte.
_ESCAPED: Final = {b"\x7f": 5, b"\xc2": 4, b"\xd8": 4, b"\xe2": 3}


def name_budget(body: bytes) -> int:
    """
    Return how many bytes may be repeated as names, prefixes and array indexes of pairs: what L{LARGEST_GROWTH} leaves
    beside the body, which is there as C{MESSAGE} and once more as pairs. Less than 0: the pairs would take too much.
    """
    size = len(body)
    if size <= _SMALL:
        return _ALWAYS_REPEATED + 4 * size
    escaped = sum(more * count_byte(body, byte) for byte, more in _ESCAPED.items())
    if 2 * escaped <= size:  # then quotes and backslashes, at most all bytes, leave more than enough
        return _ALWAYS_REPEATED + 4 * size
    once = size + escaped
    as_text = once + count_byte(body, b'"') + count_byte(body, b"\\")
    return _ALWAYS_REPEATED + min(4 * size, LARGEST_GROWTH * size - once - as_text)


class _Allowance:
    """
    What the pairs of one body may still take.

    @param names: see L{name_budget}.
    """

    __slots__ = ("_names", "_pairs")

    def __init__(self, names: int) -> None:
        self._names = names
        self._pairs = MAX_PAIRS

    def spend(self, name_size: int, members: int) -> None:
        """
        Count members of one object, or elements of an array.

        @param name_size: bytes that are repeated in front of each.
        @raise PayloadError: that is too much.
        """
        self._pairs -= members
        if self._pairs < 0:
            raise PayloadError(f"The body holds more than {MAX_PAIRS} members.")
        self._names -= name_size * members
        if self._names < 0:
            raise PayloadError("The names in the body are too long once nested objects are joined.")


def flatten(value: dict[str, Value], prefix: str, into: dict[str, Value], names: int) -> LeftOut:
    """
    Set the members of an object as pairs: nested objects joined by C{.}, C{prefix} in front, in the order of the
    document, so that the last of two that meet under one name wins. Arrays, and objects without members, are values.
    A soft macro's second name sets that macro. What a payload may not set is left out.

    @param value: no deeper than L{MAX_DEPTH}.
    @param into: where the pairs are set.
    @param names: how many bytes the names around nested members may take in all, see L{name_budget}.
    @return: what was left out.
    @raise PayloadError: the names take more, or there are more than L{MAX_PAIRS} members.
    """
    allowance = _Allowance(names)
    allowance.spend(_encoded_size(prefix), len(value))
    special, dotted = _special_keys(prefix)
    if special is not None and special.isdisjoint(value) and not (dotted and "." in "".join(value)):
        _set_plain(value, prefix, into, allowance)
        return NOTHING
    left_out: list[tuple[str, Value]] = []
    _set_guarded(value, prefix, into, left_out, allowance)
    return left_out


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


def _set_plain(members: dict[str, Value], path: str, into: dict[str, Value], allowance: _Allowance) -> None:
    """
    Do the work of L{flatten} for an object in which no name is special.

    @param path: what comes before the names.
    """
    for key, member in members.items():
        if type(member) is dict and member:
            name = path + key + "."
            allowance.spend(_encoded_size(name), len(member))
            _set_plain(member, name, into, allowance)
        else:
            into[path + key] = member


def _set_guarded(
    members: dict[str, Value],
    path: str,
    into: dict[str, Value],
    left_out: list[tuple[str, Value]],
    allowance: _Allowance,
) -> None:
    """Do the same for an object in which names may be special."""
    for key, member in members.items():
        name = path + key
        is_object = type(member) is dict and bool(member)
        if (name in _NEVER_TAKEN or name.startswith(RESERVED_PREFIXES)) and not (is_object and name in PROVENANCE):
            left_out.append(
                (name, member)
            )  # with all that is in it: what expands dots would see it below the receiver's own
        elif type(member) is dict and member:
            name += "."
            allowance.spend(_encoded_size(name), len(member))
            # Below a dot, only names that begin with C{webhook.} are special.
            if name.startswith("webhook."):
                _set_guarded(member, name, into, left_out, allowance)
            else:
                _set_plain(member, name, into, allowance)
        else:
            into[ALIASES.get(name, name)] = member


def _encoded_size(name: str) -> int:
    """Return how many bytes a name takes in a line."""
    if name.isascii() and name.isprintable() and '"' not in name and "\\" not in name:
        return len(name)
    return len(encode_json(name)) - 2


def set_pairs(body: bytes, prefix: str, into: dict[str, Value]) -> LeftOut:
    """
    Set the pairs of a body, and return the members that were left out because a payload may not set them. The elements
    of an array are C{<prefix>1}, C{<prefix>2}, and so on; objects among them stay whole.

    @param into: where the pairs are set; some of them may be when this raises.
    @raise PayloadError: it is neither a JSON object nor a JSON array, or it is too deep or too large for pairs.
    """
    value = parse_json(body)
    if len(body) > PIECE:
        yield_point()
    if type(value) is dict:
        return flatten(value, prefix, into, name_budget(body))
    if type(value) is not list:
        raise PayloadError("The body is JSON, but neither an object nor an array.")
    _Allowance(name_budget(body)).spend(_encoded_size(f"{prefix}{len(value)}"), len(value))
    left_out: list[tuple[str, Value]] = []
    for number, element in enumerate(value, 1):
        name = f"{prefix}{number}"
        if is_reserved(name):
            left_out.append((name, element))
        else:
            into[name] = element
    return left_out
