"""
The ways in which observers want their messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from webhookrx.errors import NotStored
from webhookrx.pipeline.batch import Batch, text_of
from webhookrx.pipeline.budget import size_of

if TYPE_CHECKING:
    from webhookrx.interfaces import Prepared
    from webhookrx.message.message import Message
    from webhookrx.pipeline.group_commit import Lane
    from webhookrx.pipeline.lane_context import Report


class PreparedMessage(NamedTuple):
    """
    A message as all observers want it.

    @ivar ways: who prepared it.
    @ivar items: what has become of it in each way, None where that failed.
    @ivar size: the bytes of it all.
    @ivar failure: why it failed, if it did.
    """

    ways: Ways
    items: list[Prepared | None]
    size: int
    failure: NotStored | None


class Ways:
    """
    All ways to prepare a message for some lanes. Those whose observers have an equal C{prepare} share one.

    @param report: told when a message can't be prepared.
    @ivar routes: each lane, and which way its observer takes.
    """

    def __init__(self, lanes: Iterable[Lane], report: Report) -> None:
        self.routes: list[tuple[Lane, int]] = []
        self._report = report
        self._ways: list[tuple[Callable[[Message], Prepared], str]] = []
        for lane in lanes:
            observer = lane.observer
            prepares = [prepare for prepare, _ in self._ways]
            if observer.prepare not in prepares:
                prepares.append(observer.prepare)
                self._ways.append((observer.prepare, observer.spec))
            self.routes.append((lane, prepares.index(observer.prepare)))

    def new_batch(self) -> Batch:
        """Return a batch for what is prepared in these ways."""
        return Batch(len(self._ways))

    def prepare(self, message: Message) -> PreparedMessage:
        """Prepare a message in all ways."""
        prepared: list[Prepared | None] = []
        failure: NotStored | None = None
        size = 0
        for prepare, spec in self._ways:
            item: Prepared | None
            try:
                item = prepare(message)
                size += len(item) if type(item) is bytes else size_of(item)
            except BaseException as error:
                # Even SystemExit: what an observer of others raises is an answer to this message, and to no other.
                item = None
                failure = failure or NotStored(f"{spec}: {text_of(error)}")
                self._report(spec, text_of(error), 1)
            prepared.append(item)
        return PreparedMessage(self, prepared, size, failure)
