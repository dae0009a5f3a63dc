"""
What stat(2) says of files, by which a change is seen without reading them.
"""

from __future__ import annotations

import os
import stat
import zlib
from typing import Final

from webhookrx.settings import Signature

DATA_FILES: Final = (".yaml", ".yml")
"""How the names of data files in a directory end."""


def signature_of(path: str) -> Signature:
    """
    Return what changes when a file does, or may be read by this process where it could not, or the other way. That of
    a directory changes with the data files in it, and not with others: messages may be written there.
    """
    try:
        found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            names = sorted(name for name in os.listdir(path) if name.endswith(DATA_FILES))
            return (found.st_dev, found.st_ino, *(part for name in names for part in _of_data_file(path, name)))
    except OSError as error:
        return (error.errno or 0,)
    except ValueError:
        return ()
    return _of(path, found)


def _of_data_file(directory: str, name: str) -> Signature:
    path = os.path.join(directory, name)
    try:
        return (zlib.crc32(os.fsencode(name)), *_of(path, os.stat(path)))
    except OSError as error:
        return (zlib.crc32(os.fsencode(name)), error.errno or 0)


def _of(path: str, found: os.stat_result) -> Signature:
    readable = int(os.access(path, os.R_OK, effective_ids=True))
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size, readable
