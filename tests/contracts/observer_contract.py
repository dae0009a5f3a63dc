"""What every observer keeps to, ours, a fake, or a third party's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from zope.interface.verify import verifyObject

from webhookrx.interfaces import IMessageObserver
from webhookrx.message.message import Message
from webhookrx.testing import make_message

if TYPE_CHECKING:
    from twisted.trial.unittest import SynchronousTestCase as _Base
else:
    _Base = object


class ObserverContract(_Base):
    """
    Mix into a C{SynchronousTestCase} that says how to make the observer, break it, and read back what it stored.
    """

    def make_observer(self) -> IMessageObserver:
        """Make an observer that is not open yet."""
        raise NotImplementedError

    def break_observer(self) -> None:
        """Make every C{store} from now on fail. The observer is open."""
        raise NotImplementedError

    def stored_texts(self) -> list[str]:
        """Return the C{MESSAGE} of each message that was stored, in order."""
        raise NotImplementedError

    def opened(self) -> IMessageObserver:
        """Make an observer and open it."""
        observer = self.make_observer()
        observer.open()
        return observer

    def store(self, observer: IMessageObserver, *texts: str) -> Sequence[Exception | None] | None:
        """Prepare and store a batch of messages with these texts."""
        return observer.store([observer.prepare(make_message(text)) for text in texts])

    def test_interface(self) -> None:
        """It provides the interface."""
        self.assertTrue(verifyObject(IMessageObserver, self.make_observer()))

    def test_words(self) -> None:
        """Its spec is text, and its promise one of the three words, before and after it is opened."""
        observer = self.make_observer()

        self.assertIsInstance(observer.spec, str)
        self.assertIn(observer.promise, ("durable", "written", "queued"))
        observer.open()
        self.assertIn(observer.promise, ("durable", "written", "queued"))
        observer.close()

    def test_prepared(self) -> None:
        """A prepared message is bytes or a message, so that its size is known."""
        observer = self.opened()

        self.assertIsInstance(observer.prepare(make_message()), (bytes, Message))
        observer.close()

    def test_order(self) -> None:
        """Messages are stored in order, within a batch and from batch to batch."""
        observer = self.opened()

        self.assertIsNone(self.store(observer, "one", "two"))
        self.assertIsNone(self.store(observer, "three"))

        self.assertEqual(["one", "two", "three"], self.stored_texts())
        observer.close()

    def test_large_batch(self) -> None:
        """A batch of thousands of messages is stored whole."""
        texts = [str(number) for number in range(2500)]
        observer = self.opened()

        self.assertIsNone(self.store(observer, *texts))

        self.assertEqual(texts, self.stored_texts())
        observer.close()

    def test_hostile_text(self) -> None:
        """A text with line ends, controls and format characters comes back as it was, and is one message."""
        hostile = 'a\r\nb\x00\x1b[2J{log_format} ${HOST} %s "\\ \u2028\u202e\x85 é 😀'
        observer = self.opened()

        self.assertIsNone(self.store(observer, hostile, "next"))

        self.assertEqual([hostile, "next"], self.stored_texts())
        observer.close()

    def test_reopen(self) -> None:
        """Opening anew between two batches loses neither."""
        observer = self.opened()

        self.store(observer, "before")
        observer.reopen()
        self.store(observer, "after")

        self.assertEqual(["before", "after"], self.stored_texts())
        observer.close()

    def test_open_again(self) -> None:
        """Once closed it can be opened again, and goes on."""
        observer = self.opened()

        self.store(observer, "before")
        observer.close()
        observer.open()
        self.assertIsNone(self.store(observer, "after"))

        self.assertEqual(["before", "after"], self.stored_texts())
        observer.close()

    def test_threads(self) -> None:
        """One call follows the other, but not in the same thread."""
        observer = self.make_observer()
        calls: list[Callable[[], object]] = [
            observer.open,
            lambda: self.store(observer, "before"),
            observer.reopen,
            lambda: self.store(observer, "after"),
            observer.close,
            observer.open,
        ]
        for call in calls:
            with ThreadPoolExecutor(1) as thread:
                self.assertIsNone(thread.submit(call).result())

        self.assertEqual(["before", "after"], self.stored_texts())
        observer.close()

    def test_failure_is_told(self) -> None:
        """When it can't store, it raises, or returns an error for each message; it never says that all is well."""
        observer = self.opened()
        self.break_observer()

        try:
            outcome = self.store(observer, "one", "two")
        except Exception:
            outcome = [ValueError(), ValueError()]

        assert outcome is not None
        self.assertEqual(2, len(outcome))
        self.assertNotIn(None, outcome)
        observer.close()

    def test_close_unused(self) -> None:
        """One that stored nothing can be closed."""
        self.opened().close()

        self.assertEqual([], self.stored_texts())
