"""Tests for L{benchmarks.verify}."""

from __future__ import annotations

import json
import os
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.lines import NESTED, Flat
from benchmarks.tools import Broken
from benchmarks.traffic import Traffic
from benchmarks.verify import look_for, verify

BODIES = tuple(f'{{"n":{number},"o":{{"p":[1,{{"q":2}}],"r":{{}}}}}}' for number in range(3))
TRAFFIC = Traffic("plain", (), frozenset(BODIES))


def line(number: int, **changes: Any) -> dict[str, Any]:
    """Return the values of a good line; None takes one away."""
    body = BODIES[number % len(BODIES)]
    values = {
        "ISODATE": "2026-01-02T03:04:05.678901+00:00",
        "HOST": "127.0.0.1",
        "MESSAGE": body,
        "SOURCE": "default",
        "n": number % len(BODIES),
        "o.p": [1, {"q": 2}],
        "o.r": {},
        "SOURCEIP": "127.0.0.1",
        "SOURCEPORT": 40000,
        "TRANSPORT": "http",
        "RAWMSG_SIZE": len(body),
        "TAGS": ".source.default",
        "RCPTID": f"id-{number}",
        **changes,
    }
    return {name: value for name, value in values.items() if value is not None}


class VerifyTests(SynchronousTestCase):
    """Whether a file has what it must."""

    def setUp(self) -> None:
        """Name a file."""
        self.path = self.mktemp()

    def look(self, *lines: dict[str, Any] | str, answered: int | None = None, flattens: bool = True) -> int:
        """Verify a file with some lines."""
        with open(self.path, "w") as file:
            for each in lines:
                file.write((each if isinstance(each, str) else json.dumps(each)) + "\n")
        return verify(self.path, TRAFFIC, len(lines) if answered is None else answered, Flat(flattens))

    def test_good(self) -> None:
        """Good lines are counted, and the file is empty for the next run."""
        self.assertEqual(4, self.look(*map(line, range(4))))
        self.assertEqual(0, os.path.getsize(self.path))

    def test_more(self) -> None:
        """A message may be there whose answer the sender did not wait for."""
        self.assertEqual(4, self.look(*map(line, range(4)), answered=3))

    def test_missing(self) -> None:
        """One that was answered and is not there is told; the file stays, to be looked at."""
        error = self.assertRaises(Broken, self.look, *map(line, range(4)), answered=5)
        self.assertIn("5 messages were answered, and only 4", str(error))
        self.assertNotEqual(0, os.path.getsize(self.path))

    def test_torn(self) -> None:
        """A line without its end is none."""
        self.look(line(0))
        with open(self.path, "w") as file:
            file.write(json.dumps(line(1)))
        self.assertRaises(Broken, verify, self.path, TRAFFIC, 1, Flat())

    def test_wrong_lines(self) -> None:
        """A line that is not as it should be is told, by what is wrong with it."""
        for wrong, text in (
            ('{"MESSAGE": "cut', "line 1"),
            (line(0, MESSAGE="another", RAWMSG_SIZE=7, n=None), "nobody sent"),
            (line(0, RCPTID=None), "RCPTID"),
            (line(0, TAGS=None), "it has no TAGS"),
            (line(0, SOURCEPORT=None), "it has no SOURCEPORT"),
            (line(0, RAWMSG_SIZE=5), "RAWMSG_SIZE is wrong"),
            (line(0, n=7), "n is 7, not 0"),
            (line(0, **{"o.p": None}), "o.p is None"),
        ):
            error = self.assertRaises(Broken, self.look, wrong, flattens="nobody" not in text)
            self.assertIn(text, str(error))

    def test_same_id(self) -> None:
        """An id is that of one message."""
        error = self.assertRaises(Broken, self.look, line(0), line(1, RCPTID="id-0"))
        self.assertIn("1 lines", str(error))

    def test_text(self) -> None:
        """Who does not look into the body need not have its members."""
        values = line(0, n=None, **{"o.p": None, "o.r": None})
        self.assertEqual(1, self.look(values, flattens=False))
        self.assertRaises(Broken, self.look, values)

    def test_proxy(self) -> None:
        """Behind a proxy nobody need know the port of the client."""
        self.assertEqual(1, self.look(line(0, SOURCEPORT=None, PEERIP="127.0.0.1", PEERPORT=40000)))

    def test_nested(self) -> None:
        """Lines of another form are none."""
        with open(self.path, "w") as file:
            file.write(json.dumps(line(0)) + "\n")
        error = self.assertRaises(Broken, verify, self.path, TRAFFIC, 1, NESTED)
        self.assertIn("line 1", str(error))

    def test_others(self) -> None:
        """Among lines of others, those that were answered are looked for; the others may be of any form."""
        others = ("{", "x" * 10_000, json.dumps(line(0, MESSAGE="another")))
        for answered, good in ((2, True), (3, False)):
            with open(self.path, "w") as file:
                file.write("\n".join((*others, json.dumps(line(0)), json.dumps(line(1)), "")))
            if good:
                look_for(self.path, TRAFFIC, answered, Flat())
                self.assertEqual(0, os.path.getsize(self.path))
            else:
                error = self.assertRaises(Broken, look_for, self.path, TRAFFIC, answered, Flat())
                self.assertIn("only 2", str(error))
