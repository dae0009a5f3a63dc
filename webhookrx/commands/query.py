"""
The subject C{query}: whether a text is a query, and the fields that it tests.
"""

from __future__ import annotations

import argparse
from typing import Any, TextIO

from webhookrx.commands.terminal import (
    DONE,
    FAILED,
    STANDARD_INPUT,
    Verbs,
    encodable,
    pointed_at,
    print_json,
    print_table,
    read_text,
    safe,
)
from webhookrx.query import Query, QueryError, format_tree, line_and_column, parse, plain_tree


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of the subject to its parser."""
    parser.description = "Queries are router selectors, conditions of steps, and what Select Messages asks for."
    check = Verbs(parser).add(
        "check",
        _check,
        "tell whether a text is a query, and which fields it asks for",
        "webhookrx query check 'label.site = fra AND NOT name =~ ^test-'",
    )
    check.add_argument("text", metavar="TEXT", help="the query; - reads it from standard input")
    check.add_argument("--json", action="store_true", help="print JSON, one object")


def _check(asked: argparse.Namespace, out: TextIO, _: TextIO) -> int:
    text = read_text(STANDARD_INPUT).rstrip("\n") if asked.text == STANDARD_INPUT else encodable(asked.text)
    try:
        query = parse(text)
    except QueryError as error:
        if asked.json:
            print_json(out, {"valid": False, "text": text, **problem_facts(text, error)})
        else:
            print("\n".join(problem_lines(text, error)), file=out)
        return FAILED
    if asked.json:
        print_json(out, _facts(query))
    else:
        _describe(query, out)
    return DONE


def problem_lines(text: str, error: QueryError) -> list[str]:
    """Say what is wrong with a query: the line with the mistake, a caret under it, and what it is."""
    line, column = line_and_column(text, error.column)
    where = f"line {line}, column {column}" if "\n" in text else f"column {column}"
    return [*pointed_at(text.split("\n")[line - 1], column), f"{where}: {safe(error.problem)}"]


def problem_facts(text: str, error: QueryError) -> dict[str, Any]:
    """Return the same for JSON."""
    line, column = line_and_column(text, error.column)
    return {"line": line, "column": column, "problem": error.problem}


def _facts(query: Query) -> dict[str, Any]:
    fields = [{"field": use.field, "column": use.column} for use in query.fields]
    return {
        "valid": True,
        "text": query.text,
        "normalized": format_tree(query.tree),
        "fields": fields,
        "tree": plain_tree(query.tree),
    }


def _describe(query: Query, out: TextIO) -> None:
    text = format_tree(query.tree)
    if not text:
        print("valid: the empty query, which matches everything", file=out)
        return
    rows = [["valid:", text]]
    if query.fields:
        rows.append(["fields:", ", ".join(dict.fromkeys(use.field for use in query.fields))])
    print_table(out, rows, indent="")
