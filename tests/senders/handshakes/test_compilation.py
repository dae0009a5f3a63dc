"""
Tests for L{webhookrx.senders.handshakes.compilation}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.diagnostics import ENTRY_CODES
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.definitions import read_definition

BEGINNING = """\
id: acme
vendor: acme
product: anvil
when: {body_keys: [a]}
"""
SIGNED = "verify: {at: 'header:x-acme-signature'}\n"


def problems(text: str) -> list[tuple[str, str, int]]:
    """Return code, field and line of all that is wrong with the rest of a data file, whose first line is 1."""
    definition, found = read_definition((BEGINNING + text).encode(), "acme.yaml")
    assert (definition is None) == bool(found)
    return [(each.code, each.field, each.line - BEGINNING.count("\n")) for each in found]


def sentences(text: str) -> list[str]:
    """Return what is wrong with the rest of a data file."""
    return [each.sentence for each in read_definition((BEGINNING + text).encode(), "acme.yaml")[1]]


def handshake(text: str) -> str:
    """Return a question of a data file, with C{kind}."""
    return f"handshake: [{{kind: check, {text}}}]\n"


GET = "when: {method: GET, query: {q: '*'}}"
PROOF = "proof: {of: '{query:q}'}"
SHAPE = "shape: '^[A-Za-z0-9_-]{1,128}$'"


class HandshakeProblemTests(SynchronousTestCase):
    """What may be wrong with a question."""

    def test_good(self) -> None:
        """Questions that can be answered have no problem."""
        for text in (
            handshake(f"{GET}, text: '{{query:q}}'"),
            handshake(f"{GET}, {PROOF}, {SHAPE}, json: {{a: '{{proof}}', b: [1, yes, null, {{c: x}}]}}") + SIGNED,
            handshake(f"{GET}, proof: {{of: '{{query:q}}{{secret}}', algorithm: sha256}}, {SHAPE}") + SIGNED,
            handshake(f"{GET}, {PROOF}, {SHAPE}")
            + "verify: [{at: '/a', algorithm: sha1, signed: '{secret}{body}'}, {at: '/b', signed: '.{/b}'}]\n",
            handshake("when: {method: HEAD}"),
            handshake("when: {method: GET, path: ^/a$}, text: '*', without_token: yes"),
            handshake("when: {only_keys: [a]}, signed: no"),
            handshake("when: {empty_body: yes}, signed: no"),
            handshake("when: {headers: {x-a: '*'}}, signed: yes") + SIGNED,
            handshake(f"{GET}, equal: 'query:t', reply: {{X-A: '{{query:q}} {{setting:a}}'}}, status: 204, keep: yes")
            + "settings: {a: {meaning: A code.}}\n",
        ):
            self.assertEqual(problems(text), [], text)

    def test_without_token(self) -> None:
        """A question needs the token unless it has a path of its own and an answer that is always the same."""
        path = "when: {method: GET, path: ^/a$}"
        for members in (
            "when: {method: GET}, text: '*'",
            "when: {path: ^/a$, empty_body: yes}, signed: no, text: '*'",
            f"{path}, text: '{{query:q}}'",
            f"{path}, text: '{{setting:a}}'",
            f"{path}, equal: 'query:t', text: '*'",
            f"{path}, text: '*', keep: yes",
        ):
            found = problems(handshake(f"{members}, without_token: yes") + "settings: {a: {meaning: A code.}}\n")
            self.assertIn("handshake[0].without_token", [where for _, where, _ in found], members)

    def test_proofs(self) -> None:
        """A proof that could be a signature is an error: by its shape, its text, or what verify says."""
        digest = "proof: {of: '{query:q}{secret}', algorithm: sha256}"
        for text, field in (
            (handshake(f"{GET}, {PROOF}") + SIGNED, "handshake[0]"),
            (handshake(f"{GET}, {PROOF}, shape: '.*'") + SIGNED, "handshake[0].shape"),
            (handshake(f"{GET}, {PROOF}, shape: '^[a-z.]{{1,9}}$'") + SIGNED, "handshake[0].shape"),
            (handshake(f"{GET}, {PROOF}, shape: '^[a-z=]{{1,9}}$'") + SIGNED, "handshake[0].shape"),
            (handshake(f"{GET}, {PROOF}, shape: '^[!-~]{{1,9}}$'") + SIGNED, "handshake[0].shape"),
            (handshake(f"{GET}, proof: {{of: 'v0:{{query:q}}'}}, {SHAPE}") + SIGNED, "handshake[0].proof.of"),
            (handshake(f"{GET}, proof: {{of: '{{query:q}}:{{query:r}}'}}, {SHAPE}") + SIGNED, "handshake[0].proof.of"),
            (handshake(f"{GET}, proof: {{of: 'x'}}, {SHAPE}") + SIGNED, "handshake[0].proof.of"),
            (
                handshake(f"{GET}, proof: {{of: '{{query:q}}{{setting:a}}'}}, {SHAPE}")
                + SIGNED
                + "settings: {a: {meaning: A code.}}\n",
                "handshake[0].proof.of",
            ),
            (handshake(f"{GET}, proof: {{of: '{{query:q}}', algorithm: sha256}}, {SHAPE}"), "handshake[0].proof.of"),
            (handshake(f"{GET}, {PROOF}, {SHAPE}"), "handshake[0].proof"),
            (
                handshake(f"{GET}, {PROOF}, {SHAPE}") + "verify: {at: 'header:s', algorithm: ed25519, key: hex}\n",
                "handshake[0].proof",
            ),
            (
                handshake(f"{GET}, {PROOF}, {SHAPE}") + "verify: {at: '/s', signed: '{/a}{/b}'}\n",
                "handshake[0].proof",
            ),
            (
                handshake(f"{GET}, {digest}, {SHAPE}")
                + "verify: {at: 'header:s', algorithm: sha256, signed: '{secret}{body}'}\n",
                "handshake[0].proof",
            ),
            (
                handshake(f"when: {{only_keys: [a]}}, signed: no, proof: {{of: '{{/a}}'}}, {SHAPE}") + SIGNED,
                "handshake[0].signed",
            ),
        ):
            self.assertEqual([(code, where) for code, where, _ in problems(text)], [("entry-handshake", field)], text)

    def test_questions(self) -> None:
        """A question that could swallow messages, or is never told, is an error."""
        for text, field in (
            (handshake("when: {}, signed: no"), "handshake[0].when"),
            (handshake("when: {}") + SIGNED, "handshake[0].when"),
            (handshake("when: {query: {q: '*'}}, signed: yes") + SIGNED, "handshake[0].when"),
            (handshake("when: {only_keys: [a]}"), "handshake[0]"),
            (handshake("when: {method: GET, body_keys: [a]}"), "handshake[0]"),
            (handshake("when: {method: GET}, text: '{/a}'"), "handshake[0]"),
            (handshake("when: {method: GET}, signed: yes") + SIGNED, "handshake[0]"),
            (handshake("when: {only_keys: [a], empty_body: yes}, signed: no"), "handshake[0].when.empty_body"),
        ):
            self.assertIn(("entry-handshake", field), [(code, where) for code, where, _ in problems(text)], text)

    def test_words(self) -> None:
        """Each mistake in a word is told in its place."""
        for text, code, field in (
            (handshake(f"{GET}").replace("check", "A check"), "entry-handshake", "handshake[0].kind"),
            (handshake("when: {method: PUT}"), "entry-format", "handshake[0].when.method"),
            (
                handshake("when: {method: GET, headers: {'x y': '*'}}"),
                "entry-header",
                'handshake[0].when.headers["x y"]',
            ),
            (handshake("when: {method: GET, query: {q: '('}}"), "entry-regex", "handshake[0].when.query.q"),
            (handshake(f"{GET}, shape: '('"), "entry-regex", "handshake[0].shape"),
            (handshake(f"{GET}, text: '{{query:}}'"), "entry-place", "handshake[0].text"),
            (handshake(f"{GET}, text: '{{/a/*}}'"), "entry-place", "handshake[0].text"),
            (handshake(f"{GET}, text: '{{proof}}'"), "entry-place", "handshake[0].text"),
            (handshake(f"{GET}, text: '{{secret}}'"), "entry-place", "handshake[0].text"),
            (handshake(f"{GET}, text: '{{now:unix}}'"), "entry-place", "handshake[0].text"),
            (handshake(f"{GET}, text: 'a }} b'"), "entry-place", "handshake[0].text"),
            (handshake(f"{GET}, text: '{{setting:a}}'"), "entry-place", "handshake[0].text"),
            (handshake(f"{GET}, text: '{{setting:}}'"), "entry-place", "handshake[0].text"),
            (handshake(f"{GET}, json: {{a: {{b: ['{{c}}']}}}}"), "entry-place", "handshake[0].json.a.b[0]"),
            (handshake(f"{GET}, json: {{a: b}}, text: c"), "entry-answer", "handshake[0]"),
            (handshake(f"{GET}, json: {{a: b}}, content_type: a/b"), "entry-answer", "handshake[0].content_type"),
            (handshake(f"{GET}, content_type: ä/b"), "entry-answer", "handshake[0].content_type"),
            (handshake(f"{GET}, reply: {{'X Y': a}}"), "entry-header", 'handshake[0].reply["X Y"]'),
            (handshake(f"{GET}, reply: {{Content-Length: '5'}}"), "entry-answer", "handshake[0].reply.Content-Length"),
            (handshake(f"{GET}, reply: {{X-A: ä}}"), "entry-answer", "handshake[0].reply.X-A"),
            (handshake(f"{GET}, equal: token"), "entry-place", "handshake[0].equal"),
            (handshake(f"{GET}, status: 302"), "bad-value", "handshake[0].status"),
            (
                handshake(f"{GET}, {PROOF[:-1]}, algorithm: md5}}, {SHAPE}"),
                "entry-format",
                "handshake[0].proof.algorithm",
            ),
            (
                handshake(f"{GET}, {PROOF[:-1]}, encoding: text}}, {SHAPE}") + SIGNED,
                "entry-format",
                "handshake[0].proof.encoding",
            ),
        ):
            self.assertIn((code, field), [(code, where) for code, where, _ in problems(text)], text)
        self.assertLessEqual({"entry-handshake", "entry-answer"}, {code.word for code in ENTRY_CODES})

    def test_lines(self) -> None:
        """A problem is told with its line."""
        text = (
            "handshake:\n"
            "  - kind: one\n"
            "    when: {method: GET}\n"
            "  - kind: two\n"
            "    when: {method: GET}\n"
            "    shape: '('\n"
        )
        self.assertEqual(problems(text), [("entry-regex", "handshake[1].shape", 6)])


class AnswerProblemTests(SynchronousTestCase):
    """What may be wrong with an answer or a behaviour."""

    def test_good(self) -> None:
        """Answers that can be made have no problem."""
        for text in (
            "answer: {status: 204}\n",
            "answer: {json: {}}\n",
            "answer: {json: {a: '{/a}', b: '{now:unix-ms}', c: 0}, refused: {json: {a: '{header:x} {reason}'}}}\n",
            "answer: [{when: {content_type: a/b}, content_type: a/b}, {text: ok}]\n",
            "behaviour: {deadline: 3s, retries: by-status, retried: [400, 599], disabled_by: [410]}\n",
            "behaviour: {note: It is slow., unconfirmed: [note]}\n",
        ):
            self.assertEqual(problems(text), [], text)

    def test_answers(self) -> None:
        """Each mistake in an answer is told in its place."""
        for text, code, field in (
            ("answer: {status: 404}\n", "bad-value", "answer.status"),
            ("answer: {status: 204, text: a}\n", "entry-answer", "answer.status"),
            ("answer: {status: 204, json: {}}\n", "entry-answer", "answer.status"),
            ("answer: {text: '{proof}'}\n", "entry-place", "answer.text"),
            ("answer: {reply: {X-A: '{setting:a}'}}\n", "entry-place", "answer.reply.X-A"),
            ("answer: {text: '{reason}'}\n", "entry-place", "answer.text"),
            ("answer: {json: {}, content_type: a/b}\n", "entry-answer", "answer.content_type"),
            ('answer: {content_type: " a/b"}\n', "entry-answer", "answer.content_type"),
            ("answer: {refused: {json: {a: '{/a}'}}}\n", "entry-answer", "answer.refused"),
            ("answer: [{text: a}, {text: b}]\n", "entry-answer", "answer[0]"),
            ("answer: [{when: {}, text: a}, {text: b}]\n", "entry-answer", "answer[0].when"),
            ("answer: {reply: {Date: now}}\n", "entry-answer", "answer.reply.Date"),
            ("behaviour: {deadline: soon}\n", "entry-format", "behaviour.deadline"),
            ("behaviour: {retries: maybe}\n", "entry-format", "behaviour.retries"),
            ("behaviour: {retries: by-status}\n", "entry-answer", "behaviour.retried"),
            ("behaviour: {retries: none, retried: [429]}\n", "entry-answer", "behaviour.retried"),
            ("behaviour: {retries: by-status, retried: [200]}\n", "entry-answer", "behaviour.retried[0]"),
            ("behaviour: {disabled_by: [410, 399]}\n", "entry-answer", "behaviour.disabled_by[1]"),
            ("behaviour: {disabled_by: [600]}\n", "entry-answer", "behaviour.disabled_by[0]"),
            ("behaviour: {unconfirmed: [all]}\n", "entry-format", "behaviour.unconfirmed[0]"),
            ("behaviour: {dead_line: 3s}\n", "unknown-key", "behaviour.dead_line"),
        ):
            self.assertIn((code, field), [(code, where) for code, where, _ in problems(text)], text)

    def test_sentence(self) -> None:
        """A sentence says what is allowed."""
        (sentence,) = sentences(handshake(f"{GET}, {PROOF}, shape: '^[a-z:]{{1,9}}$'") + SIGNED)
        self.assertEqual(sentence, "A shape for a proof allows letters, digits, _, -, + and / alone, and this one ':'.")

    def test_unused(self) -> None:
        """A definition without any of it has nothing of it."""
        definition = read_definition(BEGINNING.encode(), "acme.yaml")[0]
        assert isinstance(definition, SenderDefinition)
        self.assertEqual((definition.handshake, definition.answers, definition.behaviour), ((), (), None))
