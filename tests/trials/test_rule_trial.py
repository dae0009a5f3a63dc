"""
Tests for L{webhookrx.trials.rule_trial}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.router.rules.rules_file import read_rule
from webhookrx.senders.http_file import read_http_file
from webhookrx.trials.rule_trial import RuleTrial, try_rule
from webhookrx.trials.traced_events import MOST_EVENTS
from webhookrx.trials.trial import TrialRequest

PUSH = b'POST /hooks/a HTTP/1.1\nAuthorization: Bearer CANARY\nX-Team: web\n\n{"ref":"refs/heads/main","n":1.10}'


def try_text(rule: str, request: bytes = PUSH, *, any_path: bool = False) -> RuleTrial:
    """Try a request with a rule in YAML."""
    value = read_rule(f"name: a\nprotocol: HTTP\nport: 8080\n{rule}".encode(), "").value
    assert value is not None, read_rule(rule.encode(), "").diagnostics
    head, _, body = read_http_file(request)
    return try_rule(value, TrialRequest(head, body, 1_000_000_000), "fra-1", {"site": "fra"}, any_path=any_path)


class RuleTrialTests(SynchronousTestCase):
    """One rule, one request."""

    def test_steps(self) -> None:
        """Each step is there with the message after it; one that drops it is the last."""
        trial = try_text(
            "paths: [/hooks/a]\ninclude_request_headers: yes\npreprocessing:\n  steps:\n"
            "    - set: {field: meta.team, value: web}\n    - {select: log.body.none EXISTS, label: only}\n"
            "    - probe: seen\n"
        )
        self.assertEqual(("dropped", 200, "/hooks/a", ""), (trial.fate, trial.status, trial.pattern, trial.path))
        (event,) = trial.events
        self.assertEqual([("1 set", False), ("only", True)], [(step.name, step.dropped) for step in event.trace])
        self.assertEqual(("1 set", "only", "3 probe"), trial.names)
        self.assertNotIn("team", event.before["meta"])
        self.assertEqual("web", event.trace[0].record["meta"]["team"])
        self.assertEqual("fra-1", event.before["meta"]["router"]["name"])
        self.assertNotIn("CANARY", str(trial))
        self.assertTrue(all(step.seconds >= 0 for step in event.trace))

    def test_no_steps(self) -> None:
        """Without steps the message is what is stored."""
        trial = try_text("paths: [/hooks/a]")
        self.assertEqual(("stored", []), (trial.fate, trial.events[0].trace))
        self.assertEqual("refs/heads/main", trial.events[0].before["log"]["body"]["ref"])

    def test_paths(self) -> None:
        """A path that the rule does not take is refused, or is one that it takes if that is asked for."""
        self.assertEqual(("refused", 404, "no_matching_path"), self.outcome(try_text("paths: [/b]")))
        trial = try_text("paths: ['/x(?P<HOST>.*)', /b.c]", any_path=True)
        self.assertEqual(("stored", "/b.c"), (trial.fate, trial.path))
        self.assertEqual(("refused", 404, "no_matching_path"), self.outcome(try_text("paths: ['/x.*']", any_path=True)))
        self.assertEqual("", try_text("paths: ['/hooks/(?P<HOST>.*)', /b]", any_path=True).path)

    def outcome(self, trial: RuleTrial) -> tuple[str, int, str]:
        """Return what came of it."""
        return trial.fate, trial.status, trial.reason

    def test_refused(self) -> None:
        """What a connector refuses is refused, with its decision."""
        trial = try_text("paths: [/hooks/a]", PUSH.replace(b"POST", b"PUT"))
        self.assertEqual(("refused", 405), (trial.fate, trial.status))
        self.assertEqual(("method", "refuses"), trial.verdicts[-1][:2])

    def test_files(self) -> None:
        """No file that a rule names is read: what hangs on it is not judged, and said."""
        trial = try_text(
            "paths: [/hooks/a]\nsender: github\nsecrets_file: /etc/passwd\nauth_token_file: /etc/passwd\n"
            "allow: [192.0.2.0/24]\nquota: {messages: 1/s}\nidempotency: 1h\n"
            "preprocessing:\n  steps:\n"
            '    - expression: \'meta.x = cache_json_file("/etc/passwd")["a"];\'\n'
        )
        self.assertEqual("stored", trial.fate)
        self.assertEqual(
            ["its tokens", "the secrets", "the networks", "its quota", "which deliveries", "the JSON"],
            [" ".join(each.split()[:2]) for each in trial.not_judged],
        )
        self.assertNotIn("root:", str(trial))

    def test_events(self) -> None:
        """Each event of a body has its own steps, and only the first ones are shown."""
        body = b"POST /hooks/a HTTP/1.1\n\n" + b"\n".join(b'{"n":%d}' % number for number in range(25))
        trial = try_text(
            "paths: [/hooks/a]\nsplit: lines\npreprocessing: {steps: [{select: NOT log.body.n = 1}]}", body
        )
        self.assertEqual(MOST_EVENTS, len(trial.events))
        self.assertEqual([False, True, False], [event.trace[0].dropped for event in trial.events[:3]])
        self.assertEqual(14, trial.more_events)
        self.assertEqual(3, try_text("paths: [/hooks/a]\nsplit: lines", body).events[3].before["log"]["body"]["n"])

    def test_question(self) -> None:
        """The question of a sender is answered."""
        question = b'{"type":"url_verification","challenge":"c","token":"t"}'
        body = b"POST /hooks/a HTTP/1.1\nContent-Type: application/json\n\n" + question
        trial = try_text("paths: [/hooks/a]\nsender: slack\nsecrets_file: /no/file\n", body)
        self.assertEqual(("handshake", 200, "url_verification"), (trial.fate, trial.status, trial.reason))
        self.assertEqual((), trial.events)
