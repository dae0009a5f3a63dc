"""
Records of a broker as messages: a line of JSON that webhookrx has written becomes the same message again, and any other
value the text of a new one.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from webhookrx.intake.json_body import MAX_DEPTH, body_text, count_brackets, is_deeper
from webhookrx.intake.judge import base64_text
from webhookrx.message.escapes import without_misleading
from webhookrx.message.macros import isodate
from webhookrx.message.message import Message, Value
from webhookrx.message.record import is_router_form
from webhookrx.relay.consumer import Record

#: Decimals are kept by their spelling, as everywhere in messages; integers are exact anyway.
_decode: Final = msgspec.json.Decoder(
    dict[str, Any], float_hook=lambda number: msgspec.Raw(number.encode("ascii"))
).decode

#: An id that can stand in a header or a key of any store.
_USABLE_ID: Final = re.compile(r"[!-~]{1,200}")
#: White space between tokens that would break the line in two, or the terminal of a reader.
_BREAKS: Final = re.compile(rb"[\n\r\t]")

#: Levels of arrays and objects in a line: those of a body, and what a message has around it. What is deeper comes from
#: elsewhere, and an encoder that fails over it would fail at every try, for the dead letter, too.
_DEEPEST: Final = 2 * MAX_DEPTH

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LARGEST_TIME: Final = (1 << 63) - 1


class Decoded(NamedTuple):
    """
    What a record holds.

    @ivar is_line: it is a line of webhookrx.
    """

    message: Message
    is_line: bool


def decode_record(record: Record, now: int) -> Decoded:
    """
    Return the message of a record. It never raises for any bytes.

    A line of webhookrx is an object with the id and the time of receipt where messages of the source form or of the
    router form have them. It keeps values, order, id, time, and each byte of its text.

    @param now: nanoseconds since the epoch, for a value without a time.
    """
    values = _object(record.value)
    if values is not None:
        received = _time_of_line(values)
        if received is not None:
            return Decoded(Message(values, received, _line(record.value)), True)
    return Decoded(_text_message(record, now), False)


def _object(value: bytes) -> dict[str, Value] | None:
    if not value.startswith(b"{"):
        return None
    try:
        values: dict[str, Value] = _decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if count_brackets(value, _DEEPEST) > _DEEPEST and is_deeper(values, _DEEPEST):
        return None
    return values


def _time_of_line(values: dict[str, Value]) -> int | None:
    """Return when a line was received, in nanoseconds since the epoch; None if it is not one of ours."""
    if is_router_form(values):
        log, meta = values["log"], values["meta"]
        assert isinstance(log, dict)
        assert isinstance(meta, dict)
        time = _time(log.get("observed_time_unix_nano"))
        return time if _is_id(meta.get("id")) else None
    text = values.get("ISODATE")
    if not isinstance(text, str) or not _is_id(values.get("RCPTID")):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return _time((moment - _EPOCH) // _MICROSECOND * 1000)


def _is_id(value: Value) -> bool:
    return isinstance(value, str) and bool(value)


def _time(value: Value) -> int | None:
    """Return a time that a message can have; None for anything else."""
    return value if type(value) is int and 0 < value <= _LARGEST_TIME else None


def _line(value: bytes) -> bytes | None:
    """Return the text of a line as it was, so that numbers and escapes keep their spelling; None if it has breaks."""
    text = value.removesuffix(b"\n")
    if _BREAKS.search(text):
        return None
    return (without_misleading(text) if 0x7F in text or not text.isascii() else text) + b"\n"


def _text_message(record: Record, now: int) -> Message:
    """
    Return a new message whose text is the value. Its id is that beside the value, else its place in the broker with the
    broker's time: offsets begin anew in a topic that is made again, and a store that knows an id drops the message.
    """
    received = _time(record.received) or now
    place = record.origin if record.received is None else f"{record.origin}/{record.received // 1_000_000}"
    text, exact = body_text(record.value)
    values: dict[str, Value] = {
        "ISODATE": isodate(received),
        "MESSAGE": text,
        "SOURCE": record.origin.partition("/")[0],
        "RAWMSG_SIZE": len(record.value),
        "RCPTID": record.id if _USABLE_ID.fullmatch(record.id) else place,
    }
    if not exact:
        values["webhook.body_base64"] = base64_text(record.value)
    return Message(values, received)
