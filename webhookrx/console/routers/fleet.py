"""
The fleet: registry, polls, store and authority of a console's routers joined, as its port and its API call them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.logger import Logger

from webhookrx.console.routers import records
from webhookrx.console.routers.authority import RENEWABLE_DAYS, Authority, RouterCertificate
from webhookrx.console.routers.bundle_plan import (
    BundleMaker,
    BundleSurroundings,
    HandedRule,
    Planned,
    PlannedRouter,
    plan_bundles,
)
from webhookrx.console.routers.enrolments import Enrolments
from webhookrx.console.routers.polls import Polls
from webhookrx.console.routers.records import HandedOut
from webhookrx.console.routers.registry import (
    MOST_AHEAD,
    EnrolledRouter,
    RouterRegistry,
    RouterState,
)
from webhookrx.console.store.history import Author
from webhookrx.console.store.interface import ConsoleStore
from webhookrx.console.turns import in_turns
from webhookrx.errors import WebhookrxError
from webhookrx.management.agent_protocol import RouterFacts
from webhookrx.management.bundle import digest
from webhookrx.router.rules.router import router_of
from webhookrx.router.rules.rule import Host

FACTS_EVERY: Final = 30.0
"""Seconds between two changes of a router's facts that selectors see: each may make new bundles."""

KEEP_EVERY: Final = 5.0
"""Seconds between two writes of what routers have told."""

_NOTHING: Final = HandedOut(0, 0, "")

_log = Logger()


class FleetOfRouters:
    """
    The routers of a console.

    @param rules: returns the rules as they are now; called in a thread, once at a time.
    @param masks: returns the names that taps mask.
    @param in_thread: runs a function apart from the reactor.
    @ivar enrolments: by which others become one of them.
    @ivar problem: why nothing is handed out; empty when all is well.
    @ivar revision: the newest of the console that a plan has seen.
    @ivar hosts: the routers that get rules, as the newest plan has seen them; any thread may read it.
    """

    def __init__(
        self,
        reactor: Any,
        store: ConsoleStore,
        authority: Authority,
        clock: Callable[[], float],
        rules: Callable[[], Sequence[HandedRule]] = tuple,
        masks: Callable[[], Sequence[str]] = tuple,
        in_thread: Callable[..., Deferred[Any]] = deferToThread,
    ) -> None:
        self.registry = RouterRegistry()
        self.polls = Polls(reactor)
        self.authority = authority
        self.clock = clock
        self.problem = ""
        self.revision = 0
        self.hosts: tuple[Host, ...] = ()
        self.enrolments = Enrolments(store, self.registry, authority, clock, self.replan)
        self._reactor = reactor
        self._store = store
        self._rules = rules
        self._masks = masks
        self._in_thread = in_thread
        self._maker = BundleMaker((), authority, BundleSurroundings.of(authority, ()))
        self._planned: dict[str, Planned] = {}
        self._handed: dict[str, HandedOut] = {}
        self._digests: dict[str, str] = {}
        self._told: dict[str, RouterFacts] = {}
        self._facts_at: dict[str, float] = {}
        self._dirty: set[str] = set()
        self._wanted: list[Deferred[None]] = []
        self._is_planning = False
        self._must_plan = False
        self._claimed_at = float("-inf")

    async def load(self) -> None:
        """Read all routers, and plan their bundles."""
        routers, self._handed = await self._store.read(records.read_routers)
        for each in routers:
            self.registry.add(each)
        await self.enrolments.read()
        await self.replan()

    # -- bundles -------------------------------------------------------------------------------------------------

    def replan(self) -> Deferred[None]:
        """
        Make the bundles follow rules and routers as they are now.

        @return: fires when routers are being told; also when that has failed, which is logged and tried again.
        """
        done: Deferred[None] = Deferred()
        self._wanted.append(done)
        if not self._is_planning:
            Deferred.fromCoroutine(self._plan_all())
        return done

    async def _plan_all(self) -> None:
        self._is_planning = True
        while self._wanted:
            wanted, self._wanted = self._wanted, []
            self._must_plan = False
            try:
                await self._plan()
            except Exception:
                self._must_plan = True
                _log.failure("Bundles could not be planned")
            for done in wanted:
                done.callback(None)
        self._is_planning = False

    async def _plan(self) -> None:
        around = BundleSurroundings.of(self.authority, self._masks())
        routers = [each for each in self.registry if each.state == "approved" and each.facts.form == "router"]
        snapshot = [(each.guid, each.labels, each) for each in routers]

        def work() -> tuple[Sequence[HandedRule], tuple[Host, ...], list[Planned]]:
            rules = self._rules()
            hosts = tuple(each.host for _, _, each in snapshot)
            seen = [
                PlannedRouter(guid, host.name, labels, router_of(host).record)
                for host, (guid, labels, _) in zip(hosts, snapshot, strict=True)
            ]
            return rules, hosts, plan_bundles(rules, seen, around)

        rules, self.hosts, planned = await self._in_thread(work)
        self.revision, adopted = await self._store.look(records.read_revisions)
        if self._is_older_than_routers(adopted):
            return
        changed = [(each, had) for each in planned if (had := self._must_have_new(each)) is not None]
        if changed:
            handed, self.revision = await self._store.write(lambda t: records.hand_out(t, changed))
            self._handed.update(handed)
            for guid in handed:
                self._digests.pop(guid, None)
        self._maker = BundleMaker(rules, self.authority, around)
        self._planned = {each.guid: each for each in planned}
        self._in_background(self._wake([each.guid for each, _ in changed]))

    def _is_older_than_routers(self, adopted: int) -> bool:
        held, self.problem = self.problem, ""
        ahead = self.registry.ahead(self.revision, lambda router: max(adopted, self._given(router.guid).revision))
        if self.registry.holds_back(ahead):
            highest = max(each.applied.newest for each in ahead)
            self.problem = (
                f"Routers have had revision {highest}, which this console has not given them: it was restored from an "
                "older backup. Nothing is handed out until `webhookrx console adopt`."
            )
            if not held:
                _log.error("{problem}", problem=self.problem)
        return bool(self.problem)

    def _must_have_new(self, planned: Planned) -> int | None:
        """Return the highest revision that a router has had, if it is to have another bundle; else None."""
        router = self.registry.by_guid(planned.guid)
        if router is None or router.applied.newest > self.revision:
            return None  # it waits for a revision above all that it has had
        handed = self._given(planned.guid)
        is_same = handed.content == planned.content and router.applied.newest <= handed.revision
        return None if is_same else max(handed.revision, router.applied.newest)

    def _given(self, guid: str) -> HandedOut:
        return self._handed.get(guid, _NOTHING)

    def bundle_for(self, router: EnrolledRouter, have: str) -> bytes:
        """
        Return the bundle of a router; empty if it has it, or there is none for it.

        @param have: the L{digest} of the one that it has.
        """
        planned, handed = self._planned.get(router.guid), self._handed.get(router.guid)
        if planned is None or handed is None or self.problem or handed.content != planned.content:
            return b""
        if router.applied.newest > handed.revision:
            return b""
        known = self._digests.get(router.guid)
        if have and known == have:
            return b""
        envelope = self._maker.make(planned, handed.revision, handed.made_at)
        name = self._digests[router.guid] = digest(envelope)
        return b"" if have == name else envelope

    def newest_for(self, router: EnrolledRouter) -> tuple[int, str]:
        """Return revision and L{digest} of the bundle that a router is to have; 0 and empty for none."""
        if not self.bundle_for(router, ""):
            return 0, ""
        return self._given(router.guid).revision, self._digests[router.guid]

    def rules_for(self, router: EnrolledRouter) -> tuple[str, ...]:
        """Return the names of the rules whose selectors match a router, as far as they are planned."""
        planned = self._planned.get(router.guid)
        return () if planned is None else self._maker.names(planned)

    async def _wake(self, guids: Iterable[str]) -> None:
        """Wake routers in turns: each makes its bundle when it wakes."""
        async for guid in in_turns(self._reactor, guids):
            self.polls.wake(guid)

    # -- what routers ask ----------------------------------------------------------------------------------------

    async def renew(self, router: EnrolledRouter, fingerprint: str, request: str) -> RouterCertificate:
        """
        Certify a new key of a router. The certificate that it comes with counts until the new one is used.

        @raise webhookrx.console.routers.authority.BadCertificateRequest: see L{Authority.issue}.
        """
        certificate = self.authority.issue(request, router.guid, datetime.fromtimestamp(self.clock(), UTC))
        unused = [each for each in router.certificates if each != fingerprint]
        await self._store.write(lambda t: records.add_certificate(t, router.guid, certificate, unused))
        if fingerprint in router.certificates and self.registry.by_guid(router.guid) is router:
            self.registry.uncertify(router, unused)
            self.registry.certify(router, certificate.fingerprint, certificate.ends)
        return certificate

    def uses(self, router: EnrolledRouter, fingerprint: str) -> None:
        """Note that a router uses a certificate: those before it count no more."""
        if len(router.certificates) < 2:
            return
        newest = list(router.certificates)[-1]
        if fingerprint == newest:
            old = [each for each in router.certificates if each != fingerprint]
            self.registry.uncertify(router, old)
            self._in_background(self._store.write(lambda t: records.drop_certificates(t, old)))

    def may_renew(self, router: EnrolledRouter, fingerprint: str) -> bool:
        """Return whether a certificate is good for a renewal."""
        late = timedelta(days=RENEWABLE_DAYS).total_seconds()
        return router.state != "disabled" and self.clock() <= router.certificates.get(fingerprint, 0.0) + late

    def has_ended(self, router: EnrolledRouter, fingerprint: str) -> bool:
        """Return whether a certificate is past its end."""
        return self.clock() > router.certificates.get(fingerprint, 0.0)

    def heard(self, router: EnrolledRouter, facts_before: RouterFacts, newest_before: int) -> None:
        """
        Act on a report that a router has made.

        @param facts_before: its facts before the report; newer ones count when L{FACTS_EVERY} has passed.
        """
        self._dirty.add(router.guid)
        if router.facts != facts_before:
            self._told[router.guid] = router.facts
            router.facts = facts_before
            self._settle_facts(router.guid)
        if router.applied.newest != newest_before and router.applied.newest > self._given(router.guid).revision:
            self._plan_anew()

    def _plan_anew(self) -> None:
        """Plan for what a router has said of revisions: at once, and again after L{KEEP_EVERY} at the earliest."""
        now = self._reactor.seconds()
        if now < self._claimed_at + KEEP_EVERY:
            self._must_plan = True
            return
        self._claimed_at = now
        self.replan()

    def _settle_facts(self, guid: str) -> bool:
        router, now = self.registry.by_guid(guid), self._reactor.seconds()
        if router is None:
            self._told.pop(guid, None)
            self._facts_at.pop(guid, None)
        elif now >= self._facts_at.get(guid, float("-inf")) + FACTS_EVERY:
            router.facts = self._told.pop(guid)
            self._facts_at[guid] = now
            self.replan()
            return True
        return False

    async def keep(self) -> None:
        """Write what routers have told since the last time. A crash loses no more than that, and they tell it again."""
        if self._must_plan:
            self.replan()
        for guid in tuple(self._told):
            self._settle_facts(guid)
        dirty, self._dirty = self._dirty, set()
        highest = self.revision + MOST_AHEAD
        rows = [records.told_row(each, highest) for guid in dirty if (each := self.registry.by_guid(guid)) is not None]
        if rows:
            await self._store.write(lambda t: records.keep_told(t, rows))

    # -- what people ask -----------------------------------------------------------------------------------------

    async def change(
        self,
        author: Author,
        router: EnrolledRouter,
        *,
        name: str | None = None,
        state: RouterState | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """
        Change what the console says of a router; one that is disabled is cut off at once.

        @raise EnrolmentRefused: another router has the name.
        """
        new_name, new_state = name or router.name, state or router.state
        new_labels = dict(router.labels if labels is None else labels)
        if new_state == "disabled":
            # Before it is written, so that nothing is handed out in between.
            self.registry.set_state(router, "disabled")
            self.polls.drop(router.guid)
        await self._store.write(lambda t: records.change_router(t, author, router, new_name, new_state, new_labels))
        if new_name != router.name:
            self.registry.rename(router, new_name)
        self.registry.set_state(router, new_state)
        router.labels = new_labels
        self.polls.wake(router.guid)
        await self.replan()

    async def delete(self, author: Author, router: EnrolledRouter) -> None:
        """Forget a router, with all its certificates."""
        self.registry.remove(router.guid)
        self.polls.drop(router.guid)
        await self._store.write(lambda t: records.delete_router(t, author, router))
        for known in (self._planned, self._handed, self._digests, self._told, self._facts_at):
            known.pop(router.guid, None)
        if self.problem:
            # It may have been this one that claimed what the console has not made.
            await self.replan()

    @staticmethod
    def _in_background(work: Any) -> None:
        async def run() -> None:
            await work

        Deferred.fromCoroutine(run()).addErrback(
            lambda failure: None if failure.check(WebhookrxError) else _log.failure("A write has failed", failure)
        )
