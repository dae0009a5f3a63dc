"""Requests of somebody who wants to get past a signature: never an exception, always a refusal."""

from __future__ import annotations

import base64
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests import examples as examples
from tests.senders.signatures.keys import public_text
from tests.senders.signatures.requests import begin, check, head_of, verdict, verifier_of
from tests.senders.signatures.test_vectors import SCHEMES
from webhookrx.senders.signatures.outcome import Unverified
from webhookrx.senders.signatures.scheme import PUBLIC_KEY_ALGORITHMS
from webhookrx.senders.signatures.strict_encodings import DECODERS, ENCODERS
from webhookrx.senders.signatures.verifier import Verifier

_SECRET = "9f2c-not-in-use"
_TEXTS = {"text": _SECRET, "base64": "OWYyYy1ub3Q=", "hex": "9f2c6e6f74", "whsec": "whsec_OWYyYy1ub3Q="}
_REASONS = {"signature_missing", "bad_signature", "stale_signature"}


def _verifier(scheme: dict[str, Any]) -> Verifier:
    algorithm, form = scheme.get("algorithm", ""), scheme.get("key", "text")
    text = public_text(algorithm, form) if algorithm in PUBLIC_KEY_ALGORITHMS else _TEXTS[form]
    return verifier_of(scheme, secrets={"a": text}, public_url="https://logs.example")


_VERIFIERS = {name: _verifier(scheme) for name, scheme in SCHEMES.items()}
_HEADERS = sorted({place.header for each in _VERIFIERS.values() for place in each.ways[0].scheme.places} - {b""})

#: What a field may hold: no line ends, since there would be two lines then, and no NUL.
_octets = st.binary(max_size=80).map(lambda data: data.translate(None, b"\r\n\0"))
_shapes = st.one_of(
    _octets,
    _octets.map(base64.b64encode),
    _octets.map(lambda data: base64.b64encode(data)[:-1]),
    st.binary(min_size=20, max_size=64).map(lambda data: data.hex().encode()),
    st.sampled_from([b"", b"v1=", b"v1,", b"=", b",", b" ", b"sha256=", b"Basic ", b"HMAC ", b"v0=", b"t=1,v1="]),
    st.integers(1, 1200).map(lambda count: b",".join([b"v1=" + b"00" * 32] * count)[:8192]),
    st.integers(1, 1200).map(lambda count: b" ".join([b"v1,AAAA"] * count)[:8192]),
    st.just("v1=\u0661\u00e4\u2603".encode() * 500),
)
_bodies = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [
            b"",
            b"{}",
            b"[]",
            b"null",
            b'{"signature":{"signature":"00","timestamp":1,"token":[]}}',
            b'{"signature":{"signature":null,"timestamp":{},"token":"x"}}',
            b'{"value":[{"clientState":"x"},[],7,null,{"clientState":{}}]}',
            b'{"sharedSecret":[["x"]]}',
            b'{"webhookTimestamp":1e999}',
            b'{"a":' * 200 + b"1" + b"}" * 200,
            b"payload=%ff&payload=%7B%7D",
            b"&".join([b"a=1"] * 1200),
        ]
    ),
)


class HostileTests(SynchronousTestCase):
    """Whatever bytes stand where a signature should be."""

    @given(
        name=st.sampled_from(sorted(_VERIFIERS)),
        lines=st.lists(st.tuples(st.sampled_from(_HEADERS), _shapes), max_size=6),
        values=st.lists(_shapes, min_size=1, max_size=2),
        body=_bodies,
        now=st.integers(0, 2**63),
    )
    def test_refused(
        self, name: str, lines: list[tuple[bytes, bytes]], values: list[bytes], body: bytes, now: int
    ) -> None:
        """No request without the secret passes, and none raises."""
        verifier = _VERIFIERS[name]
        own = [place.header or b"x" for place in verifier.ways[0].scheme.places]
        pairs = [(header.decode(), value) for header in own for value in values]
        pairs += [(header.decode(), value) for header, value in lines]
        for size in (None, 7):
            verification = begin(verifier, pairs, url="/hooks?secret=x")
            if size is not None:
                for start in range(0, len(body), size):
                    verification.update(body[start : start + size])
            result = verification.finish(body, now)
            self.assertIsInstance(result, Unverified)
            self.assertIn(verdict(result), _REASONS)

    def test_large_headers(self) -> None:
        """Eight kibibytes, and a thousand items, in each header that a scheme looks at."""
        for name, verifier in _VERIFIERS.items():
            for value in (b"\xff" * 8192, b"A" * 8192, b",".join([b"v1=0"] * 1000), b" ".join([b"v1,A"] * 1000)):
                pairs = [(place.header.decode() or "x", value) for place in verifier.ways[0].scheme.places]
                self.assertIn(verdict(check(verifier, pairs, b"{}")), _REASONS, name)

    def test_empty_key(self) -> None:
        """What anyone can compute with no key at all is refused: there is no empty secret."""
        import hmac

        verifier = _VERIFIERS["github"]
        for key in (b"", b"\0", b"None", b"a"):
            headers = {"x-hub-signature-256": "sha256=" + hmac.digest(key, b"{}", "sha256").hex()}
            self.assertEqual("bad_signature", verdict(check(verifier, headers, b"{}")))


class DownGradeTests(SynchronousTestCase):
    """Somebody who takes a genuine request and leaves parts of it away, or sends parts twice."""

    def test_each_line(self) -> None:
        """A genuine request without one of the lines that its scheme needs is refused, and with one of them twice."""
        from tests.senders.signatures.test_signing import _BODY, _NOW, SECOND, _secret_for, _sign

        for name, scheme in SCHEMES.items():
            secret = _secret_for(scheme)
            verifier = verifier_of(scheme, secrets={secret.name: secret.value}, public_url="https://logs.example")
            body = b"payload=%7B%7D" if name == "travis" else _BODY
            signed = _sign(scheme, verifier, body)
            lines = [(key.decode(), value) for key, value in signed.headers.items()]
            for number in range(len(lines)):
                fewer, twice = [*lines[:number], *lines[number + 1 :]], [*lines, lines[number]]
                self.assertIsInstance(self._judge(verifier, fewer, signed.body, _NOW * SECOND), Unverified, name)
                if name != "docusign":  # whose headers have numbers, and may be there more than once
                    self.assertIsInstance(self._judge(verifier, twice, signed.body, _NOW * SECOND), Unverified, name)

    def _judge(self, verifier: Verifier, lines: Any, body: bytes, now: int) -> Any:
        return verifier.begin(head_of(lines, url="/hooks?a=1"), {"a": "1"}).finish(body, now)


class StrictEncodingTests(SynchronousTestCase):
    """Tests for L{webhookrx.senders.signatures.strict_encodings}."""

    @given(st.binary(max_size=70))
    def test_round_trip(self, data: bytes) -> None:
        """What is written can be read."""
        for name, encode in ENCODERS.items():
            self.assertEqual(data, DECODERS[name](encode(data)))

    @given(st.binary(max_size=12))
    def test_one_way_to_write(self, text: bytes) -> None:
        """What can be read is written as it would be written here, but for the case of hexadecimal digits."""
        for name in ("base64", "hex"):
            value = DECODERS[name](text)
            if value is not None:
                self.assertEqual(text.lower() if name == "hex" else text, ENCODERS[name](value))

    def test_refused(self) -> None:
        """Blanks, line ends, missing or needless padding, stray bits and another alphabet are errors."""
        for name, texts in (
            ("hex", ("a", "0x00", " 00", "00\n", "0g", "\u0660\u0660")),
            ("base64", ("AA", "AA=", "AA===", "AB==", "A A=", "AAAA\n", "AAAA====", "-_-_", "AA==AA==", "=", "*")),
            ("base64url", ("AA=", "AB", "AB==", "+/+/", "A", "AA===", "A A")),
        ):
            for text in texts:
                self.assertIsNone(DECODERS[name](text.encode()), (name, text))

    def test_url(self) -> None:
        """Base64 for URLs may have its padding or leave it away."""
        for text in (b"-_8", b"-_8="):
            self.assertEqual(b"\xfb\xff", DECODERS["base64url"](text))
