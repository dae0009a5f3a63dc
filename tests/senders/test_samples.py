"""
Tests for the data files of C{webhookrx/senders/data}: each recorded request hits its own entry and no other, and what
is taken from it is what C{expected.yaml} says.

C{python -m tests.senders.test_samples} writes that file anew; what has changed in it is then to be looked at.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml
from twisted.trial.unittest import SynchronousTestCase

import webhookrx.senders
from tests.senders.requests import known_of
from webhookrx.senders.classifier import LOW, MEDIUM, Alternative, Classifier, delivery_id
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.extraction import extract
from webhookrx.senders.http_file import read_http_file

DATA = Path(webhookrx.senders.__file__).parent / "data"
EXPECTED = Path(__file__).with_name("expected.yaml")

CLASSIFIER = Classifier(builtin_definitions())

BY_HEADER_ALONE = {
    "adobe-sign-agreement.http",
    "airtable-ping.http",
    "asana-task.http",
    "aws-sns-raw.http",
    "box-file-uploaded.http",
    "calendly-canceled.http",
    "cloudevents-binary.http",
    "cloudflare-notifications-test.http",
    "contentful-save.http",
    "discord-authorized.http",
    "doppler-update.http",
    "dropbox-changes.http",
    "forgejo-issue.http",
    "front-inbound.http",
    "gitea-pull-request.http",
    "gitea-push.http",
    "gogs-issue.http",
    "gogs-push.http",
    "line-message.http",
    "linkedin-lead.http",
    "nexus-component.http",
    "npm-publish.http",
    "signalfx-event.http",
    "slack-url-verification.http",
    "snyk-ping.http",
    "square-payment.http",
    "standard-webhooks-ed25519.http",
    "standard-webhooks-svix.http",
    "standard-webhooks-webhook.http",
    "telnyx-finalized.http",
    "trello-comment.http",
    "twitch-follow.http",
    "twitch-revocation.http",
    "workos-user.http",
    "x-tweet-create.http",
    "xero-intent-to-receive.http",
    "xero-invoice.http",
}
"""Samples whose bodies are not their sender's alone; those of the others tell who sent them without any header."""


NOT_LAST = frozenset(entry.id for entry in builtin_definitions() if not entry.last_resort)
"""The entries that are not of last resort."""

NEVER_SENT = {
    "azure-event-grid": {"ce-subject", "ce-time", "ce-type"},
    "cloudevents-binary": {"ce-severity", "ce-severitytext"},
    "github": {"x-github-enterprise-host"},
    "new-relic-logs": {"x-insert-key"},
    "shopify": {"shopify-shop-domain", "shopify-topic", "shopify-triggered-at"},
}
"""Headers that a definition names, though no sample of it has them."""


def samples() -> list[tuple[str, str]]:
    """Return the id of a definition and the name of a sample, for all of them."""
    return [(entry.id, sample) for entry in builtin_definitions() for sample in entry.samples]


def evidence_of(sample: str) -> Evidence:
    """Return the evidence of a recorded request."""
    return known_of(*read_http_file((DATA / sample).read_bytes()))


def taken_from(sample: str) -> dict[str, Any]:
    """Return what is found in a recorded request."""
    evidence = evidence_of(sample)
    match = CLASSIFIER.classify(evidence)
    if match is None:
        return {"entry": None}
    found = extract(match.sender, evidence)
    return {
        "entry": match.sender.id,
        "confidence": match.confidence,
        "service": match.service,
        "time": found.time_unix_nano,
        "time from": found.taken.get("time"),
        "severity": found.severity and found.severity[1],
        "severity from": found.taken.get("severity"),
        "message": found.message,
        "host": found.host,
    }


def without_headers(sample: str) -> Evidence:
    """Return the evidence of a recorded request that has lost its headers, but for the media type."""
    head, query, body = read_http_file((DATA / sample).read_bytes())
    kept = [line for line in head.headers if line[0] == b"content-type"]
    return known_of(msgspec.structs.replace(head, headers=kept), query, body)


def outranks(way: Alternative, other: Alternative) -> bool:
    """Tell whether a way wins over another by evidence or by priority, and not by chance."""
    ours, theirs = way.sender.definition.priority, other.sender.definition.priority
    return (way.conditions.by_header, ours) > (other.conditions.by_header, theirs)


class SampleTests(SynchronousTestCase):
    """Recorded requests of senders."""

    def test_confusion(self) -> None:
        """Each sample is of its own entry; another that matches it too is outranked by evidence or priority."""
        for own, sample in samples():
            holding = CLASSIFIER.matching_alternatives(evidence_of(sample))
            self.assertEqual([way.sender.id for way in holding][:1], [own], sample)
            self.assert_outranked(holding, sample)

    def assert_outranked(self, holding: list[Alternative], sample: str) -> None:
        """Fail when the first way does not win over the others for a reason."""
        for other in holding[1:]:
            sentence = f"{sample}: {holding[0].sender.id} and {other.sender.id} are on a par"
            self.assertTrue(outranks(holding[0], other), sentence)

    def test_body_alone(self) -> None:
        """Without its headers a sample is of its own entry or of none, and what that takes is less sure."""
        told = {}
        for own, sample in samples():
            evidence = without_headers(sample)
            holding = [way for way in CLASSIFIER.matching_alternatives(evidence) if way.sender.id in NOT_LAST | {own}]
            self.assertLessEqual({way.sender.id for way in holding[:1]}, {own}, sample)
            self.assert_outranked(holding, sample)
            match = CLASSIFIER.classify(evidence)
            if match is not None and match.confidence == LOW and own != match.sender.id:
                match = None
            told[sample] = match is not None
            if match is not None:
                self.assertEqual(match.confidence, LOW if match.sender.definition.last_resort else MEDIUM, sample)
                self.assertTrue(extract(match.sender, evidence).message, sample)
        self.assertEqual({sample.removeprefix("samples/") for sample in told if not told[sample]}, BY_HEADER_ALONE)

    def test_each_has_some(self) -> None:
        """Each definition has a sample, and each sample one definition alone."""
        for entry in builtin_definitions():
            self.assertTrue(entry.samples, entry.id)
        named = [sample for _, sample in samples()]
        there = [f"samples/{path.name}" for path in (DATA / "samples").glob("*.http")]
        self.assertEqual(sorted(named), sorted(there))

    def test_deliveries(self) -> None:
        """Each entry that says where the id of a delivery is has samples with one, and finds it."""
        found: dict[str, set[str]] = {}
        for own, sample in samples():
            match = CLASSIFIER.classify(evidence_of(sample))
            if match is not None and match.sender.deliveries:
                found.setdefault(own, set()).add(delivery_id(match.sender, evidence_of(sample)))
        self.assertEqual([], [own for own, ids in found.items() if not any(ids)])
        for own, expected in (
            ("github", "7c1d2e40-a1b2-11f1-8a00-000000000001"),
            ("standard-webhooks", "msg_AcmeExample00000000000002"),
            ("stripe", "evt_000000000000000000000001"),
            ("aws-sns", "00000000-0000-5000-8000-000000000004"),
        ):
            self.assertIn(expected, found[own])

    def test_headers(self) -> None:
        """Each header that a definition names is in one of its samples, so that none is misspelt."""
        missing = {}
        for entry in builtin_definitions():
            told_by = {name.lower() for way in entry.alternatives for name in (*way.headers, *way.any_header)}
            # Samples are messages; tests of handshakes have the questions.
            of_messages = msgspec.structs.replace(entry, handshake=())
            looked_at = set(re.findall(r"header:([a-z0-9-]+)", str(msgspec.to_builtins(of_messages)).lower()))
            heads = (read_http_file((DATA / sample).read_bytes())[0] for sample in entry.samples)
            there = {name.decode() for head in heads for name, _ in head.headers}
            begun = {name for name in looked_at if name.endswith("-") and any(map(re.compile(name).match, there))}
            never_sent = (told_by | looked_at) - there - begun
            if never_sent:
                missing[entry.id] = never_sent
        self.assertEqual(NEVER_SENT, missing)

    def test_described(self) -> None:
        """Each entry says what it is and where its facts come from; its file is called as it is."""
        for entry in builtin_definitions():
            self.assertTrue(entry.description.endswith("."), entry.id)
            self.assertTrue(entry.source.startswith("https://"), entry.id)
            self.assertTrue((DATA / f"{entry.id}.yaml").is_file(), entry.id)

    def test_taken(self) -> None:
        """Time, severity, message, host and service are taken as they should be."""
        expected = yaml.safe_load(EXPECTED.read_bytes())
        self.assertEqual(sorted(expected), sorted(sample for _, sample in samples()))
        for sample, values in expected.items():
            self.assertEqual(taken_from(sample), values, sample)

    def test_message(self) -> None:
        """Every sample has a message; every entry that knows a severity or a time finds it in one of its samples."""
        found: dict[str, dict[str, Any]] = {entry.id: {} for entry in builtin_definitions()}
        for own, sample in samples():
            taken = taken_from(sample)
            self.assertTrue(taken["message"], sample)
            found[own] |= {name: value for name, value in taken.items() if value}
        for entry in builtin_definitions():
            if entry.time:
                self.assertIn("time", found[entry.id], entry.id)
            if entry.severity or entry.default_severity:
                self.assertIn("severity", found[entry.id], entry.id)

    def test_nothing_lost(self) -> None:
        """A body that is an object keeps all its members."""
        for _, sample in samples():
            evidence = evidence_of(sample)
            match = CLASSIFIER.classify(evidence)
            assert match is not None
            if isinstance(evidence.decoded, dict):
                self.assertLessEqual(evidence.decoded.keys(), extract(match.sender, evidence).body.keys(), sample)


def main() -> None:
    """Write what is taken from all samples."""
    text = yaml.safe_dump(
        {sample: taken_from(sample) for _, sample in samples()}, allow_unicode=True, sort_keys=False, width=110
    )
    EXPECTED.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
