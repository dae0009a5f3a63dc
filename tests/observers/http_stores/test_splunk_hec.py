"""Splunk's HTTP Event Collector, played from its documented answers: no real one was at hand."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twisted.trial.unittest import SynchronousTestCase

from tests.observers.http_stores.played_http_store import HTTPStoreContract, Record, Row, answer, broken, cut
from webhookrx.errors import ConfigError, Unavailable
from webhookrx.interfaces import Wants
from webhookrx.observers.http_stores.exchange import HTTPAnswer, NoAnswer
from webhookrx.observers.http_stores.splunk_hec import ACKS, EVENTS, NO_ACK_PAUSE
from webhookrx.observers.http_stores.splunk_hec_options import SPLUNK_HEC_SPEC, build_splunk_hec, read_splunk_hec
from webhookrx.settings import MiB
from webhookrx.testing import make_message

if TYPE_CHECKING:
    from webhookrx.message.message import Message
    from webhookrx.observers.http_stores.exchange import StoreRequest
    from webhookrx.observers.http_stores.options import HTTPTarget
    from webhookrx.observers.http_stores.store import HTTPStore

URL = "https://splunk.example.com:8088"
CHANNEL = b"X-Splunk-Request-Channel"


def said(status: int, code: int, text: str, **more: Any) -> HTTPAnswer:
    """Make an answer of the collector."""
    return answer(status, {"text": text, "code": code, **more})


#: The table of "Possible error codes" in Splunk's documentation, and what each code means for a message.
CODES = (
    Row("0", said(200, 0, "Success"), "stored"),
    Row("1", said(403, 1, "Token disabled"), "later"),
    Row("2", said(401, 2, "Token is required"), "later"),
    Row("3", said(401, 3, "Invalid authorization"), "later"),
    Row("4", said(403, 4, "Invalid token"), "later"),
    Row("5", said(400, 5, "No data"), "later"),
    Row("6", said(400, 6, "Invalid data format", **{"invalid-event-number": 0}), "rejected"),
    Row("7", said(400, 7, "Incorrect index", **{"invalid-event-number": 0}), "later"),
    Row("8", said(500, 8, "Internal server error"), "later"),
    Row("9", said(503, 9, "Server is busy"), "later"),
    Row("10", said(400, 10, "Data channel is missing"), "later"),
    Row("11", said(400, 11, "Invalid data channel"), "later"),
    Row("12", said(400, 12, "Event field is required", **{"invalid-event-number": 0}), "rejected"),
    Row("13", said(400, 13, "Event field cannot be blank", **{"invalid-event-number": 0}), "rejected"),
    Row("14", said(400, 14, "ACK is disabled"), "later"),
    Row("15", said(400, 15, "Error in handling indexed fields", **{"invalid-event-number": 0}), "rejected"),
    Row("16", said(400, 16, "Query string authorization is not enabled"), "later"),
    Row("17", said(200, 17, "HEC is healthy"), "later"),
    Row("18", said(503, 18, "HEC is unhealthy, queues are full"), "later"),
    Row("19", said(503, 19, "HEC is unhealthy, ack service unavailable"), "later"),
    Row("20", said(503, 20, "HEC is unhealthy, queues are full, ack service unavailable"), "later"),
    Row("21", said(400, 21, "Invalid token"), "later"),
    Row("22", said(400, 22, "Token disabled"), "later"),
    Row("23", said(503, 23, "Server is shutting down"), "later"),
    Row("26", said(429, 26, "HEC queue is at capacity and cannot process any more requests"), "later"),
    Row("27", said(429, 27, "HEC ACK channel is at capacity and cannot process any more requests"), "later"),
    Row("an unknown code", said(400, 99, "New in the next version"), "later"),
    Row("413", answer(413, b"<html>too large</html>"), "rejected"),
    Row("a redirection", answer(302), "later"),
    Row("404", answer(404, b"not found"), "later"),
    Row("429 of a proxy", answer(429, b"slow down", retry_after="5"), "later"),
    Row("502 of a proxy", answer(502, b"<html>"), "later"),
    Row("503 of a proxy", answer(503, b"<html>", retry_after="5"), "later"),
    Row("504 of a proxy", answer(504, b"<html>"), "later"),
)

NONSENSE = (
    answer(200, b""),
    answer(200, b"ok"),
    answer(200, []),
    answer(200, {}),
    answer(200, {"text": "Success", "code": "0"}),
    answer(200, {"text": "Success", "code": False}),
    answer(201, {"text": "Success", "code": 0}),
    answer(204),
    cut(said(200, 0, "Success")),
    answer(400, b"bad request"),
    cut(said(400, 6, "Invalid data format")),
    broken(said(400, 6, "Invalid data format")),
    answer(400, {"code": "6"}),
)


class PlayedCollector(HTTPStoreContract):
    """Plays a collector, without acknowledgement."""

    url = URL
    spec = SPLUNK_HEC_SPEC
    # It has no key by which it knows an event again.
    once = False
    ack = "none"

    def setUp(self) -> None:
        """Write a token."""
        super().setUp()
        self.token_file = os.path.abspath(self.mktemp())
        self.write_secret(self.token_file, "t0ken")

    def read(self, args: Sequence[str], options: dict[str, str]) -> tuple[HTTPTarget, HTTPStore]:
        """Read the options; there is always a token."""
        return read_splunk_hec(args, {"token_file": self.token_file, "ack": self.ack, **options})

    def events(self, request: StoreRequest) -> list[dict[str, Any]]:
        """Take a body apart: objects, one behind the other."""
        decoder, text, events, place = json.JSONDecoder(), request.content.decode(), [], 0
        while place < len(text):
            event, place = decoder.raw_decode(text, place)
            events.append(event)
            while text[place : place + 1] == "\n":
                place += 1
        return events

    def serve(self, request: StoreRequest) -> HTTPAnswer:
        """
        Index events up to the first bad one, as U{https://github.com/moby/moby/issues/35862} describes it.
        """
        for place, event in enumerate(self.events(request)):
            if self.refused is not None and self.refused in event["event"]["MESSAGE"]:
                return said(400, 6, "Invalid data format", **{"invalid-event-number": place})
            self.records.append(Record(event["fields"]["webhookrx_id"], event["event"]["MESSAGE"]))
        return said(200, 0, "Success")

    def serve_half(self, request: StoreRequest) -> HTTPAnswer:
        """Index the beginning."""
        for event in self.events(request)[:3]:
            self.records.append(Record(event["fields"]["webhookrx_id"], event["event"]["MESSAGE"]))
        return said(503, 9, "Server is busy")


class CollectorTests(PlayedCollector, SynchronousTestCase):
    """Without acknowledgement a 200 is the collector's word, and no more."""

    rows = (
        *CODES,
        Row("24", said(200, 24, "HEC queue is approaching its capacity limit"), "stored"),
        Row("25", said(200, 25, "HEC ACK is approaching its capacity limit"), "stored"),
    )
    nonsense = NONSENSE

    def test_promise(self) -> None:
        """It promises that events are queued, and says how to get more."""
        observer = self.make_observer()

        self.assertEqual("queued", observer.promise)
        self.assertIn("ack=indexer", observer.promise_reason)

    def test_wrong_index(self) -> None:
        """
        A wrong index drops no batch, as others do: it is tried until somebody mends it
        (U{https://github.com/open-telemetry/opentelemetry-collector-contrib/pull/3682},
        U{https://github.com/signalfx/splunk-otel-collector-chart/issues/935}).
        """
        observer = self.opened_with()
        self.answer_with(said(400, 7, "Incorrect index", **{"invalid-event-number": 1}))

        outcomes = self.outcomes(observer, "a", "b", "c")

        self.assertEqual([Unavailable] * 3, [type(each) for each in outcomes])
        self.assertIn("code 7: look at index=", str(outcomes[0]))
        self.mended()
        self.assertEqual([], self.deliver(observer, "a", "b", "c"))

    def test_token(self) -> None:
        """
        A token that is disabled, or rotated, refuses nothing for good
        (U{https://github.com/vectordotdev/vector/issues/24543}).
        """
        observer = self.opened_with()
        for row in CODES:
            if row.name in ("1", "2", "3", "4", "21", "22"):
                self.answer_with(row.answer)
                self.assertIn("token", str(self.outcomes(observer, "a")[0]))

    def test_hints(self) -> None:
        """Each code that a person can do something about says what; what stands in front of Splunk, by its status."""
        observer = self.opened_with(retry_for="0s")
        for played, words in (
            *((row.answer, f"code {row.name}: the token is disabled") for row in CODES if row.name in ("1", "22")),
            *(
                (row.answer, f"code {row.name}: look at token_file=")
                for row in CODES
                if row.name in ("2", "3", "4", "21")
            ),
            (said(400, 7, "Incorrect index"), "code 7: look at index="),
            (said(503, 9, "Server is busy"), "(code 9)"),
            (said(400, 10, "Data channel is missing"), "code 10: the token asks for indexer acknowledgement"),
            (said(400, 11, "Invalid data channel"), "code 11: the channel"),
            (said(400, 13, "Event field cannot be blank"), "(code 13)"),
            (said(400, 14, "ACK is disabled"), "code 14: the token has no indexer acknowledgement"),
            (said(503, 23, "Server is shutting down"), "code 23: shutting down"),
            (said(429, 26, "HEC queue is at capacity"), "code 26: its queue is full"),
            (said(429, 27, "HEC ACK channel is at capacity"), "code 27: it has too many"),
            (answer(401), "look at token_file="),
            (answer(403), "look at token_file="),
            (answer(404), "look at the URL"),
            (answer(300), "redirections are not followed"),
            (answer(413), "look at batch_size="),
        ):
            with self.subTest(words):
                self.answer_with(played)
                self.assertIn(words, str(self.outcomes(observer, "a")[0]))

    def test_one_bad_event(self) -> None:
        """
        A bad event holds up no other, and is not sent with others again and again
        (U{https://github.com/moby/moby/issues/35862}).
        """
        observer = self.opened_with()
        self.refuse("BAD")

        self.assertEqual(["BAD"], self.deliver(observer, "a", "b", "BAD", "c"))

        self.assertEqual([4, 2, 1, 1], [len(self.events(request)) for request in self.client.requests])
        self.assertEqual(["a", "b", "a", "b", "c"], self.stored_texts())

    def test_wrong_event_number(self) -> None:
        """A number that counts from 1, or is none, costs no event that is good."""
        for number in (3, -1, 99, "2", None):
            observer = self.opened_with()

            def serve(request: StoreRequest, number: object = number) -> HTTPAnswer:
                events = self.events(request)
                if any("BAD" in event["event"]["MESSAGE"] for event in events):
                    return said(400, 6, "Invalid data format", **{"invalid-event-number": number})
                return self.serve(request)

            self.client.serve = serve

            self.assertEqual(["BAD"], self.deliver(observer, "a", "b", "BAD", "c"))


class AcknowledgedTests(PlayedCollector, SynchronousTestCase):
    """With indexer acknowledgement an event is safe once the indexer says so."""

    ack = "indexer"
    rows = tuple(row for row in CODES if row.fate != "stored")
    nonsense = (
        *NONSENSE,
        said(200, 0, "Success"),
        said(200, 0, "Success", ackId="7"),
        said(200, 0, "Success", ackId=True),
        said(200, 0, "Success", ackId=-1),
    )

    def setUp(self) -> None:
        """Make channels."""
        super().setUp()
        self.waiting: dict[tuple[bytes, int], int] = {}
        self.delay = 2
        self.asked = 0
        self.acks: list[Any] = []
        self.numbers: dict[bytes, int] = {}

    def serve(self, request: StoreRequest) -> HTTPAnswer:
        """Index events, and acknowledge them at the third question."""
        channel = dict(request.headers)[CHANNEL]
        self.assertTrue(uuid.UUID(channel.decode()))
        if request.path.endswith(ACKS):
            return self.serve_acks(channel, json.loads(request.content)["acks"])
        stored = super().serve(request)
        if stored.status != 200:
            return stored
        number = self.numbers.get(channel, 0)
        self.numbers[channel] = number + 1
        self.waiting[channel, number] = self.delay
        return said(200, 0, "Success", ackId=number)

    def serve_acks(self, channel: bytes, numbers: list[int]) -> HTTPAnswer:
        """Say whether events are indexed. What was said to be true is forgotten."""
        self.asked += 1
        if self.acks:
            play = self.acks.pop(0)
            if isinstance(play, NoAnswer):
                raise play
            return play  # type: ignore[no-any-return]
        states = {}
        for number in numbers:
            left = self.waiting.get((channel, number), 1)
            states[str(number)] = left == 0
            if left == 0:
                del self.waiting[channel, number]
            elif (channel, number) in self.waiting:
                self.waiting[channel, number] = left - 1
        return answer(200, {"acks": states})

    def test_promise(self) -> None:
        """It promises that events are durable."""
        self.assertEqual(("durable", ""), (self.make_observer().promise, self.make_observer().promise_reason))

    def test_confirmed(self) -> None:
        """It is asked in the channel of the request until it is true; how long that took is counted."""
        observer = self.opened_with()

        self.assertIsNone(self.store(observer, "a", "b"))

        paths = [request.path for request in self.client.requests]
        self.assertEqual([EVENTS, ACKS, ACKS, ACKS], paths)
        self.assertEqual(1, len({dict(request.headers)[CHANNEL] for request in self.client.requests}))
        taken = observer.counts.take()
        self.assertEqual(1, taken.confirms.count)
        self.assertGreater(taken.confirms.sum, 2.0)

    def test_one_channel(self) -> None:
        """As long as all is acknowledged there is one channel: Splunk keeps a million."""
        observer = self.opened_with()
        for text in "abc":
            self.assertIsNone(self.store(observer, text))

        self.assertEqual({2}, {number - 1 for number in self.numbers.values()})

    def test_not_in_time(self) -> None:
        """What is not acknowledged in time is not safe: it is sent again later, in a channel of its own."""
        observer = self.opened_with()
        self.delay = 1000

        outcome = self.outcomes(observer, "a")[0]

        self.assertIsInstance(outcome, Unavailable)
        self.assertIn("not confirmed in time", str(outcome))
        self.assertEqual(1, [request.path for request in self.client.requests].count(EVENTS))
        self.delay = 0
        self.assertEqual([], self.deliver(observer, "a"))
        self.assertEqual(2, len(self.numbers))

    def test_other_indexer(self) -> None:
        """
        A true that was meant for an earlier request counts for no later one, though another indexer has given it the
        same number.
        """
        observer = self.opened_with()
        self.delay = 0
        # The first is indexed, and the answers that say so are lost.
        self.acks = [NoAnswer("reset")] * 100
        self.assertIsInstance(self.outcomes(observer, "a")[0], Unavailable)
        self.acks = []
        # The second goes to an indexer that numbers from 0 in each channel, and crashes; the first one answers.
        self.delay = 1000
        self.numbers.clear()

        self.assertIsInstance(self.outcomes(observer, "b")[0], Unavailable)

    def test_answers_that_say_nothing(self) -> None:
        """Errors, nonsense and numbers that were not asked for are no acknowledgement."""
        for play in (
            answer(200, {"acks": {"1": True}}),
            answer(200, {"acks": {"0": "true"}}),
            answer(200, {"acks": {"0": 1}}),
            answer(200, {"acks": {}}),
            answer(200, {"acks": [True]}),
            answer(200, {}),
            answer(200, b"true"),
            answer(204),
            cut(answer(200, {"acks": {"0": True}})),
            broken(answer(400)),
            answer(503, {"text": "Server is busy", "code": 9}),
            answer(400, {"text": "ACK is disabled", "code": 14}),
            NoAnswer("reset"),
        ):
            with self.subTest(str(play)):
                self.setUp()
                observer = self.opened_with()
                self.acks = [play] * 100

                self.assertIsInstance(self.outcomes(observer, "a")[0], Unavailable)
                self.assertGreater(self.asked, 2)

    def test_token_without(self) -> None:
        """
        Where the token has no acknowledgement, events are not sent again each second: each time they are indexed once
        more. The error says what to do.
        """
        observer = self.opened_with()
        self.answer_with(said(200, 0, "Success"))

        outcome = self.outcomes(observer, "a")[0]

        assert isinstance(outcome, Unavailable)
        self.assertEqual(NO_ACK_PAUSE, outcome.retry_after)
        self.assertIn("ack=none", str(outcome))
        self.assertEqual(1, len(self.client.requests))

    def test_full_queue(self) -> None:
        """A warning that a queue is nearly full goes with events that are taken, and are acknowledged as others are."""
        observer = self.opened_with()
        self.client.serve = lambda request: (
            said(200, 24, "HEC queue is approaching its capacity limit", ackId=0)
            if request.path == EVENTS
            else answer(200, {"acks": {"0": True}})
        )

        self.assertIsNone(self.store(observer, "a"))


class EventTests(SynchronousTestCase):
    """What an event is."""

    def event(self, message: Message | None = None, **options: str) -> dict[str, Any]:
        """Render a message."""
        _, store = read_splunk_hec((URL,), {"token_file": "/t", **options})
        line = store.render(make_message("hello", {"RCPTID": "id-1", "HOST": "web"}) if message is None else message)
        self.assertTrue(line.endswith(b"\n"))
        self.assertEqual(1, line.count(b"\n"))
        event: dict[str, Any] = json.loads(line)
        return event

    def test_default(self) -> None:
        """It is the JSON object of the message, with time, host, source type and id."""
        message = make_message("hello", {"RCPTID": "id-1", "HOST": "web"})
        message.received = 1_700_000_000_123_456_789
        event = self.event(message)

        self.assertEqual({"time", "host", "sourcetype", "fields", "event"}, event.keys())
        self.assertEqual(("web", "_json"), (event["host"], event["sourcetype"]))
        self.assertEqual({"webhookrx_id": "id-1"}, event["fields"])
        self.assertEqual("hello", event["event"]["MESSAGE"])
        self.assertEqual(1_700_000_000.123456, event["time"])

    def test_own_time(self) -> None:
        """The time that a message of the router form says goes before that of receipt."""
        message = make_message("x")
        message.values.clear()
        message.values |= {"log": {"time_unix_nano": 1_600_000_000_000_000_001, "body": "x"}, "meta": {"id": "m-1"}}

        event = self.event(message)

        self.assertEqual((1_600_000_000.0, "m-1"), (event["time"], event["fields"]["webhookrx_id"]))

    def test_metadata(self) -> None:
        """Index, source, source type and host are templates; what is empty is left out."""
        event = self.event(index="logs-${HOST}", source="hook", sourcetype="", host="${NOTHING}")

        self.assertEqual(("logs-web", "hook"), (event["index"], event["source"]))
        self.assertEqual({"time", "index", "source", "fields", "event"}, event.keys())

    def test_template(self) -> None:
        """A template makes the text of the event."""
        self.assertEqual('say "hello"', self.event(template='say "$MESSAGE"')["event"])

    def test_long_template(self) -> None:
        """However long."""
        text = 'a"\u00e9\u202e\n' * 300_000

        self.assertEqual(
            text.replace("\n", "\\n").replace("\u202e", "\\u202e"),
            self.event(make_message(text), template="$MESSAGE")["event"],
        )

    def test_id(self) -> None:
        """The id may be another."""
        self.assertEqual({"webhookrx_id": "web/hello"}, self.event(id="${HOST}/$MESSAGE")["fields"])


class OptionTests(SynchronousTestCase):
    """The spec string."""

    def test_defaults(self) -> None:
        """A URL and a token are enough."""
        target, store = read_splunk_hec((URL,), {"token_file": "/t"})

        self.assertEqual((URL, 10.0), (target.url, target.retry_for))
        self.assertEqual((EVENTS, ACKS, None), (store.path, store.ack_path, store.channel))
        self.assertEqual(Wants(5000, 5 * MiB, 0.0), store.wants)
        read_splunk_hec((URL,), {"token_file": "/t", "retry_for": "0s", "batch_size": "1"})

    def test_acknowledgement(self) -> None:
        """With acknowledgement there is more time."""
        target, store = read_splunk_hec((URL,), {"token_file": "/t", "ack": "indexer"})

        self.assertEqual((15.0, "durable"), (target.retry_for, store.promise))

    def test_paths(self) -> None:
        """The path of the API is added to that of the URL, unless it is there."""
        for url, events, acks in [
            (f"{URL}/", EVENTS, ACKS),
            (f"{URL}{EVENTS}", EVENTS, ACKS),
            (f"{URL}/splunk/", f"/splunk{EVENTS}", f"/splunk{ACKS}"),
        ]:
            with self.subTest(url):
                _, store = read_splunk_hec((url,), {"token_file": "/t"})

                self.assertEqual((events, acks), (store.path, store.ack_path))

    def test_mistakes(self) -> None:
        """What can't be meant is an error that names observer and option."""
        for url, options, problem in [
            (URL, {}, "needs token_file="),
            ("http://splunk.example.com:8088", {"token_file": "/t"}, "allow_plaintext=yes"),
            (f"{URL}?x=1", {"token_file": "/t"}, "query"),
            (URL, {"token_file": "/t", "ack": "yes"}, "it takes none or indexer"),
            (URL, {"token_file": "/t", "index": "${"}, "index="),
            (URL, {"token_file": "/t", "id": "same"}, "id="),
            (URL, {"token_file": "/t", "batch": "0"}, "batch="),
            (URL, {"token_file": "/t", "batch_size": "0"}, "batch_size="),
            (
                URL,
                {"token_file": "/t", "ack": "indexer", "retry_for": "1s"},
                'retry_for="1s" is not enough; it takes 5s',
            ),
            ("https://user:pass@h", {"token_file": "/t"}, "no user or password"),
        ]:
            with self.subTest(problem):
                error = str(self.assertRaises(ConfigError, read_splunk_hec, (url,), options))

                self.assertIn(problem, error)
                self.assertTrue(error.startswith("observer 'splunk-hec': "))

    def test_build(self) -> None:
        """The token is read when the observer is built, and goes as Splunk wants it."""
        path = os.path.abspath(self.mktemp())
        self.assertRaises(ConfigError, build_splunk_hec, "s", (URL,), {"token_file": path}, "durable")
        with open(path, "w") as file:
            file.write("abc\n")
        observer = build_splunk_hec("s", (URL,), {"token_file": path}, "durable")

        self.assertEqual([(b"Authorization", b"Splunk abc")], observer._read_files()[1])
