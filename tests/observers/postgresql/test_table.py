"""Messages as rows of COPY, and what is said of a table."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

import tests.examples  # noqa: F401
from tests.observers.postgresql.played_postgresql import TYPES, fields, text_of
from webhookrx.message.identity import parse_id
from webhookrx.observers.postgresql.table import MessageTable, parse_columns
from webhookrx.testing import make_message
from webhookrx.yield_point import PIECE

STANDARD = "id,received,source,host,message"


def table(columns: str = STANDARD) -> MessageTable:
    """Make one."""
    return MessageTable(None, "webhooks", parse_columns(columns, parse_id("${RCPTID}"), own_id=False), ("id",))


class RowTests(SynchronousTestCase):
    """Rows."""

    def test_row(self) -> None:
        """A row has the fields in the order of the columns; what a message does not have is NULL."""
        row = table(f"{STANDARD},program=${{PROGRAM}},both=${{HOST}}/${{SOURCE}}").encode(
            make_message("hello", {"RCPTID": "1-2-3", "SOURCE": "", "HOST": "h"})
        )

        own, received, source, host, line, program, both = fields(row)
        self.assertEqual(("1-2-3", None, "h", None, "h/"), (own, source, host, program, both))
        assert received is not None and line is not None
        self.assertTrue(received.startswith("2026-01-02T"))
        self.assertTrue(line.startswith('{"ISODATE"'))

    @given(st.text(), st.text(min_size=1))
    def test_texts(self, text: str, host: str) -> None:
        """Every text is one row and comes back; only a NUL is written as an escape outside of JSON."""
        row = table("id,host,message").encode(make_message(text, {"RCPTID": "1", "HOST": host}))

        self.assertEqual(1, row.count(b"\n"))
        self.assertEqual(2, row.count(b"\t"))
        self.assertNotIn(b"\0", row)
        self.assertEqual(text, text_of(row))
        self.assertEqual(host.replace("\0", r"\x00"), fields(row)[1])

    def test_long(self) -> None:
        """A long text comes back, too, wherever its pieces are cut."""
        text = "\\\0\té" * PIECE

        self.assertEqual(text, text_of(table().encode(make_message(text, {"RCPTID": "1"}))))

    def test_end_of_data(self) -> None:
        r"""A text C{\.} does not end the rows."""
        row = table("id,text=${MESSAGE}").encode(make_message("\\.", {"RCPTID": "1"}))

        self.assertEqual(b"1\t\\\\.\n", row)


class MisfitTests(SynchronousTestCase):
    """Tables into which no message fits."""

    def test_fits(self) -> None:
        """Lengths, other columns and types of templates are the operator's matter."""
        types = {**TYPES, "host": "character varying(3)", "message": "jsonb", "shift": "integer", "level": "integer"}

        self.assertIsNone(table().misfit(TYPES))
        self.assertIsNone(table(f"{STANDARD},level=${{level}}").misfit(types))

    def test_misfits(self) -> None:
        """A column that is missing, or whose type refuses nearly all messages, is said by its name."""
        for name, type, said in (
            ("message", None, "the table has no column 'message'"),
            ("message", "integer", "column 'message' is of a type that does not take every message; json does"),
            ("received", "timestamp without time zone", "timestamptz does"),
            ("id", "uuid", "column 'id' is of a type"),
            ("host", "inet", "column 'host' is of a type"),
        ):
            types = {**TYPES, name: type} if type else {key: value for key, value in TYPES.items() if key != name}
            self.assertIn(said, table().misfit(types) or "")

    def test_own_id(self) -> None:
        """With id=TEMPLATE the column may be of another type."""
        columns = parse_columns("id,message", parse_id("${uuid}"), own_id=True)

        self.assertIsNone(MessageTable(None, "t", columns, ("id",)).misfit({**TYPES, "id": "uuid"}))
