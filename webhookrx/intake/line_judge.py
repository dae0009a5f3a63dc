"""
The decision on a request whose message is wanted as a line: the line is made in C, the values when something asks.

Both are what L{webhookrx.intake.judge.judge} and L{webhookrx.message.encoders.encode_line} make, which take over
whatever is not usual. What stands around the payload is said once more here, as parts of JSON: C{ISODATE} and
the names of L{_FRONT}, C{RAWMSG_SIZE}, C{TAGS} and C{RCPTID}; the tests hold both paths against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from webhookrx.intake.head import Head, Peer
from webhookrx.intake.judge import Accepted, Admission, Receipt, Refused, SourceRules, judge, set_seen
from webhookrx.intake.provenance import line_part
from webhookrx.message.escapes import encode, without_misleading
from webhookrx.message.macros import ALIASES, HARD_MACROS, NANOSECONDS, RESERVED, RESERVED_PREFIXES, isodate
from webhookrx.message.message import Message, Value
from webhookrx.speedups import Compiled, compiled
from webhookrx.yield_point import LONG_CALL, run_unlocked

Judge: TypeAlias = Callable[[Head, Admission, bytes, Receipt], Accepted | Refused]
#: Returns None for what is not usual.
UsualJudge: TypeAlias = Callable[[Head, Admission, bytes, Receipt], Accepted | None]

#: What begins a line, besides C{ISODATE}.
_FRONT: Final = frozenset({"HOST", "MESSAGE", "SOURCE"})

_SPECIAL: Final = HARD_MACROS | RESERVED | frozenset(ALIASES) | _FRONT
#: The last dot apart, what names that a body may not set begin with.
_SPECIAL_OBJECTS: Final = frozenset(prefix[:-1] for prefix in RESERVED_PREFIXES)

#: Macros that no group of a path sets in the rest of a line.
_NOT_BEHIND: Final = _SPECIAL - {"HOST"}

#: In the place of values that nobody has asked for yet. Only the property C{values} of L{LineMessage} ever sees it.
NOT_MADE: Final[dict[str, Value]] = {}

#: What a C{HOST} that is text has in front in a line, and where that begins and ends up to the year 9999.
_BEFORE_HOST: Final = b'"HOST":"'
_HOST_NAME: Final = len(b'{"ISODATE":"2026-11-20T11:05:07.123456+00:00",')
_HOST: Final = _HOST_NAME + len(_BEFORE_HOST)
_LONGEST_HOST: Final = 255
"""Bytes of a C{HOST} that is looked for in a line."""

_MAX_PEERS: Final = 1024
"""Connections whose address is kept as text."""


def judge_for_lines(rules: SourceRules) -> tuple[Judge, UsualJudge | None]:
    """
    Return what judges the requests to a source as L{judge} does, faster where messages are wanted as lines; and what
    judges only the usual ones among them, in at most some nanoseconds a byte, if there is a compiled path for them.
    """
    if compiled is None:
        return judge, None
    prefix, source = _plain(rules.prefix), _plain(rules.name)
    if prefix is None or source is None:
        return judge, None
    made = _LineJudge(rules, compiled, prefix[1:-1], source)
    return made.judge, made.judge_usual


def _leave(head: Head, admission: Admission, body: bytes, receipt: Receipt) -> None:
    """Leave a request to somebody else."""


def _plain(value: Value | dict[str, Value]) -> bytes | None:
    """Return a value as JSON; None if it holds misleading characters."""
    text = encode(value)
    return text if (text.isascii() and 0x7F not in text) or without_misleading(text) == text else None


# A property of L{LineMessage} hides this field of its base, which msgspec keeps all the same.
_values_of: Final[Callable[[Message], dict[str, Value]]] = Message.values.__get__  # type: ignore[attr-defined]
_keep_values: Final[Callable[[Message, dict[str, Value]], None]] = Message.values.__set__  # type: ignore[attr-defined]


def _terminated(names: Iterable[str]) -> bytes:
    return "".join([name + "\0" for name in names]).encode()


class LineMessage(Message, gc=False):
    """
    A message whose line was made first.

    @ivar judge: makes its values of C{request}, once something asks for them.
    """

    judge: Callable[[Head, Admission, bytes, Receipt], object] = judge
    request: tuple[Head, Admission, bytes, Receipt] | None = None

    @property  # type: ignore[misc]  # it hides the field below
    def values(self) -> dict[str, Value]:  # type: ignore[override]
        """See L{Message}."""
        values = _values_of(self)
        if values is NOT_MADE and self.request is not None:
            accepted = self.judge(*self.request)
            assert isinstance(accepted, Accepted), "what has become a line becomes a message"
            values = accepted.message.values
            _keep_values(self, values)
            self.request = None
        return values

    def text_of(self, macro: str) -> str | None:
        """See L{Message.text_of}."""
        request = self.request
        if request is None:
            return Message.text_of(self, macro)
        if macro == "RCPTID":
            return request[3].id
        if macro == "SOURCE":  # no request whose body or path sets it gets here
            return request[1].rules.name
        if macro == "HOST" and (line := self.line) is not None and line.startswith(_BEFORE_HOST, _HOST_NAME):
            end = line.find(b'"', _HOST, _HOST + _LONGEST_HOST + 1)
            host = line[_HOST:end]
            if end > 0 and b"\\" not in host:  # it has no escapes, nor a quote that ends in the midst of it
                return host.decode()
        return Message.text_of(self, macro)


#: See L{_around}.
_Around: TypeAlias = tuple[bytes, bytes, tuple[str, ...]]


def _around(head: Head, admission: Admission) -> _Around | None:
    """
    Return what is around the pairs in a line, but for the provenance: the value of C{HOST}, what comes up to the value
    of C{RAWMSG_SIZE}, and notes; None if something in it is not usual.
    """
    values: dict[str, Value] = {}
    ip, notes = set_seen(values, head, admission, None)
    if not admission.groups.keys().isdisjoint(_NOT_BEHIND):
        return None
    host, seen = _plain(values.pop("HOST", None) or ip), _plain(values)
    return None if host is None or seen is None else (host, b"," + seen[1:-1] + b',"RAWMSG_SIZE":', notes)


class _AroundByPeer(dict[Peer, "_Around | None"]):
    """A cache of L{_around}, for a source that asks of a head for nothing but the peer. When full it is emptied."""

    def __init__(self, rules: SourceRules) -> None:
        super().__init__()
        self._admission = Admission(rules, {}, {}, [])

    def __missing__(self, peer: Peer) -> _Around | None:
        if len(self) >= _MAX_PEERS:
            self.clear()
        around = self[peer] = _around(Head(b"POST", b"/", None, (), peer), self._admission)
        return around


class _LineSecond(NamedTuple):
    """A second: its nanoseconds since the epoch, those of its end, and what is around its microseconds in lines."""

    begin: int
    end: int
    before: bytes
    after: bytes


def _second_of(received: int) -> _LineSecond:
    begin = received - received % NANOSECONDS
    before, _, after = isodate(begin).partition("000000")
    return _LineSecond(begin, begin + NANOSECONDS, b'{"ISODATE":"' + before.encode(), after.encode() + b'","HOST":')


class _LineJudge:
    """
    Judges requests to one source, whose messages are wanted as lines.

    @param prefix: of its rules, as the inside of a string of JSON.
    @param source: its name, as a string of JSON.
    """

    __slots__ = ("_by_peer", "_is_plain", "_keeps_text", "_line", "_prefix", "_second", "_source", "_special", "_tags")

    def __init__(self, rules: SourceRules, compiled: Compiled, prefix: bytes, source: bytes) -> None:
        self._line = compiled.line
        self._by_peer = _AroundByPeer(rules)
        self._is_plain = rules.proxy_header is None and not rules.include_request_headers
        self._prefix = prefix
        self._second = _second_of(0)
        self._source = b',"SOURCE":' + source
        self._tags = b',"TAGS":' + encode(rules.tags) + b',"RCPTID":"'
        self._special = compiled.name_table(_terminated(_SPECIAL | _SPECIAL_OBJECTS)) if rules.parse_json else b""
        self._keeps_text = rules.keep_text or not rules.parse_json

    def judge_usual(self, head: Head, admission: Admission, body: bytes, receipt: Receipt) -> Accepted | None:
        """Do what L{judge} does for a usual request; return None for others."""
        accepted: Accepted | None = self.judge(head, admission, body, receipt, _leave)
        return accepted

    def judge(
        self,
        head: Head,
        admission: Admission,
        body: bytes,
        receipt: Receipt,
        otherwise: Judge | UsualJudge = judge,
    ) -> Any:
        """
        See L{webhookrx.intake.judge.judge}.

        @param otherwise: judges what is not usual.
        """
        groups = admission.groups
        provenance = admission.provenance
        if self._is_plain and not groups and not admission.query:
            around = self._by_peer[head.peer]
        else:
            around = _around(head, admission)
        if around is None:
            return otherwise(head, admission, body, receipt)
        host, seen, notes = around
        if provenance is not None:
            seen = line_part(provenance) + seen
        received = receipt.received
        begin, end, before, after = self._second
        if not begin <= received < end:
            _, _, before, after = self._second = _second_of(received)
        make_line = self._line if len(body) <= LONG_CALL else self._make_long_line
        line = make_line(
            body,
            self._prefix,
            before,
            after,
            host,
            self._source,
            seen,
            self._tags,
            receipt.id.encode(),
            _terminated(groups) if groups else b"",
            self._special,
            received,
            self._keeps_text,
        )
        if line is None:
            return otherwise(head, admission, body, receipt)
        return Accepted(LineMessage(NOT_MADE, received, line, judge, (head, admission, body, receipt)), notes)

    def _make_long_line(self, body: bytes, *args: Any) -> bytes | None:
        return run_unlocked(len(body), self._line, body, *args)
