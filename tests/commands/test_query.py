"""The subject C{query}."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from tests.commands.running import run_command


class CheckTests(SynchronousTestCase):
    """C{query check}."""

    def test_valid(self) -> None:
        """A query is shown as it is understood, with the fields that it asks for, each once."""
        self.assertEqual(
            (0, "valid:   label.site = fra AND (name = a OR name = b)\nfields:  label.site, name\n", ""),
            run_command("query", "check", "label.site=fra , ( name='a' or name = b )"),
        )

    def test_everything(self) -> None:
        """The empty one matches everything."""
        for text in ("", "  "):
            status, out, _ = run_command("query", "check", text)
            self.assertEqual((0, "valid: the empty query, which matches everything\n"), (status, out))

    def test_no_field(self) -> None:
        """C{@ANY} is no field of its own."""
        self.assertEqual((0, "valid:  @ANY =* x\n", ""), run_command("query", "check", "@ANY =* x"))

    def test_json(self) -> None:
        """In JSON it is one object, with the tree."""
        status, out, err = run_command("query", "check", "--json", "name=a and b EXISTS")
        self.assertEqual((0, ""), (status, err))
        self.assertEqual(
            {
                "valid": True,
                "text": "name=a and b EXISTS",
                "normalized": "name = a AND b EXISTS",
                "fields": [{"field": "name", "column": 1}, {"field": "b", "column": 12}],
                "tree": {
                    "and": [
                        {"field": "name", "operator": "=", "value": "a", "column": 1},
                        {"field": "b", "operator": "EXISTS", "column": 12},
                    ]
                },
            },
            json.loads(out),
        )

    def test_caret(self) -> None:
        """A caret points at the mistake, also behind characters that take two columns, none, or an escape."""
        for text, shown, caret in (
            ("a = b & c = d", "a = b & c = d", 6),
            ("name = 日本 & b", "name = 日本 & b", 12),
            ("name = 'e\u0301' & b", "name = 'e\u0301' & b", 11),
            ("a\t= b & c", r"a\t= b & c", 7),
            ("a = b\u202e & c", r"a = b\u202e & c", 5),
        ):
            status, out, err = run_command("query", "check", text)
            line, below, sentence = out.splitlines()
            self.assertEqual((1, ""), (status, err))
            self.assertEqual((shown, " " * caret + "^"), (line, below))
            self.assertRegex(sentence, r"^column \d+: \S.*\.$")

    def test_long(self) -> None:
        """Of a long query the part with the mistake is shown."""
        _, out, _ = run_command("query", "check", f"a = {'x' * 500} & b = {'y' * 500}")
        line, below, sentence = out.splitlines()
        self.assertEqual(f"…{'x' * 59} & b = {'y' * 54}…", line)
        self.assertEqual("&", line[len(below) - 1])
        self.assertTrue(sentence.startswith("column 506: "))

    def test_standard_input(self) -> None:
        """It comes on standard input for C{-}; with several lines the one with the mistake is shown."""
        self.assertEqual(
            "valid:   a = b AND c = d\nfields:  a, c\n",
            run_command("query", "check", "-", stdin=b"a = b\nAND c = d\n").out,
        )
        status, out, _ = run_command("query", "check", "-", stdin=b"a = b\nAND c & d\nAND e = f\n")
        line, below, sentence = out.splitlines()
        self.assertEqual((1, "AND c & d", "      ^"), (status, line, below))
        self.assertTrue(sentence.startswith("line 2, column 7: "))
        _, out, _ = run_command("query", "check", "--json", "-", stdin=b"a = b\nAND c & d\nAND e = f\n")
        found = json.loads(out)
        self.assertTrue(found.pop("problem").endswith("quotes."))
        self.assertEqual({"valid": False, "text": "a = b\nAND c & d\nAND e = f", "line": 2, "column": 7}, found)

    def test_bytes(self) -> None:
        """What is no UTF-8 is told, or shown with escapes."""
        status, out, err = run_command("query", "check", "-", stdin=b"a = \xff")
        self.assertEqual((1, "", "webhookrx: standard input is not UTF-8.\n"), (status, out, err))
        for words in (("a = 'x\udcff'",), ("--json", "a = 'x\udcff'")):
            status, out, _ = run_command("query", "check", *words)
            self.assertEqual(0, status)
            self.assertIn("udcff", out)

    def test_endless(self) -> None:
        """Standard input that does not end in reasonable time is not read to its end."""
        status, out, err = run_command("query", "check", "-", stdin=b"a" * (16 * 1024 * 1024 + 1))
        self.assertEqual((1, ""), (status, out))
        self.assertIn("larger than 16 MiB", err)
