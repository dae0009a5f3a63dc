"""
Fuzz targets on the functions of the compiled path: each gives what Python gives, or leaves it to Python.

They run on a module that is built with AddressSanitizer, UndefinedBehaviorSanitizer and libFuzzer's counters of
branches, see L{tests.sanitizers}. A read behind the data is an error there, even of the NUL that Python puts behind it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any, cast

from tests.compiled_calls import CALLS
from webhookrx import senders
from webhookrx.errors import RequestRefused
from webhookrx.http import head as head_module
from webhookrx.http.head import parse_head
from webhookrx.intake.head import Head, HeaderLines, Peer
from webhookrx.intake.header_masking import recorded_headers
from webhookrx.intake.json_body import PayloadError, parse_strict_json
from webhookrx.intake.judge import Accepted, Admission, Receipt, SourceRules, judge
from webhookrx.intake.line_judge import Judge, judge_for_lines
from webhookrx.message.encoders import encode_line
from webhookrx.message.escapes import encode, encode_json
from webhookrx.message.escapes import escape_misleading as as_json_for_people
from webhookrx.settings import Limits
from webhookrx.speedups import compiled as _compiled

assert _compiled is not None
compiled: Any = _compiled

_PEERS = [Peer("192.0.2.7", 40000, False), Peer("2001:db8::1", 443, True)]
_LIMITS = [Limits(), Limits(target=40, header_block=400, headers=6)]

_SAMPLES = [
    Path(name).read_bytes().replace(b"\r\n", b"\n").partition(b"\n\n")
    for name in sorted(glob(f"{Path(str(senders.__file__)).parent}/data/samples/*.http"))
]
_HEADS = [head.replace(b"\n", b"\r\n") + b"\r\nContent-Length: 9\r\n\r\n" for head, _, _ in _SAMPLES]
_BODIES = [body for _, _, body in _SAMPLES if len(body) < 4096]


def _of_calls(name: str) -> list[bytes]:
    """Return the first arguments of the calls of a function that the tests make, unless they are large."""
    first = [call.arguments[0] for call in CALLS if call.name == name]
    return [each for each in first if isinstance(each, bytes) and len(each) < 4096]


# -- the end of the data -----------------------------------------------------------------------------------------------


def _of_runtime(name: str) -> Any:
    function = getattr(ctypes.CDLL(None), name)
    function.argtypes = ctypes.c_void_p, ctypes.c_size_t
    function.restype = None
    return function


_poison = _of_runtime("__asan_poison_memory_region")
_unpoison = _of_runtime("__asan_unpoison_memory_region")


@contextmanager
def _without_nul(data: bytes) -> Iterator[None]:
    """Make a read of the NUL that Python puts behind bytes an error, as reads behind it are."""
    place = id(data) + bytes.__basicsize__ - 1 + len(data)
    # Bytes of up to one byte are Python's own, for all.
    poisoned = len(data) > 1
    if poisoned:
        _poison(place, 1)
    try:
        yield
    finally:
        if poisoned:
            _unpoison(place, 1)


# -- targets -----------------------------------------------------------------------------------------------------------


def head(data: bytes) -> None:
    """A head that is taken is what the grammar makes of it, all of it the same; its headers are recorded the same."""
    choice = data[-1] if data else 0
    data, peer, limits = data[:-1], _PEERS[choice & 1], _LIMITS[choice >> 1 & 1]
    try:
        found = _head(_Compiled(), data, peer, limits)
    except _LeftToPythonError:
        return
    expected = _head(None, data, peer, limits)
    assert found == expected, (found, expected)
    lines = HeaderLines(data[: data.index(b"\r\n\r\n") + 4])
    headers = recorded_headers(lines)
    assert list(headers.items()) == list(recorded_headers(list(lines)).items()), headers


class _LeftToPythonError(Exception):
    """The compiled path does not take something."""


class _Compiled:
    """The compiled path, with no Python path behind it."""

    def parse_head(self, data: bytes, *arguments: Any) -> object:
        return _taken(compiled.parse_head, data, *arguments)


def _taken(function: Callable[..., object], data: bytes, *arguments: object) -> object:
    """Return what a function makes of data, with nothing readable behind it; stop if that is None."""
    with _without_nul(data):
        found = function(data, *arguments)
    if found is None:
        raise _LeftToPythonError
    return found


def _head(path: _Compiled | None, data: bytes, peer: Peer, limits: Limits) -> str:
    vars(head_module)["compiled"] = path
    try:
        return repr(parse_head(data, peer, limits))
    except RequestRefused as refused:
        return repr((refused.reason, refused.detail))


def json(data: bytes) -> None:
    """What is taken of a body is what Python reads and writes again."""
    with _without_nul(data):
        found = compiled.compact_object(data)
    if found is not None:
        try:
            value = parse_strict_json(data)
        except PayloadError as error:
            raise AssertionError(f"Python refuses it: {error}") from None
        assert isinstance(value, dict | list)
        assert found == encode_json(value), (found, encode_json(value))


def text(data: bytes) -> None:
    """A text is escaped as Python does it."""
    with _without_nul(data):
        escaped = [compiled.escape_text(data, b"<", b">", *how) for how in _ESCAPES]
    try:
        decoded = data.decode()
    except UnicodeDecodeError:
        return
    as_json = encode_json(decoded)[1:-1]
    expected = as_json, encode(decoded)[1:-1], as_json_for_people(data)
    assert escaped == [b"<" + each + b">" for each in expected], (escaped, expected)


_ESCAPES = (True, True), (True, False), (False, True)


def line(data: bytes) -> None:
    """The line of a message that is taken is the one that Python makes."""
    choice = data[-1] if data else 0
    data, (rules, judged), (head, groups) = data[:-1], _JUDGES[choice & 3], _HEADS_OF_LINES[choice >> 2 & 1]
    admission = Admission(rules, groups, {}, [])
    try:
        verdict = judged(head, admission, data, _RECEIPT)
    except _LeftToPythonError:
        return
    expected = judge(head, admission, data, _RECEIPT)
    assert isinstance(verdict, Accepted) and isinstance(expected, Accepted), (verdict, expected)
    found = verdict.message.line
    assert found == encode_line(expected.message), (found, encode_line(expected.message))
    assert (verdict.notes, verdict.left_out) == (expected.notes, expected.left_out), (verdict, expected)


_RECEIPT = Receipt(1_767_323_045_678_901_234, "id-1")
_HEADS_OF_LINES: list[tuple[Head, dict[str, str]]] = [
    (Head(b"POST", b"/", None, (), _PEERS[0]), {}),
    (Head(b"POST", b"/", None, (), _PEERS[1]), {"HOST": "h", "PROGRAM": "p"}),
]


def _line_judge(rules: SourceRules) -> Judge:
    judged: Any = judge_for_lines(rules)[0]
    judged.__self__._line = partial(_taken, compiled.line)
    return cast(Judge, judged)


_JUDGES = [
    (rules, _line_judge(rules))
    for rules in (
        SourceRules("a", parse_json=True, body_limit=1, unpack_ratio=1),
        SourceRules("b", parse_json=True, prefix="H", keep_text=False, body_limit=1, unpack_ratio=1),
        SourceRules("c", parse_json=True, prefix="x.", keep_unparsed=False, body_limit=1, unpack_ratio=1),
        SourceRules("d", parse_json=False, body_limit=1, unpack_ratio=1),
    )
]

TARGETS: dict[str, tuple[Callable[[bytes], None], list[bytes]]] = {
    "head": (head, [each + bytes([choice]) for each in (*_HEADS, *_of_calls("parse_head")) for choice in (0, 3)]),
    "json": (json, [*_BODIES, *_of_calls("compact_object")]),
    "line": (line, [each + bytes([choice]) for each in (*_BODIES, *_of_calls("line")) for choice in range(8)]),
    "text": (text, [*_BODIES, *_of_calls("escape_text")]),
}
