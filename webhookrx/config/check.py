"""
What C{--check} prints: settings with their origin, mistakes, and files that the observers may not write.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from typing import NamedTuple

from webhookrx.config.option_reader import Effective
from webhookrx.config.options import OPTIONS
from webhookrx.config.resolve import Resolved
from webhookrx.diagnostics import quoted
from webhookrx.quantities import format_size
from webhookrx.settings import PROMPT_BODY, TLS, Listener
from webhookrx.version import version_line

_ORDER = {option.name: number for number, option in enumerate(OPTIONS)}


def check_report(resolved: Resolved, notes: Sequence[str] = ()) -> str:
    """
    Return every setting with its origin, the endpoints, and the warnings. Secrets are C{***}.

    @param notes: see L{webhookrx.config.observers.check_notes}.
    """
    lines = ["service", *_columns(resolved.effective, ""), ""]
    for source in resolved.settings.sources:
        lines += [f"source {source.name}", *_columns(resolved.effective, source.name)]
        lines += [f"  listens on {_listener(listener)}" for listener in source.listeners]
        if source.guard is not None:
            # It takes megabytes of memory, which a receiver without guards does not need.
            from webhookrx.config.guards.plan import guard_plan

            lines += [f"  {line}" for line in guard_plan(source, source.guard, resolved.settings)]
        lines.append("")
    for note in notes:
        lines += [note, ""]
    lines.append(version_line())
    lines.append(_delay(resolved.settings.limits.body))
    lines += [f"warning: {warning}" for warning in resolved.settings.warnings]
    if resolved.settings.blocked:
        lines.append("The configuration is good, but the router is blocked: nothing changes until that is corrected.")
    else:
        lines.append("The configuration is good.")
    return "\n".join(lines)


def _delay(body: int) -> str:
    """Return how long one body may delay other senders."""
    line = f"No body of up to {format_size(min(body, PROMPT_BODY))} delays other senders by more than 50 ms"
    return f"{line}." if body <= PROMPT_BODY else f"{line}; larger ones may."


def error_lines(text: str) -> str:
    """Return mistakes as they are printed, one line each."""
    return "\n".join(f"error: {line}" for line in text.splitlines())


def error_report(text: str) -> str:
    """Return what C{--check} prints for a configuration with mistakes."""
    return f"{error_lines(text)}\nThe configuration can't be used."


def _columns(effective: Sequence[Effective], section: str) -> list[str]:
    rows = sorted(
        (row for row in effective if row.section == section), key=lambda row: _ORDER.get(row.name, len(_ORDER))
    )
    names = max(len(row.name) for row in rows)
    values = min(max(len(row.value) for row in rows), 60)
    return [f"  {row.name:{names}}  {row.value:{values}}  ({row.origin})" for row in rows]


def _listener(listener: Listener) -> str:
    proxy = ", behind a PROXY header" if listener.proxy_protocol else ""
    return f"{listener.socket}{proxy}, {'plain HTTP' if listener.tls is None else _tls(listener.tls)}"


def _tls(tls: TLS) -> str:
    files = [f"key {tls.key_file}", f"certificate {tls.cert_file}"]
    if tls.extra_chain_file is not None:
        files.append(f"chain {tls.extra_chain_file}")
    if not tls.peer_verify:
        return f"TLS with {', '.join(files)}; no client certificate is requested"
    trust = [path for path in (tls.ca_file, tls.ca_dir, "the system's store" if tls.system_store else None) if path]
    return f"TLS with {', '.join(files)}; clients need a certificate signed by a CA in {' or '.join(trust)}"


class User(NamedTuple):
    """User and group of a process."""

    uid: int
    gid: int

    @property
    def name(self) -> str:
        try:
            return f"{pwd.getpwuid(self.uid).pw_name} (uid {self.uid})"
        except KeyError:
            return f"uid {self.uid}"


def run_as(uid: int | None = None, gid: int | None = None) -> User:
    """
    Return the user and group that C{twistd} will have.

    @param uid: that of its option C{--uid}; None for the current user.
    @param gid: that of its option C{--gid}; None for the group of the user.
    """
    if uid is None:
        return User(os.geteuid(), os.getegid() if gid is None else gid)
    if gid is None:
        try:
            gid = pwd.getpwuid(uid).pw_gid
        except KeyError:
            gid = os.getegid()
    return User(uid, gid)


def unwritable(paths: Sequence[str], user: User) -> list[str]:
    """Return a sentence for each file or directory that a user may not write."""
    return [
        f"{quoted(path)} may not be written by {user.name}, the user that webhookrx will run as."
        for path, may in zip(paths, _may_write(paths, user), strict=True)
        if not may
    ]


def _may_write(paths: Sequence[str], user: User) -> list[bool]:
    """Ask the system. For another user, which only root can become, a child process asks."""
    if user.uid == os.geteuid() or os.geteuid() != 0:
        return [_is_writable(path) for path in paths]
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups(_groups(user))
            os.setgid(user.gid)
            os.setuid(user.uid)
            os.write(writing, bytes(_is_writable(path) for path in paths))
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as answers:
        found = answers.read()
    os.waitpid(child, 0)
    # A child that failed proves nothing.
    return [bool(each) for each in found] if len(found) == len(paths) else [True] * len(paths)


def _groups(user: User) -> list[int]:
    try:
        return os.getgrouplist(pwd.getpwuid(user.uid).pw_name, user.gid)
    except KeyError:
        return [user.gid]


def _is_writable(path: str) -> bool:
    """Tell whether a file can be written or made; for a directory, whether files can be made in it."""
    if not os.path.lexists(path):
        path = os.path.dirname(path)
    mode = os.W_OK | os.X_OK if os.path.isdir(path) else os.W_OK
    return os.access(path, mode, effective_ids=True)
