"""
The compiled path, where it was built: functions in C for what takes most of the time of an ordinary request.

Each returns None for what is not usual, and the Python path beside it decides. They are written in C and not in Cython,
so that they build with a compiler and Python's headers alone, and what runs can be read line by line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Final, Protocol, TypeVar, cast

T = TypeVar("T")

PURE: Final = "WEBHOOKRX_PURE"
"""The environment variable that turns the compiled path off: with any value but C{0} and an empty one."""


def in_order(names: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return names in lower case as L{Compiled.parse_head} looks them up: shorter ones first, then by their bytes."""
    return tuple(sorted(names, key=lambda name: (len(name), name)))


class Compiled(Protocol):
    """The functions of C{webhookrx._speedups}."""

    def parse_head(
        self,
        data: bytes,
        target_limit: int,
        block_limit: int,
        count_limit: int,
        peer: object,
        kept: int,
        closed: int,
        usual_method: bytes,
        names: tuple[bytes, ...],
        nothing: Mapping[bytes, list[bytes]],
        lines_type: Callable[[bytes], object],
        head_type: Callable[..., T],
        /,
    ) -> T | None:
        """
        Parse a head of HTTP/1.1 with a target in origin-form, one C{Host}, at most one C{Content-Length}, of at most
        18 digits, no C{Transfer-Encoding}, no C{Expect}, and nothing in C{Connection} but C{keep-alive} or C{close}.

        @param data: begins with it; what follows is left alone.
        @param target_limit: bytes of the target.
        @param block_limit: bytes of the head.
        @param count_limit: its header lines.
        @param kept: what becomes of the connection if the sender does not close it.
        @param closed: what becomes of it if it does.
        @param usual_method: heads with this method share it.
        @param names: of the header lines whose values are collected, by name; see L{in_order}.
        @param nothing: what stands for these values when there are none.
        @param lines_type: makes the header lines of a head.
        @param head_type: makes the head of its method, path, query, header lines, C{peer}, values by name, size, length
            of the body, and C{kept} or C{closed}.
        @return: None for any other head, if it is beyond a limit, or if it is not complete.
        """

    def compact_object(self, body: bytes) -> bytes | None:
        """
        Return a JSON object or array as L{webhookrx.message.escapes.encode_json} writes what
        L{webhookrx.intake.json_body.parse_strict_json} reads.

        @return: None for what those two have to decide: anything but an object or array, or one that is not usual.
        """

    def name_table(self, names: bytes, /) -> bytes:
        """Return names as L{line} looks them up. Each has a NUL behind it; there are some hundred at most."""

    def line(
        self,
        body: bytes,
        prefix: bytes,
        before: bytes,
        after: bytes,
        host: bytes,
        source: bytes,
        seen: bytes,
        tags: bytes,
        identifier: bytes,
        groups: bytes,
        special: bytes,
        received: int,
        keeps_text: bool,
        /,
    ) -> bytes | None:
        """
        Return the line of a message, as L{webhookrx.message.encoders.encode_line} does for what
        L{webhookrx.intake.judge} makes of a request: parts of JSON that are given, with what comes of the body between.

        @param body: unpacked.
        @param prefix: what goes in front of the names of pairs, as it stands in JSON.
        @param before: all up to the microseconds of C{ISODATE}.
        @param after: all from there up to the value of C{HOST}.
        @param host: that value, unless the body sets one.
        @param source: what comes after C{MESSAGE}: C{,"SOURCE":…}.
        @param seen: what comes after the pairs, up to the value of C{RAWMSG_SIZE}.
        @param tags: what comes after that value, up to the inside of C{RCPTID}.
        @param identifier: that inside.
        @param groups: names that C{seen} or C{host} set and a body may have, too, each with a NUL behind it.
        @param special: L{name_table} of names that a body may not set, that mean another name, or that C{before} or
            C{source} set, with C{HOST} and C{MESSAGE} among them. Where such a name is C{webhook.} and one more word,
            names that begin with it and a dot are special, too. Empty for a body that is taken as text alone.
        @param received: nanoseconds, of which the microseconds are taken.
        @param keeps_text: whether C{MESSAGE} is the text of the body, if the body does not set it.
        @return: None if the body is not UTF-8, holds misleading characters
            (L{webhookrx.message.escapes.MISLEADING}), or has to become pairs and is not usual JSON.
        """

    def escape_text(self, text: bytes, before: bytes, after: bytes, for_json: bool, for_people: bool, /) -> bytes:
        """
        Return C{before}, a text in UTF-8 with escapes, and C{after}.

        @param for_json: make it the inside of a string of JSON; else it is JSON already.
        @param for_people: escape L{webhookrx.message.escapes.MISLEADING} characters, which is always done in JSON.
        """


_FUNCTIONS: Final = tuple(name for name in vars(Compiled) if not name.startswith("_"))


def _takes(function: object) -> str | None:
    return getattr(function, "__text_signature__", None)


def _wanted(name: str) -> str:
    code = getattr(Compiled, name).__code__
    return f"({', '.join(('$module', *code.co_varnames[1 : code.co_argcount], '/'))})"


def _load() -> tuple[Compiled | None, str]:
    if os.environ.get(PURE, "0") not in ("", "0"):
        return None, f"{PURE} is set"
    try:
        module = import_module("webhookrx._speedups")
    except ModuleNotFoundError:
        return None, "it was not built, which takes a C compiler and the headers of Python"
    except ImportError as error:
        return None, f"it can't be loaded: {error}"
    # An editable install keeps what was built of older sources.
    changed = [name for name in _FUNCTIONS if _takes(getattr(module, name, None)) != _wanted(name)]
    if changed:
        return None, f"it was built of other sources, with another {', '.join(changed)}: install webhookrx again"
    return cast(Compiled, module), ""


#: The compiled path, if there is one; and why there is none.
compiled, missing = _load()

in_use: Final = f"pure Python: {missing}" if compiled is None else "compiled"
"""Which path this process takes, and why it is not the compiled one; for people."""
