"""
Tests for L{webhookrx.console.routers.port} and the fleet behind it: what each certificate may ask, and what not.
"""

from __future__ import annotations

import gc
import os
from io import BytesIO
from types import TracebackType
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from OpenSSL.crypto import X509
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import ISSLTransport
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.test.requesthelper import DummyRequest
from zope.interface import implementer

from tests.console.direct_store import DirectStore
from tests.console.routers.test_authority import NOW, request_of
from webhookrx.console.routers.authority import make_authority
from webhookrx.console.routers.bundle_plan import HandedRule
from webhookrx.console.routers.fleet import FleetOfRouters
from webhookrx.console.routers.polls import Unanswered
from webhookrx.console.routers.port import RoutersResource
from webhookrx.console.routers.records import ADOPTION
from webhookrx.console.routers.registry import EnrolledRouter
from webhookrx.console.store.audit import read_audit
from webhookrx.console.store.history import Author, Change
from webhookrx.http.answers import FixedAnswer
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.provenance import ClientIdentity
from webhookrx.management.agent_protocol import (
    AppliedState,
    CommandAnswer,
    EnrolAnswer,
    EnrolRequest,
    GateState,
    IssuedCertificate,
    ReloadCommand,
    RenewRequest,
    RouterFacts,
    RouterReport,
    SyncAnswer,
)
from webhookrx.management.bundle import digest, key_id, open_bundle, public_key
from webhookrx.management.tap_protocol import TapEvents
from webhookrx.query import parse

MARA = Author("mara", "ui")
DAY = 86_400.0


@implementer(ISSLTransport)
class _TLS(StringTransport):
    def __init__(self, pem: str | None) -> None:
        super().__init__()
        certificate = None if pem is None else x509.load_pem_x509_certificate(pem.encode())
        self.certificate = None if certificate is None else X509.from_cryptography(certificate)

    def getPeerCertificate(self) -> X509 | None:
        return self.certificate


class _Router:
    """The other end: what a router keeps and asks."""

    def __init__(self, case: PortCase, pem: str | None = None, guid: str = "") -> None:
        self.case, self.pem, self.guid = case, pem, guid
        self.number = 0

    def ask(self, method: bytes, uri: bytes, body: object = None) -> DummyRequest:
        path = uri.partition(b"?")[0]
        request = DummyRequest([path])
        request.method, request.uri, request.path = method, uri, path
        request.transport = _TLS(self.pem)
        request.content = BytesIO(b"" if body is None else msgspec.json.encode(body))
        self.case.resource.render(request)
        return request

    def sync(self, have: str = "", wait: int = 0) -> DummyRequest:
        return self.ask(b"GET", b"/agent/v1/sync?have=%s&wait=%d" % (have.encode(), wait))

    def report(self, instance: str = "one", **members: Any) -> DummyRequest:
        self.number = members.pop("number", self.number + 1)
        report = RouterReport(number=self.number, begun=1, instance=instance, **members)
        return self.ask(b"POST", b"/agent/v1/report", report)

    def bundle(self) -> bytes:
        return bytes(msgspec.json.decode(body_of(self.sync()), type=SyncAnswer).bundle)


def body_of(request: DummyRequest) -> bytes:
    return b"".join(request.written)


def code_of(request: DummyRequest) -> tuple[int, str]:
    """Return the status, and the code of the problem."""
    body = body_of(request)
    return request.responseCode, msgspec.json.decode(body)["code"] if body else ""


class _HeardTaps:
    """One tap at each router, whose id tells its router."""

    def __init__(self) -> None:
        self.events: list[TapEvents] = []
        self.over = False

    def takes_part(self, router: EnrolledRouter, id: str) -> bool:
        return id == f"of-{router.guid}"

    def hear(self, router: EnrolledRouter, id: str, events: TapEvents) -> bool:
        self.events.append(events)
        return not self.over


class PortCase(SynchronousTestCase):
    def make_clock(self) -> Clock:
        """Return the reactor."""
        return Clock()

    def setUp(self) -> None:
        self.clock = self.make_clock()
        self.wall = NOW.timestamp()
        directory = self.mktemp()
        self.authority = make_authority(directory, NOW)
        self.store = DirectStore(os.path.join(directory, "console.sqlite"), lambda: self.wall)
        self.addCleanup(self.store.close)
        self.rules: list[HandedRule] = []
        self.fleet = FleetOfRouters(
            self.clock,
            self.store,
            self.authority,
            lambda: self.wall,
            lambda: self.rules,
            in_thread=lambda work: succeed(work()),
        )
        self.heard = _HeardTaps()
        self.resource = RoutersResource(
            self.fleet,
            self.clock.seconds,
            taps=self.heard,
            decode_apart=lambda decode, *arguments: succeed(decode(*arguments)),
        )
        self.done(self.fleet.load())

    def done(self, coroutine: Any) -> Any:
        return self.successResultOf(Deferred.fromCoroutine(coroutine))

    def token(self, approve: str = "auto", uses: int = 1, **labels: str) -> str:
        made = self.fleet.enrolments.add(MARA, approve, uses, 3600.0, labels)  # type: ignore[arg-type]
        return self.done(made)[1].text

    def enrol(self, name: str = "fra-1", token: str = "", **facts: Any) -> DummyRequest:
        csr = request_of(ec.generate_private_key(ec.SECP256R1()))
        asked = EnrolRequest(token=token or self.token(), csr=csr, name=name, facts=RouterFacts(**facts))
        return _Router(self).ask(b"POST", b"/agent/v1/enrol", asked)

    def enrolled(self, token: str, key: ec.EllipticCurvePrivateKey) -> _Router:
        asked = EnrolRequest(token=token, csr=request_of(key), name="fra-1", facts=RouterFacts())
        answer = msgspec.json.decode(body_of(_Router(self).ask(b"POST", b"/agent/v1/enrol", asked)), type=EnrolAnswer)
        return _Router(self, answer.certificate, answer.guid)

    def router(self, name: str = "fra-1", approve: str = "auto", **facts: Any) -> _Router:
        answer = msgspec.json.decode(body_of(self.enrol(name, self.token(approve), **facts)), type=EnrolAnswer)
        return _Router(self, answer.certificate, answer.guid)

    def known(self, router: _Router) -> EnrolledRouter:
        found = self.fleet.registry.by_guid(router.guid)
        assert found is not None
        return found

    def known_by_name(self, name: str) -> EnrolledRouter:
        found = self.fleet.registry.by_name(name)
        assert found is not None
        return found

    def save(self, *rules: tuple[str, str]) -> None:
        self.rules = [HandedRule(name, parse(selector), f"name: {name}\nport: 80\n") for name, selector in rules]
        self.successResultOf(self.fleet.replan())
        self.clock.advance(0)


class EnrolmentTests(PortCase):
    def test_a_token_is_good_once(self) -> None:
        """The second router with a token is refused, and told no more than of a wrong token."""
        token = self.token()
        self.assertEqual(self.enrol(token=token).responseCode, 200)
        self.assertEqual(code_of(self.enrol("fra-2", token)), (403, "token_refused"))
        self.assertEqual(code_of(self.enrol("fra-3", "wrx1.aa.bb.cc")), (403, "token_refused"))

    def test_the_audit_knows(self) -> None:
        """The audit has each certificate and each refused enrolment with its address, and no token."""
        self.router("fra-1")
        self.assertEqual(code_of(self.enrol("fra-2", "wrx1.aa.bb.cc")), (403, "token_refused"))
        entries = self.store.reader.read(read_audit)
        self.assertEqual(["enrolment_refused", "certificate"], [each.event for each in entries])
        self.assertEqual(("fra-2", "token_refused"), (entries[0].name, entries[0].details["code"]))
        self.assertTrue(entries[0].address)
        self.assertNotIn("wrx1.", repr(entries))

    def test_a_wrong_secret_uses_nothing(self) -> None:
        """A guess at the secret of a known enrolment is refused, and the token stays good."""
        token = self.token()
        head, id, secret, pin = token.split(".")
        guess = ".".join((head, id, secret[::-1], pin))
        self.assertEqual(code_of(self.enrol(token=guess)), (403, "token_refused"))
        self.assertEqual(self.enrol(token=token).responseCode, 200)

    def test_a_token_expires(self) -> None:
        """After its time a token is refused."""
        token = self.token()
        self.wall += 3601
        self.assertEqual(code_of(self.enrol(token=token)), (403, "token_refused"))

    def test_a_deleted_enrolment_is_refused(self) -> None:
        """A token whose enrolment was deleted is good for nothing."""
        token = self.token()
        self.assertTrue(self.done(self.fleet.enrolments.delete(MARA, token.split(".")[1])))
        self.assertEqual(code_of(self.enrol(token=token)), (403, "token_refused"))

    def test_a_bad_request_uses_nothing(self) -> None:
        """A certificate request that can't be granted leaves the token as it was."""
        token = self.token()
        asked = EnrolRequest(token=token, csr="no", name="fra-1", facts=RouterFacts())
        refused = _Router(self).ask(b"POST", b"/agent/v1/enrol", asked)
        self.assertEqual(refused.responseCode, 400)
        self.assertEqual(self.enrol(token=token).responseCode, 200)

    def test_a_lost_answer_is_asked_for_again(self) -> None:
        """Whoever enrols again with the same key and token is the same router, with one certificate that counts."""
        token, key = self.token(), ec.generate_private_key(ec.SECP256R1())
        first, second = (self.enrolled(token, key) for _ in range(2))
        self.assertEqual(first.guid, second.guid)
        self.assertEqual(len(list(self.fleet.registry)), 1)
        self.assertEqual(code_of(first.sync()), (403, "disabled"))
        self.assertNotEqual(second.sync().responseCode, 403)
        self.done(self.fleet.load())
        self.assertNotEqual(second.sync().responseCode, 403)

    def test_enrolling_again_has_its_bounds(self) -> None:
        """It is refused to another secret, after the time of the token, and to a router that was disabled."""
        token, key = self.token(), ec.generate_private_key(ec.SECP256R1())
        router = self.enrolled(token, key)
        head, id, secret, pin = token.split(".")
        again = EnrolRequest(token=token, csr=request_of(key), name="fra-1", facts=RouterFacts())
        guess = msgspec.structs.replace(again, token=".".join((head, id, secret[::-1], pin)))
        self.assertEqual(code_of(_Router(self).ask(b"POST", b"/agent/v1/enrol", guess)), (403, "token_refused"))
        self.assertEqual(_Router(self).ask(b"POST", b"/agent/v1/enrol", again).responseCode, 200)
        self.done(self.fleet.change(MARA, self.known(router), state="disabled"))
        self.assertEqual(code_of(_Router(self).ask(b"POST", b"/agent/v1/enrol", again)), (403, "token_refused"))
        self.done(self.fleet.change(MARA, self.known(router), state="approved"))
        self.wall += 3601
        self.assertEqual(code_of(_Router(self).ask(b"POST", b"/agent/v1/enrol", again)), (403, "token_refused"))

    def test_enrolling_again_ends_with_the_first_report(self) -> None:
        """A router that has been in touch has its certificate; its key and token bring no other."""
        token, key = self.token(), ec.generate_private_key(ec.SECP256R1())
        router = self.enrolled(token, key)
        self.wall += 1
        self.assertEqual(router.report().responseCode, 204)
        again = EnrolRequest(token=token, csr=request_of(key), name="fra-1", facts=RouterFacts())
        self.assertEqual(code_of(_Router(self).ask(b"POST", b"/agent/v1/enrol", again)), (403, "token_refused"))

    def test_used_tokens_stay_until_their_end(self) -> None:
        """Making another enrolment leaves one that was used up, so that its router can still ask again."""
        token, key = self.token(), ec.generate_private_key(ec.SECP256R1())
        self.enrolled(token, key)
        self.token()
        self.assertTrue(self.enrolled(token, key).guid)

    def test_a_taken_name_waits(self) -> None:
        """A router with the name of another waits for a person, whatever its token says, and is told why."""
        self.router("fra-1")
        second = self.router("fra-1")
        refused = second.sync()
        self.assertEqual(code_of(refused), (403, "pending"))
        self.assertIn(b"another router", body_of(refused))

    def test_a_manual_enrolment_waits(self) -> None:
        """Until somebody approves it a router gets nothing, and then it does."""
        self.save(("hooks", ""))
        router = self.router(approve="manual")
        self.assertEqual(code_of(router.sync()), (403, "pending"))
        self.assertEqual(code_of(router.report()), (403, "pending"))
        self.done(self.fleet.change(MARA, self.known(router), state="approved"))
        self.assertTrue(router.bundle())

    def test_no_secret_is_kept(self) -> None:
        """Neither the store nor the history has the secret of a token."""
        secret = self.token().split(".")[2]
        dump = "\n".join(self.done(self.store.read(lambda db: list(db.iterdump()))))
        self.assertNotIn(secret, dump)


class CertificateTests(PortCase):
    def test_nothing_without_a_certificate(self) -> None:
        """All but an enrolment is refused to a client without a certificate."""
        for method, path in ((b"GET", b"sync"), (b"POST", b"report"), (b"POST", b"renew"), (b"POST", b"taps/x")):
            refused = _Router(self).ask(method, b"/agent/v1/" + path)
            self.assertEqual(code_of(refused), (403, "disabled"), path)

    def test_nothing_with_an_unknown_certificate(self) -> None:
        """A certificate of the console's own CA that is not in its registry counts for nothing."""
        key = ec.generate_private_key(ec.SECP256R1())
        router = self.router()
        stray = self.authority.issue(request_of(key), router.guid, NOW)
        self.assertEqual(code_of(_Router(self, stray.pem).sync()), (403, "disabled"))

    def test_a_router_gets_its_own_bundle_alone(self) -> None:
        """Each router's bundle is for it, and has the rules that match it; no request can name another router."""
        fra, ber = self.router("fra-1", os="linux"), self.router("ber-1", os="freebsd")
        self.save(("hooks", "os = linux"), ("all", ""))
        keys = {key_id(key): key for key in map(public_key, self.authority.signing_keys)}
        opened = open_bundle(ber.bundle(), keys, ber.guid)
        self.assertEqual((opened.router.name, "hooks" in opened.rules, "all" in opened.rules), ("ber-1", False, True))
        self.assertIn("hooks", open_bundle(fra.bundle(), keys, fra.guid).rules)
        asked = ber.ask(b"GET", b"/agent/v1/sync?have=&wait=0&guid=" + fra.guid.encode())
        envelope = bytes(msgspec.json.decode(body_of(asked), type=SyncAnswer).bundle)
        self.assertEqual(open_bundle(envelope, keys, ber.guid).guid, ber.guid)

    def test_a_router_answers_its_own_commands_alone(self) -> None:
        """An answer to a command of another router is dropped."""
        fra, ber = self.router("fra-1"), self.router("ber-1")
        answered = self.fleet.polls.command(fra.guid, lambda id: ReloadCommand(id=id), 5.0, "c1")
        ber.report(answers=(CommandAnswer(id="c1"),))
        self.assertNoResult(answered)
        fra.report(answers=(CommandAnswer(id="c1", problem="no"),))
        self.assertEqual(self.successResultOf(answered).problem, "no")

    def test_a_router_speaks_for_its_own_taps_alone(self) -> None:
        """What a tap shows is taken from the router at which it is alone; for another nothing of it is even decoded."""
        fra, ber = self.router("fra-1"), self.router("ber-1")
        events = TapEvents(number=1, seen=1, matched=1, shown=1, not_looked_at=0)
        path = b"/agent/v1/taps/of-" + fra.guid.encode()
        self.assertEqual(ber.ask(b"POST", path, events).responseCode, 404)
        self.assertEqual(ber.ask(b"POST", path, "garbage").responseCode, 404)
        self.assertEqual(fra.ask(b"POST", path, "garbage").responseCode, 400)
        self.assertEqual(self.heard.events, [])
        self.assertEqual(fra.ask(b"POST", path, events).responseCode, 204)
        large = msgspec.structs.replace(events, number=2, events=(msgspec.Raw(b'"%s"' % (b"x" * 200_000)),))
        self.assertEqual(fra.ask(b"POST", path, large).responseCode, 204)
        self.assertEqual([each.number for each in self.heard.events], [1, 2])
        self.heard.over = True
        self.assertEqual(fra.ask(b"POST", path, events).responseCode, 404)

    def test_an_ended_certificate_is_good_for_a_renewal(self) -> None:
        """After its end a certificate renews and does nothing else, and after 180 more days not even that."""
        router = self.router()
        self.wall += 31 * DAY
        self.assertEqual(code_of(router.sync()), (403, "certificate_ended"))
        renew = RenewRequest(csr=request_of(ec.generate_private_key(ec.SECP256R1())))
        self.assertEqual(router.ask(b"POST", b"/agent/v1/renew", renew).responseCode, 200)
        self.wall += 181 * DAY
        self.assertEqual(code_of(router.ask(b"POST", b"/agent/v1/renew", renew)), (403, "disabled"))

    def test_the_old_certificate_counts_until_the_new_one_is_used(self) -> None:
        """Old and new both work after a renewal, and only the new one after it was used."""
        old = self.router()
        renew = RenewRequest(csr=request_of(ec.generate_private_key(ec.SECP256R1())))
        answer = old.ask(b"POST", b"/agent/v1/renew", renew)
        new = _Router(self, msgspec.json.decode(body_of(answer), type=IssuedCertificate).certificate, old.guid)
        self.assertEqual(old.sync().responseCode, 200)
        self.assertEqual(new.sync().responseCode, 200)
        self.assertEqual(code_of(old.sync()), (403, "disabled"))
        count = self.done(self.store.read(lambda db: db.execute("SELECT count(*) FROM certificate").fetchone()[0]))
        self.assertEqual(count, 1)

    def test_renewals_do_not_pile_up(self) -> None:
        """However often a router renews, two certificates of it count at most."""
        router = self.router()
        for _ in range(5):
            self.clock.advance(1)
            renew = RenewRequest(csr=request_of(ec.generate_private_key(ec.SECP256R1())))
            router.ask(b"POST", b"/agent/v1/renew", renew)
        self.assertEqual(len(self.known(router).certificates), 2)

    def test_a_revoked_router_is_cut_off_at_once(self) -> None:
        """Disabling a router ends its poll with a refusal, and its renewal."""
        router = self.router()
        poll = router.sync(digest(router.bundle()), wait=55)
        self.assertFalse(poll.finished)
        self.done(self.fleet.change(MARA, self.known(router), state="disabled"))
        self.assertEqual(code_of(poll), (403, "disabled"))
        self.assertEqual(code_of(router.report()), (403, "disabled"))
        renew = RenewRequest(csr=request_of(ec.generate_private_key(ec.SECP256R1())))
        self.assertEqual(code_of(router.ask(b"POST", b"/agent/v1/renew", renew)), (403, "disabled"))

    def test_a_deleted_router_is_cut_off_at_once(self) -> None:
        """Deleting a router ends its poll, its commands, and its certificates."""
        router = self.router()
        poll = router.sync(digest(router.bundle()), wait=55)
        self.done(self.fleet.delete(MARA, self.known(router)))
        self.assertEqual(code_of(poll), (403, "disabled"))

    def test_a_restart_knows_all_routers(self) -> None:
        """Another process with the same store hears the same routers, and gives them the same bundles."""
        router = self.router()
        self.save(("hooks", ""))
        first = router.bundle()
        self.done(self.fleet.keep())
        rules = self.rules
        self.fleet = FleetOfRouters(
            self.clock,
            self.store,
            self.authority,
            lambda: self.wall,
            lambda: rules,
            in_thread=lambda work: succeed(work()),
        )
        self.resource = RoutersResource(self.fleet, self.clock.seconds)
        self.wall += 60
        self.done(self.fleet.load())
        self.assertEqual(router.bundle(), first)


class PollTests(PortCase):
    def test_a_poll_waits_and_ends(self) -> None:
        """With nothing new a poll is answered 204 at its end."""
        router = self.router()
        self.save()
        poll = router.sync(digest(router.bundle()), wait=55)
        self.clock.advance(54)
        self.assertFalse(poll.finished)
        self.clock.advance(1)
        self.assertEqual((poll.responseCode, self.fleet.polls.waiting), (204, 0))

    def test_a_saved_rule_ends_polls(self) -> None:
        """A poll gets the bundle that a saved rule makes; that of a router without it goes on."""
        fra, ber = self.router("fra-1", os="linux"), self.router("ber-1", os="freebsd")
        self.save()
        polls = [each.sync(digest(each.bundle()), wait=55) for each in (fra, ber)]
        self.save(("hooks", "os = linux"))
        self.assertEqual([each.finished for each in polls], [1, 0])

    def test_the_third_poll_ends_the_first(self) -> None:
        """A router has two polls at most."""
        router = self.router()
        self.save()
        have = digest(router.bundle())
        polls = [router.sync(have, wait=55) for _ in range(3)]
        self.assertEqual([each.finished for each in polls], [1, 0, 0])

    def test_a_lost_poll_is_forgotten(self) -> None:
        """A router that goes away while it waits leaves nothing behind."""
        router = self.router()
        self.save()
        poll = router.sync(digest(router.bundle()), wait=55)
        poll.processingFailed(_gone())
        self.assertEqual((self.fleet.polls.waiting, self.clock.getDelayedCalls()), (0, []))

    def test_a_command_comes_with_the_next_answer(self) -> None:
        """A command ends a poll, comes again only after a while, and fails when nobody answers."""
        router = self.router()
        self.save()
        have = digest(router.bundle())
        poll = router.sync(have, wait=55)
        answered = self.fleet.polls.command(router.guid, lambda id: ReloadCommand(id=id), 15.0)
        command = msgspec.json.decode(body_of(poll), type=SyncAnswer).commands[0]
        self.assertIsInstance(command, ReloadCommand)
        self.assertEqual(router.sync(have).responseCode, 204)
        self.clock.advance(10)
        self.assertEqual(router.sync(have).responseCode, 200)
        self.clock.advance(5)
        self.failureResultOf(answered, Unanswered)


class ReportTests(PortCase):
    def test_long_gate(self) -> None:
        """Of a gate that is closed for very much the first is kept: lists of routers have it of each."""
        fra = self.router("fra-1")
        paths = ("/k.pem", *(f"/{number}/" + "x" * 4_000 for number in range(200)))
        self.assertEqual(fra.report(gate=GateState(reasons=("a", "b"), paths=paths)).responseCode, 204)
        gate = self.known(fra).gate
        self.assertEqual((gate.reasons, gate.paths), (("a", "b"), paths[:9]))

    def test_differences_need_their_base(self) -> None:
        """A report upon one that the console does not have is answered 409 send_all."""
        router = self.router()
        self.assertEqual(code_of(router.report(number=5, base=4)), (409, "send_all"))
        self.assertEqual(router.report(number=6).responseCode, 204)
        self.assertEqual(router.report(number=7, base=6).responseCode, 204)
        self.assertEqual(router.report(number=7, base=6).responseCode, 204)

    def test_two_processes_with_one_certificate_are_seen(self) -> None:
        """A restart is no duplicate; a process that speaks again after another has is one."""
        router = self.router()
        router.report("one", number=1)
        router.report("two", number=1)
        self.assertFalse(self.known(router).is_duplicate(self.wall))
        router.report("one", number=2)
        self.assertTrue(self.known(router).is_duplicate(self.wall))

    def test_a_console_that_is_older_than_its_routers_hands_out_nothing(self) -> None:
        """When its routers have had higher revisions it says so, gives no bundle, and goes on once it was adopted."""
        routers = [self.router("fra-1"), self.router("fra-2")]
        self.save(("hooks", ""))
        for each in routers:
            each.report(applied=AppliedState(status="APPLIED", revision=500, newest=500))
        self.save(("hooks", ""), ("more", ""))
        self.assertIn("revision 500", self.fleet.problem)
        self.assertEqual([each.sync().responseCode for each in routers], [204, 204])
        # Its own revisions go on, one by one, past those of the routers; that makes it no newer.
        self.done(self.store.write(lambda t: t.revise(MARA, [Change("rule", "hooks", "update")], number=600)))
        self.save(("hooks", ""), ("late", ""))
        self.assertEqual([each.sync().responseCode for each in routers], [204, 204])
        self.assertIn("revision 500", self.fleet.problem)
        adoption = Change(*ADOPTION, "update", 600, 700)
        self.done(self.store.write(lambda t: t.revise(MARA, [adoption], number=700)))
        self.save(("hooks", ""), ("more", ""))
        keys = {key_id(key): key for key in map(public_key, self.authority.signing_keys)}
        opened = open_bundle(routers[0].bundle(), keys, routers[0].guid, (500, ""))
        self.assertEqual((opened.revision, self.fleet.problem), (700, ""))

    def test_one_router_can_not_stop_the_others(self) -> None:
        """A single router of several that claims a higher revision gets nothing itself, and the others go on."""
        liar, honest = self.router("fra-1"), self.router("fra-2")
        liar.report(applied=AppliedState(status="APPLIED", revision=500, newest=500))
        self.save(("hooks", ""))
        self.assertEqual((self.fleet.problem, liar.sync().responseCode), ("", 204))
        self.assertTrue(honest.bundle())

    def test_those_that_stopped_the_others_are_deleted(self) -> None:
        """Two routers that claim higher revisions look like an older backup, until they are deleted."""
        liars, honest = [self.router("fra-1"), self.router("fra-2")], self.router("fra-3")
        for each in liars:
            each.report(applied=AppliedState(status="APPLIED", revision=500, newest=500))
        self.save(("hooks", ""))
        self.assertEqual((bool(self.fleet.problem), honest.sync().responseCode), (True, 204))
        self.done(self.fleet.delete(MARA, self.known(liars[0])))
        self.assertEqual(self.fleet.problem, "")
        self.assertTrue(honest.bundle())

    def test_claims_of_revisions_are_planned_for_now_and_then(self) -> None:
        """A router that claims other revisions with each report has bundles planned once in five seconds at most."""
        liar, _ = self.router("fra-1"), self.router("fra-2")
        self.save(("hooks", ""))
        plans: list[None] = []
        self.patch(self.fleet, "_rules", lambda: plans.append(None) or self.rules)
        for newest in range(500, 520):
            liar.report(applied=AppliedState(status="APPLIED", revision=500, newest=newest))
        self.assertEqual(len(plans), 1)
        self.clock.advance(5)
        self.done(self.fleet.keep())
        self.assertEqual(len(plans), 2)

    def test_facts_that_change_often_count_now_and_then(self) -> None:
        """Facts of a router make new bundles once in 30 seconds at most."""
        router = self.router(os="linux")
        self.save(("hooks", "os = linux"))
        router.report(facts=RouterFacts(os="one"))
        router.report(facts=RouterFacts(os="two"))
        self.assertEqual(self.known(router).facts.os, "one")
        self.clock.advance(30)
        self.done(self.fleet.keep())
        self.assertEqual(self.known(router).facts.os, "two")

    def test_two_bundles_never_have_one_revision(self) -> None:
        """When other facts change a bundle and nobody has changed a rule, it gets a revision of its own."""
        router = self.router(os="linux")
        self.save(("hooks", "os = linux"))
        keys = {key_id(key): key for key in map(public_key, self.authority.signing_keys)}
        first = open_bundle(router.bundle(), keys, router.guid)
        router.report(facts=RouterFacts(os="freebsd"))
        second = open_bundle(router.bundle(), keys, router.guid)
        self.assertGreater(second.revision, first.revision)


class EarlyTests(PortCase):
    def dispatch(
        self,
        method: bytes,
        path: bytes,
        fingerprint: str = "",
        length: int | bytes | None = None,
        address: str = "192.0.2.1",
    ) -> int:
        client = ClientIdentity("", (), "", fingerprint) if fingerprint else None
        written = b"%d" % length if isinstance(length, int) else length
        headers = [] if written is None else [(b"content-length", written)]
        verdict = self.resource.dispatch(Head(method, path, None, headers, Peer(address, 1, True, client)))
        return verdict.status if isinstance(verdict, FixedAnswer) else 0

    def test_bodies_of_strangers_are_not_read(self) -> None:
        """Who has no certificate that counts is refused at the end of the head; an enrolment is small."""
        self.assertEqual(self.dispatch(b"POST", b"/agent/v1/report", "", 8_000_000), 403)
        self.assertEqual(self.dispatch(b"POST", b"/agent/v1/report", "ab" * 32, 8_000_000), 403)
        self.assertEqual(self.dispatch(b"POST", b"/agent/v1/enrol", "", 70_000), 413)
        self.assertEqual(self.dispatch(b"POST", b"/agent/v1/enrol"), 411)
        self.assertEqual(self.dispatch(b"POST", b"/agent/v1/enrol", "", 1_000), 0)

    def test_refusals_leave_nothing(self) -> None:
        """What strangers are told keeps nothing of their requests, however many come."""
        for path in (b"/agent/v1/report", b"/agent/v1/enrol"):
            before = _tracebacks()
            for _ in range(50):
                self.assertIn(self.dispatch(b"POST", path, "", 8_000_000), (403, 413, 429))
            self.assertEqual(before, _tracebacks())

    def test_zeros_hide_no_length(self) -> None:
        """A length is judged by all of its digits."""
        self.assertEqual(self.dispatch(b"POST", b"/agent/v1/enrol", "", b"0000000000008000000"), 413)
        self.assertEqual(self.dispatch(b"POST", b"/agent/v1/enrol", "", b"9" * 4000), 413)
        self.assertEqual(self.dispatch(b"POST", b"/agent/v1/enrol", "", b"0000000000000001000"), 0)

    def test_enrolments_of_one_network_are_slowed(self) -> None:
        """Addresses of one IPv6 network, of which anybody has as many as they like, are one."""
        answers = [self.dispatch(b"POST", b"/agent/v1/enrol", "", 9, f"2001:db8::{each:x}") for each in range(11)]
        self.assertEqual(answers, [0] * 10 + [429])

    def test_pace_of_reports(self) -> None:
        """A router that brings very large reports one after the other is told 429, and others are not."""
        fra, ber = self.router("fra-1"), self.router("ber-1")
        prints = [next(iter(self.known(each).certificates)) for each in (fra, ber)]
        answers = [self.dispatch(b"POST", b"/agent/v1/report", prints[0], 8 << 20) for _ in range(3)]
        self.assertEqual(answers, [0, 0, 429])
        self.assertEqual(self.dispatch(b"POST", b"/agent/v1/report", prints[1], 8 << 20), 0)
        self.assertEqual(self.dispatch(b"GET", b"/agent/v1/sync", prints[0]), 0)
        self.clock.advance(16)
        self.assertEqual(self.dispatch(b"POST", b"/agent/v1/report", prints[0], 8 << 20), 0)

    def test_a_router_that_asks_too_often_waits(self) -> None:
        """After a burst of 40 a router is told 429, and others are not."""
        fra, ber = self.router("fra-1"), self.router("ber-1")
        prints = [next(iter(self.known(each).certificates)) for each in (fra, ber)]
        answers = [self.dispatch(b"GET", b"/agent/v1/sync", prints[0]) for _ in range(41)]
        self.assertEqual(answers, [0] * 40 + [429])
        self.assertEqual(self.dispatch(b"GET", b"/agent/v1/sync", prints[1]), 0)
        self.clock.advance(1)
        self.assertEqual(self.dispatch(b"GET", b"/agent/v1/sync", prints[0]), 0)

    def test_enrolments_of_one_address_are_slowed(self) -> None:
        """After ten attempts an address waits."""
        answers = [self.dispatch(b"POST", b"/agent/v1/enrol", "", 100) for _ in range(11)]
        self.assertEqual(answers, [0] * 10 + [429])


def _tracebacks() -> int:
    gc.collect()
    return sum(isinstance(each, TracebackType) for each in gc.get_objects())


def _gone() -> Any:
    from twisted.internet.error import ConnectionLost
    from twisted.python.failure import Failure

    return Failure(ConnectionLost())
