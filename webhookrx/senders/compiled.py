"""
Compiled sender definitions: locators, expressions and queries parsed once, and every mistake in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from webhookrx.diagnostics import Diagnostic, Path, diagnose
from webhookrx.query import Query, line_and_column
from webhookrx.senders.condition_reader import ConditionReader
from webhookrx.senders.conditions import Conditions
from webhookrx.senders.data_file import When
from webhookrx.senders.definition import (
    BINARY,
    BODY_FORMATS,
    DECODINGS,
    SETTING_KINDS,
    SEVERITIES,
    TIME_FORMATS,
    SenderDefinition,
)
from webhookrx.senders.handshakes.compilation import check_answers
from webhookrx.senders.locator import Locator, LocatorError, parse_pointer
from webhookrx.senders.plans import Plan, Plans
from webhookrx.senders.severities import Known, SeverityMap
from webhookrx.senders.signatures.scheme_compilation import compile_scheme
from webhookrx.senders.split_checks import split_problems
from webhookrx.senders.text_template import TextTemplate
from webhookrx.senders.times import READERS

T = TypeVar("T")

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

_ANYTHING: Final = Conditions(
    headers=(), any_header=frozenset(), parameters=(), content_type="", path=None, body_keys=frozenset(), query=None
)


class CompiledSender(msgspec.Struct, frozen=True, gc=False):
    """
    A definition made ready.

    @ivar definition: its source; C{id}, C{vendor} and C{product} are its own.
    @ivar alternatives: conditions by which requests are recognised, in the order of the file; at least one.
    @ivar service_is_inside: whether the service may be in one of several events, or in what is decoded.
    @ivar deliveries: where the id of a delivery may be.
    @ivar delivery_is_inside: whether one of these places is in the body.
    @ivar attempt: where the number of the attempt is.
    @ivar plans: where times, messages, severities and hosts are.
    @ivar decodes: the steps of a JSON pointer, and how to decode the value there.
    @ivar events: the steps of a JSON pointer; empty when there is none.
    @ivar wrappers: the members of an object, one of which it has if there is anything in it to decode, or events.
    """

    definition: SenderDefinition
    id: str
    vendor: str
    product: str
    alternatives: tuple[Conditions, ...]
    services: tuple[TextTemplate, ...]
    service_is_inside: bool
    plans: Plans
    default_severity: Known | None
    decodes: tuple[tuple[tuple[str, ...], str], ...]
    events: tuple[str, ...]
    deliveries: tuple[Locator, ...] = ()
    delivery_is_inside: bool = False
    attempt: Locator | None = None
    wrappers: tuple[str, ...] = ()

    @property
    def header_names(self) -> frozenset[bytes]:
        """The names of all headers that a definition looks at, in lower case."""
        plan = self.plans.whole
        places = (*self.deliveries, *(place for place, *_ in plan.times), *(place for place, _ in plan.severities))
        texts = (*self.services, *plan.hosts, *(text for text, _ in plan.messages))
        return frozenset(place.header for place in places if place.header).union(
            *(text.headers for text in texts), *(conditions.header_names for conditions in self.alternatives)
        )


class BadDefinition(ValueError):
    """
    A definition can't be used.

    @ivar problems: all that is wrong with it.
    """

    def __init__(self, problems: list[Diagnostic]) -> None:
        super().__init__(" ".join(problem.sentence for problem in problems))
        self.problems = problems


def compile_sender(definition: SenderDefinition) -> CompiledSender:
    """
    Make a definition ready.

    @raise BadDefinition: it can't be used; all that is wrong is in it.
    """
    return _Compilation(definition).result()


class _Compilation:
    """Goes through a definition and gathers what is wrong."""

    def __init__(self, definition: SenderDefinition) -> None:
        self.definition = definition
        self.problems: list[Diagnostic] = []
        self.conditions = ConditionReader(self.problems)

    def result(self) -> CompiledSender:
        """@raise BadDefinition: something is wrong."""
        definition = self.definition
        self._check_words()
        alternatives = self._ways()
        services = self._services()
        deliveries = [self._place(at, ("delivery", number)) for number, at in enumerate(definition.delivery)]
        attempt = self._place(definition.attempt, ("attempt",)) if definition.attempt else None
        messages = self._messages()
        hosts = self._texts(definition.host, "host")
        times = [
            (
                self._place(time.at, ("time", number, "at")),
                READERS.get(time.format),
                self.conditions.query(time.condition, ("time", number, "condition")) if time.condition else None,
            )
            for number, time in enumerate(definition.time)
        ]
        severities = [
            (self._place(severity.at, ("severity", number, "at")), self._severity_map(severity.map, number))
            for number, severity in enumerate(definition.severity)
        ]
        decodes = [
            (self._pointer(decode.at, ("decode", number, "at")), decode.what)
            for number, decode in enumerate(definition.decode)
        ]
        events = self._pointer(definition.events, ("events",)) if definition.events else ()
        self.problems += split_problems(definition)
        check_answers(definition, self.problems)
        self._check_schemes()
        if self.problems:
            raise BadDefinition(self.problems)
        return CompiledSender(
            definition=definition,
            id=definition.id,
            vendor=definition.vendor,
            product=definition.product,
            alternatives=alternatives,
            services=services,
            service_is_inside=bool(events)
            or definition.format in BINARY
            or any(_is_inside(text.roots, decodes) for text in services),
            plans=Plans(Plan(tuple(times), tuple(severities), messages, hosts)),  # type: ignore[arg-type]  # none is None
            default_severity=SEVERITIES.get(definition.default_severity),
            decodes=tuple(decodes),
            events=events,
            deliveries=tuple(deliveries),  # type: ignore[arg-type]  # the same
            wrappers=tuple(dict.fromkeys(steps[0] for steps in (*(steps for steps, _ in decodes), events) if steps)),
            delivery_is_inside=any(place is not None and place.root is not None for place in deliveries),
            attempt=attempt,
        )

    def _blame(self, code: str, path: Path, sentence: str) -> None:
        self.problems.append(diagnose(code, path, sentence))

    def _blame_column(self, code: str, path: Path, sentence: str, column: int) -> None:
        self.problems.append(diagnose(code, path, sentence, 1 if column else 0, column))

    def _check_words(self) -> None:
        definition = self.definition
        if not _ID.fullmatch(definition.id):
            self._blame("entry-id", ("id",), "An id is made of letters, digits, dots, dashes and underscores.")
        for name in ("vendor", "product"):
            if bool(getattr(definition, name)) == definition.last_resort:
                is_last = definition.last_resort
                sentence = f"A definition of last resort has no {name}." if is_last else f"There must be a {name}."
                self._blame("entry-empty", (name,), sentence)
        if definition.default_severity:
            self._check_choice("entry-severity", ("default_severity",), definition.default_severity, SEVERITIES)
        self._check_choice("entry-format", ("format",), definition.format, BODY_FORMATS)
        for number, time in enumerate(definition.time):
            self._check_choice("entry-format", ("time", number, "format"), time.format, TIME_FORMATS)
        for name, setting in definition.settings.items():
            self._check_choice("entry-format", ("settings", name, "kind"), setting.kind, SETTING_KINDS)
        for number, decode in enumerate(definition.decode):
            self._check_choice("entry-format", ("decode", number, "what"), decode.what, DECODINGS)

    def _check_choice(self, code: str, path: Path, word: str, choices: Any) -> bool:
        if word in choices:
            return True
        self._blame(code, path, f"{word!r} is not one of {', '.join(choices)}.")
        return False

    def _ways(self) -> tuple[Conditions, ...]:
        when = self.definition.when
        if isinstance(when, When):
            return (self.conditions.read(when, ("when",)),)
        if not when and self.definition.last_resort:
            return (_ANYTHING,)
        if not when:
            self._blame("entry-evidence", ("when",), "There must be a condition by which requests are recognised.")
        return tuple(self.conditions.read(alternative, ("when", number)) for number, alternative in enumerate(when))

    def _check_schemes(self) -> None:
        definition = self.definition
        for number, scheme in enumerate(definition.schemes):
            path: Path = ("verify", number) if isinstance(definition.verify, tuple) else ("verify",)
            compile_scheme(scheme, path, definition.settings, self._blame_column)

    def _place(self, text: str, path: Path) -> Locator | None:
        return self._read(Locator, text, path)

    def _text(self, text: str, path: Path) -> TextTemplate | None:
        return self._read(TextTemplate, text, path)

    def _services(self) -> tuple[TextTemplate, ...]:
        service = self.definition.service
        if isinstance(service, tuple):
            return self._texts(service, "service")
        text = self._text(service, ("service",)) if service else None
        return () if text is None else (text,)

    def _messages(self) -> tuple[tuple[TextTemplate, Query | None], ...]:
        messages: list[tuple[TextTemplate | None, Query | None]] = []
        for number, message in enumerate(self.definition.message):
            path: Path = ("message", number)
            if isinstance(message, str):
                messages.append((self._text(message, path), None))
            else:
                condition = self.conditions.query(message.condition, (*path, "condition"))
                messages.append((self._text(message.text, (*path, "text")), condition))
        return tuple((text, condition) for text, condition in messages if text is not None)

    def _texts(self, texts: tuple[str, ...], name: str) -> tuple[TextTemplate, ...]:
        read = (self._text(text, (name, number)) for number, text in enumerate(texts))
        return tuple(text for text in read if text is not None)

    def _pointer(self, text: str, path: Path) -> tuple[str, ...]:
        return self._read(parse_pointer, text, path) or ()

    def _read(self, reader: Callable[[str], T], text: str, path: Path) -> T | None:
        try:
            return reader(text)
        except LocatorError as error:
            self.problems.append(diagnose("entry-place", path, str(error), *line_and_column(text, error.column)))
            return None

    def _severity_map(self, words: dict[str, str], number: int) -> SeverityMap | None:
        paths = [(("severity", number, "map", word), name) for word, name in words.items()]
        known = [self._check_choice("entry-severity", path, name, SEVERITIES) for path, name in paths]
        return SeverityMap(words) if all(known) else None


def _is_inside(roots: frozenset[str], decodes: list[tuple[tuple[str, ...], str]]) -> bool:
    """Whether one of some first steps leads into one of several events, or into what is decoded."""
    return any(root.isdigit() for root in roots) or any(steps[0] in roots for steps, _ in decodes)
