"""
Signature schemes made ready: where signatures are, how they are written, and what they are of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from webhookrx.senders.signatures.places import MAX_SIGNATURES, SignaturePlace
from webhookrx.senders.signatures.scheme import CODE_OF_MEMBERS, COVERED_BY_CODE, SignatureScheme
from webhookrx.senders.signatures.signed_request import SignedRequest
from webhookrx.senders.signatures.signed_text import Part, SignedText
from webhookrx.senders.times import from_rfc3339

MAX_ITEMS: Final = 64
"""Items of a list that signatures stand in; a longer one holds none."""

_UNITS: Final = {"unix": 1_000_000_000, "unix-ms": 1_000_000}
_MOST_DIGITS: Final = 16
_WHOLE_BODY: Final = frozenset({"body", "wire", "body:sha256"})


class SigningTime(msgspec.Struct, frozen=True, gc=False):
    """
    Where the moment of signing is, and how far it may be away.

    @ivar tolerance: nanoseconds.
    """

    part: Part
    format: str
    tolerance: int

    def read(self, request: SignedRequest) -> int | None:
        """Return it in nanoseconds since the epoch; None when it is not there, or not written as it should be."""
        text = self.part(request)
        if text is None:
            return None
        unit = _UNITS.get(self.format)
        if unit is None:
            return from_rfc3339(text.decode("ascii", "replace"))
        # int() would take blanks, signs, and the digits of other scripts.
        return int(text) * unit if text.isdigit() and len(text) <= _MOST_DIGITS else None


class CompiledScheme(msgspec.Struct, frozen=True, gc=False):
    """
    A scheme made ready.

    @ivar at_in_body: whether one of its places is in the body.
    @ivar separator: what separates the items of a list; empty without a list.
    @ivar name_separator: what separates the name of an item from its value.
    @ivar signature_name: the name of the items that are signatures; empty: all of them are, and have none.
    @ivar decode: returns the bytes of a signature, None if it is none.
    @ivar only_header: the name of the header that is one signature, in lower case; empty for another form.
    @ivar binds_members: whether members of the body are signed, and not the body.
    @ivar claims: names of claims, of which the first that is there counts, and the texts of which it must be one.
    """

    scheme: SignatureScheme
    places: tuple[SignaturePlace, ...]
    at_in_body: bool
    prefix: bytes
    separator: bytes
    name_separator: bytes
    signature_name: bytes
    decode: Callable[[bytes], bytes | None]
    text: SignedText
    moment: SigningTime | None
    only_header: bytes = b""
    claims: tuple[tuple[tuple[str, ...], tuple[SignedText, ...]], ...] = ()
    binds_members: bool = False

    @property
    def is_equal(self) -> bool:
        """Whether the request shows the secret itself."""
        return self.scheme.algorithm == "equal" and not self.scheme.code

    @property
    def binds_body(self) -> bool:
        """Whether another body would need another signature."""
        if self.scheme.code == "jwt":
            return any(text.binds_body for _, texts in self.claims for text in texts)
        if self.scheme.code:
            return self.scheme.code not in CODE_OF_MEMBERS
        return not self.is_equal and self.text.binds_body

    def covers(self, place: str) -> bool:
        """
        Tell whether nobody without the key can change what stands at a place of a request that this scheme has
        verified. When in doubt, somebody can.

        @param place: as it is written in a definition.
        """
        if self.is_equal:
            return False
        if self.scheme.code and self.scheme.code != "jwt":
            return place in COVERED_BY_CODE.get(self.scheme.code, ())
        if self.scheme.code:
            # A claim of several texts is one of them, whichever.
            signed = {each for _, claim in self.claims if len(claim) == 1 for each in claim[0].places}
        else:
            signed = set(self.text.places)
        if place.startswith("/"):
            # A checksum is no digest: anyone finds another body that has it.
            return place in signed or not _WHOLE_BODY.isdisjoint(signed)
        if place.startswith("header:"):
            return place.lower() in {each.lower() for each in signed}
        return place in signed

    def is_there(self, request: SignedRequest) -> bool:
        """
        Tell whether the request has anything where this scheme has its signature, even if it is none. A built-in
        verifier that has no place finds it where it likes.
        """
        return not self.places or any(place.is_there(request) for place in self.places)

    def signatures(self, request: SignedRequest, size: int) -> list[bytes]:
        """
        Return the signatures of a request, none when there are too many; and give it the other items beside them.

        @param size: bytes that one has; 0: any number but none.
        """
        if self.only_header:
            # The most common form, in less time.
            values = request.head.values(self.only_header)
            signature = self.signature(values[0]) if len(values) == 1 else None
            return [signature] if signature and (len(signature) == size or not size) else []
        found: list[bytes] = []
        for place in self.places:
            for value in place.values(request):
                for text in self._items(request, value) if self.separator else (value,):
                    signature = self.signature(text)
                    if signature and (len(signature) == size or not size):
                        found.append(signature)
        return found if len(found) <= MAX_SIGNATURES else []

    def shown(self, request: SignedRequest) -> list[list[bytes]]:
        """Return what stands at each place, where it is written as it should be, for a scheme that L{is_equal}."""
        groups: list[list[bytes]] = []
        for place in self.places:
            values = [self.signature(value) for value in place.values(request)]
            if values and all(values):
                groups.append([value for value in values if value])
        return groups

    def signature(self, text: bytes) -> bytes | None:
        """Return the signature that a text is, with its prefix; None if it is none."""
        return self.decode(text[len(self.prefix) :]) if text.startswith(self.prefix) else None

    def _items(self, request: SignedRequest, value: bytes) -> list[bytes]:
        # Some write a blank behind each comma. It belongs to no name, and no signature begins or ends with one.
        parts = [part.strip(b" ") for part in value.split(self.separator, MAX_ITEMS)]
        if len(parts) > MAX_ITEMS:
            return []
        if not self.signature_name:
            return parts
        signatures = []
        others: dict[bytes, bytes | None] = {}
        for part in parts:
            name, separator, text = part.partition(self.name_separator)
            if name == self.signature_name and separator:
                signatures.append(text)
            elif separator:
                others[name] = None if name in others else text
        request.items = others
        return signatures
