"""
Tests for L{webhookrx.console.routers.trial_routes}.
"""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred, succeed

from tests.console.people.test_people import PeopleCase
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.routers import rule_trials
from webhookrx.console.routers.rule_trials import MOST_WAITING
from webhookrx.router.rules.rule import Host
from webhookrx.trials.trial import TrialRequest

RULE: dict[str, Any] = {
    "name": "a",
    "protocol": "HTTP",
    "port": 8080,
    "selector": "label.site = fra",
    "preprocessing": {"steps": [{"set": {"field": "meta.team", "value": "web"}}, {"unset": "log.body.secret"}]},
}
REQUEST = 'POST /events HTTP/1.1\nX-A: b\n\n{"secret":"s","n":1.10}'


class FakeFleet:
    """Routers that take rules."""

    hosts = (Host("ber-1", {"site": "ber"}), Host("fra-1", {"site": "fra"}))


class TrialRoutesTests(PeopleCase):
    """C{/rules:try} and C{/samples}."""

    def setUp(self) -> None:
        """Sign an editor in; what goes to a thread is done at once."""
        super().setUp()
        self.patch(self.console.trials, "_in_thread", lambda work: succeed(work()))
        self.fleet: Any = FakeFleet()
        self.console.fleet = self.fleet
        self.add("mara", "editor")
        self.mine = self.session()

    def tried(self, status: int = 200, **body: Any) -> Any:
        """Return the answer to a trial."""
        response = self.ask("POST", "/rules:try", {"rule": RULE, **body}, **self.mine)
        self.assertEqual(status, response.status, response.body)
        return json.loads(response.body)

    def test_steps(self) -> None:
        """The message before the steps, what each changes, and the message after all."""
        found = self.tried(request=REQUEST)
        self.assertEqual(
            ("stored", 200, "fra-1", True), tuple(found[n] for n in ("outcome", "status", "router", "matches"))
        )
        (event,) = found["events"]
        self.assertEqual({"secret": "s", "n": 1.1}, event["before"]["log"]["body"])
        first, second = event["steps"]
        self.assertEqual([{"field": "meta.team", "text": '+ meta.team = "web"', "after": "web"}], first["changes"])
        self.assertEqual('- log.body.secret (was "s")', second["changes"][0]["text"])
        self.assertEqual(("web", {"n": 1.1}), (event["after"]["meta"]["team"], event["after"]["log"]["body"]))
        self.assertEqual({}, self.console.rulebook.saved.rules)

    def test_digits(self) -> None:
        """Numbers keep their digits."""
        response = self.ask("POST", "/rules:try", {"rule": RULE, "request": REQUEST}, **self.mine)
        self.assertIn(b'"n":1.10', response.body)

    def test_requests(self) -> None:
        """A request is recorded text, its parts, or one of a known sender; exactly one of them."""
        self.assertEqual("stored", self.tried(path="/events", headers={"X-A": "b"}, body='{"a":1}')["outcome"])
        self.assertEqual("refused", self.tried(sample="github-push", rule={**RULE, "paths": ["/b"]})["outcome"])
        found = self.tried(sample="github-push", any_path=True, rule={**RULE, "paths": ["/b"]})
        self.assertEqual(("stored", "/b"), (found["outcome"], found["path"]))
        self.assertEqual("refused", self.tried(method="GET", path="/events")["outcome"])
        self.tried(400)
        self.tried(400, request=REQUEST, sample="github-push")
        self.tried(400, request=REQUEST, yaml="name: a")
        self.assertIn("github-push", self.tried(404, sample="github-pus")["detail"])
        self.tried(404, sample="../github")
        self.assertIn("Line 2 is no header", self.tried(422, request="POST / HTTP/1.1\nnonsense")["detail"])
        self.tried(422, path="/a b HTTP/1.1")
        self.tried(422, path="/events", headers={"a b": "c"})
        self.tried(422, path="/events", headers={"a": "c\nd: e"})

    def test_rules(self) -> None:
        """What is wrong with the rule is told as a preview tells it; warnings come along."""
        found = self.tried(422, rule={**RULE, "port": 0}, request=REQUEST)
        self.assertEqual("port-range", found["findings"][0]["code"])
        response = self.ask("POST", "/rules:try", {"yaml": "name: [", "request": REQUEST}, **self.mine)
        self.assertEqual(422, response.status)

    def test_routers(self) -> None:
        """A router is named, or is the first that the rule matches, or none of the fleet."""
        found = self.tried(request=REQUEST, router="ber-1")
        self.assertEqual(("ber-1", False, "ber-1-a-a"), tuple(found[n] for n in ("router", "matches", "connector")))
        self.tried(422, request=REQUEST, router="none")
        self.console.fleet = None
        self.assertEqual(("router", False), tuple(self.tried(request=REQUEST)[n] for n in ("router", "matches")))

    def test_bounds(self) -> None:
        """Records that are large are left out of the answer; a request that is too large is refused."""
        self.patch(rule_trials, "_MOST_RECORDS", 3000)
        found = self.tried(request="POST /events HTTP/1.1\n\n" + json.dumps({"a": "x" * 2000, "secret": ["y" * 3000]}))
        (event,) = found["events"]
        self.assertEqual((None, None), (event["before"], event["after"]))
        self.assertNotIn("before", event["steps"][1]["changes"][0])
        self.tried(422, request="x" * 140_000)
        self.patch(rule_trials, "_MOST_COMPARED", 1000)
        self.assertIn("too large", self.tried(422, request=f"POST /events HTTP/1.1\n\n{'x' * 300}")["detail"])
        self.tried(413, request="x" * 600_000)

    def test_queue(self) -> None:
        """Only some wait for the one under way."""
        waiting: list[Deferred[Any]] = []
        trials = self.console.trials
        self.patch(trials, "_in_thread", lambda work: waiting.append(Deferred()) or waiting[-1])
        request = TrialRequest(None, b"")  # type: ignore[arg-type]
        results = [
            Deferred.fromCoroutine(trials.try_rule("", request, router="", any_path=False))
            for _ in range(MOST_WAITING + 2)
        ]
        self.failureResultOf(results[-1], ApiProblem)
        while len(waiting) < MOST_WAITING + 1 or waiting[-1].called is False:
            waiting[-1].callback(None)
        self.assertEqual([None] * (MOST_WAITING + 1), [self.successResultOf(each) for each in results[:-1]])

    def test_rights(self) -> None:
        """Who may not save a rule may not try one; samples are for all."""
        self.add("vera", "viewer")
        viewer = self.session("vera")
        self.assertEqual(403, self.ask("POST", "/rules:try", {"rule": RULE, "request": REQUEST}, **viewer).status)
        samples = json.loads(self.ask("GET", "/samples", **viewer).body)["samples"]
        self.assertIn("github-push", samples)
        shown = json.loads(self.ask("GET", "/samples/github-push", **viewer).body)["request"]
        self.assertIn("X-GitHub-Event: push", shown)
        self.assertEqual(404, self.ask("GET", "/samples/..%2Fx", **viewer).status)
