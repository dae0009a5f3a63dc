"""
The sender definitions of the operator: the data files of C{--senders}.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from webhookrx.config.files import DATA_FILES, list_directory, read_file
from webhookrx.config.option_reader import OptionReader, Problems
from webhookrx.diagnostics import quoted
from webhookrx.senders.definition import SenderDefinition


class OwnSenders(NamedTuple):
    """
    What a directory of data files holds.

    @ivar files: path and content of each file.
    @ivar problems: what is wrong with the directory and the files.
    """

    definitions: tuple[SenderDefinition, ...]
    files: tuple[tuple[str, bytes], ...]
    problems: Problems


def read_own_senders(options: OptionReader) -> OwnSenders:
    """Return the sender definitions of the operator; mistakes are kept in it."""
    directory = options.path("senders")
    problems = Problems()
    if directory is None:
        return OwnSenders((), (), problems)
    origin = options.origin("senders")
    names = problems.attempt(origin, list_directory, directory) or []
    paths = [os.path.join(directory, name) for name in names if name.endswith(DATA_FILES)]
    files = tuple((path, content[0]) for path in paths if (content := problems.attempt(origin, read_file, path)))
    if not files:
        problems.warn(f"{quoted(directory)} holds no data files (*.yaml).", origin)
        return OwnSenders((), (), problems)
    # YAML takes a megabyte of memory, which a receiver without data files and rules does not need.
    from webhookrx.senders.definitions import all_definitions

    definitions, diagnostics = all_definitions((), files)
    problems.add(*diagnostics)
    return OwnSenders(tuple(definitions), files, problems)
