"""
Tests that the page about expressions says what is so.
"""

from __future__ import annotations

import re

import yaml
from twisted.trial.unittest import SynchronousTestCase

from tests.documents import blocks, read
from tests.router.expressions.programs import a_record
from webhookrx.router.expressions import ExpressionError, RunLimits, compile_expression, function_table
from webhookrx.router.expressions.expression_parser import LEVELS
from webhookrx.router.expressions.kv_functions import CHARACTER
from webhookrx.router.expressions.run import ELEMENT, MAX_DEPTH, MAX_NESTING, MAX_PATTERNS, MAX_SOURCE, OPERATION
from webhookrx.work import MOST_FOR_MESSAGE

PAGE = read("docs/reference/expressions.md")


def section(heading: str) -> str:
    """Return a section of the page."""
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


class PageTests(SynchronousTestCase):
    """docs/reference/expressions.md."""

    def test_example(self) -> None:
        """The example does what its statements say."""
        (rules,) = (yaml.safe_load(block.text) for block in blocks(PAGE) if block.language == "yaml")
        text = rules["connector_rules"][0]["preprocessing"]["steps"][0]["expression"]
        body = {"level": "info", "path": "/a", "user": "BOB", "password": "x", "status": 503}
        record = a_record(body)
        self.assertTrue(compile_expression(text).run(record))
        self.assertEqual({"level": "info", "path": "/a", "user": "bob", "status": 503}, record["log"]["body"])
        self.assertEqual(("none", 17), (record["meta"]["team"], record["log"]["severity_number"]))
        self.assertFalse(compile_expression(text).run(a_record({**body, "path": "/healthz"})))

    def test_statements(self) -> None:
        """The statements of the table compile."""
        shown = re.findall(r"^\| (`.*?`) \|", section("Statements"), re.MULTILINE)
        self.assertEqual(11, len(shown))
        for statement in re.findall("`(.*?)`", " ".join(shown)):
            compile_expression(statement.replace("(…)", "(1)").replace("…", ""))

    def test_operators(self) -> None:
        """The table has all operators, the loosest below."""
        rows = [
            re.findall("`(.*?)`", line.split("|")[1]) for line in section("Operators").splitlines() if "| `" in line
        ]
        self.assertEqual([sorted(level) for level in reversed(LEVELS)], [sorted(row) for row in rows[2:-1]])

    def test_functions(self) -> None:
        """The table of functions is that of the code."""
        self.assertIn(f"<!-- begin expression-functions -->\n{function_table()}<!-- end", PAGE)

    def test_error(self) -> None:
        """The error that is shown is the one that people get."""
        table, shown = (block.text for block in blocks(PAGE) if block.language == "text")
        compile_expression(table)
        error = self.assertRaises(ExpressionError, compile_expression, "log.body = lowr(log.body);")
        self.assertEqual(shown, f"{error}\n")

    def test_bounds(self) -> None:
        """The bounds are those of the code."""
        errors, limits = section("Errors"), RunLimits()
        for number in (MAX_SOURCE, MAX_NESTING, MAX_PATTERNS, MAX_DEPTH, limits.operations, limits.elements):
            self.assertIn(f"{number:,} ", errors)
        for units in (limits.work, MOST_FOR_MESSAGE, OPERATION, ELEMENT, CHARACTER):
            self.assertIn(f" {units:,}", errors)
        self.assertEqual(1024 * 1024, limits.text)
