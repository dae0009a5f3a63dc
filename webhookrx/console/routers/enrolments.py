"""
The enrolments of a console: people make them, and each lets routers become one of the console's.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

from twisted.logger import Logger

from webhookrx.console.routers import records
from webhookrx.console.routers.authority import Authority, RouterCertificate
from webhookrx.console.routers.records import Enrolment, EnrolmentRefused
from webhookrx.console.routers.registry import MOST_PENDING, MOST_ROUTERS, EnrolledRouter, RouterRegistry
from webhookrx.console.store.audit import ENROLMENT_REFUSED, note
from webhookrx.console.store.history import Author
from webhookrx.console.store.interface import ConsoleStore
from webhookrx.errors import ConfigError, StoreUnavailable
from webhookrx.management.agent_protocol import RouterFacts
from webhookrx.management.enrolment_token import REFUSAL, EnrolmentToken
from webhookrx.router.rules.rule import check_name

_log = Logger()


class Enrolments:
    """
    Makes enrolments, and enrols routers by them.

    @param registry: gets the routers that enrol.
    @param clock: returns seconds since the epoch.
    @param replan: called when a router is to have a bundle.
    """

    def __init__(
        self,
        store: ConsoleStore,
        registry: RouterRegistry,
        authority: Authority,
        clock: Callable[[], float],
        replan: Callable[[], object],
    ) -> None:
        self._store = store
        self._registry = registry
        self._authority = authority
        self._clock = clock
        self._replan = replan
        self._open: dict[str, Enrolment] = {}

    async def read(self) -> None:
        """Read the enrolments that can be used."""
        now = self._clock()
        read = await self._store.look(lambda db: records.read_enrolments(db, now))
        self._open = {each.id: each for each in read}

    @property
    def usable(self) -> tuple[Enrolment, ...]:
        """Those that can be used now."""
        now = self._clock()
        return tuple(each for each in self._open.values() if each.expires_at > now)

    # -- what people ask -----------------------------------------------------------------------------------------

    async def add(
        self, author: Author, approve: Literal["auto", "manual"], uses: int, seconds: float, labels: Mapping[str, str]
    ) -> tuple[Enrolment, EnrolmentToken]:
        """
        Make an enrolment, and its token, which is nowhere after that.

        @raise EnrolmentRefused: there are too many.
        """
        token = EnrolmentToken(secrets.token_hex(8), secrets.token_urlsafe(32), self._authority.pin)
        now = self._clock()
        enrolment = Enrolment(token.id, approve, uses, now + seconds, dict(labels), author.by, now)
        await self._store.write(lambda t: records.add_enrolment(t, author, enrolment, token))
        self._open[enrolment.id] = enrolment
        return enrolment, token

    async def delete(self, author: Author, id: str) -> bool:
        """Delete an enrolment; return False if there is none."""
        gone = await self._store.write(lambda t: records.delete_enrolment(t, author, id))
        self._open.pop(id, None)
        return gone

    # -- what routers ask ----------------------------------------------------------------------------------------

    async def enrol(
        self, token: EnrolmentToken, name: str, request: str, facts: RouterFacts
    ) -> tuple[EnrolledRouter, RouterCertificate]:
        """
        Enrol a router. One that asks again, with the same key and token, gets another certificate, since it may never
        have had the one before, and is nothing new.

        @raise EnrolmentRefused: it can't be; the text is for the router's operator.
        @raise webhookrx.console.routers.authority.BadCertificateRequest: see L{Authority.issue}.
        """
        guid = self._authority.guid_of(request, token.id)
        known = self._registry.by_guid(guid)
        if known is not None:
            return known, await self._enrol_again(known, token, request)
        if token.id not in self._open:
            raise EnrolmentRefused(REFUSAL, "The enrolment token is wrong, used or expired.")
        if len(self._registry) >= MOST_ROUTERS or self._registry.pending >= MOST_PENDING:
            raise EnrolmentRefused("too_many", "The console has too many routers, or too many that wait for consent.")
        try:
            check_name(name)
        except ConfigError as error:
            raise EnrolmentRefused("bad_name", str(error)) from None
        now = self._clock()
        router = EnrolledRouter(guid, name, "pending", enrolled_at=now, facts=facts, seen_at=now)
        at = datetime.fromtimestamp(now, UTC)
        certificate = await self._store.write(lambda t: records.enrol(t, token, router, self._authority, request, at))
        self._registry.add(router)
        await self.read()
        _log.info("Router {name} has enrolled: {state}", name=router.name, state=router.state)
        if router.state == "approved":
            self._replan()
        return router, certificate

    async def _enrol_again(self, router: EnrolledRouter, token: EnrolmentToken, request: str) -> RouterCertificate:
        at, before = datetime.fromtimestamp(self._clock(), UTC), tuple(router.certificates)
        write = self._store.write
        certificate = await write(lambda t: records.enrol_again(t, token, router, self._authority, request, at))
        if self._registry.by_guid(router.guid) is router:
            self._registry.uncertify(router, before)
            self._registry.certify(router, certificate.fingerprint, certificate.ends)
        _log.info("Router {name} has enrolled once more: {state}", name=router.name, state=router.state)
        return certificate

    async def note_refused(self, code: str, name: str, address: str) -> None:
        """Have the audit know that an enrolment was refused; it is refused, too, when that can't be written."""
        with suppress(StoreUnavailable):
            await self._store.write(lambda t: note(t, "", "agent", address, ENROLMENT_REFUSED, name, {"code": code}))
