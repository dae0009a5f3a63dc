"""
Texts of answers: plain text with places in braces, each with its value exactly as it came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

from webhookrx.message.fields import MISSING
from webhookrx.message.message import Value
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.locator import Locator, LocatorError, LookupContext

_PIECES: Final = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<place>[^{}]*)\}|(?P<plain>[^{}]+)|(?P<lone>[{}])")
_SETTING: Final = "setting:"

PROOF: Final = "proof"
SECRET: Final = "secret"  # noqa: S105  # a word in a text
URL: Final = "url"
REFUSAL_WORDS: Final = ("reason", "detail")
NOW_WORDS: Final = ("now:unix", "now:unix-ms", "now:rfc3339")


class NoValue(Exception):
    """
    A place in a text yields nothing, or nothing that may be answered.

    @ivar place: as it is written in the data file.
    """

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place


def exact_text(value: Any) -> str | None:
    """Return the text of a value as it came; None for what has none."""
    if type(value) is str:
        return value or None
    if type(value) is int:
        return str(value)
    return None


def scope_of(evidence: Evidence) -> LookupContext:
    """Return where places of a question or a message are looked up: in the object, then in the whole body."""
    whole: Value = None if evidence.decoded is MISSING else evidence.decoded
    return LookupContext(evidence, evidence.object, whole)


class Values:
    """
    What the places of a text lead to.

    @param words: the values of words such as C{proof}.
    @param fits: tells whether a value of the request may be answered.
    """

    __slots__ = ("_fits", "_scope", "_words")

    def __init__(self, scope: LookupContext, words: Mapping[str, str | int], fits: Callable[[str], bool]) -> None:
        self._scope = scope
        self._words = words
        self._fits = fits

    def with_word(self, name: str, value: str) -> Values:
        """Return the same with one word more."""
        return Values(self._scope, {**self._words, name: value}, self._fits)

    def place(self, place: Locator) -> str:
        """@raise NoValue: there is nothing there, or something that may not be answered."""
        text = place.first(self._scope, exact_text)
        if text is None or not self._fits(text):
            raise NoValue(place.text)
        return text

    def word(self, name: str) -> str | int:
        """@raise NoValue: it has no value here."""
        value = self._words.get(name)
        if value is None:
            raise NoValue(name)
        return value


class AnswerText:
    """
    A text with places and words.

    @param words: those that may stand in it, besides C{setting:NAME}.
    @ivar places: those in the request.
    @ivar words: the words in it.
    @raise LocatorError: braces or a place in it are not written as they should be.
    """

    __slots__ = ("_pieces", "places", "words")

    def __init__(self, text: str, words: tuple[str, ...] = ()) -> None:
        self._pieces = tuple(_read(text, words))
        self.places = tuple(piece for piece in self._pieces if isinstance(piece, Locator))
        self.words = frozenset(piece[0] for piece in self._pieces if isinstance(piece, tuple))

    @property
    def settings(self) -> list[str]:
        """The names of the settings in it."""
        return [word.removeprefix(_SETTING) for word in sorted(self.words) if word.startswith(_SETTING)]

    @property
    def has_plain(self) -> bool:
        """Whether there is anything in it that is the same each time."""
        return any(isinstance(piece, str) for piece in self._pieces)

    def value(self, values: Values) -> str | int:
        """
        Return the text; a number when a word for one stands alone.

        @raise NoValue: one of its places yields nothing.
        """
        if len(self._pieces) == 1 and isinstance(self._pieces[0], tuple):
            return values.word(self._pieces[0][0])
        return self.text(values)

    def text(self, values: Values) -> str:
        """
        Return the text.

        @raise NoValue: one of its places yields nothing.
        """
        return "".join(self.parts(values))

    def parts(self, values: Values) -> Iterator[str]:
        """Yield the pieces of the text; see L{text}."""
        for piece in self._pieces:
            if isinstance(piece, str):
                yield piece
            elif isinstance(piece, Locator):
                yield values.place(piece)
            else:
                yield str(values.word(piece[0]))


def _read(text: str, words: tuple[str, ...]) -> Iterator[str | Locator | tuple[str]]:
    for found in _PIECES.finditer(text):
        place = found["place"]
        if found["lone"]:
            raise LocatorError("A brace that stands for itself is written twice.", found.start() + 1)
        if place is None:
            yield found["plain"] or found["brace"][0]
        elif place in words or (place.startswith(_SETTING) and len(place) > len(_SETTING)):
            yield (place,)
        else:
            try:
                yield _exact_place(place)
            except LocatorError as error:
                raise LocatorError(str(error), found.start() + 1 + error.column) from None


def _exact_place(text: str) -> Locator:
    place = Locator(text)
    if place.has_star or text.startswith(("same:", "tally:")) or text == "path":
        raise LocatorError("An answer takes one value: /A/JSON/POINTER, header:NAME or query:NAME.")
    return place


#: JSON with texts in the place of its strings.
AnswerJson: TypeAlias = "dict[str, AnswerJson] | list[AnswerJson] | AnswerText | int | bool | msgspec.Raw | None"


def filled(json: AnswerJson, values: Values) -> Any:
    """
    Return JSON with the values of all texts in it.

    @raise NoValue: one of their places yields nothing.
    """
    if isinstance(json, AnswerText):
        return json.value(values)
    if isinstance(json, dict):
        return {name: filled(value, values) for name, value in json.items()}
    if isinstance(json, list):
        return [filled(value, values) for value in json]
    return json


def texts_in(json: AnswerJson) -> Iterator[AnswerText]:
    """Yield all texts in JSON."""
    if isinstance(json, AnswerText):
        yield json
    elif isinstance(json, dict | list):
        for value in json.values() if isinstance(json, dict) else json:
            yield from texts_in(value)


def words_of_settings(settings: Mapping[str, Any]) -> dict[str, str | int]:
    """Return the words that settings are asked for with; only texts can be in an answer."""
    return {f"{_SETTING}{name}": value for name, value in settings.items() if isinstance(value, str)}


def words_of_now(now: int) -> dict[str, str | int]:
    """
    Return the words for a moment.

    @param now: nanoseconds since the epoch.
    """
    milliseconds = now // 1_000_000
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    values = (milliseconds // 1000, milliseconds, moment.replace("+00:00", "Z"))
    return dict(zip(NOW_WORDS, values, strict=True))
