"""
The key of an enrolment that is under way: kept before the console is asked, so that asking again is the same enrolment.

The console certifies the key and uses up the token in one step. If its answer is lost, or the router is killed before
it has kept the answer, the same key and token bring the certificate of the same router once more.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

import msgspec

from webhookrx.config.console_files import ENROLLING
from webhookrx.config.files import read_state, sync_directory, write_state
from webhookrx.filesystem import FileSystem

_FILE_SYSTEM: Final = FileSystem()

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class StartedEnrolment(msgspec.Struct, frozen=True, kw_only=True):
    """
    @ivar console: the URL of the console's port for routers.
    @ivar token: the id of the token; its secret is not kept.
    @ivar key: the private key, PEM.
    """

    console: str
    token: str
    key: str

    def __repr__(self) -> str:
        return f"<StartedEnrolment {self.token}>"


def started_key(directory: str, console: str, token: str) -> str:
    """
    Return the key with which an enrolment was started; empty for one that was not.

    A file that is damaged, or of another console or token, is as none: what it was for has failed, and is begun anew.

    @raise ConfigError: the file can't be read.
    """
    content = read_state(directory, ENROLLING)
    if content is None:
        return ""
    try:
        started = msgspec.json.decode(content, type=StartedEnrolment)
    except (ValueError, RecursionError):
        return ""
    return started.key if (started.console, started.token) == (console, token) else ""


def keep_started(directory: str, started: StartedEnrolment, file_system: FileSystem = _FILE_SYSTEM) -> None:
    """
    Keep the key of an enrolment, in place of one before.

    @raise OSError: it can't be kept.
    """
    write_state(directory, ENROLLING, _encode(started), file_system)


def end_started(directory: str, file_system: FileSystem = _FILE_SYSTEM) -> None:
    """
    Remove the key of an enrolment, once the identity has it.

    @raise OSError: it can't be removed.
    """
    with suppress(FileNotFoundError):
        file_system.unlink(os.path.join(directory, ENROLLING))
        sync_directory(directory, file_system)
