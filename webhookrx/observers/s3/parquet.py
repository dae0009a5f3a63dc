"""
Messages as parquet, by pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import pyarrow  # type: ignore[import-untyped]
from pyarrow import parquet

if TYPE_CHECKING:
    from webhookrx.observers.s3.objects import Check, ObjectRecord

#: No column is null: what a message does not have is empty.
SCHEMA: Final[Any] = pyarrow.schema(
    [
        pyarrow.field("id", pyarrow.string(), nullable=False),
        pyarrow.field("received", pyarrow.timestamp("us", tz="UTC"), nullable=False),
        pyarrow.field("source", pyarrow.string(), nullable=False),
        pyarrow.field("host", pyarrow.string(), nullable=False),
        pyarrow.field("message", pyarrow.string(), nullable=False),
    ]
)

_GROUP: Final = 16 * 1024**2
"""Bytes of lines in a row group; so much of a batch is there a second and third time while it is packed."""


def pack_parquet(records: Iterable[ObjectRecord], compress: str, check: Check) -> bytes:
    """
    Return a parquet file with a row for each message: C{SCHEMA}, and C{message} as the line without its end.

    @param compress: C{zstd} or C{gzip}.
    @param check: called after each row group.
    """
    sink = pyarrow.BufferOutputStream()
    # Sources and hosts are few; ids and lines are all different.
    with parquet.ParquetWriter(sink, SCHEMA, compression=compress, use_dictionary=["source", "host"]) as writer:
        group: list[ObjectRecord] = []
        size = 0
        for record in records:
            group.append(record)
            size += len(record.line)
            if size >= _GROUP:
                writer.write_table(_table(group))
                check()
                group, size = [], 0
        if group:
            writer.write_table(_table(group))
    return bytes(sink.getvalue().to_pybytes())


def _table(group: list[ObjectRecord]) -> Any:
    columns: list[Any] = [
        (record.id for record in group),
        (record.received // 1000 for record in group),
        (record.source for record in group),
        (record.host for record in group),
        (record.line[:-1] for record in group),
    ]
    arrays = [pyarrow.array(column, field.type, size=len(group)) for column, field in zip(columns, SCHEMA, strict=True)]
    return pyarrow.Table.from_arrays(arrays, schema=SCHEMA)
