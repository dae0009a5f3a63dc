"""
The life of a bundle on a router: it is accepted or refused, applied by a reload, and noted as applied or as refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from twisted.logger import Logger

from webhookrx.agent.chores import in_background
from webhookrx.agent.directory import ConsoleDirectory
from webhookrx.agent.host import AgentHost
from webhookrx.agent.sync_loop import TakeLater
from webhookrx.config.console_files import ConsoleFiles
from webhookrx.errors import BundleRefused, ConfigError
from webhookrx.management.agent_protocol import AppliedState, ApplyStatus
from webhookrx.management.bundle import digest

_LONGEST_ERROR: Final = 2_000

_log = Logger()


class _Refusal(NamedTuple):
    """
    Why the newest bundle is not in use.

    @ivar digest: its name, so that the console does not send it again; empty when it is to be sent again.
    """

    digest: str
    error: str


class BundleLife:
    """
    Takes bundles, and knows what became of the newest. Whatever that is, what runs goes on.

    @param changed: called when L{state} may have changed.
    """

    def __init__(self, directory: ConsoleDirectory, host: AgentHost, changed: Callable[[], object]) -> None:
        self._directory = directory
        self._host = host
        self._changed = changed
        self._newest: tuple[int, str] = (0, "")
        self._refusal: _Refusal | None = None
        self._applying = False
        self._failure = ""

    def use(self, files: ConsoleFiles) -> None:
        """Take what the directory holds."""
        self._newest = files.newest

    def begin(self, files: ConsoleFiles) -> None:
        """Take what the directory holds, and what it has noted of the process before this."""
        self.use(files)
        if files.refused is not None:
            self._refusal = _Refusal(files.refused.digest, files.refused.error)
        self._note_use()
        self._changed()

    @property
    def have(self) -> str:
        """The digest of the bundle that the console need not send; empty for none."""
        return self._newest[1] if self._refusal is None else self._refusal.digest

    @property
    def state(self) -> AppliedState:
        """What became of the newest bundle."""
        router = self._host.settings.router
        bundle = None if router is None else router.bundle
        revision, name = (0, "") if bundle is None else (bundle.revision, bundle.digest)
        status, error = self._status(name)
        return AppliedState(
            status=status, revision=revision, digest=name, newest=self._newest[0], error=error[:_LONGEST_ERROR]
        )

    async def take(self, envelope: bytes) -> None:
        """
        Take a bundle that has come: keep it, and have it applied; or refuse it.

        @raise TakeLater: it can't be kept now.
        """
        try:
            await self._directory.accept(envelope)
        except (BundleRefused, ConfigError) as error:
            _log.error("A bundle of the console is refused, what runs goes on: {problem}", problem=str(error))
            self._refusal = _Refusal(digest(envelope), str(error))
            self._changed()
            return
        except OSError as error:
            problem = f"The bundle could not be kept: {error.strerror or type(error).__name__}."
            self._refusal = _Refusal("", problem)
            self._changed()
            raise TakeLater(problem) from None
        self._refusal = None
        # A receiver with sources of its own takes its trust; there is nothing to apply.
        self._applying = self._host.settings.router is not None
        self._changed()
        if self._applying:
            self._host.reload()

    def settled(self, failure: str) -> None:
        """
        Take what became of a reload.

        @param failure: why everything stays as it was; empty when the settings in use are those of now.
        """
        was_applying, self._applying = self._applying, False
        self._failure = failure
        if not failure:
            if not was_applying:
                self.try_again()
            self._note_use()
        elif was_applying and self._in_use != self._newest[1]:
            # A restart would fail as this has; without it, that starts with what runs now.
            self._refusal = _Refusal(self._newest[1], failure)
            in_background(self._refuse(self._newest[1], failure))
        self._changed()

    def try_again(self) -> None:
        """Forget that a bundle was refused: the console sends it again."""
        self._refusal = None

    @property
    def _in_use(self) -> str:
        router = self._host.settings.router
        return "" if router is None or router.bundle is None else router.bundle.digest

    def _status(self, in_use: str) -> tuple[ApplyStatus, str]:
        """Return what became of the newest bundle, and why it is not in use."""
        router = self._host.settings.router
        if self._applying:
            return "APPLYING", ""
        if self._refusal is not None:
            return "FAILED", self._refusal.error
        if router is None:
            # A receiver with sources of its own lacks nothing: rules are not for it, whatever has come.
            return "NONE", ""
        if router.blocked:
            # The files may be there by now, and something else, such as a port, be taken: what was found last is told.
            return ("FAILED", self._failure) if self._failure else ("BLOCKED", router.blocked[0].text)
        if router.not_taken:
            return "FAILED", router.not_taken
        if not in_use:
            return "NONE", ""
        # Before the directory has been read, nothing newer is known.
        is_newest = in_use == (self._newest[1] or in_use)
        return ("APPLIED", "") if is_newest else ("FAILED", "The log of the router says why.")

    def _note_use(self) -> None:
        in_use = self._in_use
        if in_use and in_use == self._newest[1] and not self._host.settings.blocked:
            in_background(self._mark(in_use))

    async def _mark(self, name: str) -> None:
        try:
            await self._directory.mark_applied(name)
        except (OSError, ConfigError) as error:
            _log.warn("That a bundle is applied could not be noted: {problem}", problem=str(error))

    async def _refuse(self, name: str, why: str) -> None:
        try:
            await self._directory.refuse_next(name, why)
        except (OSError, ConfigError) as error:
            _log.warn("That a bundle can't be applied could not be noted: {problem}", problem=str(error))
