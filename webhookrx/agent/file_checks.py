"""
The states of files that a console asks about: of those below the host's directories for keys and data, and of no other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime

from webhookrx.config.console_options import lies_below
from webhookrx.config.files import Snapshot, read_file
from webhookrx.config.pem import check_cert_file, check_tls_files
from webhookrx.diagnostics import ERROR, Diagnostic
from webhookrx.errors import ConfigError
from webhookrx.management.agent_protocol import CheckFilesCommand, FileState
from webhookrx.management.file_states import state_of
from webhookrx.settings import TLS, AgentSettings


def check_files(command: CheckFilesCommand, settings: AgentSettings, now: datetime) -> dict[str, FileState]:
    """
    Return the state of each file of a command. It reads files: it is called in a thread.

    @param now: the time with its zone, for the dates of certificates.
    """
    allowed = (*settings.key_directories, *settings.data_directories)
    states = {path: _state(path, allowed) for path in command.paths}
    first = command.paths[0]
    if command.key and states[first] == "present":
        # Without a key to hold against it, a certificate is judged alone.
        if _state(command.key, allowed) == "present":
            found = check_tls_files(TLS(command.key, first), now, Snapshot())
        else:
            found = check_cert_file(first, now, Snapshot())
        for path in {first, command.key} & states.keys():
            if states[path] == "present":
                states[path] = _worst(each for each in found if each.named == path)
    return states


def _worst(found: Iterable[Diagnostic]) -> FileState:
    ordered = sorted(found, key=lambda each: each.severity != ERROR)
    return next((state for state in map(state_of, ordered) if state != "present"), "present")


def _state(path: str, allowed: tuple[str, ...]) -> FileState:
    try:
        if not path.startswith("/") or not lies_below(path, allowed):
            return "not_allowed"
        read_file(path)
    except ConfigError:
        return "unreadable" if os.path.lexists(path) else "missing"
    except (ValueError, OSError):
        return "not_allowed"
    return "present"
