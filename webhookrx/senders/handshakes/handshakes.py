"""
The questions of one source: told from messages, and answered with what its secrets allow.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from webhookrx.errors import BAD_HANDSHAKE, METHOD_NOT_ALLOWED, OVER_QUOTA
from webhookrx.intake.head import Head
from webhookrx.intake.judge import Refused
from webhookrx.intake.reply import JSON, Reply, is_header_value
from webhookrx.message.fields import MISSING
from webhookrx.query import QueryTooCostly
from webhookrx.regex import RegexTooCostly
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.handshakes.compilation import AnswerTemplate, CompiledHandshake, compiled_handshakes
from webhookrx.senders.handshakes.texts import (
    PROOF,
    SECRET,
    URL,
    AnswerText,
    NoValue,
    Values,
    exact_text,
    filled,
    scope_of,
    words_of_settings,
)
from webhookrx.senders.signatures.algorithms import Mac, algorithm_with
from webhookrx.senders.signatures.named_secrets import NamedSecret, SecretError

LARGEST_QUESTION: Final = 64 * 1024
"""Bytes of a body, unpacked, that may be a question; what is larger is a message."""


class HandshakeAnswer(msgspec.Struct, frozen=True, gc=False):
    """
    A question that is answered.

    @ivar kind: its name, one of the data file.
    @ivar keep: it becomes a message, too.
    """

    kind: str
    reply: Reply
    keep: bool = False


class Handshakes:
    """
    Tells questions from messages, and answers them.

    @param secrets: in the order of their file. Those named C{verify-token} or C{verify-token.X} are compared with what
        a question shows; the others are keys of proofs.
    @param public_url: what C{{url}} is.
    @param source: the name of the source, for refusals.
    @param take: is asked for each question, refused ones included, with the seconds of a clock that never goes back;
        returns 0, or the seconds after which one may be asked.
    @ivar kinds: the names of all questions.
    @ivar asks_unsigned: some questions are told by their body, and need not be signed.
    @ivar asks_signed: some must be signed.
    """

    def __init__(
        self,
        definition: SenderDefinition,
        secrets: Iterable[NamedSecret],
        *,
        settings: Mapping[str, Any] | None = None,
        public_url: str = "",
        source: str = "",
        take: Callable[[float], int],
    ) -> None:
        compiled = compiled_handshakes(definition)
        self._by_head = tuple(each for each in compiled if each.by_head)
        by_body = [each for each in compiled if not each.by_head]
        self._unsigned = tuple(each for each in by_body if not each.definition.must_be_signed)
        self._signed = tuple(each for each in by_body if each.definition.must_be_signed)
        self._methods = frozenset(each.method for each in self._by_head)
        self._without_token = frozenset(each.method for each in self._by_head if each.definition.without_token)
        self._settings = words_of_settings(settings or {})
        given = tuple(secrets)
        self._tokens = tuple(each.value for each in given if each.is_verify_token and each.value)
        self._keys = [each for each in given if not each.is_verify_token and each.value]
        self._mac = _mac(definition, self._keys)
        self._public_url = public_url
        self._source = source
        self._take = take
        self.kinds = tuple(dict.fromkeys(each.definition.kind for each in compiled))
        self.asks_unsigned = bool(self._unsigned)
        self.asks_signed = bool(self._signed)

    def __repr__(self) -> str:
        return f"<Handshakes of {self._source}>"

    def takes(self, head: Head) -> bool:
        """Tell whether a method may come to a path: C{POST}, and those of questions there."""
        return head.method == b"POST" or (head.method in self._methods and head.method in self._methods_at(head))

    def allow(self, head: Head) -> str:
        """Return the methods that a path takes, for C{Allow}."""
        return ", ".join(sorted({"POST", *(method.decode("ascii") for method in self._methods_at(head))}))

    def _methods_at(self, head: Head) -> set[bytes]:
        path = head.path.decode("latin-1")
        return {
            each.method for each in self._by_head if each.conditions.path is None or each.conditions.path.search(path)
        }

    # -- questions -----------------------------------------------------------------------------------------------

    def by_head(self, head: Head, query: Mapping[str, str | list[str]], now: float) -> HandshakeAnswer | Refused | None:
        """
        Answer a question that its head tells; what is no POST is a question or refused.

        @param now: seconds of a clock that never goes back.
        @return: None for a request to go on with.
        """
        is_post = head.method == b"POST"
        if head.method in self._methods and not (is_post and _has_body(head)):
            evidence = Evidence(head, query, b"", "", MISSING)
            found = self._answered(self._by_head, evidence, None, now)
            if found is not None:
                return found
        if is_post:
            return None
        return Refused(METHOD_NOT_ALLOWED, METHOD_NOT_ALLOWED.detail, self._source, allow=self.allow(head))

    def needs_token(self, head: Head, query: Mapping[str, str | list[str]]) -> bool:
        """Tell whether a request needs the token of its source; a question that anyone may ask does not."""
        if head.method not in self._without_token:
            return True
        evidence = Evidence(head, query, b"", "", MISSING)
        names = evidence.header_names()
        asked = (each for each in self._by_head if each.method == head.method and _is_question(each, evidence, names))
        first = next(asked, None)
        return first is None or not first.definition.without_token

    def before_signature(self, evidence: Evidence, now: float) -> HandshakeAnswer | Refused | None:
        """
        Answer a question that is told by its body and need not be signed. To be asked before C{verify}.

        @return: None for a request to go on with.
        """
        return self._answered(self._unsigned, evidence, None, now)

    def after_signature(self, evidence: Evidence, secret: str | None, now: float) -> HandshakeAnswer | Refused | None:
        """
        Answer a question that must be signed. To be asked after C{verify}.

        @param secret: the name of the secret by which the request is signed; None for one that is taken without a
            signature. A proof is then refused.
        @return: None for a request to go on with.
        """
        return self._answered(self._signed, evidence, secret, now)

    def _answered(
        self, asked: Iterable[CompiledHandshake], evidence: Evidence, secret: str | None, now: float
    ) -> HandshakeAnswer | Refused | None:
        names: Sequence[bytes] | None = None
        for each in asked:
            if evidence.head.method != each.method:
                continue
            if names is None:
                names = evidence.header_names()
            if _is_question(each, evidence, names):
                wait = self._take(now)
                if wait:
                    return Refused(OVER_QUOTA, OVER_QUOTA.detail, self._source, retry_after=wait)
                return self._answer(each, evidence, secret)
        return None

    # -- answers -------------------------------------------------------------------------------------------------

    def _answer(self, asked: CompiledHandshake, evidence: Evidence, secret: str | None) -> HandshakeAnswer | Refused:
        scope = scope_of(evidence)
        if asked.equal is not None and not self._knows(asked.equal.first(scope, exact_text)):
            return self._refused("The verify token is missing or is none of this source.")
        words = dict(self._settings)
        try:
            if asked.proof_of is not None:
                values = Values(scope, self._proof_words(asked.proof_of, evidence), asked.shape.fits)
                words[PROOF] = self._proof(asked, values, secret)
            reply = reply_of(asked.answer, Values(scope, words, asked.shape.fits))
        except NoValue:
            return self._refused("A text of the question is missing, or of a shape that is not answered.")
        return HandshakeAnswer(asked.definition.kind, reply, asked.definition.keep)

    def _refused(self, detail: str) -> Refused:
        return Refused(BAD_HANDSHAKE, detail, self._source)

    def _knows(self, shown: str | None) -> bool:
        if shown is None:
            return False
        digest = sha256(shown.encode("utf-8", "surrogatepass")).digest()
        known = False
        # All of them, every time: an early exit would tell which one matched.
        for token in self._tokens:
            known |= hmac.compare_digest(digest, sha256(token).digest())
        return known

    def _proof_words(self, text: AnswerText, evidence: Evidence) -> dict[str, str | int]:
        words: dict[str, str | int] = {}
        if URL in text.words and self._public_url:
            words[URL] = self._public_url
            if urlsplit(self._public_url).path in ("", "/"):
                words[URL] = self._public_url.rstrip("/") + evidence.head.path.decode("latin-1")
        return words

    def _proof(self, asked: CompiledHandshake, values: Values, secret: str | None) -> str:
        """
        Return the proof, by the secret that has verified the question, else by the first.

        @raise NoValue: a text is missing or of another shape; or there is no key.
        """
        definition = asked.definition
        assert definition.proof is not None, "the caller has checked it"
        assert asked.proof_of is not None, "as above"
        name = secret or (self._keys[0].name if self._keys and not definition.must_be_signed else "")
        if definition.proof.algorithm == "sha256":
            key = next((each.value for each in self._keys if each.name == name), None)
            if key is None:
                raise NoValue(PROOF)
            parts = asked.proof_of.parts(values.with_word(SECRET, key.decode("utf-8", "surrogateescape")))
            digest = sha256("".join(parts).encode("utf-8", "surrogateescape")).digest()
        else:
            if self._mac is None or name not in self._mac.names:
                raise NoValue(PROOF)
            digest = self._mac.code(name, asked.proof_of.text(values).encode("ascii"))
        return digest.hex() if definition.proof.encoding == "hex" else b64encode(digest).decode("ascii")


def _mac(definition: SenderDefinition, secrets: Sequence[NamedSecret]) -> Mac | None:
    """Return the keys of proofs, as C{verify} has them; None without any."""
    scheme = definition.proof_scheme
    if scheme is None or not definition.proves:
        return None
    usable = []
    for secret in secrets:
        with suppress(SecretError):  # it is the verifier's to say so
            algorithm_with(scheme, [secret])
            usable.append(secret)
    made = algorithm_with(scheme, usable)
    return made if isinstance(made, Mac) and usable else None


def reply_of(answer: AnswerTemplate, values: Values, status: int = 0) -> Reply:
    """
    Return an answer with the values of all texts in it.

    @param status: in place of that of the answer; 0 for that one.
    @raise NoValue: a place yields nothing, or what a header can't hold.
    """
    headers = []
    for name, text in answer.headers:
        value = text.text(values)
        if not is_header_value(value):
            raise NoValue(name)
        headers.append((name, value))
    if answer.json is not None:
        return Reply(status or answer.status, msgspec.json.encode(filled(answer.json, values)), JSON, tuple(headers))
    return Reply(status or answer.status, answer.text.text(values).encode(), answer.content_type, tuple(headers))


def _has_body(head: Head) -> bool:
    lengths = head.values(b"content-length")
    return bool(head.values(b"transfer-encoding")) or any(length.strip(b"0") for length in lengths)


def _is_question(asked: CompiledHandshake, evidence: Evidence, names: Sequence[bytes]) -> bool:
    when = asked.definition.when
    if not asked.by_head and not _is_alone(evidence, empty=when.empty_body):
        return False
    if asked.only_keys and (evidence.object is None or evidence.object.keys() != asked.only_keys):
        return False
    try:
        return asked.conditions.match(evidence, names)
    except (QueryTooCostly, RegexTooCostly):
        return False


def _is_alone(evidence: Evidence, *, empty: bool) -> bool:
    """Tell whether a body is one JSON object, alone or in an array; of several, the others may be messages."""
    if empty:
        return not evidence.body
    decoded = evidence.decoded
    return type(decoded) is dict or (type(decoded) is list and len(decoded) == 1 and type(decoded[0]) is dict)
