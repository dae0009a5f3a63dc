"""
Values of programs: their truth, numbers, texts and copies, and the places of values in objects and lists.

Inside objects and lists a number with a fraction is C{msgspec.Raw}, as in every message, so that a number that is only
moved keeps its digits. Arithmetic makes C{float}. Moments, addresses, networks, bytes and tuples are values of programs
only; L{stored} converts them for objects and lists.
"""

from __future__ import annotations

import math
import re
import socket
from base64 import b64encode
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Final, TypeAlias

import msgspec

from webhookrx.message.fields import MISSING
from webhookrx.router.expressions.moments import Moment
from webhookrx.router.expressions.run import (
    CONTAINER,
    ELEMENT,
    MAX_DEPTH,
    MAX_INTEGER,
    MIN_INTEGER,
    SHORT,
    OperationError,
    Run,
)


class Table(dict[str, Any]):
    """An object that many messages share: it may be read and copied, and is never changed."""


class Rows(list[Any]):
    """The same for a list."""


OBJECTS: Final[frozenset[type[Any]]] = frozenset((dict, Table))
LISTS: Final[frozenset[type[Any]]] = frozenset((list, tuple, Rows))

ADDRESSES: Final = (IPv4Address, IPv6Address)
NETWORKS: Final = (IPv4Network, IPv6Network)

_EXACT_DIGITS: Final = 40
"""Characters of an integer that is read exactly; longer ones would take too long."""

LONGEST_NUMBER: Final = 4096
"""Characters of a number in arithmetic and comparisons; a sender may write one of megabytes."""

_NUMBER: Final = re.compile(
    r"[ \t\r\n\f\v]*+[+-]?+(?:0[xX]([0-9a-fA-F]{1,16}+)|[0-9]++(?:\.[0-9]*+)?+(?:[eE][+-]?+[0-9]++)?+)"
)
_WORDS: Final = {True: "true", False: "false", None: "null"}


def truth(value: Any) -> bool:
    """
    Tell whether a value counts as true: all do but the empty text, 0, C{false}, C{null}, the moment 0 and the networks
    of all addresses. Empty lists and objects are true, as in FilterX.
    """
    kind = type(value)
    if kind in OBJECTS or kind in LISTS:
        return True
    if kind is msgspec.Raw:
        number = as_number(value)
        return number is None or number != 0
    if kind is Moment:
        return bool(value.nanoseconds)
    if kind in NETWORKS:
        return int(value.network_address) != 0
    return kind in ADDRESSES or bool(value)


def as_number(value: Any) -> int | float | None:
    """Return a number for arithmetic; None for any other value, C{true} and C{false} among them."""
    kind = type(value)
    if kind is int or kind is float:
        number: int | float = value
        return number
    if kind is not msgspec.Raw or len(value) > LONGEST_NUMBER:
        return None
    return text_number(bytes(value).decode())


def text_number(text: str) -> int | float | None:
    """
    Return the number that a text is in decimal notation, or in hexadecimal behind C{0x}; None when the text is no
    number, is longer than L{LONGEST_NUMBER}, or has no finite value.
    """
    if len(text) > LONGEST_NUMBER:
        return None
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    if found[1] is not None:
        return int(found[1], 16) * (-1 if "-" in text else 1)
    if len(text) <= _EXACT_DIGITS:
        try:
            return int(text)
        except ValueError:
            pass
    number = float(text)
    return number if abs(number) < float("inf") else None


def checked_number(number: int | float) -> int | float:
    """
    Return a result of arithmetic.

    @raise OperationError: the result does not fit in 64 bits, or is not finite.
    """
    if type(number) is int:
        if MIN_INTEGER <= number <= MAX_INTEGER:
            return number
        raise OperationError("The integer has more than 64 bits.")
    if math.isfinite(number):
        return number
    raise OperationError("The number is too large.")


def as_text(run: Run, value: Any) -> str:
    """
    Return a value as text: numbers by their digits, bytes as the text that they are, a moment as seconds, objects and
    lists as JSON.

    @raise OperationError: it is too long.
    """
    kind = type(value)
    if kind is str:
        text: str = value
    elif kind is bool or value is None:
        return _WORDS[value]
    elif kind is int or kind is float or kind is Moment:
        return str(value)
    elif kind is msgspec.Raw or kind is bytes:
        text = decoded(run, bytes(value))
    elif kind in ADDRESSES:
        return f"ip('{_address_text(value)}')"
    elif kind in NETWORKS:
        return f"subnet('{_network_text(value)}')"
    elif kind is tuple:
        texts = [f'"{element}"' if type(element) is str else as_text(run, element) for element in value]
        text = f"({','.join(texts)}{',' if len(texts) == 1 else ''})"
    else:
        return json_text(run, value)
    return long_text(run, text) if len(text) > SHORT else text


def decoded(run: Run, raw: bytes) -> str:
    """
    Return bytes decoded as UTF-8; others become U+FFFD.

    @raise OperationError: they are too many.
    """
    if len(raw) > run.limits.text:
        raise run.too_long()
    run.spend(len(raw))
    return raw.decode("utf-8", "replace")


def long_text(run: Run, text: str) -> str:
    """
    Count a text that an operation takes or has made.

    @raise OperationError: it is too long.
    """
    size = len(text)
    if size > SHORT:
        if size > run.limits.text:
            raise run.too_long()
        run.spend(size if text.isascii() else 4 * size)
    return text


def json_text(run: Run, value: Any) -> str:
    """
    Return a value as JSON.

    @raise OperationError: it is too large.
    """
    if type(value) is str:
        copied, characters = long_text(run, value), len(value)
    else:
        copy = _Copy(run)
        copied, characters = copy.copy(value, MAX_DEPTH), copy.characters
    # Counted before it is made: an escape has up to six characters for one.
    run.spend(2 * characters)
    return long_text(run, msgspec.json.encode(copied).decode())


def stored(run: Run, value: Any, *, fresh: bool) -> Any:
    """
    Return a value for an object or a list: a copy, so that a later change of either does not change the other.

    @param fresh: nothing else refers to the value, so that it need not be copied.
    @raise OperationError: it is too large or nests too deep.
    """
    kind = type(value)
    if kind is str:
        if len(value) > SHORT:
            run.spend(len(value) // 2)
        return value
    if kind is dict or kind is list:
        return value if fresh else _Copy(run).copy(value, MAX_DEPTH)
    return _Copy(run).copy(value, MAX_DEPTH) if kind in LISTS or kind is Table else plain(value)


def plain(value: Any) -> Any:
    """Return a value that is neither object nor list as objects and lists hold it."""
    kind = type(value)
    if kind is float:
        return msgspec.Raw(repr(value).encode())
    if kind is Moment:
        return value.nanoseconds
    if kind is bytes:
        return b64encode(value).decode()
    if kind in ADDRESSES:
        return _address_text(value)
    return _network_text(value) if kind in NETWORKS else value


def _address_text(address: IPv4Address | IPv6Address) -> str:
    """Return an address as inet_ntop(3) writes it, which Python does not always do."""
    return socket.inet_ntop(socket.AF_INET if address.version == 4 else socket.AF_INET6, address.packed)


def _network_text(network: IPv4Network | IPv6Network) -> str:
    return f"{network.network_address}/{network.netmask}"


class _Copy:
    """
    A copy of an object or a list, counted as it is made, so that one that is too large is never finished.

    @ivar characters: of the texts in it.
    """

    __slots__ = ("_elements", "_run", "characters")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._elements = 0
        self.characters = 0

    def copy(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in OBJECTS:
            self._take(len(value), depth)
            return {self._counted(name): self.copy(member, depth - 1) for name, member in value.items()}
        if kind in LISTS:
            self._take(len(value), depth)
            return [self.copy(element, depth - 1) for element in value]
        if kind is str:
            return self._counted(value)
        if kind is msgspec.Raw:
            self._run.spend(len(value) // 2)
            return value
        return plain(value)

    def _counted(self, text: str) -> str:
        # The copy shares the text, but the message as written holds it once more.
        size = len(text)
        self.characters += size
        if size > SHORT:
            self._run.spend(size // 2)
        if self.characters > self._run.limits.text:
            raise OperationError(f"An object or a list has texts of more than {self._run.limits.text} characters.")
        return text

    def _take(self, elements: int, depth: int) -> None:
        self._elements += elements
        if self._elements > self._run.limits.elements:
            raise self._run.too_many("An object or a list")
        if depth == 0:
            raise OperationError(f"An object or a list nests deeper than {MAX_DEPTH} levels.")
        self._run.spend(elements * ELEMENT + CONTAINER)


Key: TypeAlias = "str | int | None"
"""
The name of a member, or the index of an element: from 0, or from the end when negative. C{None} is the place behind the
last element.
"""

Keys: TypeAlias = "tuple[Key, ...]"


def find(value: Any, keys: Keys) -> Any:
    """
    Return the value at a place; L{MISSING} when there is none. A name that is not there is looked up once more as the
    rest of the keys with dots, as L{webhookrx.message.fields} does it.
    """
    for number, key in enumerate(keys):
        kind = type(value)
        if kind is dict and type(key) is str:
            found = value.get(key, MISSING)
            if found is MISSING:
                return value.get(_dotted(keys, number), MISSING)
            value = found
        elif (kind in LISTS and type(key) is int and -len(value) <= key < len(value)) or (
            kind in OBJECTS and type(key) is str and key in value
        ):
            value = value[key]
        else:
            return MISSING
    return value


def put(run: Run, top: dict[str, Any], keys: Keys, value: Any) -> None:
    """
    Set the value at a place. Objects that are missing on the way are made, and a list for the place behind its last
    element.

    @raise OperationError: something on the way is neither object nor list, or an index is outside of its list.
    """
    place: Any = top
    last = len(keys) - 1
    for number in range(last):
        key = keys[number]
        inner = find(place, (key,))
        if inner is MISSING:
            if type(place) is not dict or type(key) is not str:
                raise OperationError(
                    "There is no place for this field: something on the way is no object, or not there."
                )
            whole = _dotted(keys, number)
            if whole in place:
                run.undo_log.set_member(place, whole, value)
                return
            inner = {} if keys[number + 1] is not None else []
            run.undo_log.set_member(place, key, inner)
        place = inner
    _put_in(run, place, keys[last], value)


def _put_in(run: Run, place: Any, key: Key, value: Any) -> None:
    if type(place) is dict and type(key) is str:
        run.undo_log.set_member(place, key, value)
    elif type(place) is not list or type(key) is str:
        raise OperationError("There is no place for this field: what should hold it is no object, or no list.")
    elif key is None or key == len(place):
        run.undo_log.append(place, value)
    elif type(key) is int and -len(place) <= key < len(place):
        run.undo_log.set_element(place, key, value)
    else:
        raise OperationError("The list has no such element.")


def take_away(run: Run, top: dict[str, Any], keys: Keys) -> Any:
    """
    Remove the value at a place, and return it; L{MISSING} when there is none.

    @raise OperationError: the object or list with this place can't be changed.
    """
    place: Any = top
    for number, key in enumerate(keys):
        inner = find(place, (key,))
        if inner is MISSING or number == len(keys) - 1:
            name = key if inner is not MISSING else _dotted(keys, number)
            return _take_from(run, place, name)
        place = inner
    return MISSING


def _take_from(run: Run, place: Any, key: Key) -> Any:
    found = find(place, (key,))
    if found is not MISSING:
        if type(place) is dict:
            run.remove_member(place, str(key))
        elif type(place) is list:
            run.undo_log.remove_element(place, int(key or 0) % len(place))
        else:
            raise OperationError("What holds this field can't be changed: it is a tuple, or from a file.")
    return found


def _dotted(keys: Keys, start: int) -> str:
    """Return the rest of the keys as one name; empty, which is no name, when one of them is an index."""
    names = keys[start:]
    return ".".join(names) if all(type(name) is str for name in names) else ""  # type: ignore[arg-type]  # all texts


def ipv4_address(text: str) -> IPv4Address:
    """
    Return an address in one of the forms of inet_aton(3), such as C{127.1}.

    @raise ValueError: the text is not an address.
    """
    if not text.isascii() or not text[:1].isdigit():
        raise ValueError(text)
    try:
        return IPv4Address(socket.inet_aton(text.split(maxsplit=1)[0]))
    except OSError:
        raise ValueError(text) from None
