"""
What the engine that people come from, AxoSyslog 4.27, makes of programs, and what ours makes of them.

C{engine_answers.json} holds programs with its answers: a message is kept, with the value of C{log.body}, or dropped, by
a false statement or an error; or the program does not compile. C{log.body} is the text C{foobar} before, or the object
of that file.
"""

from __future__ import annotations

import copy
import json
import os
from typing import Any, Final

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.documents import read
from webhookrx.router.expressions import ExpressionError, compile_expression

with open(os.path.join(os.path.dirname(__file__), "engine_answers.json"), encoding="utf-8") as _file:
    _DATA = json.load(_file)
ROWS: Final[list[dict[str, Any]]] = _DATA["rows"]
BODY: Final = _DATA["body"]

KEPT: Final = "kept"
DROPPED: Final = "dropped"
REFUSED: Final = "refused"

WANTED: Final = {
    "E140": "Unicode: upper()",
    "P15": "Unicode: upper()",
    "P16": "Unicode: lower()",
    "S112": "Unicode: len()",
    "M26": "Unicode: len()",
    "S102": "random: uuid()",
}
"""Rows in which ours is another answer, as it should be."""

DIFFERENT: Final = {
    "E127": "`\\u",
    "M27": "`\\u",
    "E130": "`\\d",
    "S0": "Objects that are missing on the way",
    "P1": "Objects that are missing on the way",
    "M9": "`unset()`",
    "M31": "A character",
    "M37": "`$`",
    "E256": "An empty match",
}
"""Rows with another answer of ours, and the beginning of its line on the page."""

NOT_COMPILED: Final = {
    "E237": "`=~`",
    "S30": "A variable that nothing sets",
    "S67": "Regular expressions",
    "S75": "Not there",
    "S76": "`datetime()`",
    "S83": "A variable that nothing sets",
    "S101": "Not there",
}
"""Rows that the engine runs and we refuse, and the beginning of their line on the page."""

COMPILED: Final = {"E66": "`2+3`"}
"""The other way round."""

MOST_DIFFERENT: Final = 10
MOST_REFUSED: Final = 0.03


def exact(value: Any) -> Any:
    """Return a value as a message has it, with exact numbers."""
    if isinstance(value, float):
        return msgspec.Raw(repr(value).encode())
    if isinstance(value, dict):
        return {name: exact(member) for name, member in value.items()}
    return [exact(element) for element in value] if isinstance(value, list) else value


def ours(program: str, body: Any) -> tuple[str, Any]:
    """Return our answer to a program."""
    try:
        compiled = compile_expression(program)
    except ExpressionError:
        return REFUSED, None
    record = {
        "log": {"body": exact(copy.deepcopy(body)), "observed_time_unix_nano": 1_795_379_000 * 10**9},
        "meta": {"host": {"name": "vm"}},
    }
    try:
        kept = compiled.run(record)
    except ExpressionError:
        # A step that fails keeps the message as it was, where the engine drops it.
        return DROPPED, None
    log: Any = record["log"]
    return (KEPT, log.get("body")) if kept else (DROPPED, None)


def same(found: Any, answer: Any) -> bool:
    """
    Tell whether two values are the same: numbers as doubles, also as text, and nanoseconds as the engine's
    microseconds.
    """
    if isinstance(found, msgspec.Raw):
        found = float(bytes(found))
    if is_number(found) and is_number(answer):
        return float(found) == float(answer) or (answer > 10**12 and found == answer * 1_000)
    if isinstance(found, dict) and isinstance(answer, dict):
        return found.keys() == answer.keys() and all(same(found[name], answer[name]) for name in found)
    if isinstance(found, list) and isinstance(answer, list):
        return len(found) == len(answer) and all(map(same, found, answer))
    if isinstance(found, str) and isinstance(answer, str) and found != answer:
        try:
            return float(found) == float(answer)
        except ValueError:
            return False
    return type(found) is type(answer) and bool(found == answer)


def is_number(value: Any) -> bool:
    """Tell whether a value is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class EngineAnswerTests(SynchronousTestCase):
    """Programs with the engine's answers."""

    def test_rows(self) -> None:
        """Of all rows ours gives the same answer, but for those that are named here, and each of these is another."""
        groups: dict[str, set[str]] = {"different": set(), "refused": set(), "compiled": set()}
        for row in ROWS:
            verdict, value = ours(row["program"], BODY if row.get("with_body") else "foobar")
            if verdict == row["answer"]:
                if verdict != KEPT or same(value, row["value"]):
                    continue
                group = "different"
            elif verdict == REFUSED:
                group = "refused"
            else:
                group = "compiled" if row["answer"] == REFUSED else "different"
            groups[group].add(row["id"])
        self.assertEqual(532, len(ROWS))
        self.assertEqual(WANTED.keys() | DIFFERENT.keys(), groups["different"])
        self.assertEqual(NOT_COMPILED.keys(), groups["refused"])
        self.assertEqual(COMPILED.keys(), groups["compiled"])

    def test_few(self) -> None:
        """Few rows have another answer, and few programs that the engine takes are refused."""
        self.assertLessEqual(len(DIFFERENT), MOST_DIFFERENT)
        accepted = sum(row["answer"] != REFUSED for row in ROWS)
        self.assertLess(len(NOT_COMPILED), accepted * MOST_REFUSED)

    def test_named(self) -> None:
        """The page names each of them."""
        told = read("docs/reference/expressions.md").partition("\n## Differences from FilterX\n")[2]
        for begin in {*DIFFERENT.values(), *NOT_COMPILED.values(), *COMPILED.values()}:
            self.assertIn(f"\n- {begin}", told)
