"""
What the tests of the agent play: a reactor whose threads can be held up, a receiver, and a console behind its links.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Raw
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.system.certificates import certificates_pem
from tests.threads_at_once import ThreadsAtOnce
from webhookrx.agent.agent import ConsoleAgent
from webhookrx.agent.link import ConsoleAnswer, LinkFailed
from webhookrx.agent.reports import ToldState
from webhookrx.agent.router_keys import KeyRequest, new_key
from webhookrx.config.console_files import RouterIdentity, read_console_files, write_identity
from webhookrx.management.agent_body import read_body, write_body
from webhookrx.management.agent_protocol import (
    RENEW,
    REPORT,
    SYNC,
    AgentCommand,
    AppliedState,
    CommandAnswer,
    GateState,
    IssuedCertificate,
    RenewRequest,
    RouterFacts,
    RouterReport,
    SyncAnswer,
)
from webhookrx.management.bundle import BundleRouter, RouterBundle, digest, public_text, seal
from webhookrx.management.tap_protocol import TAPS, TapEvents
from webhookrx.service.taps import tapped_sources
from webhookrx.settings import AgentSettings, BundleInUse, RouterSettings, Settings
from webhookrx.tapping.tap import Tap
from webhookrx.tapping.tap_request import TapRequest

GUID = "0b0e4c9e-8a4f-4c57-9d5e-3d2f5b6a7c80"
SIGNING_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SIGNING_TEXT = public_text(SIGNING_KEY.public_key())
BEGAN = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
LIFE = 30 * 86400.0
"""Seconds of a certificate of a router."""
STATE = ToldState((), GateState(), RouterFacts(hostname="fra-1"), "ready", (), ())


def bundle_of(revision: int, guid: str = GUID, key: Ed25519PrivateKey = SIGNING_KEY) -> bytes:
    """Return an envelope."""
    return seal(
        RouterBundle(
            guid=guid,
            revision=revision,
            made_at=1,
            router=BundleRouter("fra-1"),
            rules="connector_rules: []\n",
            authorities=("A",),
            signing_keys=(SIGNING_TEXT,),
        ),
        key,
    )


class PlayedReactor(ThreadsAtOnce, Clock):
    """A clock with threads."""


class PlayedHost:
    """
    A receiver: its reloads wait for the test.

    @ivar reloads: how many were asked for.
    @ivar taps: those that run.
    """

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.settings = Settings((), (), router=RouterSettings("fra-1"))
        self.reloads = 0
        self.told = STATE
        self.taps: list[Tap] = []
        self._clock = clock

    def reload(self) -> None:
        self.reloads += 1

    def state(self) -> ToldState:
        return self.told

    def tapped_sources(self, request: TapRequest) -> list[str]:
        return tapped_sources(self.settings, request)

    def start_tap(self, request: TapRequest, deliver: Callable[[Tap], object]) -> Tap:
        tap = Tap(request, self._clock(), lambda: deliver(tap))
        self.taps.append(tap)
        return tap

    def stop_tap(self, tap: Tap) -> None:
        self.taps.remove(tap)

    def is_as(self, **router: Any) -> None:
        """Have other settings of the router in use."""
        assert self.settings.router is not None
        self.settings = dataclasses.replace(self.settings, router=dataclasses.replace(self.settings.router, **router))

    def runs(self, envelope: bytes, revision: int) -> None:
        """Have the connectors of a bundle in use."""
        self.is_as(bundle=BundleInUse(revision, digest(envelope)))


class Question(NamedTuple):
    """What a router has asked, and what waits for the answer."""

    path: bytes
    body: bytes
    answer: Deferred[ConsoleAnswer]


class PlayedConsole:
    """
    A console, and the links to it.

    @ivar syncs: polls, of which the last may wait; C{cancelled} counts those that the router has ended.
    @ivar reports: those that were taken.
    @ivar report_answers: statuses and bodies for the next reports, in place of 204.
    @ivar renewals: answers for the next renewals, in place of certificates: status and body, or a failure.
    @ivar shown: ids of taps, and what they have shown.
    @ivar links: certificates of links that were made; C{closed} counts those that are closed.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.syncs: list[Question] = []
        self.reports: list[RouterReport] = []
        self.report_answers: list[tuple[int, bytes] | Deferred[ConsoleAnswer]] = []
        self.renewals: list[ConsoleAnswer | Exception] = []
        self.links: list[str] = []
        self.shown: list[tuple[str, TapEvents]] = []
        self.closed = 0
        self.cancelled = 0

    def connect(self, reactor: object, url: str, authorities: object, certificate: str, key: str) -> PlayedConsole:
        """Make a link; it is this."""
        self.links.append(certificate)
        return self

    async def close(self) -> None:
        """Close a link."""
        self.closed += 1

    def certify(self, wanted: KeyRequest | RenewRequest) -> str:
        """Return a certificate from now on."""
        request = x509.load_pem_x509_csr(wanted.csr.encode())
        begin = datetime.fromtimestamp(self._now(), UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(x509.Name([]))
            .public_key(request.public_key())
            .serial_number(7)
            .not_valid_before(begin)
            .not_valid_after(begin + timedelta(seconds=LIFE))
        )
        return certificates_pem(builder.sign(self._key, hashes.SHA256())).decode()

    async def ask(
        self, method: bytes, path: bytes, body: bytes = b"", *, most: int = 0, time: float = 0.0
    ) -> ConsoleAnswer:
        """Answer as a console does."""
        if path.startswith(SYNC):
            question = Question(path, body, Deferred(self._cancel))
            self.syncs.append(question)
            return await question.answer
        if path == REPORT:
            return await self._report(body)
        if path.startswith(TAPS):
            self.shown.append((path.removeprefix(TAPS).decode(), read_body(body, TapEvents)))
            return ConsoleAnswer(204, b"")
        assert path == RENEW, path
        answer = self.renewals.pop(0) if self.renewals else None
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return answer
        issued = IssuedCertificate(certificate=self.certify(read_body(body, RenewRequest)), authorities=("A",))
        return ConsoleAnswer(200, write_body(issued))

    async def _report(self, body: bytes) -> ConsoleAnswer:
        answer = self.report_answers.pop(0) if self.report_answers else (204, b"")
        if isinstance(answer, Deferred):
            return await answer
        if answer[0] == 0:
            raise LinkFailed("The console can't be reached.")
        if answer[0] == 204:
            self.reports.append(read_body(body, RouterReport))
        return ConsoleAnswer(*answer)

    def _cancel(self, _: object) -> None:
        self.cancelled += 1

    @property
    def have(self) -> str:
        """The bundle that the router says it has, in its last poll."""
        return self.syncs[-1].path.split(b"have=")[1].split(b"&")[0].decode()

    def says(self, *commands: AgentCommand, bundle: bytes = b"") -> None:
        """Answer the poll that waits."""
        answer = SyncAnswer(bundle=Raw(bundle), commands=commands) if bundle else SyncAnswer(commands=commands)
        self.syncs[-1].answer.callback(ConsoleAnswer(200, write_body(answer)))

    def says_status(self, status: int, body: bytes = b"") -> None:
        """Answer the poll that waits with a status."""
        self.syncs[-1].answer.callback(ConsoleAnswer(status, body))

    @property
    def applied(self) -> AppliedState:
        """What it has been told of bundles last."""
        return next(each.applied for each in reversed(self.reports) if each.applied is not None)

    @property
    def answers(self) -> list[CommandAnswer]:
        """All answers to commands."""
        return [answer for report in self.reports for answer in report.answers]


class AgentCase(SynchronousTestCase):
    """An agent between a played receiver and a played console, with its files in a directory."""

    def setUp(self) -> None:
        self.reactor = PlayedReactor()
        self.wall = BEGAN
        self.host = PlayedHost(self.reactor.seconds)
        self.console = PlayedConsole(self.now)
        self.directory = self.mktemp()
        self.settings = AgentSettings("https://console.example:9443", self.directory)
        self.agent = self.make()
        self.addCleanup(self.stop)

    def now(self) -> float:
        """Return the time of the wall clock."""
        return self.wall + self.reactor.seconds()

    def make(self) -> ConsoleAgent:
        """Return an agent, as a process would that starts."""
        connect: Any = self.console.connect
        return ConsoleAgent(
            self.reactor, self.settings, self.host, connect, self.now, lambda: 1.0, monotonic=self.reactor.seconds
        )

    def identity(self) -> RouterIdentity:
        """Return who the router is once it is enrolled."""
        wanted = new_key()
        return RouterIdentity(
            console=self.settings.url,
            guid=GUID,
            name="fra-1",
            key=wanted.key,
            certificate=self.console.certify(wanted),
            authorities=("A",),
            signing_keys=(SIGNING_TEXT,),
        )

    def start(self) -> None:
        """Enrol the router, and start the agent."""
        if read_console_files(self.directory).identity is None:
            write_identity(self.directory, self.identity())
        self.agent.start()

    def restart(self) -> None:
        """Start another process with the same files; the console has lost what waits."""
        self.stop()
        self.agent = self.make()
        self.agent.start()

    def stop(self) -> None:
        """Stop the agent."""
        self.successResultOf(Deferred.fromCoroutine(self.agent.stop()))

    def send(self, envelope: bytes) -> None:
        """Hand out a bundle."""
        self.console.says(bundle=envelope)

    def apply(self, envelope: bytes, revision: int) -> None:
        """Hand out a bundle that can be applied."""
        self.send(envelope)
        self.host.runs(envelope, revision)
        self.agent.settled("")
        self.reactor.advance(1)

    def on_disk(self) -> list[int]:
        """Return the revisions on disk, in the order in which a start tries them."""
        return [each.bundle.revision for each in read_console_files(self.directory).bundles]


def name_of(envelope: bytes) -> str:
    """Return the name of an envelope."""
    return hashlib.sha256(envelope).hexdigest()
