"""The names of objects, and what is in them."""

from __future__ import annotations

import io

import zstandard
from pyarrow import parquet
from twisted.trial.unittest import SynchronousTestCase

from tests.observers.s3.played_s3 import lines_of
from webhookrx.observers.s3.objects import PackedObject, object_format
from webhookrx.observers.s3.options import read_s3
from webhookrx.observers.s3.parquet import SCHEMA
from webhookrx.testing import RECEIVED, make_message


def pack(*texts: str, first: str = "id-0", received: int = RECEIVED, **options: str) -> PackedObject:
    """Make an object."""
    made = object_format(read_s3(["s3://logs/in"], options))
    messages = [
        make_message(text, {"RCPTID": first if not number else f"id-{number}", "SOURCE": "web"}, received + number)
        for number, text in enumerate(texts)
    ]
    return made.make([made.prepare(message) for message in messages], lambda: None)


class NameTests(SynchronousTestCase):
    """Names."""

    def test_name(self) -> None:
        """A name has the time of receipt of the first message in UTC, its id, and the digest of the lines."""
        self.assertRegex(
            pack("a", "b").path,
            r"^in/dt=2026-01-02/hh=03/20260102T030405\.678901Z-id-0-[0-9a-f]{32}\.ndjson\.zst$",
        )

    def test_same(self) -> None:
        """The same messages make the same name, however they are packed, and others do not."""
        digests = {
            pack("a", "b", **options).path.rpartition("-")[2].partition(".")[0]
            for options in ({}, {"compress": "gzip"}, {"format": "parquet"}, {"name": "x/"})
        }
        self.assertEqual(1, len(digests))
        self.assertEqual(5, len({pack(*texts).path for texts in ("ab", "ba", "a", "b", "abc")}))

    def test_order(self) -> None:
        """Names in their order are the order of receipt."""
        paths = [pack("a", received=RECEIVED + 10**step * 1000).path for step in range(14)]

        self.assertEqual(sorted(paths), paths)

    def test_hostile_id(self) -> None:
        """An id that anybody chose changes no path, and no name is longer than S3 takes."""
        path = pack("a", first="../é /?%\n" + "x" * 500).path

        self.assertRegex(path, r"^in/dt=2026-01-02/hh=03/[0-9TZ.]+-\.\._nx{1,79}-[0-9a-f]{32}\.ndjson\.zst$")
        self.assertLess(len(path), 300)

    def test_own_name(self) -> None:
        """The part before may be another, or none."""
        self.assertTrue(pack("a", name="%Y/%j/").path.startswith("in/2026/002/2026"))
        self.assertTrue(pack("a", name="").path.startswith("in/2026"))


class ContentTests(SynchronousTestCase):
    """What is in objects."""

    def test_template(self) -> None:
        """With a template each message is a line of text."""
        packed = pack("a", "b\nc", template="${HOST} ${MESSAGE}")

        self.assertTrue(packed.path.endswith(".txt.zst"))
        self.assertEqual(["192.0.2.1 a", r"192.0.2.1 b\nc"], lines_of(packed))

    def test_checksum(self) -> None:
        """A frame of zstd has a checksum, so that a reader notices damage."""
        content = bytearray(pack("a" * 1000).content)
        self.assertTrue(zstandard.get_frame_parameters(bytes(content)).has_checksum)

    def test_many(self) -> None:
        """All lines are there in order, over all blocks and row groups."""
        texts = [str(number) + "x" * 10_000 for number in range(2500)]
        for options in ({}, {"compress": "gzip"}, {"format": "parquet"}):
            with self.subTest(**options):
                lines = lines_of(pack(*texts, **options))
                self.assertEqual(2500, len(lines))
                self.assertTrue(all(text in line for text, line in zip(texts, lines, strict=True)))

    def test_parquet(self) -> None:
        """A row has id, moment to the microsecond, source, host and the line."""
        found = parquet.read_table(io.BytesIO(pack("a", "é\0", format="parquet", compress="gzip").content))

        self.assertEqual(SCHEMA, found.schema)
        rows = found.to_pylist()
        self.assertEqual(["id-0", "id-1"], [row["id"] for row in rows])
        self.assertEqual(("web", "192.0.2.1"), (rows[0]["source"], rows[0]["host"]))
        self.assertEqual("2026-01-02T03:04:05.678901+00:00", rows[0]["received"].isoformat())
        self.assertIn(r'"MESSAGE":"é\u0000"', rows[1]["message"])

    def test_stop(self) -> None:
        """What is called between pieces may end it."""

        class Stop(Exception):
            pass

        def stop() -> None:
            raise Stop

        for options in ({}, {"format": "parquet"}):
            made = object_format(read_s3(["s3://logs/in"], options))
            batch = [made.prepare(make_message("x" * 1024**2, {"RCPTID": str(number)})) for number in range(17)]
            self.assertRaises(Stop, made.make, batch, stop)
