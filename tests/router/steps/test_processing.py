"""Tests for L{webhookrx.router.steps.processing}."""

from __future__ import annotations

import copy
import itertools
import json
import time
from base64 import b64encode
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.test_samples import DATA
from webhookrx.intake.head import Head, HeaderLines, Peer
from webhookrx.intake.json_body import PayloadError, body_text, parse_strict_json
from webhookrx.message.encoders import encode_line
from webhookrx.message.fields import MISSING
from webhookrx.message.message import Message
from webhookrx.router.steps import processing
from webhookrx.router.steps.context import CLASSIFIED, DROPPED, PROBE, STEP_ERROR, UNKNOWN_SENDER, StepError
from webhookrx.router.steps.processing import Processing, ProcessingResult
from webhookrx.router.steps.step import Preprocessing, Regex, SetField, Step
from webhookrx.senders import otlp, unpacking
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.definition import SenderDefinition, Severity, Time, When
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.http_file import read_http_file

ACME = SenderDefinition(
    id="acme-doors",
    vendor="acme",
    product="doors",
    when=When(headers={"x-acme": "*"}),
    service="{/kind}",
    time=(Time("/at", "unix"),),
    message=("{/kind} {/door}",),
    severity=(Severity("/level"),),
    host=("/door",),
    delivery=("header:x-acme-delivery", "/id"),
)
BODIES = SenderDefinition(id="other-bodies", vendor="other", product="bodies", when=When(body_keys=("inner_key",)))

OPENED = b'{"kind":"opened","door":"d1","at":1700000000,"level":"error"}'


def make(*steps: Step, classify: bool = False, parse: bool = False) -> Processing:
    """Return steps made ready, with a clock that stands still."""
    preprocessing = Preprocessing(classify=classify, parse=parse, steps=steps)
    return Processing(preprocessing, Classifier([ACME, BODIES]), clock=lambda: 0.0)


def a_request(body: bytes = OPENED, *, acme: bool = True) -> tuple[dict[str, Any], Evidence]:
    """Return the message that a request becomes, and what is known of the request."""
    block = b"POST /events HTTP/1.1\r\nHost: r1\r\n" + (b"X-Acme: 1\r\n" if acme else b"") + b"\r\n"
    head = Head(b"POST", b"/events", b"", HeaderLines(block), Peer("192.0.2.1", 40000, True))
    try:
        decoded: Any = parse_strict_json(body)
    except PayloadError:
        decoded = MISSING
    text = body.decode()
    record: dict[str, Any] = {
        "log": {
            "body": decoded if isinstance(decoded, dict) else text,
            "attributes": {},
            "observed_time_unix_nano": 1,
            "time_unix_nano": 0,
            "severity_number": 0,
            "severity_text": "",
        },
        "meta": {"host": {"name": "192.0.2.1"}, "id": "0001"},
    }
    return record, Evidence(head, {}, body, text, decoded)


class RunTests(SynchronousTestCase):
    """Tests for the way of a message through steps."""

    def test_idle(self) -> None:
        """Without steps there is nothing to do, and it is known before."""
        processing = make()
        self.assertTrue(processing.idle)
        self.assertEqual(processing.run(*a_request()), ProcessingResult(True))
        self.assertFalse(make(Step(probe="a")).idle)
        self.assertFalse(make(classify=True).idle)

    def test_possible_events(self) -> None:
        """What its steps may leave is known before, each once."""
        processing = make(
            Step(probe="a"),
            Step(select="log.body.x = 1", label="only"),
            Step(unset="log.body.x", label="only"),
            classify=True,
            parse=True,
        )
        self.assertEqual(
            processing.possible_events,
            (
                *(UNKNOWN_SENDER, (STEP_ERROR, "classify"), (STEP_ERROR, "parse")),
                *((PROBE, "a"), (STEP_ERROR, "1 probe"), (DROPPED, "only"), (STEP_ERROR, "only")),
            ),
        )
        self.assertEqual(make().possible_events, ())

    def test_order(self) -> None:
        """Steps are done in order, each to what those before have made of the message."""
        processing = make(
            Step(probe="first"),
            Step(set=SetField("meta.a", "1")),
            Step(set=SetField("meta.b", "2"), condition="meta.a = 1"),
            Step(unset="meta.a"),
            Step(set=SetField("meta.c", "3"), condition="meta.a = 1"),
            Step(probe="last", condition="meta.b EXISTS"),
        )
        record, evidence = a_request()
        outcome = processing.run(record, evidence)
        self.assertEqual(outcome, ProcessingResult(True, ((PROBE, "first"), (PROBE, "last"))))
        self.assertEqual(record["meta"], {"host": {"name": "192.0.2.1"}, "id": "0001", "b": "2"})

    def test_drop(self) -> None:
        """A message that is dropped gets no further."""
        processing = make(
            Step(probe="before"), Step(select="log.body.kind = closed", label="closed only"), Step(probe="after")
        )
        self.assertEqual(
            processing.run(*a_request()), ProcessingResult(False, ((PROBE, "before"), (DROPPED, "closed only")))
        )

    def test_select_with_condition(self) -> None:
        """Messages that the condition does not match are not selected from."""
        processing = make(Step(select="log.body.door = d2", condition="log.body.kind = closed"))
        self.assertEqual(processing.run(*a_request()), ProcessingResult(True))

    def test_failure(self) -> None:
        """A step that fails is counted and named without anything of the message, which goes on as it was."""
        processing = make(
            Step(set=(SetField("meta.a", 1), SetField("log.body.kind.x", 1))),
            Step(set=SetField("log.body.door.x", 1), label="second"),
            Step(probe="after"),
        )
        record, evidence = a_request()
        outcome = processing.run(record, evidence)
        self.assertEqual(outcome.events, ((STEP_ERROR, "1 set"), (STEP_ERROR, "second"), (PROBE, "after")))
        self.assertTrue(outcome.kept)
        self.assertEqual(
            outcome.problem, "Step '1 set' failed: log.body.kind has no place for a field 'x': it is no object."
        )
        self.assertEqual(record, a_request()[0])

    def test_too_long(self) -> None:
        """
        A filter that can't look at all of a long text has failed: that is counted and told, and neither a match nor
        none. The message goes on as it was.
        """
        long = json.dumps({"text": "a" * 100_000}).encode()
        costly = "'(a?){1000}b'"
        for step, name in (
            (Step(select=f"log.body.text =~ {costly}"), "1 select"),
            (Step(select=f"log.body.text !~ {costly}"), "1 select"),
            (Step(select=f"NOT @ANY ==~ {costly}"), "1 select"),
            (Step(select=f"log.body.no EXISTS OR log.body.text =~ {costly}"), "1 select"),
            (Step(probe="p", condition=f"log.body.text !~ {costly}"), "1 probe"),
            (Step(unset="log.body.text", condition=f"NOT log.body.text =~ {costly}"), "1 unset"),
            (Step(regex=Regex("(?P<x>(a?){1000}b)", field="log.body.text")), "1 regex"),
            (Step(expression="log.body.x = regexp_search(log.body.text, '(a?){50}b');"), "1 expression"),
        ):
            record, evidence = a_request(long)
            outcome = make(step, Step(probe="after")).run(record, evidence)
            self.assertEqual(((STEP_ERROR, name), (PROBE, "after")), outcome.events, step)
            self.assertTrue(outcome.kept)
            self.assertIn(f"Step '{name}' failed", outcome.problem)
            self.assertRegex(outcome.problem, "too long|too much")
            self.assertNotIn("aaa", outcome.problem)
            self.assertEqual(a_request(long)[0], record)

    def test_too_long_to_classify(self) -> None:
        """So has Classify, when it can't find out whether a sender is one that it knows."""
        when = When(body_keys=("text",), body="text =~ '(a?){1000}b'")
        entry = SenderDefinition("acme", "acme", "widget", when)
        processing = Processing(Preprocessing(classify=True), Classifier([entry]))
        record, evidence = a_request(json.dumps({"text": "a" * 100_000}).encode())
        outcome = processing.run(record, evidence)
        self.assertEqual(((STEP_ERROR, "classify"),), outcome.events)
        self.assertTrue(outcome.kept)
        self.assertIn("Step 'classify' failed: The message holds too much", outcome.problem)
        self.assertNotIn("classify", record["meta"])

    def test_on_error(self) -> None:
        """What happens to a message on which a step fails is up to the step: it goes on, is dropped, or gets a note."""
        fails = SetField("log.body.kind.x", 1)
        processing = make(
            Step(set=fails, on_error="keep"),
            Step(set=fails, on_error="tag"),
            Step(set=fails, on_error="tag", label="third"),
            Step(probe="p"),
            Step(set=fails, on_error="drop", label="last"),
            Step(probe="never"),
        )
        record, evidence = a_request()
        outcome = processing.run(record, evidence)
        self.assertFalse(outcome.kept)
        failed = tuple((STEP_ERROR, name) for name in ("1 set", "2 set", "third"))
        self.assertEqual((*failed, (PROBE, "p"), (STEP_ERROR, "last"), (DROPPED, "last")), outcome.events)
        self.assertEqual(["2 set", "third"], record["meta"]["step_errors"])
        self.assertIn((DROPPED, "last"), processing.possible_events)

    def test_note_of_others(self) -> None:
        """What a step has put where the note goes is no note."""
        record, evidence = a_request()
        step = Step(set=SetField("log.body.kind.x", 1), on_error="tag")
        make(Step(set=SetField("meta.step_errors", "none")), step).run(record, evidence)
        self.assertEqual(["2 set"], record["meta"]["step_errors"])

    def test_costly_condition(self) -> None:
        """A condition that can't be worked out is a failure of its step."""
        body = json.dumps({"text": "ab" * 500_000}).encode()
        step = Step(unset="log.body.text", condition="log.body.text =~ '[ab]*a[ab]{30}c'")
        for on_error, kept in (("keep", True), ("drop", False)):
            record, evidence = a_request(body)
            outcome = make(msgspec.structs.replace(step, on_error=on_error)).run(record, evidence)
            self.assertEqual((kept, (STEP_ERROR, "1 unset")), (outcome.kept, outcome.events[0]))
            self.assertIn("holds too much for a query", outcome.problem)

    def test_not_begun(self) -> None:
        """Steps for which those before have left no work have failed, each of them."""
        self.patch(processing, "MOST_FOR_MESSAGE", 1_200)
        remove = Step(unset="log.body.text", on_error="drop", label="redact")
        record, evidence = a_request()
        outcome = make(Step(probe="p"), Step(probe="q"), Step(probe="r"), Step(probe="s"), remove).run(record, evidence)
        self.assertFalse(outcome.kept)
        failed = [(STEP_ERROR, name) for name in ("3 probe", "4 probe", "redact")]
        self.assertEqual([(PROBE, "p"), (PROBE, "q"), *failed, (DROPPED, "redact")], list(outcome.events))
        self.assertIn("'3 probe' failed: It was not begun", outcome.problem)

    def test_work_of_one(self) -> None:
        """A step can't take all the work of a message, and one that would take more than is left takes nothing."""
        body = json.dumps({"text": "a" * 20_000}).encode()
        costly = Step(expression="x = upper(log.body.text); " * 40)
        refused = Step(select="log.body.text =~ '(a?){1000}b'")
        steps = [refused] * 20 + [costly, refused, Step(expression="log.body.text = upper(log.body.text);")]
        record, evidence = a_request(body)
        outcome = make(*steps).run(record, evidence)
        self.assertEqual([(STEP_ERROR, f"{each} select") for each in range(1, 21)], list(outcome.events[:20]))
        self.assertEqual([(STEP_ERROR, "21 expression"), (STEP_ERROR, "22 select")], list(outcome.events[20:]))
        self.assertEqual("A" * 20_000, record["log"]["body"]["text"])
        greedy = Step(select=" OR ".join(f"log.body.text =* {number}" for number in range(25)))
        record, evidence = a_request(json.dumps({"text": "a" * 100_000}).encode())
        outcome = make(greedy, Step(probe="p", condition="log.body.text =* a")).run(record, evidence)
        self.assertEqual(((STEP_ERROR, "1 select"), (PROBE, "p")), outcome.events)
        taking = [costly] * 3 + [Step(expression="x = upper(log.body.text); " * 3)]
        outcome = make(*taking).run(*a_request(body))
        self.assertEqual([(STEP_ERROR, f"{each} expression") for each in (1, 2, 3, 4)], list(outcome.events))

    def test_work_is_the_same(self) -> None:
        """However long a message takes by the clock, what its steps do to it is the same."""
        expression = "x = upper(log.body.text); unset(log.body.password);"
        body = json.dumps({"text": "a" * 20_000, "password": "x"}).encode()
        for step in (0.0, 0.1, 2.0):
            ticks = itertools.count(step=step)
            processing = Processing(
                Preprocessing(steps=(Step(expression=expression),)), None, clock=lambda ticks=ticks: next(ticks)
            )
            record, evidence = a_request(body)
            self.assertEqual(ProcessingResult(True), processing.run(record, evidence))
            self.assertNotIn("password", record["log"]["body"])

    def test_backstop(self) -> None:
        """A clock ends only what takes very long, and then all steps that are left have failed."""
        steps = tuple(Step(probe=f"p{number}") for number in range(30))
        ticks = itertools.count()
        processing = Processing(Preprocessing(steps=steps), None, clock=lambda: next(ticks))
        outcome = processing.run(*a_request())
        self.assertTrue(outcome.kept)
        self.assertEqual([(PROBE, f"p{number}") for number in range(11)], list(outcome.events[:11]))
        self.assertEqual([(STEP_ERROR, f"{number} probe") for number in range(12, 31)], list(outcome.events[11:]))
        self.assertIn("'12 probe' failed: It was not begun", outcome.problem)

    def test_holds_nobody_up(self) -> None:
        """Whatever steps a rule has, and whatever is in a message, all of them together take some milliseconds."""
        text = "ab" * 60_000
        steps = [
            Step(select="@ANY =~ '[ab]*a[ab]{30}c' OR @ANY =* zz OR log.body EXISTS"),
            Step(regex=Regex("(?P<x>(.*)(.*)(.*)y?)$", field="log.body.text")),
            Step(expression="x = parse_kv(log.body.text); x = upper(log.body.text); log.body.y = [x, x, x];"),
            Step(probe="p", condition="log.body.list =~ '(a|ab|b){20}x'"),
            Step(set=SetField("meta.x", ["y" * 1_000] * 100)),
        ] * 50
        body = json.dumps({"text": text, "list": [text[:3_000]] * 30, "more": list(range(20_000))}).encode()
        processing = make(*steps)
        record, evidence = a_request(body)
        start = time.thread_time()
        outcome = processing.run(record, evidence)
        # Twenty milliseconds, on a machine ten times as slow.
        self.assertLess(time.thread_time() - start, 0.2)
        self.assertTrue(outcome.events)

    def test_one_line(self) -> None:
        """What the log says of a failure is one line that is not too long, whatever the rules quote in it."""
        forged = "log.body.a\nb\u202e" + "c" * 10_000
        for step in (
            Step(set=SetField(forged + ".x.y", 1)),
            Step(regex=Regex("(?P<a>.)", into=forged)),
            Step(expression='log.body["a\nb"] = log.body["no\nline"];'),
        ):
            record, evidence = a_request()
            record["log"]["body"] = {forged.removeprefix("log.body."): ""}
            problem = make(step).run(record, evidence).problem
            self.assertTrue(problem.isprintable(), problem)
            self.assertLess(len(problem), 600)
            self.assertIn("\\n", problem)

    def test_failure_before_drop(self) -> None:
        """The failure of a message that is dropped later is told too."""
        processing = make(Step(set=SetField("log.body.kind.x", 1)), Step(select="log.body.no EXISTS"))
        outcome = processing.run(*a_request())
        self.assertEqual(outcome.events, ((STEP_ERROR, "1 set"), (DROPPED, "2 select")))
        self.assertIn("'1 set'", outcome.problem)

    def test_expression_failure(self) -> None:
        """Where an expression failed is told by line and column."""
        processing = make(Step(expression="log.body.a = 1;\nlog.body.b = log.body.nothing;"))
        record, evidence = a_request()
        outcome = processing.run(record, evidence)
        self.assertEqual(outcome.events, ((STEP_ERROR, "1 expression"),))
        self.assertRegex(outcome.problem, r"^Step '1 expression' failed at 2:\d+: .*\.$")
        self.assertEqual(record, a_request()[0])

    def test_unforeseen(self) -> None:
        """Whatever goes wrong, nothing is raised, and only its kind is told."""

        class Broken:
            def classify(self, evidence: Evidence, last_resort: bool) -> None:
                raise RuntimeError(evidence.text)

        preprocessing = Preprocessing(classify=True, steps=(Step(probe="after"),))
        outcome = Processing(preprocessing, Broken()).run(*a_request())  # type: ignore[arg-type]
        self.assertEqual(outcome.events, ((STEP_ERROR, "classify"), (PROBE, "after")))
        self.assertEqual(outcome.problem, "Step 'classify' failed: RuntimeError.")

    def test_bad_step(self) -> None:
        """Steps that are wrong are refused when they are made ready."""
        self.assertEqual(self.assertRaises(StepError, make, Step(select="=")).diagnostic.code, "bad-query")


class DeliveryTests(SynchronousTestCase):
    """Which delivery it is, once the sender is known."""

    def test_id(self) -> None:
        """It is what the sender calls the delivery; without such a name there is none."""
        for body, expected in (
            (b'{"id":7}', {"delivery_id": "7"}),
            (b"{}", None),
            (b'[{"id":7},{"id":8}]', {"delivery_id": "7"}),
        ):
            record, evidence = a_request(body)
            make(classify=True).run(record, evidence)
            self.assertEqual(expected, record["meta"].get("sender"))
        record, evidence = a_request(b'{"id":7}', acme=False)
        make(classify=True).run(record, evidence)
        self.assertNotIn("sender", record["meta"])


class ClassifyTests(SynchronousTestCase):
    """Tests for Classify."""

    def test_known(self) -> None:
        """The message says who sent it, and why that is known; its body and host stay."""
        record, evidence = a_request()
        before = a_request()[0]
        outcome = make(classify=True).run(record, evidence)
        self.assertEqual(outcome, ProcessingResult(True, ((CLASSIFIED, "acme-doors"),)))
        meta = record["meta"]
        self.assertEqual((meta["vendor"], meta["product"], meta["service"]), ("acme", "doors", "opened"))
        self.assertEqual((meta["classify"]["rule"], meta["classify"]["confidence"]), ("acme-doors", "high"))
        self.assertTrue(meta["classify"]["why"])
        self.assertEqual(record["log"], before["log"])
        self.assertEqual(meta["host"], before["meta"]["host"])

    def test_unknown(self) -> None:
        """What nobody is known to send stays as it is, and is counted; Parse leaves it alone."""
        record, evidence = a_request(acme=False)
        outcome = make(classify=True, parse=True).run(record, evidence)
        self.assertEqual(outcome, ProcessingResult(True, (UNKNOWN_SENDER,)))
        self.assertEqual(record, a_request(acme=False)[0])

    def test_step(self) -> None:
        """As a step it goes by what steps before have made of the body, text that is JSON included."""
        for before in (
            Step(expression="log.body = log.body.payload;"),
            Step(set=SetField("log.body", {"inner_key": 1})),
            Step(regex=Regex("(?P<inner_key>a)", field="meta.host.name", into="log.body")),
        ):
            body = b'{"payload":"{\\"inner_key\\": [1]}"}'
            processing = make(Step(set=SetField("meta.host.name", "a")), before, Step(classify=True), classify=True)
            outcome = processing.run(*a_request(body, acme=False))
            self.assertEqual(outcome.events, (UNKNOWN_SENDER, (CLASSIFIED, "other-bodies")), before)

    def test_same_text(self) -> None:
        """A text that no step has changed is still the request's body, also when it is an array."""
        processing = make(Step(set=SetField("meta.a", 1)), Step(classify=True))
        outcome = processing.run(*a_request(b'[{"inner_key":1}]', acme=False))
        self.assertEqual(outcome.events, ((CLASSIFIED, "other-bodies"),))

    def test_plain_text(self) -> None:
        """A body that a step has made plain text is none that holds members."""
        processing = make(Step(set=SetField("log.body", "inner_key")), Step(classify=True))
        outcome = processing.run(*a_request(acme=False))
        self.assertEqual(outcome, ProcessingResult(True, (UNKNOWN_SENDER,)))

    def test_second(self) -> None:
        """A second Classify that finds nobody leaves what the first has found."""
        processing = make(Step(unset="log.body"), Step(classify=True), Step(classify=True), classify=True)
        record, evidence = a_request(b'{"inner_key":1}', acme=False)
        outcome = processing.run(record, evidence)
        self.assertEqual(outcome.events, ((CLASSIFIED, "other-bodies"), UNKNOWN_SENDER, UNKNOWN_SENDER))
        self.assertEqual(record["meta"]["vendor"], "other")


class LastResortTests(SynchronousTestCase):
    """Tests for Classify with a definition of last resort."""

    entries = (ACME, BODIES, next(entry for entry in builtin_definitions() if entry.last_resort))

    def run_steps(
        self, body: bytes, *steps: Step, acme: bool = False, **more: bool
    ) -> tuple[ProcessingResult, dict[str, Any]]:
        """Return what comes of a request."""
        record, evidence = a_request(body, acme=acme)
        record["meta"] |= {"vendor": "mine", "product": "own"}
        processing = Processing(Preprocessing(**more, steps=steps), Classifier(self.entries), clock=lambda: 0.0)
        return processing.run(record, evidence), record

    def test_json(self) -> None:
        """JSON of nobody known gets time, severity, host and message; vendor and product stay, service is not set."""
        body = b'{"msg":"full","level":"warn","ts":1700000000,"host":{"name":"h1:80"}}'
        outcome, record = self.run_steps(body, classify=True, parse=True)
        self.assertEqual(outcome.events, ((CLASSIFIED, "generic-json"),))
        meta, log = record["meta"], record["log"]
        self.assertEqual(meta["classify"], {"rule": "generic-json", "confidence": "low", "why": "JSON"})
        self.assertEqual((meta["vendor"], meta["product"], "service" in meta), ("mine", "own", False))
        self.assertEqual((log["time_unix_nano"], log["severity_text"]), (1_700_000_000 * 10**9, "WARN"))
        self.assertEqual((log["body"]["message"], meta["host"]["name"]), ("full", "h1"))

    def test_places(self) -> None:
        """Each of the names that loggers use is looked at, the first that can be used counts."""
        for members, message, severity, has_time, host in (
            ({"message": "m", "msg": "n"}, "m", "", False, None),
            ({"log": "l", "levelname": "WARNING"}, "l", "WARN", False, None),
            ({"short_message": "s", "severity": "Critical"}, "s", "FATAL", False, None),
            ({"text": "t", "log.level": "error", "host.name": "h"}, "t", "ERROR", False, "h"),
            ({"title": "t", "status": 200, "eventTime": "2026-01-01T00:00:00Z"}, "t", "", True, None),
            ({"message": {"no": "text"}, "msg": "n", "log": {"level": "info"}}, "n", "INFO", False, None),
            ({"status": "error", "created_at": "2026-01-01 00:00:00"}, None, "ERROR", True, None),
            ({"@timestamp": "soon", "time": 1700000000123, "hostname": "h"}, None, "", True, "h"),
        ):
            _, record = self.run_steps(json.dumps(members).encode(), classify=True, parse=True)
            log = record["log"]
            self.assertEqual(
                (log["body"].get("message_text", log["body"].get("message")), log["severity_text"]),
                (message, severity),
                members,
            )
            self.assertEqual(
                (log["time_unix_nano"] > 0, record["meta"]["host"]["name"]), (has_time, host or "192.0.2.1")
            )

    def test_no_json(self) -> None:
        """Text, a form and single values are of nobody."""
        for body in (b"plain", b"a=1&b=2", b"17", b'"x"', b"[1]", b""):
            outcome, record = self.run_steps(body, classify=True, parse=True)
            self.assertEqual((outcome.events, "classify" in record["meta"]), ((UNKNOWN_SENDER,), False), body)

    def test_off(self) -> None:
        """It can be switched off for the preprocessing, and for a step."""
        for steps, more in (
            ((), {"classify": True, "classify_fallback": False}),
            ((Step(classify=True, classify_fallback=False),), {}),
            ((Step(classify=True),), {"classify_fallback": False}),
        ):
            outcome, record = self.run_steps(b'{"msg":"x"}', *steps, **more)
            self.assertEqual((outcome.events, "classify" in record["meta"]), ((UNKNOWN_SENDER,), False))
        on = Step(classify=True, classify_fallback=True)
        outcome, _ = self.run_steps(b'{"msg":"x"}', on, classify_fallback=False)
        self.assertEqual(outcome.events, ((CLASSIFIED, "generic-json"),))

    def test_alone(self) -> None:
        """The switch needs a Classify beside it."""
        for step in (Step(probe="a", classify_fallback=False), Step(parse=True, classify_fallback=True)):
            problem = self.assertRaises(StepError, make, step).diagnostic
            self.assertEqual((problem.code, problem.path), ("step-kind", ("classify_fallback",)))

    def test_known_stays(self) -> None:
        """A sender that was known before stays, whatever the body has become since."""
        outcome, record = self.run_steps(
            b'{"inner_key":1}', Step(set=SetField("log.body", {"msg": "x"})), Step(classify=True), classify=True
        )
        self.assertEqual(outcome.events, ((CLASSIFIED, "other-bodies"), UNKNOWN_SENDER))
        self.assertEqual(record["meta"]["classify"]["rule"], "other-bodies")
        outcome, record = self.run_steps(
            b'{"msg":1}', Step(set=SetField("log.body", {"inner_key": "x"})), Step(classify=True), classify=True
        )
        self.assertEqual(outcome.events, ((CLASSIFIED, "generic-json"), (CLASSIFIED, "other-bodies")))


class ParseTests(SynchronousTestCase):
    """Tests for Parse."""

    def test_takes(self) -> None:
        """Time, severity, host and the structured body come from where the sender's entry says."""
        record, evidence = a_request()
        outcome = make(classify=True, parse=True).run(record, evidence)
        self.assertEqual(outcome, ProcessingResult(True, ((CLASSIFIED, "acme-doors"),)))
        log = record["log"]
        self.assertEqual(log["time_unix_nano"], 1_700_000_000 * 10**9)
        self.assertEqual((log["severity_number"], log["severity_text"]), (17, "ERROR"))
        self.assertEqual(log["body"], {**msgspec.json.decode(OPENED), "message": "opened d1"})
        self.assertEqual(record["meta"]["host"], {"name": "d1"})
        self.assertEqual(log["observed_time_unix_nano"], 1)

    def test_host_of_path(self) -> None:
        """The host that the path has set stays."""
        record, evidence = a_request()
        make(classify=True, parse=True).run(record, evidence, host_is_set=True)
        self.assertEqual(record["meta"]["host"], {"name": "192.0.2.1"})

    def test_nothing_there(self) -> None:
        """What the entry finds nowhere stays as it was."""
        record, evidence = a_request(b'{"x":1}')
        make(classify=True, parse=True).run(record, evidence)
        before = a_request()[0]
        before["log"]["body"] = {"x": 1}
        record["meta"] = before["meta"]
        self.assertEqual(record, before)

    def test_changed_body(self) -> None:
        """As a step it goes by what the body is by then."""
        processing = make(Step(set=SetField("log.body.level", "debug")), Step(parse=True), classify=True)
        record, evidence = a_request()
        processing.run(record, evidence)
        self.assertEqual(record["log"]["severity_number"], 5)

    def test_twice(self) -> None:
        """Done twice it finds the same."""
        record, evidence = a_request()
        make(Step(parse=True), classify=True, parse=True).run(record, evidence)
        again, evidence = a_request()
        make(classify=True, parse=True).run(again, evidence)
        self.assertEqual(record, again)

    def test_failure(self) -> None:
        """A message that steps have bent out of shape stays as it is, and is counted."""
        processing = make(Step(set=SetField("meta.host", "x")), Step(parse=True), classify=True)
        record, evidence = a_request()
        outcome = processing.run(record, evidence)
        self.assertEqual(outcome.events, ((CLASSIFIED, "acme-doors"), (STEP_ERROR, "2 parse")))
        self.assertEqual(record["log"], a_request()[0]["log"])


class ProtobufTests(SynchronousTestCase):
    """Tests for Classify and Parse with OTLP as protobuf."""

    def setUp(self) -> None:
        head, query, body = read_http_file((DATA / "samples/otlp-logs-protobuf.http").read_bytes())
        text, _ = body_text(body)
        self.record, _ = a_request(b"{}")
        self.record["log"] |= {"body": text, "attributes": {"webhook.body_base64": b64encode(body).decode()}}
        self.before = copy.deepcopy(self.record)
        self.evidence = Evidence(head, query, body, text, MISSING)
        preprocessing = Preprocessing(classify=True, parse=True)
        self.processing = Processing(preprocessing, Classifier(builtin_definitions()), clock=lambda: 0.0)

    def test_read(self) -> None:
        """The body becomes an object, and is not kept a second time."""
        outcome = self.processing.run(self.record, self.evidence)
        self.assertEqual(outcome, ProcessingResult(True, ((CLASSIFIED, "otlp-logs"),)))
        log = self.record["log"]
        self.assertEqual(
            (list(log["body"]), log["body"]["message"]), (["resourceLogs", "message"], "payment 4711 failed")
        )
        self.assertEqual((log["attributes"], self.record["meta"]["host"]), ({}, {"name": "web-1.example.com"}))
        encode_line(Message(self.record, 0))

    def test_without_extra(self) -> None:
        """Without the extra the body stays as any other, which is said, counted and hinted at."""
        for module in (otlp, unpacking):
            self.patch(module, "AVAILABLE", False)
        outcome = self.processing.run(self.record, self.evidence)
        self.assertEqual(outcome.events, ((CLASSIFIED, "otlp-logs"), (STEP_ERROR, "parse")))
        self.assertIn("pip install 'webhookrx[otlp]'", outcome.problem)
        self.assertIn("the extra otlp is not installed", self.record["meta"]["classify"]["why"])
        self.assertEqual(self.record["log"], self.before["log"])


#: One of each kind, several of them bound to fail on some bodies.
ALL_KINDS = (
    Step(probe="start", condition="@ANY =~ ^a"),
    Step(set=(SetField("log.body.a", {"b": [1]}), SetField("log.body.a.b.0", 2), SetField("log.body.kind.x", 1))),
    Step(regex=Regex("(?P<first>.)(?P<rest>.*)", into="log.body.found")),
    Step(expression="log.body.kind = lower(log.body.kind); log.attributes.n = log.body.n + 1;"),
    Step(unset=("log.body.a.b", "log.body.0")),
    Step(classify=True),
    Step(parse=True),
    Step(set=SetField("log.attributes.host", "x"), condition="NOT log.body.door EXISTS"),
    Step(select="log.body.door !~ z", condition="log.body.door EXISTS"),
)

_NAMES = st.sampled_from(["kind", "door", "at", "level", "inner_key", "a", "b", "n", "0", "found"])
_BODIES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=6),
    max_leaves=12,
).map(json.dumps) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


class OutcomeTests(SynchronousTestCase):
    """Tests for what becomes of messages in the end."""

    @given(_BODIES, st.booleans())
    def test_any_body(self, body: str, acme: bool) -> None:
        """Whatever is sent, nothing is raised, what is counted was foreseen, and the message can be written."""
        processing = make(*ALL_KINDS, classify=True, parse=True)
        record, evidence = a_request(body.encode(), acme=acme)
        outcome = processing.run(record, evidence)
        foreseen = {*processing.possible_events, (CLASSIFIED, "acme-doors"), (CLASSIFIED, "other-bodies")}
        self.assertEqual(set(outcome.events) - foreseen, set())
        failed = any(kind == STEP_ERROR for kind, _ in outcome.events)
        self.assertEqual(bool(outcome.problem), failed)
        self.assertNotRegex(outcome.problem, r"failed: [A-Z]\w+\.$", "a failure that nobody foresaw")
        self.assertEqual(record["meta"]["id"], "0001")
        self.assertEqual(len(encode_line(Message(record, 1)).splitlines()), 1)

    def test_line(self) -> None:
        """What steps leave behind can be written as a line of JSON."""
        processing = make(
            Step(set=(SetField("log.severity_number", 13), SetField("meta.openobserve", {"stream": [1.5, None]}))),
            classify=True,
            parse=True,
        )
        record, evidence = a_request()
        processing.run(record, evidence)
        line = encode_line(Message(record, 1))
        decoded = msgspec.json.decode(line)
        self.assertEqual(list(decoded), ["log", "meta"])
        self.assertEqual(decoded["meta"]["openobserve"], {"stream": [1.5, None]})
