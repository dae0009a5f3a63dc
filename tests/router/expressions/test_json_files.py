"""
Tests for L{webhookrx.router.expressions.json_files}.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.router.expressions import (
    ExpressionError,
    OperationError,
    compile_expression,
    no_files,
    table_of,
    tables_of,
)

TEAMS = b'{"web-1": {"team": "blue", "load": 1.50}, "list": [1, {"a": "b"}]}'


def run(text: str, content: bytes = TEAMS, body: Any = None) -> dict[str, Any]:
    """Return what a program makes of a message, where C{/t.json} holds this."""
    record = {"log": {"body": {"host": "web-1"} if body is None else body}, "meta": {}}
    compile_expression(text, files=tables_of({"/t.json": content})).run(record)
    return record


class LookUpTests(SynchronousTestCase):
    """What programs do with files."""

    def test_looks_up(self) -> None:
        """A program reads what a file holds like any object or list."""
        text = 't = cache_json_file("/t.json"); log.body.team = t[log.body.host].team; log.body.n = t.list[1].a;'
        self.assertEqual({"host": "web-1", "team": "blue", "n": "b"}, run(text)["log"]["body"])
        self.assertEqual("none", run('log.body = cache_json_file("/t.json").no ?? "none";')["log"]["body"])
        self.assertEqual(2, run('log.body = cache_json_file("/t.json")[-1];', b"[1, 2]")["log"]["body"])

    def test_own_copy(self) -> None:
        """What a message takes from a file is its own: a change of it is none of the file, and of no other message."""
        program = compile_expression(
            't = cache_json_file("/t.json"); log.body = t; log.body.list[0] = 7; log.body["web-1"].x = 1;',
            files=tables_of({"/t.json": TEAMS}),
        )
        for _ in range(2):
            record: dict[str, Any] = {"log": {"body": 1}, "meta": {}}
            program.run(record)
            body = record["log"]["body"]
            self.assertEqual(msgspec.Raw(b"1.50"), body["web-1"].pop("load"))
            self.assertEqual({"web-1": {"team": "blue", "x": 1}, "list": [7, {"a": "b"}]}, body)
            self.assertIs(dict, type(body))
            self.assertIs(list, type(body["list"]))

    def test_not_changed(self) -> None:
        """What a file holds can't be changed by a program."""
        for text in (
            't = cache_json_file("/t.json"); t.x = 1;',
            't = cache_json_file("/t.json"); unset(t.list);',
            't = cache_json_file("/t.json"); t.list[0] = 1;',
            't = cache_json_file("/t.json"); t += {"a": 1}; log.body = cache_json_file("/t.json").a;',
        ):
            files = tables_of({"/t.json": TEAMS})
            with contextlib.suppress(ExpressionError):
                compile_expression(text, files=files).run({"log": {"body": 1}, "meta": {}})
            self.assertEqual(["web-1", "list"], list(files("/t.json")), text)
            self.assertEqual([1, {"a": "b"}], files("/t.json")["list"], text)

    def test_written(self) -> None:
        """All of a file may be written as JSON, with numbers as they are spelled."""
        record = run('log.body = format_json(cache_json_file("/t.json"));')
        self.assertEqual(TEAMS.replace(b" ", b"").decode(), record["log"]["body"])
        record = run('log.body = cache_json_file("/t.json");')
        self.assertEqual(json.loads(TEAMS), json.loads(msgspec.json.encode(record["log"]["body"])))

    def test_missing(self) -> None:
        """A program that names a file which was not read does not compile; where no files are, all are empty."""
        text = 'log.body = cache_json_file("/u.json").x ?? 1;'
        error = self.assertRaises(ExpressionError, compile_expression, text, files=tables_of({"/t.json": TEAMS}))
        self.assertEqual((1, 28), (error.position.line, error.position.column))
        compile_expression(text, files=no_files)


class TableTests(SynchronousTestCase):
    """What may be in a file."""

    def test_once(self) -> None:
        """A file is read once for all programs."""
        files = tables_of({"/t.json": TEAMS})
        self.assertIs(files("/t.json"), files("/t.json"))

    def test_no_table(self) -> None:
        """A file that is not JSON, or neither an object nor a list, is reported without a word of it."""
        for content, told in (
            (b"{secret", "The file"),
            (b'"secret"', "neither an object nor a list"),
            (b"", "The file"),
        ):
            error = self.assertRaises(OperationError, table_of, content)
            self.assertIn(told, error.problem)
            self.assertNotIn("secret", error.problem)
