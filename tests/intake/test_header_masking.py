"""
Tests for L{webhookrx.intake.header_masking}; how headers are recorded is in those of L{webhookrx.intake.judge}.
"""

from __future__ import annotations

import random
import re

from twisted.trial.unittest import SynchronousTestCase

from tests.documents import ROOT
from webhookrx.http.head import parse_head
from webhookrx.intake.head import Head, HeaderLines, Peer
from webhookrx.intake.header_masking import (
    _CREDENTIALS,
    MASK,
    cloud_event_headers,
    is_credential,
    recorded_headers,
)
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.settings import Limits


class CloudEventTests(SynchronousTestCase):
    """CloudEvents in binary content mode."""

    def assert_found(self, expected: dict[str, str | list[str]], *lines: bytes) -> None:
        """It makes no difference how a head keeps its lines."""
        block = b"\r\n".join([b"POST /ce-x: HTTP/1.1", b"Host: a.example", *lines, b"", b""])
        peer = Peer("192.0.2.7", 40000, True)
        headers = HeaderLines(block)
        for head in (
            Head(b"POST", b"/ce-x:", None, headers, peer),
            Head(b"POST", b"/ce-x:", None, list(headers), peer),
            parse_head(block, peer, Limits()),
        ):
            assert head is not None
            self.assertEqual(expected, cloud_event_headers(head))

    def test_all(self) -> None:
        """All headers of the event are there, as they came, however they are spelled; no others are."""
        self.assert_found(
            {"ce-specversion": "1.0", "ce-type": "a.b", "ce-subject": "caf%C3%A9", "ce-own": "ž", "ce-latin": "é"},
            b"CE-SpecVersion: 1.0", b"Ce-Type:a.b ", b"ce-subject: caf%C3%A9", "ce-own: ž".encode(),
            b"ce-latin: \xe9", b"x-ce-id: 1", b"cert: 2",
        )  # fmt: skip

    def test_repeated(self) -> None:
        """A header that is repeated is a list."""
        self.assert_found(
            {"ce-specversion": "1.0", "ce-id": ["1", "2", "3"]},
            *(b"ce-id: 1", b"ce-specversion: 1.0", b"ce-id: 2", b"ce-id: 3"),
        )

    def test_credentials(self) -> None:
        """Credentials are masked there, too."""
        self.assert_found({"ce-specversion": "1.0", "ce-token": "***"}, b"ce-specversion: 1.0", b"ce-token: CANARY")

    def test_none(self) -> None:
        """Without the version of the specification it is no such event, whatever else is called so."""
        self.assert_found({}, b"ce-type: a.b", b"x-ce-specversion: 1.0")
        self.assert_found({})


class RecordedTests(SynchronousTestCase):
    """Headers as messages record them, whichever way they are read."""

    def assert_same(self, block: bytes) -> None:
        """Both ways give the same, in the same order."""
        headers = HeaderLines(block)
        self.assertEqual(list(recorded_headers(list(headers)).items()), list(recorded_headers(headers).items()), block)

    def test_table(self) -> None:
        """So it is with what is usual, and with what is repeated, not UTF-8 or misleading."""
        many = b"".join(b"X-%d: a\r\n" % number for number in range(127))
        table = [
            b"",
            b"X-A:\r\nx-b: \tc d\t \r\nX_C:e",
            b'COOKIE: CANARY\r\nx-api-key: "CANARY"\r\nauthorization: \xff',
            b'COOKIE: CANARY\r\nx-api-key: "CANARY"\r\nauthorization: CANARY',
            'A: "\\\t\\" ž😀'.encode(),
            b"A: \xe9",
            b"A: \xe2\x80\xae",
            b"A: b\r\na: c",
            b"Host: b",
            b"cookie: b\r\nCookie: c",
            many[:-2],
            b"A" * 300 + b": b",
            b"A: " + b"\t'".join([b'"'] * 10_000),
            b"A: " + b"b" * 65536,
        ]
        for lines in table:
            self.assert_same(b"POST /a:b HTTP/1.1\r\nHost: a\r\n" + lines + (b"\r\n\r\n" if lines else b"\r\n"))

    def test_many(self) -> None:
        """So it is with a thousand heads of names that are repeated now and then, and values of any kind."""
        chance = random.Random(14)
        names = [b"A", b"a", b"X-Token", b"x-tOKEN", b"X-1-b", b"Set-Cookie", b"!#$%&'*+.^_`|~", b"x--y-"]
        texts = [b"a", b'"', b"\\", b" ", b"\t", b"\xc3\xa9", b"\xff", b"\xe2\x80\xa8", b"\xf0\x9f\x98\x80", b":", b"{"]
        for _ in range(1000):
            lines = [
                name + b":" + b"".join(chance.choices(texts, weights=[9, 2, 2, 2, 2, 2, 0.2, 0.2, 1, 1, 1], k=6))
                for name in chance.choices(names, k=chance.randrange(4))
            ]
            self.assert_same(b"\r\n".join([b"POST / HTTP/1.1", b"Host: a", *lines, b"", b""]))


class CredentialTests(SynchronousTestCase):
    """What lets somebody in."""

    def test_signatures(self) -> None:
        """A signature and its time are none; a token is."""
        for name in ("X-Hub-Signature-256", "x-slack-request-timestamp", "webhook-id"):
            self.assertFalse(is_credential(name), name)
        self.assertTrue(is_credential("x-gitlab-token"))

    def test_documented(self) -> None:
        """The page on messages lists what is masked: each word of the pattern, with and without its dash."""
        text = (ROOT / "docs/reference/messages.md").read_text(encoding="utf-8")
        listed = text.partition("header name contains one of ")[2].partition("the word `auth`")[0]
        words = _CREDENTIALS.pattern.partition("|(?:")[0].split("|")
        spellings = {spelling for word in words for spelling in (word.replace("?", ""), word.replace("-?", ""))}
        self.assertEqual(spellings, set(re.findall("`([^`]+)`", listed)))


class SignatureTests(SynchronousTestCase):
    """Headers in which senders prove who they are."""

    def test_all_senders(self) -> None:
        """Whatever header a definition has its signatures in, messages do not show it."""
        names = set()
        for definition in builtin_definitions():
            for scheme in definition.schemes:
                for place in (scheme.at,) if isinstance(scheme.at, str) else scheme.at:
                    if place.startswith("header:"):
                        names.add(place.removeprefix("header:").lower().replace("*", "1").encode())
        self.assertGreater(len(names), 50)
        for shown, values in recorded_headers([(name, b"s3cr3t") for name in sorted(names)]).items():
            self.assertEqual([MASK], values, shown)

    def test_more(self) -> None:
        """Headers that a source names are masked, too, all lines of each; the others are not."""
        headers = ((b"x-door", b"a"), (b"x-door", b"b"), (b"x-proof-1", b"c"), (b"x-proof", b"d"), (b"x", b"e"))
        block = b"POST / HTTP/1.1\r\nX-Door: a\r\nX-Proof-1: c\r\nX-Proof: d\r\nX: e\r\n\r\n"
        for lines, doors in ((headers, 2), (HeaderLines(block), 1)):
            self.assertEqual(
                {"X-Door": [MASK] * doors, "X-Proof-1": [MASK], "X-Proof": ["d"], "X": ["e"]},
                recorded_headers(lines, {"x-door", "x-proof-*", "x-none"}),
            )

    def test_signatures_are_no_credentials(self) -> None:
        """A recording keeps signatures, so that they can be tried."""
        self.assertFalse(is_credential("x-hub-signature-256"))
        self.assertTrue(is_credential("x-gitlab-token"))
