"""Promises that are weaker than they may seem."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.memory_store import MemoryStore
from webhookrx.interfaces import IMessageObserver, IStoreObserver
from webhookrx.promises import weaknesses, word_of
from webhookrx.spool.observer import SpoolObserver
from webhookrx.testing import MemoryObserver


class WeaknessTests(SynchronousTestCase):
    """Sentences for the start and C{--check}."""

    def behind_spool(self, inner: IMessageObserver) -> list[str]:
        """Return the sentences on an observer behind a spool."""
        return weaknesses(SpoolObserver("spool:d:observer=x", os.path.abspath(self.mktemp()), inner), "durable")

    def test_interface(self) -> None:
        """The fake is one of a store."""
        self.assertTrue(verifyObject(IStoreObserver, MemoryStore()))

    def test_reason(self) -> None:
        """The sentence on a store says why its word is weaker."""
        (sentence,) = weaknesses(MemoryStore(), "durable")

        self.assertEqual(
            "--ack durable is more than observer store:there can promise: its word means 'written' (it syncs "
            "later), so a 200 means no more than that",
            sentence,
        )

    def test_no_reason(self) -> None:
        """Others have no reason to give."""
        self.assertEqual("'queued'", word_of(MemoryObserver(promise="queued")))

    def test_asked_for(self) -> None:
        """Nothing is said where no more was asked for."""
        self.assertEqual([], weaknesses(MemoryStore(), "written"))
        self.assertEqual([], weaknesses(MemoryStore(promise="durable", reason=""), "durable"))

    def test_spool(self) -> None:
        """Behind a spool the weaker word is what lets a message leave, whatever is asked for."""
        (sentence,) = self.behind_spool(MemoryStore())

        self.assertIn("leaves the spool on the word 'written' (it syncs later) of store:there", sentence)
        self.assertIn("require=durable", sentence)
        self.assertEqual([], self.behind_spool(MemoryStore(promise="durable", reason="")))
