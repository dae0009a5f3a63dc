"""
What the tests of this room share: running programs on records.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from webhookrx.router.expressions import ExpressionError, RunLimits, compile_expression


def a_record(body: Any = None) -> dict[str, Any]:
    """Return a record as the router form makes it."""
    if body is None:
        body = {"user": "Alice", "level": "info", "count": 3, "ratio": msgspec.Raw(b"1.50"), "tags": ["a", "b"]}
    return {
        "log": {
            "body": copy.deepcopy(body),
            "attributes": {"webhook.query.team": "blue", "webhook.path.HOST": "web-1"},
            "observed_time_unix_nano": 1_700_000_000_000_000_000,
            "time_unix_nano": 0,
            "severity_number": 0,
            "severity_text": "",
        },
        "meta": {
            "connector": {"type": "webhook", "name": "r-a-b", "port": 8080, "labels": {"product": "webhook"}},
            "connection": {"src_ip": "192.0.2.1", "src_port": 5000, "transport": "https", "bytes": 12},
            "router": {"name": "r", "labels": {"site": "north"}},
            "host": {"name": "web-1"},
        },
    }


def plain(value: Any) -> Any:
    """Return a value with exact numbers as C{("raw", text)}, so that equality looks at their digits."""
    if isinstance(value, msgspec.Raw):
        return "raw", bytes(value).decode()
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    return [plain(element) for element in value] if isinstance(value, list) else value


def worked_out(expression: str, body: Any = None, limits: RunLimits | None = None) -> Any:
    """Return what an expression gives on a record."""
    record = a_record(body)
    compile_expression(f"meta.result = {expression};", limits or RunLimits()).run(record)
    return plain(record["meta"]["result"])


def problem(program: str, body: Any = None, limits: RunLimits | None = None) -> tuple[str, int, int]:
    """Return what an error of a program says, when it is compiled or run, and where."""
    try:
        compile_expression(program, limits or RunLimits()).run(a_record(body))
    except ExpressionError as error:
        return error.problem, error.position.line, error.position.column
    raise AssertionError(f"no error: {program!r}")
