"""
Tests for L{webhookrx.senders.handshakes.costs}.
"""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import entry_of
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.handshakes.costs import cost_of_refusal, deadline_against, deadline_of, sends_again_after


class CostTests(SynchronousTestCase):
    """What a refusal costs."""

    def test_sentences(self) -> None:
        """Each behaviour has its sentence, and what is not confirmed is said."""
        rows: tuple[tuple[dict[str, Any] | None, str], ...] = (
            (None, "Whether acme sends again what was refused is not known."),
            ({"deadline": "3s"}, "Whether acme sends again what was refused is not known."),
            ({"retries": "none"}, "acme never sends again by itself what was refused."),
            ({"retries": "yes"}, "acme sends again what was refused."),
            (
                {"retries": "by-status", "retried": [429, 503]},
                "acme sends again after 429 or 503, and never after 401, 403 or 413.",
            ),
            (
                {"retries": "by-status", "retried": [401, 403, 413, 429, 503]},
                "acme sends again after 401, 403, 413, 429 or 503.",
            ),
            (
                {"retries": "yes", "disabled_by": [404, 410]},
                "acme sends again what was refused; it stops for good after one 404 or 410.",
            ),
            (
                {"disabled_by": [410]},
                "Whether acme sends again what was refused is not known; it stops for good after one 410.",
            ),
            (
                {"retries": "yes", "note": "It is slow.", "unconfirmed": ["note"]},
                "acme sends again what was refused. It is slow (not confirmed by a public page of the sender).",
            ),
            (
                {"retries": "none", "unconfirmed": ["retries"]},
                "acme never sends again by itself what was refused (not confirmed by a public page of the sender).",
            ),
            ({"retries": "none", "unconfirmed": ["deadline"]}, "acme never sends again by itself what was refused."),
        )
        for behaviour, sentence in rows:
            given = {} if behaviour is None else {"behaviour": behaviour}
            self.assertEqual(cost_of_refusal(entry_of(**given)), sentence)

    def test_deadline(self) -> None:
        """A deadline that is shorter than an answer may take is said with what it costs."""
        for behaviour, answer_time, sentence in (
            ({}, 30.0, "How long acme waits for an answer is not known; answer_time is 30s."),
            (
                {"deadline": "3s"},
                30.0,
                (
                    "acme waits 3s for an answer, less than the 30s of answer_time: a message that takes longer "
                    "has failed there, and may come again."
                ),
            ),
            (
                {"deadline": "3s", "retries": "none"},
                30.0,
                (
                    "acme waits 3s for an answer, less than the 30s of answer_time: a message that takes longer "
                    "has failed there."
                ),
            ),
            ({"deadline": "30s"}, 30.0, "acme waits 30s for an answer, and answer_time is 30s."),
            (
                {"deadline": "1m", "unconfirmed": ["deadline"]},
                30.0,
                "acme waits 1m for an answer (not confirmed by a public page of the sender), and answer_time is 30s.",
            ),
        ):
            self.assertEqual(deadline_against(entry_of(behaviour=behaviour), answer_time), sentence)
        self.assertIsNone(deadline_of(entry_of()))
        self.assertEqual(deadline_of(entry_of(behaviour={"deadline": "3m"})), 180.0)

    def test_again(self) -> None:
        """It is told whether a sender comes again after a status, if that is known."""
        for behaviour, again in (
            ({}, None),
            ({"deadline": "3s"}, None),
            ({"retries": "none"}, False),
            ({"retries": "yes"}, True),
            ({"retries": "by-status", "retried": [429]}, True),
            ({"retries": "by-status", "retried": [503]}, False),
        ):
            self.assertIs(sends_again_after(entry_of(behaviour=behaviour), 429), again, behaviour)
        self.assertIsNone(sends_again_after(entry_of(), 429))

    def test_known(self) -> None:
        """The senders of the package have the sentences that their behaviour says."""
        known = {entry.id: cost_of_refusal(entry) for entry in builtin_definitions()}
        self.assertEqual(
            known["github"],
            "github never sends again by itself what was refused. Within three days, a person or a call of its API can "
            "have it sent again.",
        )
        self.assertEqual(
            known["alertmanager"],
            "alertmanager sends again after 500, 502, 503 or 504, and never after 401, 403, 413 or 429.",
        )
        self.assertIn("stops for good after one 410", known["standard-webhooks"])
