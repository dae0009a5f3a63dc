"""
Tests for L{webhookrx.senders.answer_tables}.
"""

from __future__ import annotations

from unittest import mock

from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import entry_of
from webhookrx.senders import answer_tables
from webhookrx.senders.answer_tables import answer_table, behaviour_table, handshake_table
from webhookrx.senders.definitions import builtin_definitions


class AnswerTableTests(SynchronousTestCase):
    """What the documents show."""

    def test_complete(self) -> None:
        """There is a row for each question, answer and behaviour, with as many cells as the head has."""
        definitions = builtin_definitions()
        for made, names in (
            (handshake_table(), [each.id for each in definitions for _ in each.handshake]),
            (answer_table(), [each.id for each in definitions for _ in each.answers]),
            (behaviour_table(), [each.id for each in definitions if each.behaviour is not None]),
        ):
            head, _, *rows = made.splitlines()
            self.assertEqual([row.split("`")[1] for row in rows], names)
            for row in rows:
                self.assertEqual(row.replace("\\|", "").count("|"), head.count("|"), row)

    def test_cells(self) -> None:
        """A row says what there is in a definition."""
        entry = entry_of(
            verify={"at": "header:s"},
            handshake=[
                {
                    "kind": "check",
                    "when": {"headers": {"x-a": "^b$"}, "path": "^/c", "only_keys": ["d"], "body": "d = 1"},
                    "equal": "query:t",
                    "text": "{/d}",
                    "reply": {"X-E": "f"},
                    "status": 202,
                },
                {
                    "kind": "prove",
                    "when": {"method": "GET", "query": {"q": "*"}},
                    "proof": {"of": "{query:q}"},
                    "shape": "^[a-z]{9}$",
                    "json": {"a": "{proof}"},
                },
            ],
            answer=[
                {"when": {"path": "^/g"}, "content_type": "a/b"},
                {"status": 204, "refused": {"json": {"a": "{reason}"}}},
            ],
            behaviour={"deadline": "3s", "retries": "by-status", "retried": [429, 503], "unconfirmed": ["deadline"]},
        )
        with mock.patch.object(answer_tables, "builtin_definitions", return_value=(entry,)):
            *_, check, prove = handshake_table().splitlines()
            *_, some, rest = answer_table().splitlines()
            behaviour = behaviour_table().splitlines()[-1]
        self.assertEqual(
            check,
            "| `acme` | `check` | POST: header `x-a` with `^b$`; path `^/c`; exactly `d`; `d = 1`; `query:t` is a "
            "verify token | yes | 202 text `{/d}`; `X-E: f` |",
        )
        self.assertEqual(
            prove,
            '| `acme` | `prove` | GET: query `q` |  | 200 `{"a":"{proof}"}`; `{proof}`: HMAC of `{query:q}`, hex |',
        )
        self.assertEqual(some, "| `acme` | some | 200, empty, `a/b` |  |")
        self.assertEqual(rest, '| `acme` | all | 204, empty | `{"a":"{reason}"}` |')
        self.assertEqual(behaviour, "| `acme` | 3s * | after 429, 503 |  |  |")
