"""What every observer keeps to that shows a secret to its store: it is read again on C{reopen}, and in no text."""

from __future__ import annotations

import base64
import io
import logging
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from twisted.logger import LogEvent, eventAsText, globalLogPublisher

from tests.contracts.played_store import PlayedStore
from webhookrx.errors import ConfigError

SECRET = "first-5ecret-aQ7"
NEW_SECRET = "second-5ecret-zX9"


class SecretContract(PlayedStore):
    """Part of L{tests.contracts.store_contract.StoreContract}."""

    def secret_file(self, secret: str = SECRET) -> str:
        """Write a file with a secret."""
        path = os.path.abspath(self.mktemp())
        self.write_secret(path, secret)
        return path

    def test_secret(self) -> None:
        """The secret of the file is shown to the store; on reopen it is read again, and the new one is shown."""
        if not self.has_secret:
            return
        path = self.secret_file()
        observer = self.make_secret_observer(path)
        observer.open()
        self.assertEqual([], self.deliver(observer, "before"))
        self.assertEqual(SECRET, self.shown_secret())
        self.write_secret(path, NEW_SECRET)
        observer.reopen()

        self.assertEqual([], self.deliver(observer, "after"))

        self.assertEqual(NEW_SECRET, self.shown_secret())
        self.assert_stored("before", "after")
        observer.close()

    def test_secret_gone(self) -> None:
        """When the file can't be read, reopen says so, and the secret that was read before stays in use."""
        if not self.has_secret:
            return
        path = self.secret_file()
        observer = self.make_secret_observer(path)
        observer.open()
        os.unlink(path)

        error = self.assertRaises(ConfigError, observer.reopen)

        self.assertNotIn(SECRET, str(error))
        self.assertEqual([], self.deliver(observer, "one"))
        self.assertEqual(SECRET, self.shown_secret())
        observer.close()

    def test_secret_in_no_text(self) -> None:
        """Whatever goes wrong, the secret is in no error, no log line and no C{repr}."""
        if not self.has_secret:
            return
        with all_texts() as log:
            observer = self.make_secret_observer(self.secret_file())
            observer.open()
            texts = [observer.spec, repr(observer), *(repr(value) for value in vars(observer).values())]
            self.deliver(observer, "shown")
            self.assertEqual(SECRET, self.shown_secret())
            for hinder in (self.quote_secret, self.lose_answer, self.break_observer, self.stall):
                hinder()
                for outcome in self.outcomes(observer, "one", "two"):
                    if outcome is not None:
                        texts += [str(outcome), repr(outcome), *traceback.format_exception(outcome)]
                texts += [repr(observer), *(repr(value) for value in vars(observer).values())]
                self.mended()
            observer.close()
        self.assertTrue(any(texts))
        for text in [*texts, *log]:
            for form in forms_of(SECRET):
                self.assertNotIn(form, text)


def forms_of(secret: str) -> list[str]:
    """Return how a secret looks in a text: as it is, and in base64 behind texts of any length."""
    encoded = [base64.b64encode(b"x" * count + secret.encode()).decode()[4:-4] for count in range(3)]
    return [secret, *encoded]


@contextmanager
def all_texts() -> Iterator[list[str]]:
    """Gather whatever is logged, by Twisted or by libraries."""
    texts: list[str] = []
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    level = root.level

    def note(event: LogEvent) -> None:
        texts.append(eventAsText(event))
        texts.extend(repr(value) for value in event.values())

    globalLogPublisher.addObserver(note)
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield texts
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
        globalLogPublisher.removeObserver(note)
        texts.append(stream.getvalue())
