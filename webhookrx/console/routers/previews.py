"""
Previews of rules beside what a console has: its saved rules and its routers, which are asked about files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.threads import deferToThread

from webhookrx.config.specs import split_spec
from webhookrx.console.api.problems import BUSY, NOT_FOUND, ApiProblem
from webhookrx.console.routers.polls import Unanswered
from webhookrx.console.rules.saved import SavedRules
from webhookrx.console.turns import SLICE
from webhookrx.diagnostics import Diagnostic
from webhookrx.errors import ConfigError
from webhookrx.management.agent_protocol import (
    MOST_FILES,
    CheckFilesCommand,
    CommandAnswer,
    FileState,
    GateState,
    RouterFacts,
)
from webhookrx.management.file_states import FilesPreview, file_states
from webhookrx.management.preview import RouterState, RulePreview, RuleSurroundings, preview_rule
from webhookrx.router.rules.router import router_of
from webhookrx.router.rules.rule import Host, Rule
from webhookrx.router.rules.rules_file import read_rule

if TYPE_CHECKING:
    from webhookrx.console.console import Console

FILES_TIME: Final = 5.0
"""Seconds that routers have to answer about their files; what is not answered by then is unknown."""

MOST_WAITING: Final = 8
"""Previews that wait for the one under way; and calls that wait for routers."""


class RuleAlone:
    """
    One rule as L{preview_rule} takes it, which has read it from no file.

    @ivar rules: it; none when it can't be read.
    """

    def __init__(self, text: str) -> None:
        self._reading = reading = read_rule(text.encode(), "")
        self.diagnostics: Sequence[Diagnostic] = reading.diagnostics
        rule = reading.partial
        self.rules: tuple[Rule, ...] = () if rule is None or not reading.is_whole(()) else (rule,)

    def in_rule(self, rule: str, found: Diagnostic) -> Diagnostic:
        """Return what is wrong with its place in the text."""
        return self._reading.located([found])[0]


class SeenRouter(NamedTuple):
    """A router as it was when a preview was asked for: values that do not change, for another thread."""

    guid: str
    name: str
    labels: Mapping[str, str]
    facts: RouterFacts
    gate: tuple[str, ...]
    online: bool

    @property
    def state(self) -> RouterState:
        """It as previews take it."""
        facts = self.facts
        host = Host(
            name=self.name,
            labels={**facts.labels, **self.labels},
            hostname=facts.hostname,
            fqdn=facts.fqdn,
            ip=facts.ip,
            os=facts.os,
            arch=facts.arch,
            version=facts.version,
        )
        taken = {port: text for text in facts.endpoints if (port := port_of(text))}
        return RouterState(router_of(host), self.online, self.gate, taken=taken)


class _Previewed(NamedTuple):
    preview: RulePreview
    rule: Rule | None
    guids: Mapping[str, str]


def port_of(endpoint: str) -> int:
    """Return the TCP port of an endpoint string; 0 for one without."""
    try:
        args, options = split_spec(endpoint)
    except ConfigError:
        return 0
    if args[:1] not in (["tcp"], ["tcp6"], ["ssl"]):
        return 0
    port = options.get("port", args[1] if len(args) > 1 else "")
    return int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else 0


class Previews:
    """
    Makes previews, one after the other, apart from the reactor. Rules are matched once for each state of rules and
    routers.
    """

    def __init__(self, console: Console, in_thread: Callable[..., Deferred[Any]] = deferToThread) -> None:
        self._console = console
        self._in_thread = in_thread
        self._one = DeferredLock()
        self._asking = 0
        self._saved: SavedRules | None = None
        self._seen: tuple[SeenRouter, ...] = ()
        self._around: RuleSurroundings | None = None
        """For the thread that has C{_one}, as are the two before it."""

    async def preview(self, text: str, replaces: str) -> RulePreview:
        """
        Return what saving a rule would do.

        @param text: the rule in YAML.
        @param replaces: the saved rule whose place it takes; empty for a new one.
        @raise ApiProblem: there is no such rule, or too many wait.
        """
        return (await self._preview(text, replaces)).preview

    async def files(self, text: str, replaces: str) -> FilesPreview:
        """
        Ask the routers that a rule matches about its files, which takes up to L{FILES_TIME}.

        @raise ApiProblem: see L{preview}.
        """
        if self._asking >= MOST_WAITING:
            raise _busy("Routers are being asked for others; try again in some seconds.", FILES_TIME)
        self._asking += 1
        try:
            preview, rule, guids = await self._preview(text, replaces)
            answers: dict[str, Mapping[str, FileState]] = {}
            if rule is not None and preview.paths:
                await self._ask(preview, rule, guids, answers)
            files: FilesPreview = await self._in_thread(lambda: file_states(preview, answers))
            return files
        finally:
            self._asking -= 1

    async def _preview(self, text: str, replaces: str) -> _Previewed:
        if len(self._one.waiting) >= MOST_WAITING:
            raise _busy("Too many previews wait; try again.", 1)
        await self._one.acquire()
        try:
            saved, seen = self._console.rulebook.saved, tuple(self._routers())
            previewed: _Previewed = await self._in_thread(lambda: self._work(text, replaces, saved, seen))
            return previewed
        finally:
            self._one.release()

    def _routers(self) -> list[SeenRouter]:
        fleet = self._console.fleet
        if fleet is None:
            return []
        now = fleet.clock()
        return [
            # A router between two polls is online, too: what it is asked waits for the next.
            SeenRouter(each.guid, each.name, each.labels, each.facts, _gate(each.gate), not each.is_away(now))
            for each in fleet.registry
            if each.state == "approved" and each.facts.form == "router"
        ]

    def _work(self, text: str, replaces: str, saved: SavedRules, seen: tuple[SeenRouter, ...]) -> _Previewed:
        if replaces and replaces not in saved.rules:
            raise ApiProblem(NOT_FOUND, "There is no rule of this name.")
        around = self._around
        if around is None or self._saved is not saved or self._seen != seen:
            states = sorted((each.state for each in seen), key=lambda state: state.router.name)
            around = self._around = RuleSurroundings((each.rule for each in saved.rules.values()), states)
            self._saved, self._seen = saved, seen
        reading = RuleAlone(text)
        preview = preview_rule(around, reading, replaces)
        rule = reading.rules[0] if reading.rules else None
        return _Previewed(preview, rule, {each.name: each.guid for each in seen})

    def _ask(
        self, preview: RulePreview, rule: Rule, guids: Mapping[str, str], answers: dict[str, Mapping[str, FileState]]
    ) -> Deferred[None]:
        """Ask all that are online, some in each turn of the reactor. Fires when all have answered, or never will."""
        polls, reactor = self._console.fleet.polls, self._console.reactor  # type: ignore[union-attr]
        # The first is the one that the key has to fit.
        paths = tuple(dict.fromkeys([*filter(None, [rule.cert_file]), *preview.paths]))[:MOST_FILES]
        key = rule.key_file or "" if rule.cert_file else ""
        waiting, done, open_ones = list(reversed(preview.ask)), Deferred[None](), [len(preview.ask)]

        def one_less(result: Any, name: str) -> None:
            if isinstance(result, CommandAnswer) and not result.problem:
                answers[name] = result.files
            open_ones[0] -= 1
            if not open_ones[0]:
                done.callback(None)

        def some() -> None:
            until = reactor.seconds() + SLICE
            while waiting:
                name = waiting.pop()
                asked = polls.command(
                    guids[name], lambda id: CheckFilesCommand(id=id, paths=paths, key=key), FILES_TIME
                )
                asked.addErrback(lambda failure: failure.trap(Unanswered)).addCallback(one_less, name)
                if reactor.seconds() >= until:
                    reactor.callLater(0, some)
                    return

        if not waiting:
            done.callback(None)
        some()
        return done


def _busy(detail: str, seconds: float) -> ApiProblem:
    return ApiProblem(BUSY, detail, headers=(("Retry-After", f"{seconds:.0f}"),))


def _gate(gate: GateState) -> tuple[str, ...]:
    """Return what a gate is closed for: paths, or the reasons where it names none."""
    return gate.paths or gate.reasons
