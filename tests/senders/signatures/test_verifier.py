"""Tests for L{webhookrx.senders.signatures.verifier} and L{webhookrx.senders.signatures.verification}."""

from __future__ import annotations

import hashlib
import hmac
import io
import zlib
from base64 import b64encode
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import entry_of
from tests.senders.signatures.keys import private_key, public_text
from tests.senders.signatures.requests import SECOND, begin, check, head_of, scheme_of, verdict, verifier_of
from webhookrx.senders.signatures.named_secrets import NamedSecret, SecretError
from webhookrx.senders.signatures.outcome import Unverified, Verified
from webhookrx.senders.signatures.verification import MAX_AT_ONCE
from webhookrx.senders.signatures.verifier import Verifier, asks_for_secrets, names_files
from webhookrx.yield_point import PIECE

_BODY = b'{"action":"opened"}'
_GITHUB = {"at": "header:x-hub-signature-256", "prefix": "sha256="}
_SHA1 = {"at": "header:x-hub-signature", "prefix": "sha1=", "algorithm": "hmac-sha1"}
_WHSEC = {
    "at": "header:webhook-signature",
    "items": [" ", ","],
    "signature": "v1",
    "encoding": "base64",
    "key": "whsec",
    "signed": "{header:webhook-id}.{header:webhook-timestamp}.{body}",
    "time": {"at": "header:webhook-timestamp"},
}
_TOKEN = {"at": "header:x-gitlab-token", "algorithm": "equal"}
_STRIPE = {"at": "header:s", "items": ",", "signature": "v1", "signed": "{item:t}.{body}", "time": {"at": "item:t"}}


def _mac(key: bytes, text: bytes = _BODY, digest: str = "sha256") -> str:
    return hmac.digest(key, text, digest).hex()


def _standard(key: bytes, *, stamp: str = "100", message_id: str = "m") -> dict[str, str]:
    signature = hmac.digest(key, f"{message_id}.{stamp}.".encode() + _BODY, "sha256")
    return {
        "webhook-id": message_id,
        "webhook-timestamp": stamp,
        "webhook-signature": "v1," + b64encode(signature).decode(),
    }


class SignatureTests(SynchronousTestCase):
    """One scheme of signatures."""

    def test_verdicts(self) -> None:
        """The header says by whom it is; without it, twice, or in another form it is missing."""
        verifier = verifier_of(_GITHUB, secrets={"old": "a", "new": "b"})
        name, good = "X-Hub-Signature-256", f"sha256={_mac(b'b')}"
        for headers, expected in (
            ([(name, good)], "ok:new"),
            ([(name, f"sha256={_mac(b'a')}")], "ok:old"),
            ([(name, f"sha256={_mac(b'b').upper()}")], "ok:new"),
            ([(name, f"sha256={_mac(b'c')}")], "bad_signature"),
            ([], "signature_missing"),
            ([(name, "")], "signature_missing"),
            ([(name, good), (name, good)], "signature_missing"),
            ([(name, _mac(b"b"))], "signature_missing"),
            ([(name, f"SHA256={_mac(b'b')}")], "signature_missing"),
            ([(name, good[:-2])], "signature_missing"),
            ([(name, good + "00")], "signature_missing"),
            ([(name, good[:-1] + "g")], "signature_missing"),
            ([(name, good.replace("=", "= "))], "signature_missing"),
            ([(name, f"{good},{good}")], "signature_missing"),
            ([("X-Hub-Signature", good)], "signature_missing"),
        ):
            self.assertEqual(expected, verdict(check(verifier, headers, _BODY)), headers)

    def test_no_time(self) -> None:
        """Without a time in its scheme, a proof has none."""
        result = check(verifier_of(_GITHUB, secrets={"a": "s"}), {"x-hub-signature-256": f"sha256={_mac(b's')}"}, _BODY)
        self.assertEqual(Verified("a", "signature", None, None), result)

    def test_time(self) -> None:
        """A genuine request may be as old, or as far in the future, as the tolerance; digits alone are a time."""
        verifier = verifier_of(_STRIPE | {"tolerance": "60s"}, secrets={"a": "s"})
        for stamp, now, expected in (
            ("1000", 1060, Verified("a", "signature", 1000 * SECOND, 60.0)),
            ("1000", 940, Verified("a", "signature", 1000 * SECOND, -60.0)),
            ("1000", 1060.001, 60.001),
            ("1000", 939.999, -60.001),
            ("+1000", 1000, None),
            ("1e3", 1000, None),
            (" 1000", 1000, None),
            ("1_000", 1000, None),
            ("\u0661000", 1000, None),
            ("", 0, None),
            ("9" * 17, 1000, None),
        ):
            header = b"t=%s,v1=%s" % (stamp.encode(), _mac(b"s", stamp.encode() + b"." + _BODY).encode())
            result = check(verifier, {"s": header}, _BODY, now=now)
            if isinstance(expected, Verified):
                self.assertEqual(expected, result, stamp)
            else:
                assert isinstance(result, Unverified)
                self.assertEqual(("stale_signature", expected), (result.reason.word, result.skew), stamp)

    def test_time_comes_last(self) -> None:
        """Of a forged request nothing is said about its time."""
        verifier = verifier_of(_STRIPE, secrets={"a": "s"})
        result = check(verifier, {"s": f"t=1,v1={_mac(b'x')}"}, _BODY, now=10**6)
        self.assertEqual(("bad_signature", None), (verdict(result), getattr(result, "skew", 0)))

    def test_items(self) -> None:
        """In a list, all items of the name are tried, up to 16; another item that is there twice is not there."""
        verifier = verifier_of(_STRIPE, secrets={"a": "s"})
        good = "v1=" + _mac(b"s", b"1." + _BODY)
        other = f"v1={'0' * 64}"
        for value, expected in (
            (f"t=1,{good}", "ok:a"),
            (f"{good},t=1", "ok:a"),
            (f"t=1,v0={'0' * 64},{other},{good}", "ok:a"),
            (",".join(["t=1", *[other] * 15, good]), "ok:a"),
            (",".join(["t=1", *[other] * 16, good]), "signature_missing"),
            (",".join(["t=1", good, *["x=1"] * 62]), "ok:a"),
            (",".join(["t=1", good, *["x=1"] * 63]), "signature_missing"),
            (f"t=1,t=1,{good}", "bad_signature"),
            (good, "bad_signature"),
            (f"t=1, {good}", "ok:a"),
            ("t=1,v1", "signature_missing"),
            ("t=1,v1=", "signature_missing"),
            (f"t=1;{good}", "signature_missing"),
        ):
            self.assertEqual(expected, verdict(check(verifier, {"s": value}, _BODY, now=1)), value)

    def test_items_without_names(self) -> None:
        """A list whose items have no names is all signatures."""
        verifier = verifier_of({"at": "header:s", "items": ","}, secrets={"a": "s"})
        self.assertEqual("ok:a", verdict(check(verifier, {"s": f"{'0' * 64},{_mac(b's')}"}, _BODY)))
        self.assertEqual("signature_missing", verdict(check(verifier, {"s": "a,b"}, _BODY)))

    def test_beginning(self) -> None:
        """All headers of a beginning count, whether their names are the same or not."""
        verifier = verifier_of({"at": "header:x-docusign-signature-*", "encoding": "base64"}, secrets={"a": "s"})
        good = b64encode(hmac.digest(b"s", _BODY, "sha256"))
        bad = b64encode(bytes(32))
        name = "X-DocuSign-Signature-1"
        self.assertEqual("ok:a", verdict(check(verifier, [(name, bad), ("x-docusign-signature-2", good)], _BODY)))
        self.assertEqual("ok:a", verdict(check(verifier, [(name, bad), (name, good)], _BODY)))
        self.assertEqual("signature_missing", verdict(check(verifier, [("x-docusign-signature", good)], _BODY)))
        seventeen = [*[(name, bad)] * 16, (name, good)]
        self.assertEqual("signature_missing", verdict(check(verifier, seventeen, _BODY)))

    def test_parts(self) -> None:
        """Each part that can be signed is the bytes that the request has there, without any tidying up."""
        body = b"b=2&a=%C3%A4&b=1&b=2&+=+"
        table: list[tuple[str, bytes | None]] = [
            ("{body}", body),
            ("{wire}", b"packed"),
            ("{body:sha256}", hashlib.sha256(body).hexdigest().encode()),
            ("{body:crc32}{body}", b"%d" % zlib.crc32(body) + body),
            ("{url}", b"https://logs.example/in/x?q=1&q2=%20&e="),
            ("{target}", b"/in/x?q=1&q2=%20&e="),
            ("{method} {body}", b"PUT " + body),
            ("{form:sorted}", "  a\u00e4b1b2".encode()),
            ("{form:a}", "\u00e4".encode()),
            ("{form:b}", None),
            ("{header:x}.{header:Y}", b"\xe4 \xff."),
            ("{header:twice}", None),
            ("{header:none}", None),
            ("{query:q}{query:q2}{query:e}", b"1 "),
            ("{query:none}", None),
            ("{setting:s}{body}", "\u00e9".encode() + body),
            ("{setting:none}{body}", None),
            ("{{{header:x}}}", b"{\xe4 \xff}"),
            ("{/a}", None),
        ]
        for signed, text in table:
            verifier = verifier_of(
                {"at": "header:s", "signed": signed},
                secrets={"a": "k"},
                public_url="https://logs.example",
                settings={"s": "\u00e9", "list": ("a",)},
                has_settings={"s": {"meaning": "m"}, "none": {"meaning": "m"}},
            )
            headers = [("x", b"\xe4 \xff"), ("y", ""), ("twice", "1"), ("twice", "1"), ("s", _mac(b"k", text or b""))]
            result = check(verifier, headers, body, url="/in/x?q=1&q2=%20&e=", method="PUT", wire=b"packed")
            self.assertEqual("bad_signature" if text is None else "ok:a", verdict(result), signed)
            if text is None:
                self.assertIn("missing or repeated", getattr(result, "detail", ""))

    def test_no_form(self) -> None:
        """Where all fields of a form are signed, a body without any does not go with the signature of an empty one."""
        verifier = verifier_of({"at": "header:s", "signed": "{target}{form:sorted}"}, secrets={"a": "k"})
        headers = {"s": _mac(b"k", b"/")}
        for body, expected in (
            (b"", "ok:a"),
            (b"%ff", "bad_signature"),
            (b"a=%ff", "bad_signature"),
            (b"&", "bad_signature"),
            (b"=", "bad_signature"),
            (b"&".join([b"a=1"] * 1001), "bad_signature"),
        ):
            self.assertEqual(expected, verdict(check(verifier, headers, body)), body[:20])

    def test_pointers(self) -> None:
        """A pointer is the exact text of a JSON string, number or truth value, and of nothing else."""
        body = b'{"s":" \\u00e4 ","n":1.10,"i":-7,"t":true,"z":null,"l":["x"],"o":{},"big":' + b"9" * 400 + b"}"
        for signed, text in (
            ("{/s}|{/n}|{/i}|{/t}|{/l/0}", " \u00e4 |1.10|-7|true|x".encode()),
            ("{/z}", None),
            ("{/l}", None),
            ("{/o}", None),
            ("{/l/1}", None),
            ("{/none}", None),
        ):
            verifier = verifier_of({"at": "header:s", "signed": signed}, secrets={"a": "k"})
            result = check(verifier, {"s": _mac(b"k", text or b"")}, body)
            self.assertEqual("bad_signature" if text is None else "ok:a", verdict(result), signed)

    def test_url(self) -> None:
        """C{{url}} is what the operator says, with the target as received; a URL with a path is the whole."""
        for public, target, url in (
            ("https://a.example", "/x?y=%2F", "https://a.example/x?y=%2F"),
            ("https://a.example/", "/x", "https://a.example/x"),
            ("https://a.example:8443", "/", "https://a.example:8443/"),
            ("https://a.example/hook", "/x?y=1", "https://a.example/hook"),
            ("https://a.example/hook?z=1", "/x?y=1", "https://a.example/hook?z=1"),
        ):
            verifier = verifier_of({"at": "header:s", "signed": "{url}{body}"}, secrets={"a": "k"}, public_url=public)
            headers = {
                "host": "evil.example",
                "x-forwarded-host": "evil.example",
                "s": _mac(b"k", url.encode() + _BODY),
            }
            self.assertEqual("ok:a", verdict(check(verifier, headers, _BODY, url=target)), public)

    def test_digests(self) -> None:
        """A plain digest holds the secret, wherever it stands."""
        for signed in ("{secret}{body}", "{body}{secret}", "{secret}.{method}.{body}.{secret}"):
            verifier = verifier_of(
                {"at": "header:s", "algorithm": "sha384", "signed": signed}, secrets={"a": "no", "b": "k"}
            )
            text = signed.format(secret="k", method="POST", body=_BODY.decode()).encode()
            good = hashlib.sha384(text).hexdigest()
            self.assertEqual("ok:b", verdict(check(verifier, {"s": good}, _BODY)))
            verification = begin(verifier, {"s": good})
            verification.update(_BODY[:5])
            verification.update(_BODY[5:])
            self.assertEqual("ok:b", verdict(verification.finish(_BODY, 0)))
            self.assertEqual("bad_signature", verdict(check(verifier, {"s": good}, _BODY + b" ")))

    def test_long_key(self) -> None:
        """A key that is longer than a block of its digest is shortened, as RFC 2104 says."""
        for size in (63, 64, 65, 128, 129, 1000):
            for digest in ("sha1", "sha256", "sha512"):
                key = b"k" * size
                verifier = verifier_of({"at": "header:s", "algorithm": f"hmac-{digest}"}, secrets={"a": key})
                self.assertEqual("ok:a", verdict(check(verifier, {"s": _mac(key, digest=digest)}, _BODY)))

    def test_large(self) -> None:
        """A large body is the same in pieces and at once."""
        body = bytes(range(256)) * (PIECE // 64)
        verifier = verifier_of(_GITHUB, secrets={"a": "x", "b": "s"})
        headers = {"x-hub-signature-256": f"sha256={_mac(b's', body)}"}
        self.assertEqual("ok:b", verdict(check(verifier, headers, body)))
        verification = begin(verifier, headers)
        self.assertTrue(verification.takes_pieces)
        pieces = io.BytesIO(body)
        while piece := pieces.read(1000):
            verification.update(piece)
        self.assertEqual("ok:b", verdict(verification.finish(body, 0)))

    def test_takes_pieces(self) -> None:
        """Pieces are wanted where the body is signed as it is, and there is a signature to compare with."""
        for scheme, headers, wanted in (
            (_GITHUB, {"x-hub-signature-256": f"sha256={'0' * 64}"}, True),
            (_GITHUB, {}, False),
            ({"at": "header:s", "signed": "{wire}"}, {"s": "0" * 64}, False),
            ({"at": "header:s", "signed": "{body}{/a}"}, {"s": "0" * 64}, False),
            ({"at": "header:s", "signed": "{body:sha256}"}, {"s": "0" * 64}, False),
            ({"at": "/s", "signed": "{body}"}, {}, False),
            (_TOKEN, {"x-gitlab-token": "s"}, False),
        ):
            verifier = verifier_of(scheme, secrets={"a": "s"})
            verification = begin(verifier, headers)
            self.assertEqual(wanted, verification.takes_pieces, scheme)
            verification.update(b"x")  # harmless in any case
            self.assertIsInstance(verification.finish(b"x", 0), Unverified | Verified)

    def test_body_signature_in_pieces(self) -> None:
        """A part of the head that is missing stays missing when the body comes in pieces."""
        verifier = verifier_of({"at": "header:s", "signed": "{header:t}{body}"}, secrets={"a": "s"})
        verification = begin(verifier, {"s": _mac(b"s")})
        verification.update(_BODY[:3])
        verification.update(_BODY[3:])
        self.assertEqual("bad_signature", verdict(verification.finish(_BODY, 0)))


class PublicKeyTests(SynchronousTestCase):
    """Schemes with public keys."""

    def test_forms(self) -> None:
        """A key may stand in PEM, as a certificate would, in Base64 or in hexadecimal digits."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, padding

        for algorithm, form in (
            ("ed25519", "pem"),
            ("ed25519", "hex"),
            ("ed25519", "base64"),
            ("ed25519", "whpk"),
            ("ecdsa-sha256", "base64"),
            ("ecdsa-sha256", "pem"),
            ("rsa-sha1", "pem"),
            ("rsa-sha256", "hex"),
            ("rsa-sha512", "base64"),
        ):
            key: Any = private_key(algorithm)
            kind, _, digest = algorithm.partition("-")
            if kind == "ed25519":
                signature = key.sign(b"1" + _BODY)
            elif kind == "ecdsa":
                signature = key.sign(b"1" + _BODY, ec.ECDSA(hashes.SHA256()))
            else:
                signature = key.sign(b"1" + _BODY, padding.PKCS1v15(), getattr(hashes, digest.upper())())
            scheme = {"at": "header:s", "algorithm": algorithm, "encoding": "base64", "key": form}
            verifier = verifier_of(
                scheme | {"signed": "{header:t}{body}"},
                secrets={"other": public_text(algorithm, form, 1), "a": public_text(algorithm, form)},
            )
            headers = {"t": "1", "s": b64encode(signature)}
            self.assertEqual("ok:a", verdict(check(verifier, headers, _BODY)), (algorithm, form))
            verification = begin(verifier, headers)
            for byte in _BODY:
                verification.update(bytes([byte]))
            self.assertEqual("ok:a", verdict(verification.finish(_BODY, 0)), (algorithm, form))
            self.assertEqual("bad_signature", verdict(check(verifier, headers, _BODY + b" ")), algorithm)
            wrong = {"t": "1", "s": b64encode(signature[:-1] + bytes([signature[-1] ^ 1]))}
            self.assertEqual("bad_signature", verdict(check(verifier, wrong, _BODY)), algorithm)

    def test_too_large(self) -> None:
        """A body of which a signature takes too long in one call is refused, whoever has signed it."""
        key = private_key("ed25519")
        verifier = verifier_of(
            {"at": "header:s", "algorithm": "ed25519", "key": "hex"}, secrets={"a": public_text("ed25519", "hex")}
        )
        for size, expected in ((MAX_AT_ONCE, "ok:a"), (MAX_AT_ONCE + 1, "body_too_large")):
            body = b"x" * size
            self.assertEqual(expected, verdict(check(verifier, {"s": key.sign(body).hex()}, body)))

    def test_bad_keys(self) -> None:
        """What is no public key for an algorithm is an error that does not show it."""
        for algorithm, form, text in (
            ("ed25519", "hex", "00" * 31),
            ("ed25519", "hex", "hunter2"),
            ("ed25519", "base64", public_text("ecdsa-sha256", "base64")),
            ("ecdsa-sha256", "base64", "aHVudGVyMg=="),
            ("rsa-sha256", "pem", "-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----\n"),
            ("rsa-sha256", "pem", "hunter2"),
            ("rsa-sha256", "pem", public_text("ed25519", "pem")),
        ):
            scheme = {"at": "header:s", "algorithm": algorithm, "key": form}
            error = self.assertRaises(SecretError, verifier_of, scheme, secrets={"a": text})
            self.assertIn("'a'", str(error))
            self.assertNotIn("hunter2", str(error))

    def test_small_rsa_key(self) -> None:
        """An RSA key that anyone can break is an error."""
        # Made with "openssl genrsa 512"; its private half is nowhere.
        text = (
            "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBALAB3SxIeLTuZ2y3fGOp/sxlX27gFqPOJ+ieyGQALh9o"
            "H+Q3j1n46UC//Mk6ub8puQCGHdoHF4Ij3tm/VhzJW88CAwEAAQ=="
        )
        scheme = {"at": "header:s", "algorithm": "rsa-sha256", "key": "base64"}
        self.assertIn("bits", str(self.assertRaises(SecretError, verifier_of, scheme, secrets={"a": text})))


class SecretItselfTests(SynchronousTestCase):
    """Schemes by which a request shows the secret itself."""

    def test_before_body(self) -> None:
        """What the head shows is judged before the body comes, and once."""
        verifier = verifier_of(_TOKEN, secrets={"old": "a", "new": "b"})
        for headers, reason in (
            ([("x-gitlab-token", "b")], None),
            ([("x-gitlab-token", "c")], "bad_signature"),
            ([("x-gitlab-token", "")], "signature_missing"),
            ([("x-gitlab-token", "b"), ("x-gitlab-token", "b")], "signature_missing"),
            ([], "signature_missing"),
        ):
            verification = begin(verifier, headers)
            refused = verification.before_body()
            self.assertEqual(reason, refused and refused.reason.word)
            result = verification.finish(_BODY, 0)
            self.assertEqual(Verified("new", "token") if reason is None else refused, result)

    def test_in_body(self) -> None:
        """A secret in the body is judged once that is there; thousands of elements cost no more than a few."""
        verifier = verifier_of({"at": "/value/*/state", "algorithm": "equal"}, secrets={"a": "s", "b": "t"})
        self.assertIsNone(begin(verifier).before_body())
        for elements, expected in (
            ('{"state":"s"}', "ok:a"),
            ('{"state":"t"},{"state":"s"}', "ok:b"),
            (",".join(['{"state":"s"}'] * 5000), "ok:a"),
            (",".join(f'{{"state":"{number}"}}' for number in range(5000)), "bad_signature"),
            ('{"state":"s"},{"state":"u"}', "bad_signature"),
            ('{"state":"s"},{"state":null}', "signature_missing"),
            ('{"state":"s"},{}', "signature_missing"),
            ('{"state":"s"},7', "signature_missing"),
            ("", "signature_missing"),
        ):
            body = f'{{"value":[{elements}]}}'.encode()
            self.assertEqual(expected, verdict(check(verifier, {}, body)), elements[:60])

    def test_decoded(self) -> None:
        """With an encoding, what is sent is decoded first."""
        scheme = {"at": "header:authorization", "prefix": "Basic ", "algorithm": "equal", "encoding": "base64"}
        verifier = verifier_of(scheme, secrets={"a": "user:pass:word"})
        good = b64encode(b"user:pass:word").decode()
        for value, expected in (
            (f"Basic {good}", "ok:a"),
            (f"basic {good}", "signature_missing"),
            (f"Basic {good}=", "signature_missing"),
            ("Basic user:pass:word", "signature_missing"),
            (f"Basic {b64encode(b'user:pass').decode()}", "bad_signature"),
        ):
            self.assertEqual(expected, verdict(check(verifier, {"authorization": value})), value)

    def test_any_place(self) -> None:
        """Of several places, one is enough."""
        verifier = verifier_of({"at": ["header:s", "query:s"], "algorithm": "equal"}, secrets={"a": "x"})
        for headers, url, expected in (
            ({"s": "x"}, "/", "ok:a"),
            ({}, "/?s=x", "ok:a"),
            ({"s": "y"}, "/?s=x", "ok:a"),
            ({"s": "y"}, "/?s=y", "bad_signature"),
            ({}, "/?s=x&s=x", "signature_missing"),
            ({}, "/?t=x", "signature_missing"),
        ):
            self.assertEqual(expected, verdict(check(verifier, headers, url=url)), url)


class CoverTests(SynchronousTestCase):
    """What nobody without the key can change."""

    def test_places(self) -> None:
        """A place counts if it is in what is signed, or in the body when all of that is; when in doubt it does not."""
        for scheme, covered in (
            ({}, {"/id"}),
            ({"signed": "{wire}"}, {"/id"}),
            ({"signed": "{header:ts}.{body:sha256}"}, {"/id", "header:ts"}),
            ({"signed": "{header:ID}.{body}"}, {"/id", "header:id"}),
            ({"signed": "{header:id}.{body:crc32}"}, {"header:id"}),
            ({"signed": "{/ts}{/id}"}, {"/id"}),
            ({"signed": "{/ts}{method}"}, set()),
            ({"signed": "{form:sorted}{url}"}, set()),
            ({"signed": "{query:id}{body}"}, {"/id", "query:id"}),
            ({"algorithm": "equal"}, set()),
        ):
            verifier = verifier_of({"at": "header:s", **scheme}, secrets={"a": "s"}, public_url="https://a.example")
            for place in ("/id", "header:id", "header:ts", "query:id", "path", "same:/id"):
                self.assertEqual(place in covered, verifier.covers(place), (scheme, place))

    def test_alternatives(self) -> None:
        """Of several schemes that count, each must cover it: a request chooses by which it goes."""
        names = [{"at": f"header:{name}", "signed": f"{{header:{name}-id}}{{body}}"} for name in ("a", "b")]
        verifier = verifier_of(*names, secrets={"a": "s"})
        self.assertEqual((True, False), (verifier.covers("/id"), verifier.covers("header:a-id")))

    def test_built_in(self) -> None:
        """Built-in verifiers say it themselves; a claim counts only if it must be of the body."""
        token = {"at": "header:s", "code": "jwt", "algorithms": ["HS256"]}
        for scheme, covered in (
            (token | {"claims": {"sha": "{body:sha256}"}}, {"/id"}),
            (token | {"claims": {"sha": ["{body:sha256}", "none"]}}, set()),
            (token | {"claims": {"iss": "me"}}, set()),
            ({"at": "header:s", "code": "twilio"}, set()),
            ({"at": "header:s", "code": "contentful"}, set()),
        ):
            verifier = verifier_of(scheme, secrets={"a": "s"}, public_url="https://a.example")
            for place in ("/id", "header:id", "query:id"):
                self.assertEqual(place in covered, verifier.covers(place), (scheme, place))


class AlternativesTests(SynchronousTestCase):
    """Several schemes of one sender."""

    def test_secrets_decide(self) -> None:
        """As soon as a secret is a key for signatures, a secret itself counts no more, whatever a request shows."""
        token = {"x-gitlab-token": "plain"}
        key = b"not in use"
        whsec = "whsec_" + b64encode(key).decode()
        plain = verifier_of(_WHSEC, _TOKEN, secrets={"a": "plain"})
        self.assertEqual("ok:a", verdict(check(plain, token)))
        self.assertTrue(plain.shows_secret)
        both = verifier_of(_WHSEC, _TOKEN, secrets={"a": "plain", "b": whsec})
        self.assertEqual((("b",), ("a",)), (both.names, both.unused))
        self.assertFalse(both.shows_secret)
        for headers, expected in (
            (_standard(key), "ok:b"),
            (token, "signature_missing"),
            ({"x-gitlab-token": whsec}, "signature_missing"),
            (token | _standard(b"other"), "bad_signature"),
        ):
            self.assertEqual(expected, verdict(check(both, headers, _BODY, now=100)), headers)

    def test_base64_is_no_reason(self) -> None:
        """A token that could be read as Base64 is a token where there is a choice."""
        verifier = verifier_of(_WHSEC, _TOKEN, secrets={"a": "c2VjcmV0"})
        self.assertEqual("ok:a", verdict(check(verifier, {"x-gitlab-token": "c2VjcmV0"})))
        self.assertEqual("signature_missing", verdict(check(verifier, _standard(b"secret"), _BODY, now=100)))
        alone = verifier_of(_WHSEC, secrets={"a": "c2VjcmV0"})
        self.assertEqual("ok:a", verdict(check(alone, _standard(b"secret"), _BODY, now=100)))

    def test_first_that_is_there(self) -> None:
        """Of several that count, the first with anything at its place does, even if that is no signature."""
        verifier = verifier_of(_GITHUB, _SHA1, secrets={"a": "s"})
        sha1 = f"sha1={_mac(b's', digest='sha1')}"
        good = f"sha256={_mac(b's')}"
        for headers, expected in (
            ([("x-hub-signature-256", good), ("x-hub-signature", "sha1=00")], "ok:a"),
            ([("x-hub-signature", sha1)], "ok:a"),
            ([("x-hub-signature-256", "nonsense"), ("x-hub-signature", sha1)], "signature_missing"),
            (
                [("x-hub-signature-256", good), ("x-hub-signature-256", good), ("x-hub-signature", sha1)],
                "signature_missing",
            ),
            ([], "signature_missing"),
        ):
            self.assertEqual(expected, verdict(check(verifier, headers, _BODY)), headers)

    def test_in_body(self) -> None:
        """A scheme whose place is in the body keeps its turn."""
        verifier = verifier_of({"at": "/s", "signed": "{/t}{method}"}, _SHA1, secrets={"a": "s"})
        sha1 = {"x-hub-signature": f"sha1={_mac(b's', b'{}', 'sha1')}"}
        signed = f'{{"t":"1","s":"{_mac(b"s", b"1POST")}"}}'.encode()
        self.assertEqual("ok:a", verdict(check(verifier, {}, signed)))
        self.assertEqual("ok:a", verdict(check(verifier, sha1, b"{}")))
        self.assertEqual("signature_missing", verdict(check(verifier, sha1, b'{"s":"x"}')))
        self.assertEqual("signature_missing", verdict(check(verifier, {}, b"{}")))
        self.assertFalse(verifier.binds_body)

    def test_equal_stays_without_body(self) -> None:
        """A signature that does not cover the body puts no secret itself out of use."""
        verifier = verifier_of({"at": "/s", "signed": "{/t}"}, _TOKEN, secrets={"a": "s"})
        self.assertEqual("ok:a", verdict(check(verifier, {"x-gitlab-token": "s"}, b"{}")))


class SecretsTests(SynchronousTestCase):
    """What secrets a source has."""

    def test_mistakes(self) -> None:
        """A secret that is no key of the scheme, or empty, is an error that names it and shows nothing of it."""
        for scheme, secrets, words in (
            (_GITHUB, {}, "no secret"),
            (_GITHUB, {"verify-token": "hunter2", "verify-token.b": "hunter2"}, "no secret"),
            (_GITHUB, {"a": ""}, "'a' is empty"),
            (_GITHUB | {"key": "hex"}, {"a": "hunter2"}, "hexadecimal digits"),
            (_GITHUB | {"key": "base64"}, {"a": "hunter2"}, "Base64"),
            (_WHSEC, {"a": "whsec_"}, "'a' is empty"),
            (_WHSEC, {"a": "whsec_hunter2"}, "behind whsec_"),
            (_GITHUB | {"signed": "{url}{body}"}, {"a": "hunter2"}, "public_url"),
        ):
            error = self.assertRaises(SecretError, verifier_of, scheme, secrets=secrets)
            self.assertIn(words, str(error))
            self.assertNotIn("hunter2", str(error))
        self.assertRaises(SecretError, verifier_of, _WHSEC, _TOKEN, secrets={"a": ""})

    def test_verify_tokens(self) -> None:
        """A verify token is no key."""
        verifier = verifier_of(_GITHUB, secrets={"verify-token": "v", "a": "s"})
        headers = {"x-hub-signature-256": f"sha256={_mac(b'v')}"}
        self.assertEqual(("bad_signature", ("a",)), (verdict(check(verifier, headers, _BODY)), verifier.names))

    def test_nothing_shows(self) -> None:
        """No repr and no verdict shows a secret or a signature."""
        verifier = verifier_of(_GITHUB, secrets={"a": "hunter2"})
        headers = {"x-hub-signature-256": f"sha256={_mac(b'hunter2')}"}
        for shown in (
            verifier,
            verifier.ways,
            begin(verifier, headers),
            check(verifier, headers, _BODY),
            check(verifier, headers, b""),
        ):
            self.assertNotIn("hunter2", repr(shown))
            self.assertNotIn(_mac(b"hunter2"), repr(shown))

    def test_what_a_sender_needs(self) -> None:
        """A definition says whether its sources need secrets, and whether these stand in files of their own."""
        for verify, asks, files in (
            (scheme_of(**_GITHUB), True, False),
            (scheme_of(at="header:s", algorithm="rsa-sha1", key="pem"), True, True),
            (scheme_of(code="sns"), False, False),
        ):
            definition = entry_of(verify=verify)
            self.assertEqual((asks, files), (asks_for_secrets(definition), names_files(definition)))

    def test_head_of_any_kind(self) -> None:
        """A head whose lines are plain pairs is checked like one from the wire."""
        verifier = Verifier(entry_of(verify=scheme_of(**_GITHUB)), [NamedSecret("a", b"s")])
        head = head_of()
        head = type(head)(b"POST", b"/", None, [(b"x-hub-signature-256", b"sha256=" + _mac(b"s").encode())], head.peer)
        self.assertEqual("ok:a", verdict(verifier.begin(head, {}).finish(_BODY, 0)))
