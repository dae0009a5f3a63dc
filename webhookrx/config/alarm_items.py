"""
One alarm as it is written, in a configuration file or in a document of a console: what it may say, and what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from webhookrx.config.option_reader import Origin, Problems, RawAlarm
from webhookrx.diagnostics import nearest, quoted
from webhookrx.errors import ConfigError
from webhookrx.management.alarm_rules import DEFAULT_SECONDS, LONGEST_FOR, AlarmRule
from webhookrx.quantities import format_duration, parse_duration
from webhookrx.query.known_fields import unknown_fields
from webhookrx.query.query import parse
from webhookrx.query.query_lexer import QueryError

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_ABOVE: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?(%|/s|/m|/h)")
_SECONDS: Final = {"/s": 1.0, "/m": 60.0, "/h": 3600.0}


class AlarmWords(NamedTuple):
    """
    What alarms of a place may say.

    @ivar fields: the kinds, and the fields that the query of each may test; those that end with C{.KEY} stand for any
        key. One without fields takes no query.
    @ivar shortest: seconds below which C{for} of a kind makes no sense; 1 by default.
    @ivar targets: where the targets are set.
    """

    fields: Mapping[str, tuple[str, ...]]
    shortest: Mapping[str, float] = {}
    targets: str = "alarm_targets:"


def check_name(name: str) -> None:
    """
    Check the name of an alarm or a target.

    @raise ConfigError: it can't be one.
    """
    if _NAME.fullmatch(name) is None:
        raise ConfigError("A name has up to 63 letters, digits and . _ -, and begins with a letter or digit.")


def read_alarm(raw: RawAlarm, words: AlarmWords, targets: Collection[str], problems: Problems) -> AlarmRule | None:
    """
    Return the rule that an alarm says; None, and errors noted, when it says none.

    @param targets: the names of targets.
    """
    return _AlarmItem(raw, words, targets, problems).rule()


def _one_of(value: str, words: Collection[str]) -> str:
    if value in words:
        return value
    raise ConfigError(f"{quoted(value)} is not one of {', '.join(words)}. {nearest(value, words)}".strip())


class _AlarmItem:
    """One alarm as it is written."""

    def __init__(self, raw: RawAlarm, words: AlarmWords, targets: Collection[str], problems: Problems) -> None:
        self._raw = raw
        self._words = words
        self._targets = targets
        self._problems = problems

    def rule(self) -> AlarmRule | None:
        """Return the rule; None, and errors noted, when it has none."""
        before = len(self._problems.errors)
        name, kind = self._required("name"), self._required("kind")
        if name is not None:
            self._problems.attempt(self._origin("name"), check_name, name)
        if kind is None or not self._is_kind(kind):
            return None
        seconds = self._seconds(kind)
        expect = self._expect(kind)
        rate, share = self._above(kind)
        self._check_when(kind)
        notify = self._text("notify")
        if notify and notify not in self._targets:
            self._error("notify", f"There is no target {quoted(notify)} in {self._words.targets}.")
        if name is None or len(self._problems.errors) > before:
            return None
        return AlarmRule(name, kind, seconds, self._text("when"), rate, share, notify, expect)

    def _is_kind(self, kind: str) -> bool:
        return self._problems.attempt(self._origin("kind"), _one_of, kind, self._words.fields) is not None

    def _seconds(self, kind: str) -> float:
        text = self._text("for")
        if not text:
            if kind not in DEFAULT_SECONDS:
                self._problems.error("It takes for:, how long no message may come, such as 6h.", self._raw.origin)
            return DEFAULT_SECONDS.get(kind, 1.0)
        return self._duration("for", text, self._words.shortest.get(kind, 1.0))

    def _expect(self, kind: str) -> float | None:
        text = self._text("expect_within")
        if text and kind != "silent":
            self._error("expect_within", "Only an alarm of kind silent takes it.")
        return self._duration("expect_within", text, self._words.shortest.get(kind, 1.0)) if text else None

    def _duration(self, key: str, text: str, shortest: float) -> float:
        try:
            seconds = parse_duration(text)
        except ValueError as error:
            self._error(key, str(error))
            return 1.0
        if not shortest <= seconds <= LONGEST_FOR:
            self._error(key, f"It takes a time from {format_duration(shortest)} to 366d.")
        return seconds

    def _above(self, kind: str) -> tuple[float | None, float | None]:
        text = self._text("above")
        if kind != "refused":
            if text:
                self._error("above", "Only an alarm of kind refused takes it.")
            return None, None
        found = _ABOVE.fullmatch(text)
        if found is None:
            sentence = "It takes a part of all requests or a rate, such as 5%, 2/s, 10/m or 100/h."
            self._problems.error(sentence if text else f"It takes above:. {sentence}", self._origin("above"))
            return None, None
        number = float(found[1])
        if found[2] != "%":
            return number / _SECONDS[found[2]], None
        if number >= 100:
            self._error("above", "A part of all requests is less than 100%.")
        return None, number / 100

    def _check_when(self, kind: str) -> None:
        text = self._text("when")
        if not text:
            return
        known = self._words.fields[kind]
        if not known:
            self._error("when", f"An alarm of kind {kind} is about the whole receiver, so it takes none.")
            return
        try:
            query = parse(text)
        except QueryError as error:
            self._error("when", error.problem)
            return
        for use in unknown_fields(query, known):
            self._error("when", f"{quoted(use.field)} in column {use.column} is not one of {', '.join(known)}.")

    def _required(self, key: str) -> str | None:
        if self._text(key):
            return self._text(key)
        if key not in self._raw.values:
            self._problems.error(f"It takes {key}:.", self._raw.origin)
        else:
            self._error(key, "It is empty.")
        return None

    def _text(self, key: str) -> str:
        value = self._raw.values.get(key)
        return "" if value is None else value.text

    def _origin(self, key: str) -> Origin:
        value = self._raw.values.get(key)
        return self._raw.origin if value is None else value.origin

    def _error(self, key: str, sentence: str) -> None:
        self._problems.error(sentence, self._origin(key))
