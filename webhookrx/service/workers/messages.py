"""
What the parent and its workers say to each other.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias, TypedDict

from msgspec import Meta, Struct
from msgspec.msgpack import Decoder, encode

from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.operations.counters import Histogram
from webhookrx.operations.facts import Facts
from webhookrx.service.workers.portable_settings import number, portable
from webhookrx.settings import Settings

_BUCKETS: Final = len(Histogram().counts)


class Message(Struct, tag=True, frozen=True):
    """
    Anything that is said.
    """

    @property
    def descriptors(self) -> int:
        """How many descriptors of files come with it."""
        return 0


# -- to a worker -----------------------------------------------------------------------------------------------------


class Begin(Message, frozen=True):
    """
    Begin to receive. With it come the sockets, and last the file by which workers take turns.

    @ivar number: which worker it is, from 0.
    @ivar size: how many there are.
    @ivar inners: C{Listener.inner} of each socket, in their order.
    """

    settings: Settings
    number: int
    size: int
    inners: tuple[str, ...]

    @property
    def descriptors(self) -> int:
        """See L{Message.descriptors}."""
        return len(self.inners) + 1


class Change(Message, frozen=True):
    """
    Go by other settings; L{Changed} is due. With it come all sockets, those that the worker has included.

    @ivar order: its number among all changes, which the answer has too.
    @ivar inners: as in L{Begin}.
    """

    order: int
    settings: Settings
    inners: tuple[str, ...]

    @property
    def descriptors(self) -> int:
        """See L{Message.descriptors}."""
        return len(self.inners)


class Fitness(Message, frozen=True):
    """
    How the service does as a whole, for load balancers that ask a worker. Until it is told, a worker says no.

    @ivar fit: it should be sent messages.
    """

    fit: bool


class Reopen(Message, frozen=True):
    """Open the files of messages anew by name."""


class Stop(Message, frozen=True):
    """Finish what is under way, and end."""


class Hurry(Message, frozen=True):
    """Wait for nothing any more, and end."""


ToWorker: TypeAlias = Begin | Change | Fitness | Reopen | Stop | Hurry

_TO_WORKER: Decoder[Any] = Decoder(ToWorker, ext_hook=number)


def check(settings: Settings) -> None:
    """
    Find out whether settings can be told to a worker.

    @raise ConfigError: they hold the name of a file that is not UTF-8.
    """
    try:
        encode(portable(settings))
    except UnicodeEncodeError as error:
        name = quoted(error.object.encode("utf-8", "backslashreplace").decode())
        raise ConfigError(f"Workers can't be told of {name}, which is not UTF-8 text.", option="workers") from None


def for_worker(said: bytes) -> ToWorker:
    """
    Read what a parent says.

    @raise msgspec.DecodeError: no parent says that.
    """
    message: ToWorker = _TO_WORKER.decode(said)
    return message


# -- to the parent ---------------------------------------------------------------------------------------------------


class Ready(Message, frozen=True):
    """I receive."""


class Failed(Message, frozen=True):
    """
    I can't begin, and end.

    @ivar text: why, for people.
    """

    text: str


class Changed(Message, frozen=True):
    """
    I go by the other settings, or by the old ones still.

    @ivar order: that of the L{Change}.
    @ivar ok: which of the two.
    @ivar text: what has changed, or why nothing has.
    """

    order: int
    ok: bool
    text: str


class PortsClosed(Message, frozen=True):
    """I accept no connection any more."""


_Count: TypeAlias = Annotated[int, Meta(ge=0)]
_Times: TypeAlias = tuple[Annotated[list[_Count], Meta(min_length=_BUCKETS, max_length=_BUCKETS)], float]


class Counts(TypedDict):
    """
    What L{webhookrx.operations.counters.Counters.plain} returns. Whoever adds counts up relies on their kinds.
    """

    counts: list[tuple[list[str], _Count]]
    sources: dict[str, tuple[_Count, _Count, float, _Times]]
    observers: dict[str, tuple[_Count, _Count, _Times]]


class State(Message, frozen=True):
    """
    How I do; said twice a second.

    @ivar counters: L{webhookrx.operations.counters.Counters.plain}.
    @ivar stuck: an observer hangs.
    """

    counters: Counts
    facts: Facts
    stuck: bool


class Line(Message, frozen=True):
    """
    What I would write into the service's own log.

    @ivar level: the name of a L{twisted.logger.LogLevel}.
    """

    level: Literal["debug", "info", "warn", "error", "critical"]
    namespace: str
    text: str


ToParent: TypeAlias = Ready | Failed | Changed | PortsClosed | State | Line

_TO_PARENT: Decoder[Any] = Decoder(ToParent)


def for_parent(said: bytes) -> ToParent:
    """
    Read what a worker says.

    @raise msgspec.DecodeError: no worker says that.
    """
    message: ToParent = _TO_PARENT.decode(said)
    return message
