"""
Tests for C{webhookrx try}.
"""

from __future__ import annotations

import json
import os
from functools import partial

from tests.commands.running import CommandCase, Ran, run_command
from webhookrx.commands import rules_reading
from webhookrx.config.machine import HostFacts

RULES = """\
    connector_rules:
      - name: Edge hooks
        protocol: HTTPS
        port: 8443
        key_file: /no/key
        cert_file: /no/cert
        include_request_headers: yes
        preprocessing:
          classify: yes
          steps:
            - unset: log.body.password
            - {set: {field: meta.team, value: 1.10}, condition: log.body.none EXISTS}
            - {regex: {pattern: "refs/heads/(?P<branch>.*)", field: log.body.ref}, label: branch}
            - expression: "meta.x = log.body.none.at.all + 1;"
            - {select: log.body.ref EXISTS, label: pushes}
      - {name: other, protocol: HTTP, port: 8181, paths: [/other, /both]}
      - {name: third, protocol: HTTP, port: 8182, paths: [/both]}
      - {name: lin, selector: os = plan9, protocol: HTTP, port: 8183, paths: [/plan9]}
"""
PUSH = """\
    POST /events/web-1?team=ops HTTP/1.1
    X-GitHub-Event: push
    X-GitHub-Delivery: d-1
    Authorization: Bearer CANARY

    {"ref":"refs/heads/main","password":"p","n":1.10}"""


class TryTests(CommandCase):
    """A recorded request through a rule."""

    def setUp(self) -> None:
        super().setUp()
        here = HostFacts("here", "", ("192.0.2.7",), "linux", "x86_64", "1.2.3")
        self.patch(rules_reading, "this_host", lambda: here)
        self.write("rules.yaml", RULES)

    def run_try(self, request: str, *arguments: str) -> Ran:
        """Run it on a request with this text."""
        given = (self.write("request.http", request), "--rules", "rules.yaml", "--router", "edge-1")
        return run_command("try", *given, "--at", "2026-11-20T12:00:00Z", *arguments)

    def test_steps(self) -> None:
        """The message is shown after each step, with what the step has changed, or why it has not."""
        status, out, err = self.run_try(PUSH)
        self.assertEqual((0, ""), (status, err))
        self.assertNotIn("CANARY", out)
        head, before, classify, unset, skipped, regex, failed, select = out.rstrip().split("\n\n")
        self.assertEqual(
            "request    POST /events/web-1?team=ops, 49 bytes\n"
            "connector  edge-1-Edge hooks-Edge hooks, port 8443, path /events/(?P<HOST>.*)\n"
            'answer     200 {"status":"received"}',
            head,
        )
        heading, line = before.splitlines()
        self.assertEqual("before the first step", heading)
        record = json.loads(line)
        self.assertEqual(1795176000_000000000, record["log"]["observed_time_unix_nano"])
        self.assertEqual(
            ("web-1", "https"), (record["meta"]["host"]["name"], record["meta"]["connection"]["transport"])
        )
        self.assertIn('"n":1.10', line)
        name, *changes, line = classify.splitlines()
        self.assertEqual("classify", name)
        self.assertIn('  + meta.vendor = "github"', changes)
        self.assertIn('  + meta.sender = {"delivery_id":"d-1"}', changes)
        self.assertEqual("github", json.loads(line)["meta"]["vendor"])
        self.assertEqual(["1 unset", '  - log.body.password (was "p")'], unset.splitlines()[:2])
        self.assertNotIn("password", unset.splitlines()[2])
        self.assertEqual("2 set\n  skipped: its condition does not match", skipped)
        self.assertEqual(["branch", '  + log.attributes.branch = "main"'], regex.splitlines()[:2])
        self.assertRegex(failed, r"^4 expression\n  Step '4 expression' failed at 1:10: .*\.$")
        self.assertEqual("pushes\n  nothing changed", select)

    def test_json(self) -> None:
        """In JSON it is one object, with the message after each step."""
        status, out, _ = self.run_try(PUSH, "--json")
        found = json.loads(out)
        self.assertEqual((0, True, 200), (status, found["stored"], found["answer"]["status"]))
        self.assertEqual(
            {
                "name": "edge-1-Edge hooks-Edge hooks",
                "rule": "Edge hooks",
                "port": 8443,
                "path": "/events/(?P<HOST>.*)",
            },
            found["connector"],
        )
        outcomes = [(step["step"], step["outcome"]) for step in found["steps"]]
        self.assertEqual(
            [
                ("classify", "done"),
                ("1 unset", "done"),
                ("2 set", "skipped"),
                ("branch", "done"),
                ("4 expression", "failed"),
                ("pushes", "done"),
            ],
            outcomes,
        )
        unset, last = found["steps"][1], found["steps"][-1]
        self.assertEqual([{"field": "log.body.password", "before": "p"}], unset["changes"])
        self.assertEqual("p", found["before"]["log"]["body"]["password"])
        self.assertEqual({"ref": "refs/heads/main", "n": 1.1}, last["record"]["log"]["body"])
        self.assertIn("4 expression", found["steps"][4]["problem"])

    def test_dropped(self) -> None:
        """A message that a step drops is answered like others, and not stored."""
        status, out, _ = self.run_try(PUSH.replace('"ref"', '"rev"'))
        self.assertEqual(1, status)
        self.assertIn('answer     200 {"status":"received"}, and nothing is stored\n', out)
        self.assertTrue(out.endswith("\npushes\n  the message is dropped\n"), out)
        self.assertFalse(json.loads(self.run_try(PUSH.replace('"ref"', '"rev"'), "--json").out)["stored"])

    def test_on_error(self) -> None:
        """A step that fails and drops the message is told with both; one that tags it has changed it."""
        for on_error, outcome in (("drop", "dropped"), ("tag", "failed")):
            rules = RULES.replace('+ 1;"\n', f'+ 1;"\n              on_error: {on_error}\n')
            self.write("rules.yaml", rules)
            status, out, _ = self.run_try(PUSH)
            self.assertEqual(int(on_error == "drop"), status)
            text = out[out.index("\n4 expression\n") :]
            self.assertIn("failed at 1:10", text)
            self.assertEqual(on_error == "drop", "\n  the message is dropped\n" in text)
            self.assertEqual(on_error == "tag", '  + meta.step_errors = ["4 expression"]\n' in text)
            steps = json.loads(self.run_try(PUSH, "--json").out)["steps"]
            self.assertEqual(outcome, steps[4]["outcome"])
            self.assertIn("failed at 1:10", steps[4]["problem"])

    def test_json_files(self) -> None:
        """JSON files that expressions name are read; without one there is nothing to judge by."""
        path = self.write("teams.json", '{"main": "core"}')
        path = os.path.abspath(path)
        expression = f"meta.x = cache_json_file('{path}').main;"
        self.write("rules.yaml", RULES.replace("meta.x = log.body.none.at.all + 1;", expression))
        status, out, _ = self.run_try(PUSH)
        self.assertEqual(0, status)
        self.assertIn('\n4 expression\n  + meta.x = "core"\n', out)
        os.remove(path)
        status, out, err = self.run_try(PUSH)
        self.assertEqual((2, ""), (status, out))
        self.assertIn("[json-file-missing]", err)

    def test_refused(self) -> None:
        """What would be refused is told with its status."""
        for request, arguments, problem in (
            (PUSH.replace("POST", "GET"), (), "405 method_not_allowed"),
            (PUSH.replace("/events/web-1", "/none"), (), "404 no_matching_path"),
            (PUSH.replace("web-1", "%ff"), (), "400 bad_encoding"),
            (PUSH, ("--port", "8181"), "404 no_matching_path"),
        ):
            status, out, _ = self.run_try(request, *arguments)
            self.assertEqual(1, status)
            self.assertIn(f"answer     {problem}: ", out)
            found = json.loads(self.run_try(request, *arguments, "--json").out)
            self.assertEqual(
                (False, problem), (found["stored"], f"{found['answer']['status']} {found['answer']['reason']}")
            )

    def test_choice(self) -> None:
        """Of several connectors one is chosen by its rule or its port."""
        both = PUSH.replace("/events/web-1", "/both")
        status, out, err = self.run_try(both)
        self.assertEqual((2, ""), (status, out))
        self.assertIn('"other" (port 8181), "third" (port 8182). Choose one with --rule or --port.', err)
        for arguments in (("--rule", "third"), ("--port", "8182")):
            status, out, _ = self.run_try(both, *arguments)
            self.assertEqual(0, status)
            self.assertIn("connector  edge-1-third-third, port 8182, path /both\n", out)
            self.assertIn("\nthe message; there are no steps\n", out)

    def test_which(self) -> None:
        """A rule that does not match this router is none; one that may match is taken when it is named."""
        plan9 = partial(self.run_try, PUSH.replace("/events/web-1", "/plan9"))
        for arguments, problem in (
            (("--rule", "lin"), 'The rule "lin" does not match this router'),
            (("--rule", "line"), 'There is no rule "line". Did you mean "lin"?'),
            (("--port", "1"), "has no connector at port 1"),
        ):
            status, _, err = plan9(*arguments)
            self.assertEqual(1, status)
            self.assertIn(problem, err)
        self.assertEqual(0, plan9("--rule", "lin", "--elsewhere").status)
        self.assertEqual(1, plan9("--elsewhere").status)

    def test_path(self) -> None:
        """A body alone gets a path from the command line."""
        self.assertEqual(1, self.run_try('{"ref":"x"}').status)
        status, out, _ = self.run_try('{"ref":"x"}', "--path", "/events/h?a=b")
        self.assertEqual(0, status)
        self.assertIn('"webhook.query.a":"b"', out)
        self.assertIn('"host":{"name":"h"}', out)

    def test_mistakes(self) -> None:
        """Rules that are not good, and files that are no requests, are told."""
        self.assertIn("no header such as", self.run_try("no header\n").err)
        self.write("rules.yaml", RULES.replace("8443", "0"))
        status, out, err = self.run_try(PUSH)
        self.assertEqual((2, ""), (status, out))
        self.assertIn("[port-range]", err)
        self.assertEqual(2, self.run_try(PUSH, "--at", "noon").status)

    def test_senders(self) -> None:
        """The operator's own data files count."""
        self.write(
            "acme.yaml", "{id: acme, vendor: acme, product: w, when: {headers: {x-github-event: push}}, priority: 99}"
        )
        _, out, _ = self.run_try(PUSH, "--senders", ".")
        self.assertIn('+ meta.vendor = "acme"', out)

    def test_guarded(self) -> None:
        """A connector that verifies its sender shows each decision, and then its steps."""
        secrets = os.path.abspath(self.write("secrets", "main = s3cr3t\n"))
        os.chmod(secrets, 0o600)
        guard = f"sender: github\n        secrets_file: {secrets}\n        allow: [192.0.2.0/24, office]\n        "
        self.write("rules.yaml", RULES.replace("include_request_headers", guard + "include_request_headers", 1))
        ran = self.run_try(PUSH, "--sign", "main", "--peer", "192.0.2.9")
        self.assertEqual((0, ""), (ran.status, ran.err))
        self.assertIn('signed with the secret "main"\n', ran.out)
        self.assertIn('"sender":{"id":"github","verified":"signature","secret":"main","delivery_id":"d-1"}', ran.out)
        self.assertIn("\n1 unset\n  - log.body.password", ran.out)
        self.assertNotIn("s3cr3t", ran.out)
        status, out, _ = self.run_try(PUSH, "--sign", "main", "--peer", "192.0.3.9", "--json")
        found = json.loads(out)
        verdicts = {each["decision"]: each["verdict"] for each in found["decisions"]}
        self.assertEqual((0, "stored", "not judged"), (status, found["outcome"], verdicts["address"]))
        self.assertEqual("classify", found["steps"][0]["step"])
        self.assertEqual(1, self.run_try(PUSH, "--peer", "192.0.2.9").status)
        status, out, _ = self.run_try(PUSH.replace('"ref"', '"rev"'), "--sign", "main", "--peer", "192.0.2.9")
        self.assertEqual(1, status)
        self.assertIn("\noutcome    a step drops it: it is answered like others, and nothing is stored\n", out)
        self.assertTrue(out.endswith("\npushes\n  the message is dropped\n"), out)
        os.remove(secrets)
        status, out, err = self.run_try(PUSH, "--peer", "192.0.2.9")
        self.assertEqual((2, ""), (status, out))
        self.assertIn("[secrets-file-missing]", err)

    def test_plain_connector(self) -> None:
        """A connector that verifies nothing can't be signed for; a command for curl sends to its port."""
        status, out, err = self.run_try(PUSH, "--sign", "main")
        self.assertEqual((1, ""), (status, out))
        self.assertIn("checks no signatures.", err)
        status, out, err = self.run_try(PUSH, "--curl")
        self.assertEqual(0, status)
        self.assertIn("https://localhost:8443/events/web-1?team=ops", out)
        self.assertIn("It is without the header authorization", err)
        self.assertNotIn("CANARY", out)
        status, out, _ = self.run_try(PUSH, "--peer", "192.0.2.9")
        self.assertIn('"src_ip":"192.0.2.9"', out)

    def test_safe(self) -> None:
        """What a sender or a rule holds is shown and not obeyed."""
        _, out, err = self.run_try(PUSH.replace("refs/heads", "\u202e\x1b[2J"))
        self.assertTrue((out + err).replace("\n", "").isprintable(), out)
