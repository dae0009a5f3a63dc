"""
The evidence by which a request is classified. Expensive properties are computed on first use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from webhookrx.intake.head import Head, HeaderLines
from webhookrx.intake.json_body import body_text, json_or_missing
from webhookrx.intake.provenance import IAroundEvent
from webhookrx.message.message import Value
from webhookrx.senders.bodies import LOGPLEX, MAX_FIRST, first_element, first_object, form_fields
from webhookrx.senders.msgpack import MEDIA_TYPES as MSGPACK
from webhookrx.senders.otlp import MEDIA_TYPES as OTLP
from webhookrx.speedups import compiled, in_order

_NAMES: Final = re.compile(rb"\r\n([^:\r\n]+):")
_LINE_ENDS: Final = re.compile(rb"[\r\n]")

_UNSEEN: Final = object()
_NO_JSON: Final = (LOGPLEX, *MSGPACK, *OTLP)


class WantedHeaders(NamedTuple):
    """
    The names of headers that somebody may ask for, in lower case.

    @ivar names: in the order in which they are looked up, see L{in_order}.
    @ivar known: the same, to look one up.
    """

    names: tuple[bytes, ...]
    known: frozenset[bytes]

    @classmethod
    def of(cls, names: Iterable[bytes]) -> WantedHeaders:
        """Return these names, which may come in any order."""
        known = frozenset(names)
        return cls(in_order(known), known)


_NO_FIELDS: Final[dict[bytes, list[bytes]]] = {}


def evidence_of_event(
    head: Head, query: Mapping[str, str | list[str]], event: bytes, is_text: bool, around: IAroundEvent
) -> Evidence:
    """
    Return the evidence of one event of a request with several.

    @param is_text: it is neither an object nor an array.
    """
    whole = around.whole(event, is_text)
    return Evidence(head, query, whole, None, json_or_missing(whole), around)


def _collected(
    method: bytes,
    path: bytes,
    query: bytes | None,
    lines: object,
    peer: object,
    fields: Mapping[bytes, list[bytes]],
    *_: int,
) -> Mapping[bytes, list[bytes]]:
    """Return what was collected of a head, of all that it was taken apart into."""
    return fields


class Evidence(msgspec.Struct):
    """
    A request, as the classifier and the data files of senders use it.

    @ivar query: as L{webhookrx.intake.urlencoded.parse_query} returns it.
    @ivar body: unpacked.
    @ivar decoded: the value of the body as strict JSON; L{webhookrx.message.fields.MISSING} when it is not JSON. It may
        be C{MISSING} for a single value, too, which makes no difference.
    @ivar around: what stood around the event that it is evidence of, one of several of a request: C{body} is then a
        body like the sender's with this one event in it.
    @ivar unpacked: the last result of L{webhookrx.senders.unpacking}, with the sender it is for.
    """

    head: Head
    query: Mapping[str, str | list[str]]
    body: bytes
    _text: str | None
    decoded: Value | Any
    around: IAroundEvent | None = None
    unpacked: tuple[object, object] | None = None
    _object: Any = _UNSEEN
    _form: Any = _UNSEEN
    _lines: HeaderLines | None = None
    _headers: dict[bytes, str | None] = {}
    _wanted: frozenset[bytes] = frozenset()
    _fields: Mapping[bytes, list[bytes]] = {}

    @property
    def text(self) -> str:
        """The body as text."""
        if self._text is None:
            self._text, _ = body_text(self.body)
        return self._text

    @property
    def object(self) -> dict[str, Value] | None:
        """The object that conditions look at, see L{webhookrx.senders.definition}; None without one. Read-only."""
        found: dict[str, Value] | None = self._object
        if found is _UNSEEN:
            found = self._object = self._find_object()
        return found

    @property
    def is_json(self) -> bool:
        """Whether the object is one of JSON, and not what else is read as one."""
        if type(self.decoded) in (dict, list):
            return self.object is not None
        return self.object is not None and self.object is not self.form and self.media_type not in _NO_JSON

    @property
    def form(self) -> dict[str, Value] | None:
        """The fields of a form; None when the body is not a form. Read-only."""
        found: dict[str, Value] | None = self._form
        if found is _UNSEEN:
            found = self._form = form_fields(self.body, self.media_type)
        return found

    def header_names(self, search: Callable[[bytes], list[bytes]] = _NAMES.findall) -> list[bytes]:
        """
        Return the names of header lines, in lower case, in order.

        @param search: finds those that are wanted, see L{webhookrx.senders.index}; all of them without it.
        """
        return search((self._lines or self._header_lines()).lower)

    def wanted_headers(self, wanted: WantedHeaders) -> tuple[bytes, ...] | None:
        """
        Return the names of wanted headers that are there, and remember their values; None without the compiled path, or
        where that leaves it to Python.
        """
        # The one pass that reads a head collects values, too.
        if compiled is None:
            return None
        block = (self._lines or self._header_lines()).block
        size = len(block)
        fields = compiled.parse_head(
            block, size, size, size, None, 0, 0, b"POST", wanted.names, _NO_FIELDS, bytes, _collected
        )
        if fields is None:
            return None
        self._fields, self._wanted = fields, wanted.known
        return tuple(fields)

    def header(self, name: bytes) -> str | None:
        """
        Return the first value of a header as text: UTF-8 as senders mean it, else each byte for itself (RFC 9110
        section 5.5). There is no white space around it; None when there is none.

        @param name: in lower case.
        """
        if name in self._headers:
            return self._headers[name]
        value = self._value(name)
        text = None
        if value is not None:
            try:
                text = value.decode()
            except UnicodeDecodeError:
                text = value.decode("latin-1")
        self._headers[name] = text
        return text

    @property
    def media_type(self) -> str:
        """The media type, in lower case and without parameters; empty when none is given."""
        value = self._value(b"content-type")
        return "" if value is None else value.partition(b";")[0].strip().lower().decode("latin-1")

    def _value(self, name: bytes) -> bytes | None:
        if name in self._wanted:
            return self._fields[name][0] if name in self._fields else None
        return (self._lines or self._header_lines()).first(name)

    def _header_lines(self) -> HeaderLines:
        lines = self.head.headers
        if not isinstance(lines, HeaderLines):
            # Whoever made these lines may have put anything into them.
            pairs = (_LINE_ENDS.sub(b" ", name) + b":" + _LINE_ENDS.sub(b" ", value) for name, value in lines)
            lines = HeaderLines(b"\r\n" + b"\r\n".join(pairs) + b"\r\n")
        self._lines = lines
        return lines

    def _find_object(self) -> dict[str, Value] | None:
        if type(self.decoded) is dict:
            return self.decoded
        if type(self.decoded) is list:
            return first_element(self.decoded)
        first = first_object(self.body, self.text, self.media_type)
        return self.form if first is None and len(self.body) <= MAX_FIRST else first
