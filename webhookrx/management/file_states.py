"""
The states of files that rules name, as routers tell them; and the reload gates that would close for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from webhookrx.diagnostics import ERROR, Diagnostic
from webhookrx.management.agent_protocol import FileState
from webhookrx.management.preview import MOST_LISTED, RouterGate, RulePreview

#: The state of a file as a preview shows it. C{unknown}: its router is away, or has not answered in time.
ShownState: TypeAlias = FileState | Literal["unknown"]

_OF_CODES: Final[dict[str, FileState]] = {
    "tls-file-missing": "missing",
    "secrets-file-missing": "missing",
    "token-file-missing": "missing",
    "tls-file-unreadable": "unreadable",
    "secrets-file-unusable": "unreadable",
    "token-file-unusable": "unreadable",
    "tls-file-not-pem": "not_pem",
    "key-encrypted": "not_pem",
    "key-unusable": "does_not_fit",
    "key-mismatch": "does_not_fit",
    "chain-order": "chain_order",
    "certificate-expired": "expired",
    "certificate-not-yet-valid": "expired",
}

_OPEN: Final[frozenset[ShownState]] = frozenset({"present", "expired", "unknown"})
"""A router takes an expired certificate, with a warning, and no rule with a file that is C{not_allowed}; nothing can be
said of an unknown one."""


class RouterFile(Struct, frozen=True):
    """The state of a file on a router."""

    router: str
    path: str
    state: ShownState


class FilesPreview(Struct, frozen=True):
    """
    The files of a rule on the routers that its preview lists as matching.

    @ivar counts: for each path how many routers have it in which state; states of no router are left out.
    @ivar files: those that are not present, at most L{MOST_LISTED}.
    @ivar gates: the routers whose gate is open, and would close; at most L{MOST_LISTED}.
    """

    counts: dict[str, dict[ShownState, int]]
    files: tuple[RouterFile, ...]
    gates: tuple[RouterGate, ...]


def state_of(found: Diagnostic) -> FileState:
    """Return the state that a mistake of a file stands for. An error is never C{present}, other warnings are."""
    return _OF_CODES.get(found.code, "does_not_fit" if found.severity == ERROR else "present")


def file_states(preview: RulePreview, answers: Mapping[str, Mapping[str, FileState]]) -> FilesPreview:
    """
    Join what the routers have answered about the files of a rule.

    @param answers: by router and path. What is not in it is unknown; what was not asked for is left out.
    """
    counts: dict[str, dict[ShownState, int]] = {path: {} for path in preview.paths}
    files: list[RouterFile] = []
    gates: list[RouterGate] = []
    closed = {gate.router for gate in preview.gates if gate.closed}
    for name, states in _by_router(preview, answers):
        for path, state in states.items():
            counts[path][state] = counts[path].get(state, 0) + 1
            if state != "present" and len(files) < MOST_LISTED:
                files.append(RouterFile(name, path, state))
        closing = tuple(path for path, state in states.items() if state not in _OPEN)
        if closing and name not in closed:
            gates.append(RouterGate(name, False, closing))
    return FilesPreview(counts, tuple(files), tuple(gates))


def _by_router(
    preview: RulePreview, answers: Mapping[str, Mapping[str, FileState]]
) -> Iterator[tuple[str, dict[str, ShownState]]]:
    for matching in preview.matching:
        answer = answers.get(matching.router, {})
        yield matching.router, {path: answer.get(path, "unknown") for path in preview.paths}
