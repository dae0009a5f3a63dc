"""
Tests for L{webhookrx.console.pages.rule_try}: a recorded request after each step of a rule.
"""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed

from tests.console.pages.test_rules import RuleCase

RULE = """\
name: a
protocol: HTTP
port: 8080
preprocessing:
  steps:
    - set: {field: meta.team, value: web}
    - {select: "log.body.ref EXISTS", label: pushes}
    - probe: seen
"""
REQUEST = 'POST /events HTTP/1.1\nX-A: b\n\n{"ref":"<script>x</script>\u202e"}'


class RuleTryTests(RuleCase):
    """The part of the editor."""

    def setUp(self) -> None:
        """What goes to a thread is done at once."""
        super().setUp()
        self.patch(self.console.trials, "_in_thread", self.in_turn)

    def in_turn(self, work: Any) -> Deferred[Any]:
        """Do it now."""
        return succeed(work())

    def part(self, **form: str) -> Any:
        """Return the answer to a script."""
        return self.post("/rules:try", {"yaml": RULE, "form_off": "yes", **form}, hx_request="true", **self.mine)

    def test_steps(self) -> None:
        """Each step is there with what it has changed; text of senders is no markup, and turns nothing around."""
        response = self.part(try_request=REQUEST)
        html, text = response.body.decode(), self.shown(response)
        self.assertNotIn("<html", html)
        self.assertNotIn("<script>x", html)
        self.assertNotIn("\u202e", html)
        self.assertIn("stored 200", text)
        self.assertIn('added: + "team": "web"', text)
        self.assertIn("pushes done", text)
        self.assertIn("the rule does not match a router", text)

    def test_dropped(self) -> None:
        """The step that drops a message is told, and those after it as not reached."""
        text = self.shown(self.part(try_request='{"a":1}'))
        self.assertIn("dropped by a step 200", text)
        self.assertIn("pushes dropped", text)
        self.assertIn("3 probe not reached", text)
        self.assertIn("taken as one to /events", text)
        self.assertIn("refused 404", self.shown(self.part(try_request='{"a":1}', try_own_path="yes")))

    def test_wrong(self) -> None:
        """What can't be tried is told in the part."""
        for form, sentence in (
            ({}, "Paste a recorded request"),
            ({"try_request": "POST / HTTP/1.1\nnonsense"}, "Line 2 is no header"),
            ({"try_sample": "<b>"}, "There is no recorded request of this name."),
            ({"try_request": REQUEST, "yaml": "name: ["}, "The rule is wrong."),
            ({"try_request": REQUEST, "try_router": "none"}, "There is no router of this name"),
        ):
            with self.subTest(form=form):
                response = self.part(**form)
                self.assertEqual(200, response.status)
                self.assertIn(sentence, self.shown(response))

    def test_without_script(self) -> None:
        """Without a script a rule that is saved is tried, on a page with the form."""
        self.save("a b", preprocessing={"steps": [{"set": {"field": "meta.team", "value": "web"}}]})
        response = self.post("/rules:try", {"try_saved": "a b", "try_sample": "github-push"}, **self.mine)
        self.assertEqual(200, response.status)
        self.assertIn('added: + "team": "web"', self.shown(response))
        self.assertIn('href="/rules/a%20b"', response.body.decode())
        self.assertIn('name="try_saved" value="a b"', response.body.decode())
        response = self.post("/rules:try", {"try_sample": "github-push"}, **self.mine)
        self.assertEqual(400, response.status)
        self.assertIn("once it is saved", self.shown(response))

    def test_samples(self) -> None:
        """Recorded requests are choices of a field, and one is put into the field for requests."""
        self.assertIn('<option value="github-push">', self.get("/rules:samples", **self.mine).body.decode())
        response = self.get("/rules:sample?try_sample=github-push", **self.mine)
        self.assertIn("X-GitHub-Event: push", self.shown(response))
        self.assertIn("There is no recorded request", self.shown(self.get("/rules:sample?try_sample=x", **self.mine)))
        self.assertIn("github-push", self.shown(self.get("/rules:sample", **self.mine)))
