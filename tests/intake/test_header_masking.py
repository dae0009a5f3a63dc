"""
Tests for L{webhookrx.intake.header_masking}; how headers are recorded is in those of L{webhookrx.intake.judge}.
"""

from __future__ import annotations

import re

from twisted.trial.unittest import SynchronousTestCase

from tests.documents import ROOT
from webhookrx.http.head import parse_head
from webhookrx.intake.head import Head, HeaderLines, Peer
from webhookrx.intake.header_masking import _CREDENTIALS, cloud_event_headers, is_credential
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
