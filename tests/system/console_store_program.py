"""
A program that writes to a console's store without an end, and says on standard output what was accepted.

Each write sets a setting to the number of its revision, in one transaction with the revision itself.
"""

from __future__ import annotations

import sys

from twisted.internet import reactor
from twisted.internet.defer import Deferred

from webhookrx.console.store.files import StoreFiles
from webhookrx.console.store.history import Author, Change, StoreTransaction
from webhookrx.console.store.threads import StoreThreads


def write_one(transaction: StoreTransaction) -> int:
    """Write one revision, and the setting."""
    number = transaction.revise(Author("mara", "api"), [Change("setting", "newest", "update", None, "x" * 200)])
    transaction.execute("INSERT OR REPLACE INTO setting VALUES ('newest', ?)", (number,))
    return number


async def write_on(path: str) -> None:
    """Write until the process is killed."""
    files = StoreFiles(path, make=True)
    store = StoreThreads(reactor, files.writer, files.reader, files.looker)
    store.start()
    while True:
        print(await store.write(write_one), flush=True)


if __name__ == "__main__":
    Deferred.fromCoroutine(write_on(sys.argv[1])).addErrback(lambda failure: failure.printTraceback())
    reactor.run()  # type: ignore[attr-defined]
