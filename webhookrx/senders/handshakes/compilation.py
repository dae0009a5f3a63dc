"""
Makes the questions and answers of a data file ready, and finds all that is wrong with them.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from webhookrx.diagnostics import Diagnostic, Path, diagnose
from webhookrx.intake.reply import OWN_HEADERS, TEXT, is_header_value
from webhookrx.quantities import parse_duration
from webhookrx.query import line_and_column
from webhookrx.senders.answer_definition import RETRIES, Behaviour, SenderAnswer
from webhookrx.senders.condition_reader import NO_HEADER, ConditionReader
from webhookrx.senders.conditions import Conditions
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.handshake_definition import METHODS, PROOF_ALGORITHMS, PROOF_ENCODINGS, Handshake
from webhookrx.senders.handshakes.shapes import Shape, why_not_for_proofs
from webhookrx.senders.handshakes.texts import (
    NOW_WORDS,
    PROOF,
    REFUSAL_WORDS,
    SECRET,
    URL,
    AnswerJson,
    AnswerText,
    texts_in,
)
from webhookrx.senders.locator import HEADER_NAME, Locator, LocatorError
from webhookrx.senders.signatures.scheme import DIGEST_ALGORITHMS

_KIND: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")


class AnswerTemplate(msgspec.Struct, frozen=True, gc=False):
    """
    An answer made ready.

    @ivar json: None without one; then C{text} is the body, which may be empty.
    """

    status: int
    json: AnswerJson
    text: AnswerText
    content_type: str
    headers: tuple[tuple[str, AnswerText], ...]

    @property
    def texts(self) -> list[AnswerText]:
        """All texts in it."""
        return [*texts_in(self.json), self.text, *(text for _, text in self.headers)]


class CompiledHandshake(msgspec.Struct, frozen=True, gc=False):
    """
    A question made ready.

    @ivar only_keys: empty when others are no matter.
    @ivar by_head: it is told, and answered, by its head.
    @ivar proof_of: what C{{proof}} is made of; None without one.
    """

    definition: Handshake
    method: bytes
    conditions: Conditions
    only_keys: frozenset[str]
    by_head: bool
    equal: Locator | None
    shape: Shape
    proof_of: AnswerText | None
    answer: AnswerTemplate


class CompiledAnswer(msgspec.Struct, frozen=True, gc=False):
    """
    What a stored message is answered with.

    @ivar conditions: None for all messages.
    @ivar refused: the answer to a refused request; None for the ordinary one.
    """

    conditions: Conditions | None
    stored: AnswerTemplate
    refused: AnswerTemplate | None


def compiled_handshakes(definition: SenderDefinition) -> tuple[CompiledHandshake, ...]:
    """Make the questions of a definition ready, in which nothing is wrong."""
    return _AnswerCompilation([], definition).handshakes()


def compiled_answers(definition: SenderDefinition) -> tuple[CompiledAnswer, ...]:
    """Make the answers of a definition ready, in which nothing is wrong."""
    return _AnswerCompilation([], definition).answers()


def check_answers(definition: SenderDefinition, problems: list[Diagnostic]) -> None:
    """Add all that is wrong with the questions, the answers and the behaviour of a definition."""
    compilation = _AnswerCompilation(problems, definition)
    compilation.handshakes()
    compilation.answers()
    if definition.behaviour is not None:
        compilation.check_behaviour(definition.behaviour)


class _AnswerCompilation:
    """Goes through questions and answers, and gathers what is wrong."""

    def __init__(self, problems: list[Diagnostic], definition: SenderDefinition) -> None:
        self._problems = problems
        self._definition = definition
        self._conditions = ConditionReader(problems)

    def _blame(self, path: Path, sentence: str, code: str = "entry-handshake") -> None:
        self._problems.append(diagnose(code, path, sentence))

    def _check_choice(self, path: Path, word: str, choices: tuple[str, ...]) -> None:
        if word not in choices:
            self._blame(path, f"{word!r} is not one of {', '.join(choices)}.", "entry-format")

    # -- questions -----------------------------------------------------------------------------------------------

    def handshakes(self) -> tuple[CompiledHandshake, ...]:
        """Return the questions in the order of the file."""
        definition = self._definition
        compiled = [
            self._handshake(handshake, ("handshake", number)) for number, handshake in enumerate(definition.handshake)
        ]
        for number, handshake in enumerate(definition.handshake):
            self._check_signatures(handshake, ("handshake", number))
        return tuple(each for each in compiled if each is not None)

    def _handshake(self, handshake: Handshake, home: Path) -> CompiledHandshake | None:
        when = handshake.when
        before = len(self._problems)
        if not _KIND.fullmatch(handshake.kind):
            self._blame((*home, "kind"), "A kind is made of small letters, digits and underscores.")
        self._check_choice((*home, "when", "method"), when.method, METHODS)
        conditions = self._conditions.read(when, (*home, "when"), alone=False)
        equal = self._place(handshake.equal, (*home, "equal")) if handshake.equal else None
        proof_of = self._proof_of(handshake, home)
        words = () if handshake.proof is None else (PROOF,)
        answer = self._template(handshake.json, handshake.text, handshake.content_type, handshake.reply, home, words)
        shape = self._shape(handshake, home)
        if answer is None or shape is None or len(self._problems) > before:
            return None
        if handshake.status != 200:
            answer = msgspec.structs.replace(answer, status=handshake.status)
        asks_body = bool(when.body_keys or when.only_keys or when.body)
        places = [
            place for text in (*answer.texts, *(() if proof_of is None else (proof_of,))) for place in text.places
        ]
        inside = asks_body or any(place.root is not None for place in (*places, *(() if equal is None else (equal,))))
        compiled = CompiledHandshake(
            handshake,
            when.method.encode("ascii"),
            conditions,
            frozenset(when.only_keys),
            not (inside or handshake.must_be_signed),
            equal,
            shape,
            proof_of,
            answer,
        )
        self._check_question(compiled, asks_body, home)
        return compiled

    def _check_question(self, compiled: CompiledHandshake, asks_body: bool, home: Path) -> None:
        """Find questions that could swallow messages, or have no body where one is needed."""
        handshake, when = compiled.definition, compiled.definition.when
        is_post = when.method == "POST"
        if not is_post and not compiled.by_head:
            self._blame(home, f"A {when.method} has no body to look at, and no signature.")
        if is_post and not (compiled.conditions.count or when.only_keys or when.empty_body):
            self._blame((*home, "when"), "There must be a condition that tells the question from a message.")
        if (
            is_post
            and not compiled.by_head
            and not asks_body
            and not when.empty_body
            and not compiled.conditions.by_header
        ):
            self._blame((*home, "when"), "There must be a condition on the body, or a header that messages don't have.")
        is_same = not any(text.places or text.words for text in compiled.answer.texts) and not handshake.equal
        if handshake.without_token and (is_post or not when.path or not is_same or handshake.keep):
            sentence = (
                "Without a token only a question at a path, with another method than POST, is answered, by fixed text."
            )
            self._blame((*home, "without_token"), sentence)
        if asks_body and when.empty_body:
            self._blame((*home, "when", "empty_body"), "An empty body has no members.")
        if handshake.proof is not None and is_post and not handshake.must_be_signed:
            self._blame((*home, "signed"), "A POST that is answered with a proof must be signed.")

    def _check_signatures(self, handshake: Handshake, home: Path) -> None:
        """Find what the signatures of the sender don't go with: proofs above all, which must never be one of them."""
        definition = self._definition
        schemes = definition.schemes
        if handshake.must_be_signed and not schemes:
            self._blame(home, "Without verify no question is signed; write signed: no.")
        if handshake.proof is None:
            return
        is_digest = handshake.proof.algorithm == "sha256"
        if not is_digest and definition.proof_scheme is None:
            self._blame((*home, "proof"), "A proof is made as verify says, where no scheme is an HMAC.")
        for scheme in schemes:
            if is_digest and scheme.algorithm in DIGEST_ALGORITHMS:
                self._blame((*home, "proof"), "A proof by a digest does not go with signatures by a digest.")
            elif definition.objects_only(scheme) and "{body}" not in scheme.signed:
                self._blame((*home, "proof"), "What verify signs has no body in it, so a proof might be a signature.")

    def _shape(self, handshake: Handshake, home: Path) -> Shape | None:
        path: Path = (*home, "shape")
        if handshake.proof is not None:
            problem = why_not_for_proofs(handshake.shape)
            if problem is not None:
                self._blame(path if handshake.shape else home, problem)
                return None
        try:
            return Shape(handshake.shape)
        except ValueError as error:
            self._blame(path, str(error), "entry-regex")
            return None

    def _proof_of(self, handshake: Handshake, home: Path) -> AnswerText | None:
        proof = handshake.proof
        if proof is None:
            return None
        path: Path = (*home, "proof")
        self._check_choice((*path, "algorithm"), proof.algorithm, PROOF_ALGORITHMS)
        self._check_choice((*path, "encoding"), proof.encoding, PROOF_ENCODINGS)
        is_digest = proof.algorithm == "sha256"
        text = self._text(proof.of, (*path, "of"), (SECRET, URL) if is_digest else ())
        if text is None:
            return None
        if text.has_plain or not text.places or any(word not in (SECRET, URL) for word in text.words):
            self._blame((*path, "of"), "A proof is made of places in the request, with nothing between them.")
        elif is_digest and SECRET not in text.words:
            self._blame((*path, "of"), "A proof by a digest needs the {secret} in it.")
        return text

    # -- answers -------------------------------------------------------------------------------------------------

    def answers(self) -> tuple[CompiledAnswer, ...]:
        """Return the answers in the order of the file."""
        definition = self._definition
        several = isinstance(definition.answer, tuple)
        compiled = [
            self._answer(answer, ("answer", number) if several else ("answer",))
            for number, answer in enumerate(definition.answers)
        ]
        for number, answer in enumerate(definition.answers[:-1]):
            if answer.when is None:
                self._blame(("answer", number), "Without when, nothing behind it counts.", "entry-answer")
        return tuple(each for each in compiled if each is not None)

    def _answer(self, answer: SenderAnswer, home: Path) -> CompiledAnswer | None:
        conditions = None
        if answer.when is not None:
            conditions = self._conditions.read(answer.when, (*home, "when"), alone=False)
            if not conditions.count:
                self._blame((*home, "when"), "There is no condition in it.", "entry-answer")
        stored = self._template(answer.json, answer.text, answer.content_type, answer.reply, home, NOW_WORDS)
        refused = None
        if answer.refused is not None:
            words = (*NOW_WORDS, *REFUSAL_WORDS)
            refused = self._template(answer.refused.json, "", "", {}, (*home, "refused"), words)
            if refused is not None and any(place.root is not None for text in refused.texts for place in text.places):
                self._blame((*home, "refused"), "A refused request may have no body to look at.", "entry-answer")
        if stored is None:
            return None
        if answer.status == 204 and (answer.json is not None or answer.text):
            self._blame((*home, "status"), "An answer with status 204 has no body.", "entry-answer")
        return CompiledAnswer(conditions, msgspec.structs.replace(stored, status=answer.status), refused)

    def _template(
        self,
        json: dict[str, Any] | None,
        text: str,
        content_type: str,
        reply: dict[str, str],
        home: Path,
        words: tuple[str, ...],
    ) -> AnswerTemplate | None:
        if json is not None and text:
            self._blame(home, "An answer is json or text.", "entry-answer")
        if not is_header_value(content_type):
            self._blame((*home, "content_type"), "This can't be a media type.", "entry-answer")
        if json is not None and content_type:
            self._blame((*home, "content_type"), "JSON has its own media type.", "entry-answer")
        body = self._text(text, (*home, "text"), words)
        headers = [self._header(name, value, (*home, "reply", name), words) for name, value in reply.items()]
        made = None if json is None else self._json(json, (*home, "json"), words)
        if body is None or any(value is None for _, value in headers):
            return None
        kind = content_type or (TEXT if text else "")
        return AnswerTemplate(200, made, body, kind, tuple(headers))  # type: ignore[arg-type]  # none is None

    def _header(self, name: str, value: str, path: Path, words: tuple[str, ...]) -> tuple[str, AnswerText | None]:
        if not HEADER_NAME.fullmatch(name):
            self._problems.append(diagnose("entry-header", path, NO_HEADER, of_key=True))
        elif name.lower() in OWN_HEADERS:
            self._blame(path, "This header is the receiver's own.", "entry-answer")
        if not value.isascii():
            self._blame(path, "A header of an answer is ASCII.", "entry-answer")
        return name, self._text(value, path, words)

    def _json(self, json: Any, path: Path, words: tuple[str, ...]) -> AnswerJson:
        if isinstance(json, str):
            return self._text(json, path, words)
        if isinstance(json, dict):
            return {name: self._json(value, (*path, name), words) for name, value in json.items()}
        if isinstance(json, list):
            return [self._json(value, (*path, number), words) for number, value in enumerate(json)]
        return json  # type: ignore[no-any-return]  # a number, yes or no, or nothing

    def _text(self, text: str, path: Path, words: tuple[str, ...]) -> AnswerText | None:
        try:
            read = AnswerText(text, words)
            for name in read.settings:
                if name not in self._definition.settings:
                    self._blame(path, f"There is no {name!r} among the settings of this definition.", "entry-place")
            return read
        except LocatorError as error:
            self._problems.append(diagnose("entry-place", path, str(error), *line_and_column(text, error.column)))
            return None

    def _place(self, text: str, path: Path) -> Locator | None:
        try:
            return Locator(text)
        except LocatorError as error:
            self._problems.append(diagnose("entry-place", path, str(error), *line_and_column(text, error.column)))
            return None

    # -- behaviour -----------------------------------------------------------------------------------------------

    def check_behaviour(self, behaviour: Behaviour) -> None:
        """Add what is wrong with it."""
        home: Path = ("behaviour",)
        if behaviour.deadline:
            try:
                parse_duration(behaviour.deadline)
            except ValueError as error:
                self._blame((*home, "deadline"), str(error), "entry-format")
        if behaviour.retries:
            self._check_choice((*home, "retries"), behaviour.retries, RETRIES)
        if bool(behaviour.retried) != (behaviour.retries == "by-status"):
            self._blame(
                (*home, "retried"), "Statuses go with retries: by-status, and with nothing else.", "entry-answer"
            )
        for name in ("retried", "disabled_by"):
            for number, status in enumerate(getattr(behaviour, name)):
                if not 400 <= status <= 599:
                    self._blame((*home, name, number), f"{status} is not the status of a refusal.", "entry-answer")
        for number, name in enumerate(behaviour.unconfirmed):
            self._check_choice(
                (*home, "unconfirmed", number), name, ("deadline", "retries", "retried", "disabled_by", "note")
            )
