"""
The agent of a receiver: comes to its console, and joins what it does there. The console asks for nothing that is not
in L{ConsoleAgent.doings}.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from random import SystemRandom
from typing import Any, Final, NamedTuple

from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.task import deferLater
from twisted.logger import Logger

from webhookrx.agent.access import ConsoleAccess
from webhookrx.agent.bundles import BundleLife
from webhookrx.agent.chores import in_background, in_thread
from webhookrx.agent.commands import CommandDesk, Doing
from webhookrx.agent.directory import ConsoleDirectory
from webhookrx.agent.enrolment import NotEnrolled
from webhookrx.agent.file_checks import check_files
from webhookrx.agent.host import AgentHost
from webhookrx.agent.joining import join_console
from webhookrx.agent.link import ConsoleAnswer, ConsoleLink
from webhookrx.agent.renewals import Renewals
from webhookrx.agent.reporting import Reporting
from webhookrx.agent.sync_loop import FIRST_PAUSE, LONGEST_PAUSE, SyncLoop, ask_by
from webhookrx.agent.taps import AgentTaps
from webhookrx.backoff import Backoff, Random
from webhookrx.config.console_files import ConsoleFiles
from webhookrx.config.files import read_file
from webhookrx.errors import ConfigError
from webhookrx.management.agent_protocol import (
    AgentCommand,
    ApplyStatus,
    CheckFilesCommand,
    CommandAnswer,
    FileState,
    ReloadCommand,
    RenewCommand,
    SyncAnswer,
)
from webhookrx.management.enrolment_token import read_token
from webhookrx.management.tap_protocol import TapCommand, UntapCommand
from webhookrx.settings import AgentSettings

secure_random: Final = SystemRandom().random

_log = Logger()


class AgentView(NamedTuple):
    """
    How a receiver stands with its console.

    @ivar status: what became of the newest bundle, with C{error}; C{revision} is the one in use.
    @ivar away: seconds for which the console has not answered; 0 while it does.
    @ivar refusal: C{pending} while the router waits for approval, C{disabled} while it is; else empty.
    @ivar problem: why it has not answered, or refuses; empty while all is well.
    """

    status: ApplyStatus
    revision: int
    error: str
    away: float
    refusal: str
    problem: str


class ConsoleAgent:
    """
    The agent.

    @param reactor: has threads.
    @param connect: makes links; see L{ConsoleLink}.
    @param now: returns seconds since the epoch.
    @param random: see L{Backoff}.
    @param monotonic: the clock of the host's taps.
    """

    def __init__(
        self,
        reactor: Any,
        settings: AgentSettings,
        host: AgentHost,
        connect: Callable[..., ConsoleLink] = ConsoleLink,
        now: Callable[[], float] = time.time,
        random: Random = secure_random,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reactor = reactor
        self._settings = settings
        self._host = host
        self._now = now
        self._random = random
        self._problem = ""
        self._starting: Deferred[object] | None = None
        self._stopped = False
        self._looking = DeferredLock()
        self._directory = ConsoleDirectory(reactor, settings.directory, self._use)
        self._access = ConsoleAccess(reactor, settings.url, connect)
        self._bundles = BundleLife(self._directory, host, self.report_soon)
        self._reporting = Reporting(
            reactor, self._access, lambda: self._bundles.state, host.state, lambda: int(now() * 1e9)
        )
        self._renewals = Renewals(reactor, self._access, self._directory, self._date)
        self._taps = AgentTaps(reactor, self._access, host, monotonic, allowed=settings.tap)
        self._commands = CommandDesk(self.doings(), self._answer)
        self._sync = SyncLoop(reactor, self._ask, lambda: self._bundles.have, self._take, random)

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin: the receiver is up."""
        self._starting = in_background(self._start())

    async def _start(self) -> None:
        try:
            files = await self._directory.read()
            if files.identity is None and self._settings.token_file is not None:
                await self._enrol(self._settings.token_file)
                files = await self._directory.read()
        except (ConfigError, ValueError) as error:
            self._problem = f"The agent of the console can't work: {error}"
            _log.error("{problem}", problem=self._problem)
            return
        if files.identity is None:
            self._problem = "The router is not enrolled: webhookrx enrol does that."
            _log.error("{problem}", problem=self._problem)
            return
        self._bundles.begin(files)
        self._sync.start()
        self._reporting.start()
        self._renewals.start()

    async def _enrol(self, token_file: str) -> None:
        """Enrol by the token of a file, again and again while the console can't be reached."""
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, self._random)
        facts = self._host.state().facts
        while True:
            try:
                token = read_token((await in_thread(self._reactor, read_file, token_file))[0].decode("ascii"))
                ours = self._settings
                enrolled = await join_console(
                    self._reactor, self._directory.call, ours.directory, ours.url, token, facts, ours.name
                )
            except (NotEnrolled, ConfigError, ValueError, OSError) as error:
                if str(error) != self._problem:
                    _log.error("This router could not be enrolled: {problem}", problem=str(error))
                self._problem = str(error)
                await deferLater(self._reactor, backoff.failed())
                continue
            self._problem = ""
            _log.info("This router is enrolled as {name}", name=enrolled.identity.name)
            return

    async def stop(self) -> None:
        """End what is under way."""
        self._stopped = True
        if self._starting is not None:
            self._starting.cancel()
        self._renewals.stop()
        self._reporting.stop()
        await self._sync.stop()
        await self._taps.stop()
        await self._access.close()

    @property
    def view(self) -> AgentView:
        """How the receiver stands with its console."""
        applied = self._bundles.state
        since = self._sync.away_since
        away = 0.0 if since is None else self._reactor.seconds() - since
        problem = self._problem or self._sync.problem
        return AgentView(applied.status, applied.revision, applied.error, away, self._sync.refusal, problem)

    def settled(self, failure: str) -> None:
        """
        Take what became of a reload.

        @param failure: why everything stays as it was; empty when the settings in use are those of now.
        """
        if self._access.identity is not None and not self._stopped:
            self._bundles.settled(failure)

    def report_soon(self) -> None:
        """Report now, or when the report under way has ended."""
        if self._access.identity is not None and not self._stopped:
            self._reporting.soon()

    # -- what the console asks for -------------------------------------------------------------------------------

    def doings(self) -> dict[type[AgentCommand], Doing]:
        """Return all that a console can have done here, besides bundles: what does each type of command."""
        return {
            CheckFilesCommand: self._check_files,
            ReloadCommand: self._reload,
            RenewCommand: self._renew,
            TapCommand: self._taps.start,
            UntapCommand: self._taps.end,
        }

    async def _check_files(self, command: CheckFilesCommand) -> CommandAnswer:
        # One command at a time: the threads are the receiver's, too.
        looking = self._looking.run(in_thread, self._reactor, check_files, command, self._settings, self._date())
        states: dict[str, FileState] = await looking
        return CommandAnswer(id=command.id, files=states)

    async def _reload(self, command: ReloadCommand) -> CommandAnswer:
        self._bundles.try_again()
        self._host.reload()
        return CommandAnswer(id=command.id)

    async def _renew(self, command: RenewCommand) -> CommandAnswer:
        await self._renewals.renew()
        return CommandAnswer(id=command.id)

    def _answer(self, answer: CommandAnswer) -> None:
        if not self._stopped:
            self._reporting.answer(answer)

    # -- parts ---------------------------------------------------------------------------------------------------

    def _date(self) -> datetime:
        return datetime.fromtimestamp(self._now(), UTC)

    async def _ask(self, path: bytes) -> ConsoleAnswer:
        return await ask_by(self._access.link)(path)

    async def _take(self, answer: SyncAnswer) -> None:
        """Take an answer of the console."""
        self._commands.take(answer.commands)
        envelope = bytes(answer.bundle)
        if envelope:
            await self._bundles.take(envelope)

    def _use(self, files: ConsoleFiles) -> None:
        """Take what the directory holds."""
        self._bundles.use(files)
        if files.identity is not None:
            self._access.use(files.identity)
