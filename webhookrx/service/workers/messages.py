"""
What the parent and its workers send each other, and how it is encoded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias

from msgspec import Raw, Struct, structs, to_builtins
from msgspec.msgpack import Decoder, Ext
from msgspec.msgpack import encode as _encode

from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.management.alarm_rules import AlarmSettings
from webhookrx.operations.counters import Counters
from webhookrx.operations.snapshot import ReceiverSnapshot
from webhookrx.router.steps.step import SetField, Step
from webhookrx.service.shared_state import STATE_FILES
from webhookrx.settings import Settings, Source
from webhookrx.speedups import in_use


class WorkerMessage(Struct, tag=True, frozen=True):
    """
    A message in either direction.
    """

    @property
    def descriptors(self) -> int:
        """How many file descriptors come with it."""
        return 0


# -- to a worker -----------------------------------------------------------------------------------------------------


class Begin(WorkerMessage, frozen=True):
    """
    Begin to receive. The sockets come with it, then the file by whose locks workers write one at a time, the page by
    whose counters they share connections evenly, and last the files of the state that they share.

    @ivar number: the number of this worker, from 0.
    @ivar size: how many workers there are.
    @ivar sockets: C{Listener.socket} of each socket, in their order, with a number that no other socket has: its
        descriptor in the parent.
    """

    settings: Settings
    number: int
    size: int
    sockets: dict[str, int]

    @property
    def descriptors(self) -> int:
        return len(self.sockets) + 2 + STATE_FILES


class ChangeSettings(WorkerMessage, frozen=True):
    """
    Use other settings, and answer with L{SettingsChanged}. All sockets come with it, also those that the worker has.

    @ivar order: its number among all changes, which the answer has too.
    @ivar sockets: as in L{Begin}.
    """

    order: int
    settings: Settings
    sockets: dict[str, int]

    @property
    def descriptors(self) -> int:
        return len(self.sockets)


class Readiness(WorkerMessage, frozen=True):
    """
    Whether the service as a whole is ready for messages: the answer to health checks of load balancers. A worker starts
    as not ready.
    """

    ready: bool


class Reopen(WorkerMessage, frozen=True):
    """Reopen the files of messages by name."""


class StartTap(WorkerMessage, frozen=True):
    """
    Look at messages for an operator.

    @ivar tap: its number among all.
    @ivar request: the L{TapRequest<webhookrx.tapping.tap_request.TapRequest>}, as JSON.
    """

    tap: int
    request: bytes


class StopTap(WorkerMessage, frozen=True):
    """Look for this tap no more."""

    tap: int


class Finish(WorkerMessage, frozen=True):
    """Finish what is under way, and end."""


class StopNow(WorkerMessage, frozen=True):
    """End without waiting for what is under way."""


ToWorker: TypeAlias = Begin | ChangeSettings | Readiness | Reopen | StartTap | StopTap | Finish | StopNow


# -- to the parent ---------------------------------------------------------------------------------------------------


class Began(WorkerMessage, frozen=True):
    """
    The worker receives.

    @ivar path: which path it takes, see L{webhookrx.speedups.in_use}.
    """

    path: str = in_use


class CannotBegin(WorkerMessage, frozen=True):
    """
    The worker can't begin, and ends.

    @ivar text: why, for people.
    """

    text: str


class SettingsChanged(WorkerMessage, frozen=True):
    """
    The answer to L{ChangeSettings}.

    @ivar order: that of the L{ChangeSettings}.
    @ivar ok: whether the new settings are in use; else the old ones still are.
    @ivar text: what has changed, or why nothing has.
    """

    order: int
    ok: bool
    text: str


class PortsClosed(WorkerMessage, frozen=True):
    """The worker accepts no connections any more."""


class Report(WorkerMessage, frozen=True):
    """
    How the worker does, twice a second.

    @ivar stuck: an observer hangs.
    """

    counters: Counters
    snapshot: ReceiverSnapshot
    stuck: bool


class LogLine(WorkerMessage, frozen=True):
    """
    A line for the service's own log.

    @ivar level: the name of a L{twisted.logger.LogLevel}.
    """

    level: Literal["debug", "info", "warn", "error", "critical"]
    namespace: str
    text: str


class Tapped(WorkerMessage, frozen=True):
    """
    What the worker has seen for a tap.

    @ivar rows: lines of JSON without their ends.
    @ivar counts: all that the worker has counted for it, see L{webhookrx.tapping.tap.TapCounts}.
    """

    tap: int
    rows: tuple[bytes, ...]
    counts: tuple[int, ...]


ToParent: TypeAlias = Tapped | Began | CannotBegin | SettingsChanged | PortsClosed | Report | LogLine


# -- encoding --------------------------------------------------------------------------------------------------------

# Extension types of MessagePack, for numbers of Set Field steps that it has not.
_EXACT_NUMBER: Final = 1
_LARGE_INTEGER: Final = 2
_INTEGERS: Final = range(-(1 << 63), 1 << 64)


def encode(message: WorkerMessage) -> bytes:
    """Return a message as bytes, with escapes where its text is not UTF-8, such as the name of a file."""
    try:
        return _encode(message)
    except UnicodeEncodeError:
        return _encode(_escaped(to_builtins(message, builtin_types=(bytes, Ext))))


def _escaped(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case list() | tuple():
            return tuple(map(_escaped, value))
        case dict():
            return {_escaped(key): _escaped(each) for key, each in value.items()}
    return value


def check(settings: Settings) -> None:
    """
    Check that settings can be sent to a worker.

    @raise ConfigError: they hold the name of a file that is not UTF-8.
    """
    try:
        _encode(portable(settings))
    except UnicodeEncodeError as error:
        name = quoted(error.object.encode("utf-8", "backslashreplace").decode())
        raise ConfigError(f"{name} is not UTF-8 text, so it can't be sent to workers.", option="workers") from None


def portable(settings: Settings) -> Settings:
    """
    Return the same settings, in which numbers of Set Field steps that MessagePack has not are extensions of it. What is
    kept for the next start is left out, and alarms and console: they are the parent's.
    """
    router = settings.router and replace(settings.router, good=b"")
    sources = tuple(map(_portable_source, settings.sources))
    return replace(settings, sources=sources, router=router, alarms=AlarmSettings(), console=None)


def _portable_source(source: Source) -> Source:
    connector = source.connector
    if connector is None or not any(step.set for step in connector.preprocessing.steps):
        return source
    steps = tuple(map(_portable_step, connector.preprocessing.steps))
    preprocessing = structs.replace(connector.preprocessing, steps=steps)
    return replace(source, connector=replace(connector, preprocessing=preprocessing))


def _portable_step(step: Step) -> Step:
    if isinstance(step.set, SetField):
        return structs.replace(step, set=_portable_field(step.set))
    return structs.replace(step, set=tuple(map(_portable_field, step.set))) if step.set else step


def _portable_field(field: SetField) -> SetField:
    return structs.replace(field, value=_portable_value(field.value))


def _portable_value(value: Any) -> Any:
    match value:
        case Raw():
            return Ext(_EXACT_NUMBER, bytes(value))
        case int() if value not in _INTEGERS:
            return Ext(_LARGE_INTEGER, f"{value:x}".encode())
        case list():
            return list(map(_portable_value, value))
        case dict():
            return {name: _portable_value(each) for name, each in value.items()}
    return value


def _number(kind: int, text: memoryview) -> Raw | int:
    """Return the number of such an extension."""
    return Raw(bytes(text)) if kind == _EXACT_NUMBER else int(bytes(text), 16)


_TO_WORKER: Decoder[Any] = Decoder(ToWorker, ext_hook=_number)
_TO_PARENT: Decoder[Any] = Decoder(ToParent)


def read_for_worker(encoded: bytes) -> ToWorker:
    """
    Read a message of the parent.

    @raise msgspec.DecodeError: it is no such message.
    """
    message: ToWorker = _TO_WORKER.decode(encoded)
    return message


def read_for_parent(encoded: bytes) -> ToParent:
    """
    Read a message of a worker.

    @raise msgspec.DecodeError: it is no such message.
    """
    message: ToParent = _TO_PARENT.decode(encoded)
    return message
