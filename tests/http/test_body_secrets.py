"""
Tests for L{webhookrx.http.guarded_resource} with senders that show a secret in the body: no message has it.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from tests.http.guarded_wire import GuardedWire, sender_named, sender_of
from tests.http.test_guarded_resource import GuardedCase
from tests.http.wire import post
from webhookrx.http.time_slices import TimeSlices
from webhookrx.message.encoders import encode_line
from webhookrx.router.connector_intake import ConnectorRules, judge_connector, judge_connector_for_lines
from webhookrx.router.steps.processing import Processing
from webhookrx.router.steps.step import Preprocessing
from webhookrx.speedups import compiled

SECRET = "s3cr3t-of-the-sender"
SECRETS = {"main": SECRET.encode()}
MERAKI = b'{"alertTypeId": "motion", "sharedSecret" : "%s", "n":1.50}'
GRAPH = (
    b'{"value":[{"subscriptionId":"1","clientState":"%s","changeType":"created"},'
    b'{"subscriptionId":"2", "clientState": "%s"}],"x":"y"}'
)
#: Each way to write the secret, and a wrong one that might be somebody's.
ESCAPED = SECRET.replace("s", "\\u0073").encode()
WRONG = b"s3cr3t-of-another"


class BodySecretTests(GuardedCase):
    """Sources of senders that show a secret in the body."""

    def site(self, sender: str, form: str, **options: Any) -> GuardedWire:
        """Return a site of either form: C{raw}, C{json} or C{connector}."""
        site = GuardedWire(sender_named(sender), SECRETS, rules={"parse_json": form != "raw"}, **options)
        if form == "connector":
            rules = ConnectorRules(
                "guarded",
                port=8181,
                labels={"product": "webhook", "vendor": "generic"},
                router="edge-1",
                router_labels={},
                processing=Processing(Preprocessing(), None),
                body_limit=site.limits.body,
                unpack_ratio=100,
            )
            site.guard_with(rules, judge=judge_connector, for_lines=judge_connector_for_lines)
        return site

    def lines(self, site: GuardedWire) -> list[bytes]:
        """Return all messages as they are stored; none has the secret, however it is written."""
        lines = [message.line or encode_line(message) for message in site.consumer.messages]
        for line in lines:
            self.assertNotIn(b"s3cr3t", line)
            self.assertNotIn(b"cr3t", line)
        self.assertNotIn("cr3t", str(site.traffic.details))
        return lines

    def check(self) -> None:
        """Send what the two senders do to each form."""
        for form in ("raw", "json", "connector"):
            for lines in (False, True):
                for shown in (SECRET.encode(), ESCAPED):
                    for split in ("no", "yes"):
                        site = self.site("microsoft-graph", form, split=split)
                        site.consumer.takes_lines = lines
                        self.assertEqual(200, site.ask(post(GRAPH % (shown, shown), b"/in")).status)
                        stored = self.lines(site)
                        self.assertEqual(2 if split == "yes" else 1, len(stored))
                        self.assertTrue(all(b"***" in line for line in stored), stored)
                    site = self.site("meraki", form)
                    site.consumer.takes_lines = lines
                    self.assertEqual(200, site.ask(post(MERAKI % shown, b"/in")).status)
                    (line,) = self.lines(site)
                    self.assertIn(b"***", line)
                    self.assertIn(b"1.50", line)
                    self.assertIn(b"main", line)

    def test_masked(self) -> None:
        """Neither text, pairs, C{log.body}, events nor envelopes have it; the rest is there."""
        self.check()

    def test_without_compiled_path(self) -> None:
        """Nor without the compiled path."""
        with ExitStack() as without:
            for name, module in list(sys.modules.items()):
                has_it = name.startswith("webhookrx.") and getattr(module, "compiled", None) is compiled
                if has_it and compiled is not None:
                    without.enter_context(patch.object(module, "compiled", None))
            self.check()

    def test_text(self) -> None:
        """Of the text, only the secret changes."""
        site = self.site("meraki", "raw")
        self.assertEqual(200, site.ask(post(MERAKI % SECRET.encode(), b"/in")).status)
        self.assertEqual((MERAKI % b"***").decode(), site.messages[0]["MESSAGE"])

    def test_twice(self) -> None:
        """Of two members of one name, of which the last is compared, both are masked."""
        body = b'{"sharedSecret":"%s","sharedSecret":"%s","sharedSecret":"%s"}' % (WRONG, ESCAPED, SECRET.encode())
        site = self.site("meraki", "raw")
        self.assertEqual(200, site.ask(post(body, b"/in")).status)
        (line,) = self.lines(site)
        self.assertEqual(3, line.count(b"***"))

    def test_noted(self) -> None:
        """With C{verify: note}, wrong secrets are masked, too: that of another source may be one of them."""
        for form in ("raw", "json", "connector"):
            site = self.site("meraki", form, must_verify=False)
            for shown in (b'"%s"' % WRONG, b'{"is":["%s"]}' % WRONG):
                self.assertEqual(200, site.ask(post(b'{"sharedSecret":%s}' % shown, b"/in")).status)
            self.assertEqual([True, True], [b"***" in line for line in self.lines(site)])

    def test_not_json(self) -> None:
        """What a looser reader could find the secret in is refused, also with C{verify: note}."""
        bodies = [b"{'sharedSecret':'%s'}", b'{"sharedSecret":"%s"} x', b"sharedSecret=%s", b'{"sharedSecret":"%s",}']
        for body in bodies:
            site = self.site("meraki", "json", must_verify=False)
            answer = site.ask(post(body % SECRET.encode(), b"/in"))
            self.assert_refused(site, answer, 400, "bad_payload")
            self.assertNotIn(b"cr3t", answer.body)
            self.lines(site)
        site = self.site("meraki", "raw", must_verify=False)
        self.assertEqual(200, site.ask(post(b"", b"/in")).status)

    def test_own_sender(self) -> None:
        """So does a definition of the operator's own, with several places."""
        sender = sender_of("when: {any_header: [x-a]}\nverify: {at: [/a/0/b, /c], algorithm: equal}\n")
        site = GuardedWire(sender, SECRETS)
        body = b'{"c":"%s","a":[{"b":"%s"},{"b":1}]}' % (SECRET.encode(), WRONG)
        self.assertEqual(200, site.ask(post(body, b"/in")).status)
        self.assertEqual(1, len(self.lines(site)))
        self.assertEqual("main", site.messages[0]["webhook.secret"])

    def test_large(self) -> None:
        """A large body is masked in time slices."""
        turns: list[Any] = []
        now = [0.0]

        def clock() -> float:
            now[0] += 0.001
            return now[0]

        site = self.site("meraki", "raw", slices=TimeSlices(turns.append, clock))
        body = b'{"list":[%s],"sharedSecret":"%s"}' % (b",".join([b'{"a":1}'] * 20_000), SECRET.encode())
        sender = site.connect()
        sender.send(post(body, b"/in"))
        count = 0
        while turns:
            turns.pop(0)()
            count += 1
        self.assertGreater(count, 20)
        (line,) = self.lines(site)
        self.assertEqual(body.replace(SECRET.encode(), b"***"), json.loads(line)["MESSAGE"].encode())
