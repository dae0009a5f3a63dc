"""
A request as its signature sees it: exact bytes, each read at most once, and nothing where something is there twice.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

from webhookrx.errors import RequestRefused
from webhookrx.intake.head import Head
from webhookrx.intake.json_body import json_or_missing
from webhookrx.intake.urlencoded import parse_query
from webhookrx.senders.signatures.pieces import pieces_of

#: Of a source: what the operator gives of the settings that a definition names.
Settings: TypeAlias = Mapping[str, "str | bool | tuple[str, ...]"]

NO_SETTINGS: Final[Settings] = MappingProxyType({})

_UNSEEN: Final = object()
_MANY_DIGITS: Final = 10**300
_NO_FORM: Final[dict[str, str | list[str]]] = {}


class SignedRequest:
    """
    A request whose signature is checked.

    @ivar query: as L{webhookrx.intake.urlencoded.parse_query} returns it.
    @ivar items: those of the list that the signature stands in, each by its name; a repeated one has none.
    @ivar body: unpacked; empty as long as it has not come.
    @ivar wire: as it came.
    @ivar public_url: scheme, host and port as the sender knows them; with a path, the whole URL.
    @ivar secret: the one that is tried; empty for all algorithms but plain digests.
    """

    # Defaults of the class, since most checks need none of it, and to set them takes time.
    items: Mapping[bytes, bytes | None] = MappingProxyType({})
    body = b""
    wire = b""
    secret = b""
    _document: Any = _UNSEEN
    _form: Any = _UNSEEN

    def __init__(
        self,
        head: Head,
        query: Mapping[str, str | list[str]],
        public_url: str = "",
        settings: Settings = NO_SETTINGS,
        items: Mapping[bytes, bytes | None] | None = None,
    ) -> None:
        self.head = head
        self.query = query
        self.public_url = public_url
        self.settings = settings
        if items is not None:
            self.items = items

    @property
    def document(self) -> Any:
        """The value of the body as strict JSON; L{webhookrx.message.fields.MISSING} when it is not JSON."""
        if self._document is _UNSEEN:
            self._document = json_or_missing(self.body)
        return self._document

    @property
    def form(self) -> Mapping[str, str | list[str]]:
        """The fields of the body as a form; none when it is not one."""
        if self._form is _UNSEEN:
            try:
                self._form = parse_query(self.body)
            except RequestRefused:
                self._form = _NO_FORM
        return self._form  # type: ignore[no-any-return]

    @property
    def target(self) -> bytes:
        """The target of the request as it was received."""
        query = self.head.query
        return self.head.path + b"?" + query if query else self.head.path

    @property
    def url(self) -> bytes:
        """The URL that the sender has sent to, by what the operator says; never by a header."""
        url = self.public_url.encode()
        scheme, _, rest = self.public_url.partition("://")
        host, _, path = rest.partition("/")
        return url if path else f"{scheme}://{host}".encode() + self.target

    def header(self, name: bytes) -> bytes | None:
        """Return the value of a header; None when it is not there, or more than once."""
        values = self.head.values(name)
        return values[0] if len(values) == 1 else None

    def parameter(self, name: str) -> bytes | None:
        """Return the value of a query parameter; None when it is not there, or more than once."""
        return _only(self.query, name)

    def field(self, name: str) -> bytes | None:
        """Return the value of a field of a form; None when it is not there, or more than once."""
        return _only(self.form, name)

    def setting(self, name: str) -> bytes | None:
        """Return a setting that is one text; None without it."""
        value = self.settings.get(name)
        return value.encode() if isinstance(value, str) else None

    def sorted_fields(self) -> bytes | None:
        """
        Return names and values of a form without anything between them: by name, each value once, in order. None for a
        body without fields that is not empty: it would else go with a signature that does not cover it.
        """
        parts: list[str] = []
        for name in sorted(self.form):
            values = self.form[name]
            for value in sorted(set(values)) if isinstance(values, list) else (values,):
                parts += (name, value)
        return "".join(parts).encode() or (None if self.body else b"")

    def sha256(self) -> bytes:
        """Return the SHA-256 of the body in hexadecimal."""
        context = hashlib.sha256()
        for piece in pieces_of(self.body):
            context.update(piece)
        return context.hexdigest().encode()

    def crc32(self) -> bytes:
        """Return the CRC-32 of the body, unsigned and in decimal."""
        checksum = 0
        for piece in pieces_of(self.body):
            checksum = zlib.crc32(piece, checksum)
        return b"%d" % checksum


def text_of(value: Any) -> bytes | None:
    """Return the exact text of a JSON string, number or truth value; None for anything else."""
    if type(value) is str:
        return value.encode("utf-8", "surrogatepass")
    if value is True or value is False:
        return b"true" if value else b"false"
    if type(value) is int:
        # Python refuses to write integers of thousands of digits.
        return b"%d" % value if -_MANY_DIGITS < value < _MANY_DIGITS else None
    return bytes(value) if type(value) is msgspec.Raw else None


def _only(values: Mapping[str, str | list[str]], name: str) -> bytes | None:
    value = values.get(name)
    return value.encode() if isinstance(value, str) else None
