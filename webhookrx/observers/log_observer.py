"""
C{observer:DOTTED.NAME}: any C{twisted.logger.ILogObserver} as an observer of messages.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from twisted.internet.defer import Deferred
from twisted.logger import ILogObserver, LogLevel
from twisted.python.reflect import namedAny
from zope.interface import implementer

from webhookrx.config.observers import ObserverSpec
from webhookrx.errors import ConfigError
from webhookrx.interfaces import ILocalObserver
from webhookrx.message.encoders import encode_object
from webhookrx.message.message import Message

if TYPE_CHECKING:
    from webhookrx.interfaces import Prepared

LOG_OBSERVER_SPEC = ObserverSpec()

#: The C{log_namespace} of every event.
NAMESPACE = "webhookrx.message"

#: Never text of a sender: a format can reach into the objects of an event.
_FORMAT = "{line}"

#: C{eventsFromJSONLogFile} makes an object of any JSON object with this name, and stops for good at one that it can't
#: make.
_REVIVED = "__class_uuid__"

_NOT_PRINTABLE_ASCII = re.compile(r"[^ -~]")
# The interpreter reads no longer integers from text (sys.set_int_max_str_digits), at 4300 unless told otherwise.
_MAX_DIGITS = 640

#: An C{ILogObserver} without its interface.
TakeEvent = Callable[[dict[str, Any]], object]


@implementer(ILocalObserver)
class LogObserver:
    """
    Gives messages to an C{ILogObserver} as events, one at a time, in the thread of its lane; such observers are
    thread-safe by contract. An exception means that this message is not safe.

    A return without an exception only says that the event was taken, into memory or to a disk. So the promise is
    C{"queued"}.

    @param make: returns the C{ILogObserver}; called once, on L{open}.
    """

    promise = "queued"

    def __init__(self, spec: str, make: Callable[[], TakeEvent]) -> None:
        self.spec = spec
        self._make = make
        self._take_event: TakeEvent = _not_open

    def open(self) -> None:
        """
        Make the C{ILogObserver}.

        @raise ConfigError: that failed, or made something else.
        """
        try:
            made = self._make()
        except Exception as error:
            raise ConfigError(f"observer {self.spec}: making it failed: {_describe(error)}") from error
        if not callable(made):
            raise ConfigError(f"observer {self.spec}: calling it gave a {type(made).__name__}, not an ILogObserver")
        self._take_event = made

    def prepare(self, message: Message) -> Message:
        """Keep the message: its event is made in the observer's own thread."""
        return message

    def store(self, batch: Sequence[Prepared]) -> list[Exception | None] | None:
        """Give it each message; return its exceptions, or None if there are none."""
        errors = [self._give(message) for message in cast("Sequence[Message]", batch)]
        return errors if any(error is not None for error in errors) else None

    def reopen(self) -> None:
        """Do nothing: an C{ILogObserver} has no such call."""

    def close(self) -> None:
        """Forget it: an C{ILogObserver} has no such call."""
        self._take_event = _not_open

    def _give(self, message: Message) -> Exception | None:
        try:
            result = self._take_event(event_of(message))
        except Exception as error:
            return error
        if isinstance(result, Deferred) or inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            return TypeError("it returned a Deferred or awaitable; an ILogObserver must be done when it returns")
        return None


def event_of(message: Message) -> dict[str, Any]:
    """
    Return a message as an event of C{twisted.logger}.

    C{line} is its JSON line in printable ASCII, so that no text can move a cursor or forge a line in a text log.
    C{message} holds the same as plain values; a number that no float or integer can hold is text. In it, a name
    C{__class_uuid__} at any depth becomes C{webhook.__class_uuid__}, since C{twisted.logger} would make objects of it
    when it reads its JSON files.
    """
    text = encode_object(message).decode()
    return {
        "log_time": message.received / 1e9,
        "log_level": LogLevel.info,
        "log_namespace": NAMESPACE,
        "log_format": _FORMAT,
        "line": _NOT_PRINTABLE_ASCII.sub(_escape, text),
        "message": json.loads(text, parse_int=_plain_int, parse_float=_plain_float, object_hook=_keep_dead),
    }


def resolve(name: str) -> Callable[[], TakeEvent]:
    """
    Import a dotted name, and return what makes an C{ILogObserver} of it: an object that provides C{ILogObserver} is
    used as it is, a class or callable without required arguments is called, and any other callable takes events
    itself.

    @raise ConfigError: the name can't be imported, or is of another kind.
    """
    try:
        found: Any = namedAny(name)
    except Exception as error:
        raise ConfigError(f"observer 'observer': {name!r} can't be imported: {_describe(error)}") from error
    if ILogObserver.providedBy(found):
        return lambda: cast(TakeEvent, found)
    if inspect.iscoroutinefunction(found):
        raise ConfigError(f"observer 'observer': {name!r} is an async function; an ILogObserver must be done on return")
    if not callable(found):
        raise ConfigError(f"observer 'observer': {name!r} is a {type(found).__name__}, not an ILogObserver or callable")
    if _needs_no_argument(found):
        return cast("Callable[[], TakeEvent]", found)
    if isinstance(found, type):
        raise ConfigError(f"observer 'observer': the class {name!r} needs arguments; name a function that makes one")
    return lambda: found


def build_log_observer(spec: str, args: Sequence[str], options: Mapping[str, str], ack: str) -> LogObserver:
    """
    Make the observer of C{observer:DOTTED.NAME}.

    @raise ConfigError: the name is missing, or as L{resolve} says.
    """
    if len(args) != 1 or not args[0]:
        raise ConfigError("observer 'observer' takes one dotted name: observer:package.module.name")
    return LogObserver(spec, resolve(args[0]))


def _not_open(event: dict[str, Any]) -> None:
    raise RuntimeError("this observer is not open")


def _needs_no_argument(found: Callable[..., object]) -> bool:
    try:
        inspect.signature(found).bind()
    except (TypeError, ValueError):
        # It needs arguments, or is written in C and has no signature.
        return False
    return True


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if match[0] != "\x7f" else "\\u007f"


def _plain_int(text: str) -> int | str:
    return int(text) if len(text) <= _MAX_DIGITS else text


def _plain_float(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


def _keep_dead(members: dict[str, Any]) -> dict[str, Any]:
    if _REVIVED in members:
        members[f"webhook.{_REVIVED}"] = members.pop(_REVIVED)
    return members
