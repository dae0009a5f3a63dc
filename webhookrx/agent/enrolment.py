"""
Enrolment: with a one-time token, a router becomes one of a console's; and the renewal of its certificate.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeVar

from msgspec.structs import replace

from webhookrx.agent.link import ConsoleAnswer, ConsoleLink, LinkFailed, shown_chain
from webhookrx.agent.router_keys import KeyRequest, check_certificate, new_key, pinned_authority
from webhookrx.config.console_files import RouterIdentity
from webhookrx.diagnostics import quoted
from webhookrx.errors import WebhookrxError
from webhookrx.management.agent_body import read_body, write_body
from webhookrx.management.agent_protocol import (
    ENROL,
    RENEW,
    EnrolAnswer,
    EnrolRequest,
    IssuedCertificate,
    RenewRequest,
    RouterFacts,
)
from webhookrx.management.bundle import public_key
from webhookrx.management.enrolment_token import REFUSAL, EnrolmentToken

_CREATED: Final = (200, 201)

_Issued = TypeVar("_Issued", bound=IssuedCertificate)


class NotEnrolled(WebhookrxError):
    """The router is not enrolled; the text says why, without the token."""


class ConsoleAway(NotEnrolled):
    """The router is not enrolled, since the console can't be reached: it may be asked again."""


class Enrolled(NamedTuple):
    """
    @ivar identity: who the router is to the console.
    @ivar is_pending: whether a person has to consent before it gets anything.
    """

    identity: RouterIdentity
    is_pending: bool


async def enrol(
    reactor: Any, url: str, token: EnrolmentToken, name: str, facts: RouterFacts, wanted: KeyRequest
) -> Enrolled:
    """
    Return who the router is to the console from now on. Nothing is kept yet, and the token is used up; with the same
    key it brings the same router once more.

    The token goes only to a console that has proved, by the CA certificate that the token names and no other, to be
    the one at that URL.

    @param url: that of the console's port for routers.
    @param name: what the router would like to be called.
    @param wanted: its key.
    @raise NotEnrolled: the console is another one, or refuses.
    @raise ConsoleAway: it can't be reached.
    """
    try:
        authority = pinned_authority(await shown_chain(reactor, url), token.authority)
        if authority is None:
            raise NotEnrolled(
                "The console does not show the CA certificate that the token names: it is another one, or --console "
                "names its port for people."
            )
        link = ConsoleLink(reactor, url, [authority])
        body = write_body(EnrolRequest(token=token.text, csr=wanted.csr, name=name, facts=facts))
        try:
            answer = await link.ask(b"POST", ENROL, body)
        finally:
            await link.close()
    except LinkFailed as error:
        raise ConsoleAway(str(error)) from None
    except ValueError as error:
        raise NotEnrolled(str(error)) from None
    issued = _issued(answer, EnrolAnswer, wanted.key)
    identity = RouterIdentity(
        console=url,
        guid=issued.guid,
        name=issued.name,
        key=wanted.key,
        certificate=issued.certificate,
        authorities=issued.authorities,
        signing_keys=issued.signing_keys,
    )
    return Enrolled(identity, issued.state == "pending")


async def renew(link: ConsoleLink, identity: RouterIdentity) -> RouterIdentity:
    """
    Return an identity with a new key and certificate. The one before is good until the new one was used, so that
    nothing is lost when this one can't be kept.

    @param link: one with the certificate of the identity.
    @raise NotEnrolled: the console refuses, or its answer can't be used.
    @raise LinkFailed: the console can't be reached.
    """
    wanted = new_key()
    answer = await link.ask(b"POST", RENEW, write_body(RenewRequest(csr=wanted.csr)))
    issued = _issued(answer, IssuedCertificate, wanted.key)
    return replace(identity, key=wanted.key, certificate=issued.certificate, authorities=issued.authorities)


def _issued(answer: ConsoleAnswer, kind: type[_Issued], key: str) -> _Issued:
    """Return the certificate of an answer, which is one for that key."""
    if answer.status not in _CREATED:
        problem = answer.problem
        why = quoted(problem.detail or f"status {answer.status}")
        if answer.status >= 500 or answer.status == 429:
            raise ConsoleAway(f"The console can't do it now: {why}")
        more = " Make another enrolment, and give its token." if problem.code == REFUSAL else ""
        raise NotEnrolled(f"The console has refused: {why}{more}")
    try:
        issued = read_body(answer.body, kind)
        check_certificate(issued.certificate, key)
        if isinstance(issued, EnrolAnswer):
            for each in issued.signing_keys:
                public_key(each)
    except ValueError as error:
        raise NotEnrolled(f"The console's answer can't be used: {error}") from None
    return issued
