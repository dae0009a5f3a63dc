"""
Makes signature schemes ready, and finds every mistake in them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar

import msgspec

from webhookrx.diagnostics import Path
from webhookrx.quantities import parse_duration
from webhookrx.senders.locator import LocatorError
from webhookrx.senders.signatures.compiled_scheme import CompiledScheme, SigningTime
from webhookrx.senders.signatures.places import SignaturePlace
from webhookrx.senders.signatures.scheme import (
    ALGORITHMS,
    CODE_MEMBERS,
    DIGEST_ALGORITHMS,
    ENCODINGS,
    KEY_FORMS,
    MAC_ALGORITHMS,
    PUBLIC_KEY_ALGORITHMS,
    SIGNED_TIME_FORMATS,
    SignatureScheme,
    SignedTime,
)
from webhookrx.senders.signatures.signed_text import Part, SignedText, part_at
from webhookrx.senders.signatures.strict_encodings import DECODERS
from webhookrx.senders.signatures.token_algorithms import check_algorithms

T = TypeVar("T")

LONGEST_TOLERANCE: Final = 86_400
"""Seconds; beyond a day a check of the time means nothing."""

_FORMS_OF: Final = {
    **dict.fromkeys((*MAC_ALGORITHMS, *DIGEST_ALGORITHMS), ("text", "base64", "hex", "whsec")),
    **dict.fromkeys(PUBLIC_KEY_ALGORITHMS, ("pem", "base64", "hex", "whpk")),
    "equal": ("text",),
}

#: Takes what is wrong: code, path, sentence, and the column in the text there; 0: the whole of it.
Blame = Callable[[str, Path, str, int], None]


def compile_scheme(
    scheme: SignatureScheme, path: Path, settings: Collection[str], blame: Blame
) -> CompiledScheme | None:
    """
    Make a scheme ready.

    @param path: where it is in its file.
    @param settings: names of the settings that its definition has.
    @param blame: is called for each mistake.
    @return: None when there is one.
    """
    return _SchemeCompilation(scheme, path, settings, blame).result()


class _SchemeCompilation:
    """Goes through a scheme and tells what is wrong."""

    def __init__(self, scheme: SignatureScheme, path: Path, settings: Collection[str], blame: Blame) -> None:
        self.scheme = scheme
        self.path = path
        self.settings = settings
        self.is_good = True
        self._tell = blame

    def result(self) -> CompiledScheme | None:
        """Return None when something is wrong."""
        scheme = self.scheme
        self._check_words()
        places = self._places()
        separators = self._separators(len(places))
        text = self._read(SignedText, scheme.signed, "signed")
        if text is not None:
            self._check_text(text)
        moment = self._moment(text)
        claims = self._claims()
        if not self.is_good or text is None:
            return None
        encoding = scheme.encoding or ("text" if scheme.algorithm == "equal" else "hex")
        return CompiledScheme(
            scheme=scheme,
            places=tuple(places),
            at_in_body=any(place.in_body for place in places),
            prefix=scheme.prefix.encode(),
            separator=separators[0].encode(),
            name_separator=separators[1].encode(),
            signature_name=scheme.signature.encode(),
            decode=DECODERS[encoding],
            text=text,
            moment=moment,
            only_header=places[0].only_header if len(places) == 1 and not scheme.items else b"",
            claims=tuple(claims),
            binds_members=not text.binds_body and any(place.startswith("/") for place in text.places),
        )

    def _blame(self, member: str, sentence: str) -> None:
        self._blame_at("entry-signature", (*self.path, member) if member else self.path, sentence)

    def _blame_at(self, code: str, path: Path, sentence: str, column: int = 0) -> None:
        self.is_good = False
        self._tell(code, path, sentence, column)

    def _read(self, reader: Callable[[str], T], text: str, *member: str | int) -> T | None:
        try:
            return reader(text)
        except LocatorError as error:
            self._blame_at("entry-place", (*self.path, *member), str(error), error.column)
            return None

    def _check_words(self) -> None:
        scheme = self.scheme
        if scheme.setting and scheme.setting not in self.settings:
            self._blame("setting", f"There is no {scheme.setting!r} among the settings.")
        if scheme.code:
            self._check_code()
            return
        for name in ("algorithms", "claims"):
            if getattr(scheme, name):
                self._blame(name, f"{name} is for code: jwt.")
        self._check_choice("algorithm", scheme.algorithm, ALGORITHMS)
        self._check_choice("encoding", scheme.encoding or "hex", ENCODINGS)
        if self._check_choice("key", scheme.key, KEY_FORMS) and scheme.algorithm in _FORMS_OF:
            forms = _FORMS_OF[scheme.algorithm]
            if scheme.key not in forms:
                self._blame("key", f"A key of {scheme.algorithm} is one of {', '.join(forms)}.")
        if scheme.algorithm != "equal" and scheme.encoding == "text":
            self._blame("encoding", "text is the encoding of a secret itself, for the algorithm equal.")
        if scheme.algorithm == "equal":
            for name in ("items", "signature", "time"):
                if getattr(scheme, name):
                    self._blame(name, f"A secret itself has no {name}.")
            if scheme.signed != _DEFAULTS["signed"]:
                self._blame("signed", "A secret itself signs nothing.")

    def _check_code(self) -> None:
        scheme = self.scheme
        if not self._check_choice("code", scheme.code, tuple(CODE_MEMBERS)):
            return
        for name, default in _DEFAULTS.items():
            if name not in CODE_MEMBERS[scheme.code] and name != "code" and getattr(scheme, name) != default:
                self._blame(name, f"code: {scheme.code} does not use {name}.")
        problem = check_algorithms(scheme.algorithms) if scheme.code == "jwt" else ""
        if problem:
            self._blame("algorithms", problem)

    def _claims(self) -> list[tuple[tuple[str, ...], tuple[SignedText, ...]]]:
        claims = []
        for name, texts in self.scheme.claims.items():
            read = []
            for number, text in enumerate((texts,) if isinstance(texts, str) else texts):
                where = ("claims", name) if isinstance(texts, str) else ("claims", name, number)
                expected = self._read(SignedText, text, *where)
                if expected is not None:
                    self._check_settings(expected, *where)
                    read.append(expected)
            claims.append((tuple(name.split("|")), tuple(read)))
        return claims

    def _check_choice(self, member: str, value: str, allowed: tuple[str, ...]) -> bool:
        if value not in allowed:
            self._blame(member, f"{value!r} is not one of {', '.join(allowed)}.")
            return False
        return True

    def _places(self) -> list[SignaturePlace]:
        scheme = self.scheme
        places = []
        for number, text in enumerate(scheme.places):
            where = ("at",) if isinstance(scheme.at, str) else ("at", number)
            place = self._read(SignaturePlace, text, *where)
            if place is None:
                continue
            places.append(place)
            if place.has_star and scheme.algorithm != "equal":
                self._blame_at("entry-place", (*self.path, *where), "* is for secrets themselves, each counts.")
        if not scheme.places and (not scheme.code or "at" in CODE_MEMBERS.get(scheme.code, ())):
            self._blame("at", "The place of the signature is missing.")
        return places

    def _separators(self, places: int) -> tuple[str, str]:
        scheme = self.scheme
        given = (scheme.items,) if isinstance(scheme.items, str) else scheme.items
        if not given:
            if scheme.signature:
                self._blame("signature", "Only the items of a list have names.")
            return "", ""
        if len(given) > 2 or not all(given):
            self._blame("items", "A list has a separator, and maybe what separates a name from its value.")
        if places > 1:
            self._blame("items", "There can be only one place of a list.")
        if len(given) > 1 and not scheme.signature:
            self._blame("signature", "The name of the items that are signatures is missing.")
        return given[0], given[1] if len(given) > 1 else "="

    def _check_text(self, text: SignedText) -> None:
        scheme = self.scheme
        if scheme.code or scheme.algorithm == "equal":
            return
        has_secret = "secret" in text.places
        if scheme.algorithm in DIGEST_ALGORITHMS and not has_secret:
            self._blame("signed", "Without {secret} in it, anyone could make a plain digest.")
        if scheme.algorithm not in DIGEST_ALGORITHMS and has_secret:
            self._blame("signed", "{secret} is for plain digests; other algorithms have the key.")
        if not set(text.places) - {"secret"}:
            self._blame("signed", "Nothing of the request is signed.")
        for name in text.names("item"):
            if not scheme.items or name == scheme.signature:
                self._blame("signed", f"There is no item {name!r} beside the signature.")
        self._check_settings(text, "signed")

    def _check_settings(self, text: SignedText, *member: str | int) -> None:
        for name in text.names("setting"):
            if name not in self.settings:
                self._blame_at("entry-signature", (*self.path, *member), f"There is no {name!r} among the settings.")

    def _moment(self, text: SignedText | None) -> SigningTime | None:
        scheme, time = self.scheme, self.scheme.time
        if time is None:
            if scheme.tolerance != _DEFAULTS["tolerance"]:
                self._blame("tolerance", "There is no time that it is for.")
            return None
        if time.format not in SIGNED_TIME_FORMATS:
            sentence = f"{time.format!r} is not one of {', '.join(SIGNED_TIME_FORMATS)}."
            self._blame_at("entry-format", (*self.path, "time", "format"), sentence)
        seconds = 0.0
        try:
            seconds = parse_duration(scheme.tolerance)
        except ValueError as error:
            self._blame("tolerance", str(error))
        else:
            if not 0 < seconds <= LONGEST_TOLERANCE:
                self._blame("tolerance", "It is more than nothing, and at most a day.")
        part = self._read(_time_part, time.at, "time", "at")
        if part is None or text is None:
            return None
        if not _is_signed(time, text):
            sentence = "What is signed does not hold this time, so that anyone could change it."
            self._blame_at("entry-signature", (*self.path, "time", "at"), sentence)
        return SigningTime(part, time.format, round(seconds * 1_000_000_000))


def _time_part(place: str) -> Part:
    if not place.startswith(("/", "header:", "item:", "query:")):
        raise LocatorError("A time is at header:NAME, item:NAME, query:NAME or /A/JSON/POINTER.")
    return part_at(place)


def _is_signed(time: SignedTime, text: SignedText) -> bool:
    if time.at.startswith("/") and "body" in text.places:
        return True
    if time.at.startswith("header:"):
        return time.at.lower() in {place.lower() for place in text.places}
    return time.at in text.places


_DEFAULTS: Final[dict[str, Any]] = {
    field.name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    for field in msgspec.structs.fields(SignatureScheme)
}
