"""
What a server makes of a request: the lines that it writes, and whether they are as they should be.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

NAMES = {
    "ISODATE", "HOST", "MESSAGE", "SOURCE", "SOURCEIP", "SOURCEPORT", "TRANSPORT", "RAWMSG_SIZE", "TAGS", "RCPTID",
}  # fmt: skip
"""What every flat line has, whoever wrote it."""

NESTED_NAMES = {
    "log": {
        "body", "attributes", "observed_time_unix_nano", "time_unix_nano", "severity_number", "severity_text",
    },
    "meta": {"connector", "connection", "router", "host", "id"},
    "meta.connector": {"type", "name", "port", "labels"},
    "meta.connection": {"src_ip", "src_port", "transport", "bytes"},
}  # fmt: skip
"""What the objects of every nested line have."""


class Lines(ABC):
    """How lines are looked at."""

    @abstractmethod
    def read(self, line: bytes) -> tuple[str, str]:
        """
        Return the body, as it was sent, and the id. This is done to every line.

        @raise ValueError: it is no JSON, or not of this form.
        """

    @abstractmethod
    def look_at(self, values: dict[str, Any]) -> None:
        """
        Look at all of a line. This is done to a sample.

        @raise ValueError: something is missing or wrong.
        """


class _Flat(msgspec.Struct):
    MESSAGE: str
    RCPTID: str


@dataclass(frozen=True)
class Flat(Lines):
    """
    One object, a member for each value.

    @ivar flattens: the members of the body are values of their own.
    """

    flattens: bool = True

    def read(self, line: bytes) -> tuple[str, str]:
        """See L{Lines.read}."""
        read = _read_flat(line)
        return read.MESSAGE, read.RCPTID

    def look_at(self, values: dict[str, Any]) -> None:
        """See L{Lines.look_at}."""
        missing = NAMES - values.keys()
        if "PEERPORT" in values:
            # SOURCEIP is then what the proxy says, and it need not say a port.
            missing -= {"SOURCEPORT"}
        if missing:
            raise ValueError(f"it has no {', '.join(sorted(missing))}")
        if len(values["MESSAGE"].encode()) != values["RAWMSG_SIZE"]:
            raise ValueError("RAWMSG_SIZE is wrong")
        if self.flattens:
            for name, value in flattened(json.loads(values["MESSAGE"])).items():
                if name not in values or values[name] != value:
                    raise ValueError(f"{name} is {values.get(name)!r}, not {value!r}")


class _Log(msgspec.Struct):
    body: msgspec.Raw


class _Classify(msgspec.Struct):
    rule: str


class _Meta(msgspec.Struct):
    id: str
    classify: _Classify | None = None


class _Nested(msgspec.Struct):
    log: _Log
    meta: _Meta


@dataclass(frozen=True)
class Nested(Lines):
    """
    The router form: C{log} with the body as the object that it is, byte for byte where it was sent without blanks, and
    C{meta}.

    @ivar rule: the C{meta.classify.rule} of every line; None: there is no C{meta.classify}.
    @ivar fields: what steps have set, by path.
    @ivar copies: a path, and the member of the body whose value steps have put there.
    """

    rule: str | None = None
    fields: tuple[tuple[str, str | int], ...] = ()
    copies: tuple[tuple[str, str], ...] = ()

    def read(self, line: bytes) -> tuple[str, str]:
        """See L{Lines.read}."""
        read = _read_nested(line)
        rule = read.meta.classify and read.meta.classify.rule
        if rule != self.rule:
            raise ValueError(f"meta.classify.rule is {rule!r}, not {self.rule!r}")
        return bytes(read.log.body).decode(), read.meta.id

    def look_at(self, values: dict[str, Any]) -> None:
        """See L{Lines.look_at}."""
        for path, names in NESTED_NAMES.items():
            found = _at(values, path)
            if not isinstance(found, dict):
                raise ValueError(f"{path} is no object")
            missing = names - found.keys()
            if missing:
                raise ValueError(f"{path} has no {', '.join(sorted(missing))}")
        body = values["log"]["body"]
        # As whoever prepares the requests writes it.
        size = len(json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode())
        if size != values["meta"]["connection"]["bytes"]:
            raise ValueError("meta.connection.bytes is wrong")
        for path, value in (*self.fields, *((path, body[name]) for path, name in self.copies)):
            found = _at(values, path)
            if found != value:
                raise ValueError(f"{path} is {found!r}, not {value!r}")


def _at(values: Mapping[str, Any], path: str) -> Any:
    found: Any = values
    for name in path.split("."):
        if not isinstance(found, dict) or name not in found:
            raise ValueError(f"it has no {path}")
        found = found[name]
    return found


def flattened(members: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the members of an object, and those of the objects in it with names joined by a dot."""
    values = {}
    for name, value in members.items():
        if isinstance(value, dict) and value:
            values.update(flattened(value, f"{prefix}{name}."))
        else:
            values[prefix + name] = value
    return values


_read_flat = msgspec.json.Decoder(_Flat).decode
_read_nested = msgspec.json.Decoder(_Nested).decode

FLATTENED = Flat()
UNREAD = Flat(flattens=False)
"""The body is text alone."""
NESTED = Nested()
"""Without any processing."""
