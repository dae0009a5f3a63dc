"""
The data files of senders that come with the package.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from webhookrx.senders.entries import read_entry
from webhookrx.senders.entry import Entry


@lru_cache(maxsize=1)
def builtin_entries() -> tuple[Entry, ...]:
    """
    Return the entries that come with the package, by id. They are read once.

    @raise ValueError: one of the files can't be used, which is a mistake in the package.
    """
    entries = []
    for name, data in builtin_files():
        entry, findings = read_entry(data, name)
        if entry is None:
            raise ValueError("; ".join(map(str, findings)))
        entries.append(entry)
    return tuple(sorted(entries, key=lambda entry: entry.id))


def builtin_files() -> list[tuple[str, bytes]]:
    """Return name and bytes of each data file of the package, by name."""
    directory = files("webhookrx.senders").joinpath("data")
    found = [entry for entry in directory.iterdir() if entry.name.endswith(".yaml")] if directory.is_dir() else []
    return [(entry.name, entry.read_bytes()) for entry in sorted(found, key=lambda entry: entry.name)]
