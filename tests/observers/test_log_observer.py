"""Messages as events for any ILogObserver, Twisted's own among them."""

from __future__ import annotations

import io
import json

import msgspec
from twisted.logger import (
    ILogObserver,
    LogLevel,
    eventsFromJSONLogFile,
    formatEvent,
    jsonFileLogObserver,
    textFileLogObserver,
)
from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.observer_contract import ObserverContract
from tests.observers import plain_observers
from webhookrx.errors import ConfigError
from webhookrx.message.encoders import encode_object
from webhookrx.observers.log_observer import LogObserver, build_log_observer, event_of, resolve
from webhookrx.testing import RECEIVED, make_message

HERE = "tests.observers.plain_observers"


class PlainObserverTestCase(SynchronousTestCase):
    """Begins with no events taken."""

    def setUp(self) -> None:
        """Forget the events of other tests."""
        self.patch(plain_observers, "events", [])
        self.patch(plain_observers, "error", None)

    def texts(self) -> list[str]:
        """Return the C{MESSAGE} of each event that was taken."""
        return [event["message"]["MESSAGE"] for event in plain_observers.events]


class LogObserverContractTests(PlainObserverTestCase, ObserverContract):
    """A log observer is an observer."""

    def make_observer(self) -> LogObserver:
        """Make one."""
        return build_log_observer("observer:x", [f"{HERE}.taker"], {}, "durable")

    def break_observer(self) -> None:
        """Let it raise."""
        plain_observers.error = ValueError("broken")

    def stored_texts(self) -> list[str]:
        """Look at the events."""
        return self.texts()


class EventTests(SynchronousTestCase):
    """A message becomes an event that keeps to the rules of C{twisted.logger}."""

    def test_keys(self) -> None:
        """It has the keys that stock observers and filters look at, and a constant format."""
        event = event_of(make_message("${x} {log_time} %s"))

        self.assertEqual(RECEIVED / 1e9, event["log_time"])
        self.assertIs(LogLevel.info, event["log_level"])
        self.assertEqual("webhookrx.message", event["log_namespace"])
        self.assertEqual("{line}", event["log_format"])
        self.assertEqual("${x} {log_time} %s", event["message"]["MESSAGE"])

    def test_line(self) -> None:
        """The line is the JSON line in printable ASCII, and says the same."""
        message = make_message("é\u2028\u202e\x85\x7f\x1b[0m\r\n😀\x00")
        line = event_of(message)["line"]

        self.assertTrue(line.isascii() and line.isprintable(), line)
        self.assertEqual(json.loads(encode_object(message)), json.loads(line))

    def test_line_keeps_numbers(self) -> None:
        """Numbers keep their spelling in the line."""
        raw = msgspec.Raw(b"1.10e2")

        self.assertIn('"n":1.10e2', event_of(make_message("x", {"n": raw}))["line"])

    def test_plain_values(self) -> None:
        """The message holds plain values; a number that plain values can't hold is its text."""
        cases: list[tuple[bytes, object]] = [
            (b"1", 1),
            (b"-12345678901234567890123", -12345678901234567890123),
            (b"1.5", 1.5),
            (b"1e999", "1e999"),
            (b"-1e999", "-1e999"),
            (b"9" * 5000, "9" * 5000),
        ]
        for raw, value in cases:
            event = event_of(make_message("x", {"n": msgspec.Raw(raw), "nested": {"n": [msgspec.Raw(raw)]}}))

            self.assertEqual((value, {"n": [value]}), (event["message"]["n"], event["message"]["nested"]))

    def test_text_observer(self) -> None:
        """What textFileLogObserver shows of a hostile message is one line of printable text."""
        out = io.StringIO()
        textFileLogObserver(out)(event_of(make_message("one\n2026-01-01 [forged] two\x1b[2J\r{log_level}")))
        shown = out.getvalue()

        self.assertEqual(1, shown.count("\n"))
        self.assertTrue(shown[:-1].isprintable())
        self.assertIn("[webhookrx.message#info]", shown)
        self.assertIn("{log_level}", shown)

    def test_format_reaches_nothing(self) -> None:
        """A payload that looks like a format is shown as it is."""
        text = "{log_level.name} {message[HOST]} {line.__class__}"

        self.assertIn(text, formatEvent(event_of(make_message(text))))

    def test_json_observer(self) -> None:
        """What jsonFileLogObserver writes, eventsFromJSONLogFile reads, whatever the message tries to be."""
        hostile = {"__class_uuid__": "02e59486-f24d-46ad-8224-3acdf2a5732a", "name": "critical"}
        unknown = {"__class_uuid__": "00000000-0000-0000-0000-000000000000"}
        out = io.StringIO()
        observer = jsonFileLogObserver(out)
        for message in (
            make_message("one", {"a": hostile, "b": [unknown, [hostile]], "c": {"d": unknown}}),
            make_message("two", {"__class_uuid__": unknown["__class_uuid__"]}),
            make_message("three", {"log_level": hostile, "log_format": "{x}"}),
        ):
            observer(event_of(message))
        out.seek(0)
        events = list(eventsFromJSONLogFile(out))

        self.assertEqual(["one", "two", "three"], [event["message"]["MESSAGE"] for event in events])
        self.assertEqual([LogLevel.info] * 3, [event["log_level"] for event in events])
        revealed = {"webhook.__class_uuid__": hostile["__class_uuid__"], "name": "critical"}
        self.assertEqual(revealed, events[0]["message"]["a"])
        self.assertEqual([revealed], events[0]["message"]["b"][1])
        self.assertIn("webhook.__class_uuid__", events[1]["message"])


class StoreTests(PlainObserverTestCase):
    """Each message is safe or not by itself."""

    def test_one_fails(self) -> None:
        """An exception makes its own message not safe, and the others go on."""

        def picky(event: dict[str, dict[str, str]]) -> None:
            if event["message"]["MESSAGE"] == "b":
                raise ValueError("no b")
            plain_observers.take(event)

        observer = LogObserver("observer:x", lambda: picky)
        observer.open()
        outcome = observer.store([make_message(text) for text in "abc"])

        assert outcome is not None
        self.assertEqual([None, "no b", None], [error and str(error) for error in outcome])
        self.assertEqual(["a", "c"], self.texts())

    def test_false_exception(self) -> None:
        """An exception that counts as false is one all the same."""

        class Empty(Exception):
            def __len__(self) -> int:
                return 0

        def fail(event: object) -> None:
            raise Empty

        observer = LogObserver("observer:x", lambda: fail)
        observer.open()
        outcome = observer.store([make_message("a")])
        assert outcome is not None
        self.assertIsInstance(outcome[0], Empty)

    def test_later_is_never(self) -> None:
        """A Deferred or a coroutine is no word that the message is safe."""
        for name in ("answer_later", "AsyncTaker"):
            observer = build_log_observer("observer:x", [f"{HERE}.{name}"], {}, "durable")
            observer.open()
            outcome = observer.store([make_message()])

            assert outcome is not None
            self.assertIn("must be done when it returns", str(outcome[0]))
        self.assertEqual([], self.flushWarnings())

    def test_closed(self) -> None:
        """Before it is open, and once it is closed, nothing is safe."""
        observer = LogObserver("observer:x", lambda: plain_observers.take)
        for change in (lambda: None, observer.open, observer.close):
            change()
            outcome = observer.store([make_message()])
            self.assertEqual(change == observer.open, outcome is None)

    def test_promise(self) -> None:
        """It can promise no more than that its code took the message."""
        self.assertEqual("queued", LogObserver("observer:x", lambda: plain_observers.take).promise)


class ResolveTests(PlainObserverTestCase):
    """What a dotted name means."""

    def test_kinds(self) -> None:
        """An observer, a class, a function that makes one, and a function that takes an event will do."""
        for name in ("taker", "Taker", "make_taker", "make_callable", "take", "events.append"):
            observer = LogObserver("observer:x", resolve(f"{HERE}.{name}"))
            observer.open()
            self.assertIsNone(observer.store([make_message(name)]))

            self.assertEqual(name, self.texts()[-1])

    def test_object_itself(self) -> None:
        """An object that provides the interface is used as it is, not called."""
        self.assertTrue(ILogObserver.providedBy(plain_observers.taker))
        self.assertIs(plain_observers.taker, resolve(f"{HERE}.taker")())

    def test_made_once(self) -> None:
        """Nothing is made before the observer is opened."""
        made: list[object] = []
        observer = LogObserver("observer:x", lambda: made.append(1) or plain_observers.take)
        self.assertEqual([], made)
        observer.open()

        self.assertEqual([1], made)

    def test_errors(self) -> None:
        """What can't be is an error that names it and says why."""
        cases = [
            ("nowhere.at.all", "can't be imported"),
            (f"{HERE}.nothing", "can't be imported"),
            ("..", "can't be imported"),
            (f"{HERE}.number", "is a int"),
            (HERE, "is a module"),
            (f"{HERE}.NeedsArguments", "needs arguments"),
            (f"{HERE}.take_async", "async function"),
        ]
        for name, text in cases:
            error = self.assertRaises(ConfigError, resolve, name)

            self.assertIn(repr(name), str(error))
            self.assertIn(text, str(error))

    def test_making_fails(self) -> None:
        """A class or function that makes no observer is an error when it is opened."""
        cases = [
            ("make_trouble", "LookupError: no database"),
            ("make_nothing", "gave a NoneType"),
            ("NotAnObserver", "gave a NotAnObserver"),
        ]
        for name, text in cases:
            observer = LogObserver(f"observer:{name}", resolve(f"{HERE}.{name}"))
            error = self.assertRaises(ConfigError, observer.open)

            self.assertIn(f"observer:{name}", str(error))
            self.assertIn(text, str(error))

    def test_arguments(self) -> None:
        """The spec string holds exactly one name."""
        for args in ([], [""], ["a", "b"]):
            error = self.assertRaises(ConfigError, build_log_observer, "observer:x", args, {}, "durable")
            self.assertIn("one dotted name", str(error))
