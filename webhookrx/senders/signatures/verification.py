"""
The check of one request, from its head to its verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hmac import compare_digest
from typing import Final, TypeAlias

import msgspec

from webhookrx.errors import BAD_SIGNATURE, BODY_TOO_LARGE, KEY_UNAVAILABLE, SIGNATURE_MISSING, STALE_SIGNATURE, Reason
from webhookrx.intake.head import Head
from webhookrx.senders.signatures.algorithms import Algorithm, Mac, SecretItself
from webhookrx.senders.signatures.code_verifiers import CodeVerifier
from webhookrx.senders.signatures.compiled_scheme import CompiledScheme, SigningTime
from webhookrx.senders.signatures.outcome import KeyUnavailable, Unverified, Verified
from webhookrx.senders.signatures.pieces import Context, feed
from webhookrx.senders.signatures.places import MAX_SIGNATURES
from webhookrx.senders.signatures.repeated_members import REPEATED, is_ambiguous
from webhookrx.senders.signatures.signed_request import SignedRequest
from webhookrx.yield_point import PIECE

#: Takes a head and a body.
CheckBody: TypeAlias = Callable[[Head, bytes], Verified | Unverified]

MAX_AT_ONCE: Final = 512 * 1024
"""Bytes of a body whose signature is verified in one call, two nanoseconds each. Senders that sign so send a few."""

_TOO_LARGE: Final = f"The body is longer than {MAX_AT_ONCE} bytes, too long to verify a signature of this kind."
_NANOSECONDS: Final = 1_000_000_000
_PART_MISSING: Final = "A part of the request that this sender signs is missing or repeated."
_NOT_OURS: Final = "The secret that the request shows is none of this receiver's."
_NO_OBJECT: Final = "The body is no JSON object, so its signature may be an answer to a question."
_OBJECTS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_UNREADABLE_TIME: Final = "The signature is genuine, but its time can't be read."


class Verification:
    """
    The check of one request.

    @ivar takes_pieces: whether it is worth while to give it the body as it comes, with L{update}. All of the body may
        also be given to L{finish} alone; but not a part of it to one, and the rest to the other.
    """

    __slots__ = ("_request", "takes_pieces")

    def __init__(self, request: SignedRequest) -> None:
        self._request = request
        self.takes_pieces = False

    def before_body(self) -> Unverified | None:
        """Return why the request is refused before its body comes: its head does not show the secret that it must."""
        return None

    def update(self, data: bytes) -> None:
        """Take in a piece of the unpacked body. Where no pieces are taken, it does nothing."""

    def finish(self, body: bytes, now: int, wire: bytes | None = None) -> Verified | Unverified:
        """
        Judge the request. It raises nothing, whatever the sender has written.

        @param body: all of it, unpacked, whether L{update} has had it or not.
        @param now: nanoseconds since the epoch, by the wall clock.
        @param wire: the body as it came, before its C{Content-Encoding} was undone; None: it had none.
        """
        self._request.body = body
        self._request.wire = body if wire is None else wire
        return self._judge(now)

    def _judge(self, now: int) -> Verified | Unverified:
        raise NotImplementedError


class SignatureWay:
    """
    A scheme of signatures that counts, with its keys.

    @ivar check_body: checks a short body at once; None where it takes more than that.
    @param objects_only: only bodies that are JSON objects verify, see
        L{webhookrx.senders.definition.SenderDefinition.objects_only}.
    """

    __slots__ = ("check_body", "keys", "objects_only", "scheme", "takes_pieces")

    def __init__(self, scheme: CompiledScheme, keys: Algorithm, *, objects_only: bool = False) -> None:
        self.scheme = scheme
        self.keys = keys
        self.objects_only = objects_only
        self.takes_pieces = keys.takes_pieces and scheme.text.streams and not scheme.at_in_body
        self.check_body: CheckBody | None = None
        text = scheme.text
        is_body = text.begins_with_body and text.ends_with_body and text.streams
        if scheme.only_header and is_body and scheme.moment is None and not objects_only and isinstance(keys, Mac):
            self.check_body = _CheckOfBody(scheme, keys).check

    def begin(self, request: SignedRequest) -> Verification:
        """Begin the check of a request."""
        if self.keys.takes_pieces:
            return _SignatureVerification(self, request)
        return _VerificationAtOnce(self, request)


class _CheckOfBody:
    """
    The most common check: one header is the code of the body and of nothing else. It does what
    L{_SignatureVerification} does, in half the time.
    """

    __slots__ = ("_begin", "_decode", "_header", "_keys", "_prefix", "_size")

    def __init__(self, scheme: CompiledScheme, keys: Mac) -> None:
        self._decode, self._prefix, self._begin = scheme.decode, scheme.prefix, len(scheme.prefix)
        self._header = scheme.only_header
        self._size = keys.size
        self._keys = [(Verified(name), *halves) for name, halves in zip(keys.names, keys.halves, strict=True)]

    def check(self, head: Head, body: bytes) -> Verified | Unverified:
        """See L{Verification.finish}; the body is short."""
        values = head.values(self._header)
        if len(values) != 1 or not values[0].startswith(self._prefix):
            return _refused(SIGNATURE_MISSING)
        signature = self._decode(values[0][self._begin :])
        if not signature or len(signature) != self._size:
            return _refused(SIGNATURE_MISSING)
        for verified, inner, outer in self._keys:
            context, whole = inner.copy(), outer.copy()
            context.update(body)
            whole.update(context.digest())
            if compare_digest(whole.digest(), signature):
                return verified
        return _refused(BAD_SIGNATURE)


class _SignatureVerification(Verification):
    __slots__ = ("_contexts", "_signatures", "_way")

    def __init__(self, way: SignatureWay, request: SignedRequest) -> None:
        self._request = request
        self._way = way
        self._contexts: list[Context] | None = None
        scheme = way.scheme
        self._signatures = [] if scheme.at_in_body else scheme.signatures(request, way.keys.size)
        self.takes_pieces = bool(self._signatures) and way.takes_pieces

    def update(self, data: bytes) -> None:
        """See L{Verification.update}."""
        if not self.takes_pieces:
            return
        if self._contexts is None:
            way = self._way
            self._contexts = way.keys.begin(way.scheme.text, self._request)
            if self._contexts is None:  # what is missing in the head stays missing
                self.takes_pieces = False
                return
        for context in self._contexts:
            context.update(data)

    def finish(self, body: bytes, now: int, wire: bytes | None = None) -> Verified | Unverified:
        """See L{Verification.finish}."""
        request, scheme, keys = self._request, self._way.scheme, self._way.keys
        request.body = body
        request.wire = body if wire is None else wire
        signatures = scheme.signatures(request, keys.size) if scheme.at_in_body else self._signatures
        if not signatures:
            return _refused(SIGNATURE_MISSING)
        contexts = self._contexts
        if contexts is None:
            contexts = keys.begin(scheme.text, request)
            if contexts is None:
                return Unverified(BAD_SIGNATURE, _PART_MISSING)
            if scheme.text.streams:
                feed(contexts, body)
        name = keys.end(contexts, scheme.text, request, signatures)
        if name is None:
            return _refused(BAD_SIGNATURE)
        if self._way.objects_only and not _is_object(request.body):
            return Unverified(BAD_SIGNATURE, _NO_OBJECT)
        if scheme.binds_members and is_ambiguous(request):
            return REPEATED
        return Verified(name) if scheme.moment is None else _judge_time(name, scheme.moment, request, now)


class _VerificationAtOnce(_SignatureVerification):
    """A check of a signature that is over a text and not over its digest, and can't be interrupted."""

    __slots__ = ()

    def finish(self, body: bytes, now: int, wire: bytes | None = None) -> Verified | Unverified:
        """See L{Verification.finish}."""
        if len(body) > MAX_AT_ONCE:
            return Unverified(BODY_TOO_LARGE, _TOO_LARGE)
        return super().finish(body, now, wire)


def _is_object(body: bytes) -> bool:
    if not body.lstrip(b" \t\r\n").startswith(b"{"):
        return False
    if len(body) > PIECE:  # no question has so long a text
        return True
    try:
        _OBJECTS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _judge_time(name: str, moment: SigningTime, request: SignedRequest, now: int) -> Verified | Unverified:
    signed_at = moment.read(request)
    if signed_at is None:
        return Unverified(STALE_SIGNATURE, _UNREADABLE_TIME)
    skew = (now - signed_at) / _NANOSECONDS
    if abs(now - signed_at) > moment.tolerance:
        return Unverified(STALE_SIGNATURE, STALE_SIGNATURE.detail, skew)
    return Verified(name, "signature", signed_at, skew)


class SecretWay:
    """A scheme that counts by which the request shows a secret itself."""

    __slots__ = ("keys", "scheme", "takes_pieces")

    def __init__(self, scheme: CompiledScheme, keys: SecretItself) -> None:
        self.scheme = scheme
        self.keys = keys
        self.takes_pieces = False

    def begin(self, request: SignedRequest) -> Verification:
        """Begin the check of a request."""
        return _SecretVerification(self, request)

    def judge(self, request: SignedRequest) -> Verified | Unverified:
        """Judge a request that is all there, as far as the places of the scheme need it."""
        groups = self.scheme.shown(request)
        if not groups:
            return _refused(SIGNATURE_MISSING)
        for group in groups:
            # An array may hold thousands, as a rule the same.
            distinct = dict.fromkeys(group)
            found = [self.keys.find(shown) for shown in distinct] if len(distinct) <= MAX_SIGNATURES else [None]
            if found[0] is not None and None not in found:
                return Verified(found[0], "token")
        return Unverified(BAD_SIGNATURE, _NOT_OURS)


class _SecretVerification(Verification):
    __slots__ = ("_verdict", "_way")

    def __init__(self, way: SecretWay, request: SignedRequest) -> None:
        super().__init__(request)
        self._way = way
        self._verdict = None if way.scheme.at_in_body else way.judge(request)

    def before_body(self) -> Unverified | None:
        """See L{Verification.before_body}."""
        return self._verdict if isinstance(self._verdict, Unverified) else None

    def _judge(self, now: int) -> Verified | Unverified:
        return self._verdict or self._way.judge(self._request)


class CodeWay:
    """A built-in verifier that counts."""

    __slots__ = ("keys", "scheme", "takes_pieces")

    def __init__(self, scheme: CompiledScheme, keys: CodeVerifier) -> None:
        self.scheme = scheme
        self.keys = keys
        self.takes_pieces = False

    def begin(self, request: SignedRequest) -> Verification:
        """Begin the check of a request."""
        return _CodeVerification(self.keys, request)


class _CodeVerification(Verification):
    __slots__ = ("_code",)

    def __init__(self, code: CodeVerifier, request: SignedRequest) -> None:
        super().__init__(request)
        self._code = code

    def _judge(self, now: int) -> Verified | Unverified:
        try:
            return self._code.check(self._request, now)
        except KeyUnavailable:
            return _refused(KEY_UNAVAILABLE)


Way: TypeAlias = SignatureWay | SecretWay | CodeWay


class LateVerification(Verification):
    """
    The check of a request of which only the body shows by which scheme it goes.

    @param ways: those that count, in their order.
    """

    __slots__ = ("_ways",)

    def __init__(self, ways: Sequence[Way], request: SignedRequest) -> None:
        super().__init__(request)
        self._ways = ways

    def _judge(self, now: int) -> Verified | Unverified:
        request = self._request
        way = next((way for way in self._ways if way.scheme.is_there(request)), None)
        return way.begin(request).finish(request.body, now, request.wire) if way else _refused(SIGNATURE_MISSING)


def _refused(reason: Reason) -> Unverified:
    return Unverified(reason, reason.detail)
