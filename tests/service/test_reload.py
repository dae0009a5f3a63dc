"""
Tests for L{webhookrx.service.reload}.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.files import Signature, signature_of
from webhookrx.config.option_reader import ConfigProblems
from webhookrx.diagnostics import ERROR, Diagnostic
from webhookrx.errors import CannotStart, ConfigError
from webhookrx.operations.counters import Counters
from webhookrx.service.reload import FileWatch, Reloads


class _Notifier:
    """Records notifications to the service manager."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.broken = False

    def reloading(self) -> None:
        self.told.append("reloading")

    def ready(self, status: str) -> None:
        if self.broken:
            raise OSError("no such socket")
        self.told.append(f"ready: {status}")


class ReloadsTests(SynchronousTestCase):
    """
    Reloads whose course the test decides.
    """

    def setUp(self) -> None:
        self.clock = Clock()
        self.results: list[Deferred[str]] = []
        self.counters = Counters()
        self.notifier: Any = _Notifier()
        self.reloads = Reloads(
            self._reload, lambda: self.counters, self.counters, self.notifier, lambda: "well", self.clock.seconds
        )
        self.events: list[Any] = []
        globalLogPublisher.addObserver(self.events.append)
        self.addCleanup(globalLogPublisher.removeObserver, self.events.append)

    async def _reload(self) -> str:
        result: Deferred[str] = Deferred()
        self.results.append(result)
        return await result

    def request(self) -> None:
        """Ask for a reload long after the last one."""
        self.clock.advance(1.0)
        self.reloads.request()

    def logged(self, name: str) -> list[str]:
        """The values of that name in all events."""
        return [event[name] for event in self.events if name in event]

    def test_good(self) -> None:
        """A successful reload is in the log, the counters and the last result, and the manager is notified."""
        self.assertIsNone(self.reloads.last)
        self.reloads.request()
        self.assertEqual(["reloading"], self.notifier.told)
        self.results[0].callback("1 source")
        self.assertEqual((True, "1 source"), self.reloads.last)
        self.assertEqual(["1 source"], self.logged("text"))
        self.assertEqual((1, 0), (self.counters.get("reloads", "ok"), self.counters.get("reloads", "failed")))
        self.assertEqual(["reloading", "ready: well"], self.notifier.told)

    def test_failed(self) -> None:
        """One that failed has all that is wrong in the log, one line each, and the first of it as its outcome."""
        several = ConfigProblems(
            [Diagnostic("", ERROR, ("--ack",), "No."), Diagnostic("", ERROR, (), "Neither.", 3, file="x.yaml")]
        )
        for error, lines in (
            (ConfigError("Not so."), ["Not so."]),
            (several, ["--ack: No.", "x.yaml:3: Neither."]),
            (CannotStart("Taken: can't listen"), ["Taken: can't listen"]),
        ):
            self.events.clear()
            self.request()
            self.results[-1].errback(error)
            self.assertEqual(lines, self.logged("problem"))
            self.assertEqual((False, lines[0]), self.reloads.last)
            self.assertEqual(lines[0], self.reloads.failure)
        self.assertEqual((0, 3), (self.counters.get("reloads", "ok"), self.counters.get("reloads", "failed")))
        self.assertEqual(["reloading", "ready: well"] * 3, self.notifier.told)

    def test_unforeseen(self) -> None:
        """A fault of our own is logged with its traceback, and later reloads work."""
        self.reloads.request()
        self.results[0].errback(ZeroDivisionError())
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
        assert self.reloads.last is not None
        self.assertFalse(self.reloads.last.ok)
        self.assertTrue(self.reloads.failure)
        self.request()
        self.results[1].callback("")
        self.assertEqual((True, ""), (self.reloads.last.ok, self.reloads.failure))

    def test_nobody_to_tell(self) -> None:
        """When even telling of it fails, that is in the log, and later reloads work."""
        self.notifier.broken = True
        self.reloads.request()
        self.results[0].callback("")
        self.assertEqual(1, len(self.flushLoggedErrors(OSError)))
        self.request()
        self.assertEqual(2, len(self.results))

    def test_merged(self) -> None:
        """Requests during a reload, and just after it, are one more, half a second later: senders have their turn."""
        for _ in range(3):
            self.reloads.request()
        self.assertEqual(1, len(self.results))
        self.results[0].callback("")
        self.reloads.request()
        self.reloads.tick()
        self.assertEqual(1, len(self.results))
        self.clock.advance(0.5)
        self.reloads.tick()
        self.assertEqual(2, len(self.results))
        self.results[1].callback("")
        self.clock.advance(0.5)
        self.reloads.tick()
        self.assertEqual(2, len(self.results))
        self.reloads.request()
        self.assertEqual(3, len(self.results))

    def test_stop(self) -> None:
        """Once the service stops no reload begins, and the manager gets no notification."""
        self.reloads.request()
        self.reloads.request()
        self.reloads.stop()
        self.results[0].errback(ConfigError("The receiver stops."))
        self.reloads.request()
        self.assertEqual((1, ["reloading"]), (len(self.results), self.notifier.told))


class FileWatchTests(SynchronousTestCase):
    """What counts as a change, and when."""

    def setUp(self) -> None:
        self.files: dict[str, Signature] = {"a": (1,), "b": (1,)}
        self.watch = FileWatch(lambda path: self.files[path])
        self.watch.use(self.files)

    def test_nothing(self) -> None:
        """Files that stay as they are are no change."""
        self.assertEqual([False, False], [self.watch.tick(), self.watch.tick()])

    def test_settled(self) -> None:
        """A change counts once it has stayed for a look, and it counts once."""
        self.files["b"] = (2,)
        self.assertEqual([False, True, False], [self.watch.tick() for _ in range(3)])
        self.assertEqual(["b"], self.watch.changed)

    def test_being_written(self) -> None:
        """A file that changes at each look is being written."""
        for size in range(2, 6):
            self.files["a"] = (size,)
            self.assertFalse(self.watch.tick())
        self.assertTrue(self.watch.tick())

    def test_back_again(self) -> None:
        """What is as it was before is no change."""
        self.files["a"] = (2,)
        self.watch.tick()
        self.files["a"] = (1,)
        self.assertEqual([False, False], [self.watch.tick(), self.watch.tick()])

    def test_since_it_was_read(self) -> None:
        """What has changed between being read and being watched counts; what was read as it is does not."""
        self.files |= {"a": (2,), "c": (7,)}
        for read, changed in (({"c": (0,), "a": (2,)}, True), ({"c": (7,), "a": (2,)}, False)):
            self.watch.use(read)
            self.assertEqual([False, changed, False], [self.watch.tick() for _ in range(3)])

    def test_about_to_be_read(self) -> None:
        """What is read whatever a look would say is no change any more; what changes from then on is one."""
        self.files["a"] = (2,)
        self.watch.tick()
        self.watch.read()
        self.assertEqual([False, False], [self.watch.tick(), self.watch.tick()])
        self.files["a"] = (3,)
        self.assertEqual([False, True], [self.watch.tick(), self.watch.tick()])

    def test_earlier_looks(self) -> None:
        """What was seen before files are read, or watched anew, does not make a change settled."""
        for begin in (self.watch.read, lambda: self.watch.use({"a": (1,), "b": (1,)})):
            self.files["a"] = (2,)
            self.watch.tick()
            self.files["a"] = (1,)
            begin()
            self.files["a"] = (2,)
            self.assertEqual([False, True, False], [self.watch.tick() for _ in range(3)])
            self.files["a"] = (1,)
            self.watch.use(self.files)

    def test_none(self) -> None:
        """There may be nothing to watch."""
        self.watch.use({})
        self.files["a"] = (2,)
        self.assertEqual([False, False], [self.watch.tick(), self.watch.tick()])

    def test_real_files(self) -> None:
        """Without another look it is that at the files themselves."""
        path = self.mktemp()
        watch = FileWatch()
        watch.use({path: signature_of(path)})
        self.assertFalse(watch.tick())
        Path(path).touch()
        self.assertEqual([False, True, False], [watch.tick() for _ in range(3)])
