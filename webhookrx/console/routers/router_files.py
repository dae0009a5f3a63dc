"""
The files of the rules of one router, which is asked how they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec
from twisted.internet.defer import DeferredList

from webhookrx.console.routers.fleet import FleetOfRouters
from webhookrx.console.routers.polls import Unanswered
from webhookrx.console.routers.previews import FILES_TIME
from webhookrx.console.routers.registry import EnrolledRouter
from webhookrx.console.rules.saved import SavedRule
from webhookrx.management.agent_protocol import MOST_FILES, CheckFilesCommand, CommandAnswer
from webhookrx.management.file_states import ShownState
from webhookrx.management.preview import paths_of
from webhookrx.management.volumes import volume_argument
from webhookrx.router.rules.rule import Rule

MOST_ASKED: Final = 16
"""Commands that ask for files at once; what they have not asked for is unknown."""


class FileOfRouter(msgspec.Struct, frozen=True):
    """
    A file that rules of a router name.

    @ivar state: C{unknown}: the router is away, or has not answered in time.
    @ivar rules: the names of those that name it.
    @ivar volume: what a container needs to have it, see L{volume_argument}; empty for nothing.
    """

    path: str
    state: ShownState
    rules: tuple[str, ...]
    volume: str


class RouterFiles(msgspec.Struct, frozen=True):
    """The files of a router, by path, at most L{MOST_FILES}."""

    files: tuple[FileOfRouter, ...]


class _FileCheck(NamedTuple):
    """What one command asks: the first of the paths has to fit the key, if there is one."""

    paths: tuple[str, ...]
    key: str = ""

    def command(self, id: str) -> CheckFilesCommand:
        """Return it as a command."""
        return CheckFilesCommand(id=id, paths=self.paths, key=self.key)


async def files_of(fleet: FleetOfRouters, saved: Mapping[str, SavedRule], router: EnrolledRouter) -> RouterFiles:
    """Return how the files are that the rules of a router name."""
    rules: list[Rule] = [saved[name].rule for name in fleet.rules_for(router) if name in saved]
    names: dict[str, list[str]] = {}
    for rule in rules:
        for path in paths_of(rule):
            if path in names or len(names) < MOST_FILES:
                names.setdefault(path, []).append(rule.name)
    states: dict[str, ShownState] = {}
    if not router.is_away(fleet.clock()):
        asked = [
            fleet.polls.command(router.guid, check.command, FILES_TIME).addErrback(
                lambda failure: failure.trap(Unanswered)
            )
            for check in list(_file_checks(rules, names))[:MOST_ASKED]
        ]
        for _, answer in await DeferredList(asked):
            if isinstance(answer, CommandAnswer) and not answer.problem:
                for path, state in answer.files.items():
                    # Of a file that two rules have, the worse state.
                    if states.get(path, "present") == "present":
                        states[path] = state
    return RouterFiles(
        tuple(
            FileOfRouter(path, states.get(path, "unknown"), tuple(names[path]), volume_argument(path))
            for path in sorted(names)
        )
    )


def _file_checks(rules: Iterable[Rule], wanted: Iterable[str]) -> Iterator[_FileCheck]:
    """Yield what is to be asked: each certificate with its key, and all others at once."""
    left = dict.fromkeys(wanted)
    pairs = dict.fromkeys((rule.cert_file, rule.key_file) for rule in rules if rule.cert_file and rule.key_file)
    for certificate, key in pairs:
        if certificate in left or key in left:
            yield _FileCheck((certificate, key), key)
    others = tuple(path for path in left if not any(path in pair for pair in pairs))
    if others:
        yield _FileCheck(others)
