"""
Tests for L{webhookrx.http.guarded_resource}: what senders are told, and which messages come of it.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.server import Site as StockSite
from zope.interface.verify import verifyClass

from tests.http.guarded_wire import NOW, GuardedWire, sender_named
from tests.http.wire import Response, post
from webhookrx.errors import NoRoom, NotStored
from webhookrx.guard.quota import BUCKETS_SIZE, Buckets, SourceQuota
from webhookrx.http.guarded_request import GuardedRequest
from webhookrx.http.interfaces import IReceiver
from webhookrx.http.resources import DIRECT
from webhookrx.intake.client_patterns import ClientPatterns
from webhookrx.intake.networks import AllowList, parse_network
from webhookrx.intake.provenance import ClientIdentity
from webhookrx.intake.token_places import token_place
from webhookrx.intake.tokens import NamedToken, TokenCheck
from webhookrx.yield_point import pause_by

SECRETS = {"old": b"first secret", "new": b"second secret"}
DELIVERY = b"X-GitHub-Event: push\r\nX-GitHub-Delivery: 72d3162e-cc78-11e3-81ab-4c9367dc0958\r\n"
BODY = b'{"zen":"Keep it logically awesome."}'
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def github(**options: Any) -> GuardedWire:
    """Return a site that hears GitHub alone."""
    return GuardedWire(sender_named("github"), SECRETS, **options)


def slack() -> GuardedWire:
    """Return a site that hears Slack alone."""
    return GuardedWire(sender_named("slack"), {"main": b"8f742231b10e8888abcd99yyyzzz85a5"})


def get(target: bytes, headers: bytes = b"", method: bytes = b"GET") -> bytes:
    """Return a request without a body."""
    return b"%s %s HTTP/1.1\r\nHost: receiver\r\n%s\r\n" % (method, target, headers)


def tokens(place: str, **values: bytes) -> TokenCheck:
    """Return the check of named tokens."""
    return TokenCheck([NamedToken(name, value) for name, value in values.items()], token_place(place))


class GuardedCase(SynchronousTestCase):
    def assert_refused(self, site: GuardedWire, answer: Response, status: int, reason: str) -> None:
        """Fail unless a request was refused for this reason, nothing became of it, and it was counted."""
        self.assertEqual((status, reason), (answer.status, json.loads(answer.body)["reason"]))
        self.assertEqual(([], [("guarded", reason)]), (site.messages, site.traffic.refused_by))

    def provenance(self, site: GuardedWire) -> list[dict[str, Any]]:
        """Return what each message says of where it comes from, without what they all begin with."""
        return [
            {name[8:]: value for name, value in message.items() if name.startswith("webhook.")}
            for message in site.messages
        ]


class SignatureTests(GuardedCase):
    """Signed requests."""

    def test_verified(self) -> None:
        """A signed request is a message that says by which secret, by name, and which delivery it was."""
        site = github()
        answer = site.ask(site.signed(BODY, "new", DELIVERY))
        self.assertEqual((200, b'{"status":"received"}'), (answer.status, answer.body))
        said = {
            "sender": "github",
            "verified": "signature",
            "secret": "new",
            "delivery_id": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        }
        self.assertEqual([said], self.provenance(site))
        self.assertEqual([("guarded", "new")], site.traffic.verifications)
        self.assertEqual([("guarded", 0.0)], site.traffic.answers)

    def test_missing(self) -> None:
        """Without a signature, or with two, it is refused."""
        header = b"x-hub-signature-256: sha256=%s\r\n" % (b"0" * 64)
        for headers in (b"", header * 2, header[:-4] + b"\r\n"):
            site = github()
            answer = site.ask(post(BODY, b"/in", DELIVERY + headers))
            self.assert_refused(site, answer, 401, "signature_missing")
            self.assertEqual("Signature", answer.headers["www-authenticate"])

    def test_changed(self) -> None:
        """A body that was changed is refused, and it is not said which secret was near."""
        site = github()
        answer = site.ask(site.signed(BODY, "new", DELIVERY).replace(b"awesome", b"hostile"))
        self.assert_refused(site, answer, 401, "bad_signature")
        self.assertNotIn("new", str(answer.body) + str(site.traffic.details))

    def test_unpacked(self) -> None:
        """The signature is that of the body after its encoding was undone."""
        site = github()
        signed = site.signed(BODY, "old", DELIVERY + b"Content-Encoding: gzip\r\n")
        head, _, body = signed.partition(b"\r\n\r\n")
        packed = gzip.compress(body)
        head = head.replace(b"Content-Length: %d" % len(body), b"Content-Length: %d" % len(packed))
        self.assertEqual(200, site.ask(head + b"\r\n\r\n" + packed).status)
        self.assertEqual("old", site.messages[0]["webhook.secret"])

    def test_pieces(self) -> None:
        """A body that comes in pieces is verified as it comes: sized or chunked, however small the pieces are."""
        for chunked in (False, True):
            for size in (1, 7, 1000):
                site = github()
                signed = site.signed(BODY, "new", DELIVERY)
                head, _, body = signed.partition(b"\r\n\r\n")
                if chunked:
                    head = head.replace(b"Content-Length: %d\r\n" % len(body), CHUNKED)
                    head = head.replace(b"\r\nContent-Length: %d" % len(body), b"\r\n" + CHUNKED[:-2])
                    body = b"".join(b"%x\r\n%s\r\n" % (1, body[i : i + 1]) for i in range(len(body))) + b"0\r\n\r\n"
                sender = site.connect()
                sender.send(head + b"\r\n\r\n")
                for start in range(0, len(body), size):
                    sender.send(body[start : start + size])
                site.settle()
                self.assertEqual([200], sender.statuses(), (chunked, size))
                self.assertEqual("new", site.messages[0]["webhook.secret"])

    def test_large(self) -> None:
        """A large body is verified, whether it is genuine or not; one in pieces, too."""
        body = json.dumps({"text": "x" * (2 * DIRECT), "values": [0] * 2000}).encode()
        site = github()
        signed = site.signed(body, "new", DELIVERY)
        self.assertEqual(200, site.ask(signed).status)
        self.assertEqual("new", site.messages[0]["webhook.secret"])
        self.assertEqual(401, site.ask(signed[:-1] + b"]").status)
        sender = site.connect()
        for start in range(0, len(signed), 60_000):
            sender.send(signed[start : start + 60_000])
        site.settle()
        self.assertEqual([200], sender.statuses())

    def test_many_secrets(self) -> None:
        """No digest is more than a moment's work in one go: a body is tried on many secrets beside the reactor."""
        secrets = {str(number): b"secret %d" % number for number in range(16)}
        site = GuardedWire(sender_named("github"), secrets)
        small, large = b"x" * 16_000, b"x" * 20_000
        self.assertEqual((False, True), (site.guard.is_long(len(small)), site.guard.is_long(len(large))))
        moments: list[int] = []
        pause_by(lambda: None, lambda call: (moments.append(1), call())[1])
        self.addCleanup(pause_by, None)
        for body, count in ((small, 0), (large, 1)):
            sender = site.connect()
            signed = site.signed(body, "15")
            for start in range(0, len(signed), 9_000):
                sender.send(signed[start : start + 9_000])
            site.settle()
            self.assertEqual(([200], count), (sender.statuses(), len(moments)))
        few = github()
        self.assertEqual((False, True), (few.guard.is_long(DIRECT), few.guard.is_long(DIRECT + 1)))

    def test_stale(self) -> None:
        """What was signed too long ago, or is to come, is refused; only the log says how far away it was."""
        for away, shown in ((4000, "4000 s old"), (-4000, "4000 s in the future")):
            site = slack()
            signed = site.signed(b'{"type":"event_callback"}', "main")
            site.now += away
            answer = site.ask(signed)
            self.assert_refused(site, answer, 401, "stale_signature")
            self.assertIn(f"It is {shown}.", site.traffic.details[0])
            self.assertNotIn(b"4000", answer.body)
            self.assertEqual([("guarded", float(away))], site.traffic.skews)

    def test_signed_at(self) -> None:
        """A message says when it was signed, and the skew is counted."""
        site = slack()
        signed = site.signed(b'{"type":"event_callback"}', "main")
        site.now += 7
        self.assertEqual(200, site.ask(signed).status)
        self.assertEqual("2026-01-02T03:04:05Z", site.messages[0]["webhook.signed_at"])
        self.assertEqual([("guarded", 7.0)], site.traffic.skews)

    def test_note(self) -> None:
        """With C{note} all are taken, and each says whether it was verified."""
        site = github(must_verify=False)
        self.assertEqual(200, site.ask(site.signed(BODY, "new")).status)
        self.assertEqual(200, site.ask(site.signed(BODY, "new").replace(b"awesome", b"hostile")).status)
        self.assertEqual(200, site.ask(post(BODY, b"/in")).status)
        self.assertEqual(["signature", "no", "no"], [each["verified"] for each in self.provenance(site)])
        self.assertEqual(["new", None, None], [each.get("secret") for each in self.provenance(site)])

    def test_off(self) -> None:
        """Without verification, messages say that nothing is verified."""
        site = GuardedWire(sender_named("github"))
        self.assertEqual(200, site.ask(post(BODY, b"/in")).status)
        self.assertEqual([{"sender": "github", "verified": "no"}], self.provenance(site))

    def test_secret_itself(self) -> None:
        """A secret itself in the head is judged before the body is read; what proves it is a token."""
        site = GuardedWire(sender_named("gitlab"), {"main": b"s3cr3t"})
        sender = site.connect()
        sender.send(b"POST /in HTTP/1.1\r\nHost: a\r\nX-Gitlab-Token: wrong\r\nContent-Length: 9\r\n\r\n")
        self.assertEqual([401], sender.statuses())
        self.assertEqual(200, site.ask(post(BODY, b"/in", b"X-Gitlab-Token: s3cr3t\r\n")).status)
        self.assertEqual([("token", "main")], [(each["verified"], each["secret"]) for each in self.provenance(site)])

    def test_secret_in_query(self) -> None:
        """A secret that a query shows proves a request, and is not in its message."""
        site = GuardedWire(sender_named("huggingface"), {"main": b"s3cr3t"})
        self.assertEqual(200, site.ask(post(BODY, b"/in?secret=s3cr3t&a=1")).status)
        self.assertEqual([("token", "1")], [(each["verified"], each["query.a"]) for each in self.provenance(site)])
        self.assertNotIn("s3cr3t", str(site.messages))
        self.assertEqual(401, site.ask(post(BODY, b"/in?secret=other")).status)

    def test_odd_paths(self) -> None:
        """A group of the path that is no UTF-8 is refused as ever; one that is becomes a value."""
        site = github(pattern="/in/(?P<HOST>.*)")
        self.assertEqual(400, site.ask(post(BODY, b"/in/%ff")).status)
        self.assertEqual(200, site.ask(site.signed(BODY, "new", DELIVERY, b"/in/a%20b")).status)
        self.assertEqual(["a b"], [message["HOST"] for message in site.messages])

    def test_same_either_way(self) -> None:
        """Whether a request is usual or not makes no difference to its message."""
        messages = []
        for headers in (DELIVERY, DELIVERY.replace(b"72d", b"7 2d"), b"", DELIVERY * 2):
            for target in (b"/in", b"/in?a=1"):
                site = github()
                self.assertEqual(200, site.ask(site.signed(BODY, "new", headers, target)).status)
                (message,) = site.messages
                message.pop("webhook.query.a", None)
                messages.append((message.pop("webhook.delivery_id", None), list(message.items())))
        usual = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
        ids = [usual, usual, usual.replace("72d", "7 2d"), usual.replace("72d", "7 2d"), None, None, usual, usual]
        self.assertEqual(ids, [each for each, _ in messages])
        for _, items in messages:
            self.assertEqual(messages[0][1], items)

    def test_failing_check(self) -> None:
        """A check that raises refuses the request; it is logged."""
        for body in (BODY, b"x" * 3 * DIRECT):
            site = github()

            def fail(*args: object) -> None:
                raise ZeroDivisionError

            self.patch(site.verifier, "check", fail)
            self.patch(site.verifier, "begin", fail)
            answer = site.ask(post(body, b"/in"))
            self.assertEqual((500, []), (answer.status, site.messages))
            self.assertEqual(["A request could not be judged."], site.traffic.failures)

    def test_failing_on_head(self) -> None:
        """So does one that raises at the end of the head."""
        site = GuardedWire(sender_named("gitlab"), {"main": b"s3cr3t"})
        self.patch(site.verifier, "begin", None)
        answer = site.ask(post(BODY, b"/in", b"X-Gitlab-Token: s3cr3t\r\n"))
        self.assertEqual((500, [], 1), (answer.status, site.messages, len(site.traffic.failures)))

    def test_told_when_stored(self) -> None:
        """Who wants to know of verified requests is told once the message is stored and the answer given."""
        told: list[tuple[bytes, int]] = []
        site = github(stored=lambda body: told.append((body, len(site.messages))))
        for number, size in enumerate((len(BODY), DIRECT + 1), 1):
            body = BODY.ljust(size)
            self.assertEqual(200, site.ask(site.signed(body, "new", DELIVERY)).status)
            self.assertEqual((len(body), number), (len(told[-1][0]), told.pop()[1]))
        self.assertEqual(401, site.ask(post(BODY, b"/in", DELIVERY)).status)
        noting = github(stored=lambda body: told.append((body, 0)), must_verify=False)
        self.assertEqual(200, noting.ask(post(BODY, b"/in", DELIVERY)).status)
        site.consumer.failure = NotStored("no disk")
        self.assertEqual(503, site.ask(site.signed(BODY, "new", DELIVERY)).status)
        self.assertEqual([], told)

    def test_interface(self) -> None:
        """A request to a guarded source is a receiver."""
        verifyClass(IReceiver, GuardedRequest)

    def test_recorded(self) -> None:
        """A request is recorded before it is judged, so that a signature that fails can be tried."""
        recorded: list[bytes] = []
        site = github(record=lambda head, body: recorded.append(body))
        self.assertEqual(401, site.ask(post(BODY, b"/in")).status)
        self.assertEqual([BODY], recorded)

    def test_stock_site(self) -> None:
        """A C{Site} of C{twisted.web}'s own has the same guard."""
        site = github()
        stock = StockSite(site.root, reactor=Clock())
        for request, status in ((site.signed(BODY, "new"), b"200"), (post(BODY, b"/in"), b"401")):
            transport = StringTransport(peerAddress=IPv4Address("TCP", "192.0.2.7", 4711))
            protocol = stock.buildProtocol(transport.getPeer())
            protocol.makeConnection(transport)
            protocol.dataReceived(request)
            site.settle()
            self.assertTrue(transport.value().startswith(b"HTTP/1.1 " + status), transport.value())
        self.assertEqual(["new"], [each["secret"] for each in self.provenance(site)])


class HandshakeTests(GuardedCase):
    """Questions of senders."""

    def test_by_head(self) -> None:
        """A question by its head is answered there, whatever its body; nothing is stored."""
        site = GuardedWire(sender_named("okta"), {"main": b"s3cr3t"})
        answer = site.ask(get(b"/in", b"X-Okta-Verification-Challenge: abc-1\r\n"))
        self.assertEqual((200, {"verification": "abc-1"}), (answer.status, json.loads(answer.body)))
        self.assertEqual(([], [("guarded", "verification")]), (site.messages, site.traffic.questions))
        self.assertEqual(([], []), (site.traffic.answers, site.traffic.acceptances))

    def test_methods(self) -> None:
        """Other methods are refused, with those that the path takes; a path of no such sender takes POST."""
        site = GuardedWire(sender_named("okta"), {"main": b"s3cr3t"})
        for method in (b"PUT", b"OPTIONS", b"GET"):
            answer = site.ask(get(b"/in", method=method))
            self.assertEqual((405, "GET, POST"), (answer.status, answer.headers["allow"]), method)
        site = github()
        self.assertEqual("POST", site.ask(get(b"/in")).headers["allow"])

    def test_by_body(self) -> None:
        """A signed question in a body is answered and not stored; without a signature it is refused."""
        body = b'{"type":"url_verification","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}'
        site = slack()
        answer = site.ask(site.signed(body, "main"))
        self.assertEqual((200, json.loads(body)["challenge"]), (answer.status, json.loads(answer.body)["challenge"]))
        self.assertEqual(([], [("guarded", "url_verification")]), (site.messages, site.traffic.questions))
        site = slack()
        self.assert_refused(site, site.ask(post(body, b"/in")), 401, "signature_missing")

    def test_too_many(self) -> None:
        """Ten questions a second are answered, and then refused for a while."""
        site = GuardedWire(sender_named("okta"), {"main": b"s3cr3t"})
        asked = get(b"/in", b"X-Okta-Verification-Challenge: abc-1\r\n")
        answers = [site.ask(asked) for _ in range(11)]
        self.assertEqual([200] * 10 + [429], [answer.status for answer in answers])
        self.assertEqual("1", answers[-1].headers["retry-after"])
        site.advance(1)
        self.assertEqual(200, site.ask(asked).status)


class AnswerTests(GuardedCase):
    """Answers as senders need them."""

    KEY = b"X-Amz-Firehose-Access-Key: s3cr3t\r\nX-Amz-Firehose-Request-Id: r-1\r\n"

    def firehose(self, **options: Any) -> GuardedWire:
        """Return a site that hears Firehose alone."""
        return GuardedWire(sender_named("aws-firehose"), {"main": b"s3cr3t"}, **options)

    def test_stored(self) -> None:
        """A stored message is answered as its sender needs it, once it is safe."""
        site = self.firehose()
        site.consumer.hold()
        sender = site.connect()
        sender.send(post(b'{"requestId":"r-1","records":[]}', b"/in", self.KEY))
        self.assertEqual([], sender.responses())
        site.consumer.acknowledge_all()
        (answer,) = sender.responses()
        self.assertEqual({"requestId": "r-1", "timestamp": NOW * 1000}, json.loads(answer.body))
        self.assertEqual(1, len(site.traffic.answers))

    def test_no_content(self) -> None:
        """Some want 204 without a body."""
        site = GuardedWire(sender_named("loki-push"))
        answer = site.ask(post(b'{"streams":[{"stream":{},"values":[["1","a"]]}]}', b"/in"))
        self.assertEqual((204, b"", 1), (answer.status, answer.body, len(site.messages)))

    def test_impossible(self) -> None:
        """When the answer can't be made, the request is refused before anything is stored."""
        site = self.firehose()
        answer = site.ask(post(b'{"records":[]}', b"/in", self.KEY))
        self.assertEqual((400, []), (answer.status, site.messages))
        self.assertEqual([("guarded", "bad_payload")], site.traffic.refused_by)

    def test_refused(self) -> None:
        """A refusal is in the sender's words too, whatever refuses: the guard, the queue, the observers, a deadline."""
        message = post(b'{"requestId":"r-1","records":[]}', b"/in", self.KEY)
        cases = []
        site = self.firehose()
        cases.append((401, "bad_signature", site.ask(message.replace(b"s3cr3t", b"wrong!"))))
        site.consumer.is_full = True
        cases.append((503, "no_room", site.ask(message)))
        site = self.firehose()
        site.consumer.failure = NotStored("disk full")
        cases.append((503, "not_stored", site.ask(message)))
        site = self.firehose()
        site.consumer.hold()
        sender = site.connect()
        sender.send(message)
        site.advance(31)
        cases.append((503, "not_stored", sender.responses()[0]))
        for status, reason, answer in cases:
            self.assertEqual((status, "application/json"), (answer.status, answer.headers["content-type"]))
            said = json.loads(answer.body)
            self.assertEqual("r-1", said["requestId"])
            self.assertTrue(said["errorMessage"].startswith(reason), said)


class IdempotencyTests(GuardedCase):
    """Deliveries that come again."""

    def github(self, **options: Any) -> GuardedWire:
        """Return a site that remembers deliveries."""
        return github(window=3600.0, **options)

    def test_again(self) -> None:
        """A delivery that was stored is answered, counted and not stored again."""
        site = self.github()
        request = site.signed(BODY, "new", DELIVERY)
        self.assertEqual(b'{"status":"received"}', site.ask(request).body)
        answer = site.ask(request)
        self.assertEqual((200, b'{"status":"received","duplicate":true}'), (answer.status, answer.body))
        self.assertEqual((1, ["guarded"]), (len(site.messages), site.traffic.duplicates))
        self.assertEqual((1, 1), (len(site.traffic.acceptances), len(site.traffic.answers)))

    def test_own_answer(self) -> None:
        """With an answer of its own, the sender gets that again."""
        site = GuardedWire(sender_named("aws-firehose"), {"main": b"s3cr3t"}, window=60.0)
        request = post(b'{"requestId":"r-1","records":[]}', b"/in", AnswerTests.KEY)
        self.assertEqual(site.ask(request).body, site.ask(request).body)
        self.assertEqual(1, len(site.messages))

    def test_two_at_once(self) -> None:
        """Two of one delivery at once are one message and two answers of 200."""
        site = self.github()
        site.consumer.hold()
        first, second = site.connect(), site.connect()
        first.send(site.signed(BODY, "new", DELIVERY))
        second.send(site.signed(BODY, "old", DELIVERY))
        self.assertEqual(([], []), (first.responses(), second.responses()))
        site.consumer.acknowledge_all()
        self.assertEqual(([200], [200]), (first.statuses(), second.statuses()))
        self.assertEqual((1, ["guarded"], [True]), (len(site.messages), site.traffic.duplicates, site.window.settled))
        self.assertEqual(0, site.consumer.budget.bytes)

    def test_first_fails(self) -> None:
        """When the first of two is not stored, the second has its turn; nothing is remembered of the first."""
        site = self.github()
        site.consumer.hold()
        first, second = site.connect(), site.connect()
        for sender in (first, second):
            sender.send(site.signed(BODY, "new", DELIVERY))
        site.consumer.acknowledge_all(NotStored("disk full"))
        self.assertEqual(([503], []), (first.statuses(), second.statuses()))
        site.consumer.failure = None
        site.settle()
        self.assertEqual([200], second.statuses())
        self.assertEqual([False, True], site.window.settled)

    def test_second_leaves(self) -> None:
        """A sender that has gone while it waited leaves nothing behind, and nothing claimed."""
        site = self.github()
        site.consumer.hold()
        first, second = site.connect(), site.connect()
        for sender in (first, second):
            sender.send(site.signed(BODY, "new", DELIVERY))
        second.leave()
        site.consumer.acknowledge_all(NotStored("disk full"))
        self.assertEqual(([False, False], {}), (site.window.settled, site.window.under_way))
        self.assertEqual(0, site.consumer.budget.bytes)

    def test_refused(self) -> None:
        """What is refused is not remembered: by the signature before it is looked up, by the queue after."""
        site = self.github()
        request = site.signed(BODY, "new", DELIVERY)
        self.assertEqual(401, site.ask(request.replace(b"awesome", b"hostile")).status)
        self.assertEqual([], site.window.settled)
        room = site.consumer.has_room
        self.patch(site.consumer, "has_room", lambda size, small: True)
        site.consumer.is_full = True
        self.assertEqual(503, site.ask(request).status)
        site.consumer.is_full = False
        self.patch(site.consumer, "has_room", room)
        self.assertEqual(200, site.ask(request).status)
        self.assertEqual([False, True], site.window.settled)

    def test_failing_judge(self) -> None:
        """When a request can't be judged after all, its claim is given up, and it is refused."""

        def fail(*args: object) -> None:
            raise ZeroDivisionError

        for body in (BODY, b'{"a":"' + b"x" * 2 * DIRECT + b'"}'):
            site = self.github(resource={"judge": fail})
            answer = site.ask(site.signed(body, "new", DELIVERY))
            self.assertEqual((500, [False]), (answer.status, site.window.settled))

    def test_failing_counts(self) -> None:
        """Whatever raises once a delivery is claimed, the claim is given up and the request refused."""

        def fail(*args: object) -> None:
            raise ZeroDivisionError

        for body in (BODY, b'{"a":"' + b"x" * 2 * DIRECT + b'"}'):
            site = self.github()
            self.patch(site.consumer, "write", fail)
            answer = site.ask(site.signed(body, "new", DELIVERY))
            self.assertEqual((500, [False], {}), (answer.status, site.window.settled, site.window.under_way))
            self.assertEqual(["A request could not be judged."], site.traffic.failures)

    def test_unverified(self) -> None:
        """Without a signature, only the same body is the same delivery: nobody can make another's message vanish."""
        site = github(window=3600.0, must_verify=False)
        forged = post(b'{"forged":1}', b"/in", DELIVERY)
        for request, count in ((forged, 1), (site.signed(BODY, "new", DELIVERY), 2), (forged, 2)):
            self.assertEqual(200, site.ask(request).status)
            self.assertEqual(count, len(site.messages))

    def test_unsigned_id(self) -> None:
        """An id that no signature covers can't be put on a captured request to have the genuine one taken for known."""
        site = self.github()
        captured = site.signed(b'{"captured":1}', "new", DELIVERY)
        genuine = site.signed(BODY, "new", DELIVERY)
        for request, count in ((captured, 1), (genuine, 2), (genuine, 2), (captured, 2)):
            self.assertEqual(200, site.ask(request).status)
            self.assertEqual(count, len(site.messages))

    def test_signed_id(self) -> None:
        """An id that the signature covers is enough, whatever else has changed."""
        site = GuardedWire(sender_named("slack"), {"main": b"s3cr3t"}, window=3600.0)
        for body, count in ((b'{"event_id":"Ev1","a":1}', 1), (b'{"event_id":"Ev1","a":2}', 1), (BODY, 2)):
            self.assertEqual(200, site.ask(site.signed(body, "main")).status)
            self.assertEqual(count, len(site.messages))

    def test_proof_counts(self) -> None:
        """What a stranger sends under the id and with the body of another is not what the sender proves."""
        site = github(window=3600.0, must_verify=False)
        for request in (post(BODY, b"/in", DELIVERY), site.signed(BODY, "new", DELIVERY)):
            self.assertEqual(200, site.ask(request).status)
        self.assertEqual(["no", "signature"], [each["verified"] for each in self.provenance(site)])

    def test_no_id(self) -> None:
        """Without an id, each request is a message."""
        site = self.github()
        for _ in range(2):
            self.assertEqual(200, site.ask(site.signed(BODY, "new")).status)
        self.assertEqual((2, []), (len(site.messages), site.window.settled))


class SplitTests(GuardedCase):
    """Bodies with several events."""

    BODY = b'{"status":"firing","receiver":"r","alerts":[{"labels":{"a":"1"}},{"labels":{"a":"2"}}]}'

    def test_events(self) -> None:
        """Each event is a message, with its place and what stood around; they are answered together."""
        site = GuardedWire(sender_named("alertmanager"), split="yes")
        self.assertEqual(200, site.ask(post(self.BODY, b"/in")).status)
        envelope = '{"status":"firing","receiver":"r"}'
        self.assertEqual(
            [("1", 1, 2, envelope, "id-1-1"), ("2", 2, 2, envelope, "id-1-2")],
            [
                (
                    message["labels.a"],
                    *(message["webhook.batch." + name] for name in ("index", "count", "envelope")),
                    message["RCPTID"],
                )
                for message in site.messages
            ],
        )
        ((_, judged, size),) = site.traffic.bundles
        self.assertEqual((2, len(self.BODY), 1), (judged.events, size, len(site.traffic.answers)))

    def test_nothing_in_it(self) -> None:
        """A body without events is answered, and becomes no message; the delivery is remembered."""
        site = GuardedWire(sender_named("okta"), {"main": b"s3cr3t"}, split="yes", window=60.0)
        request = post(b'{"eventId":"e-1","data":{"events":[]}}', b"/in", b"Authorization: s3cr3t\r\n")
        self.assertEqual((204, 204), (site.ask(request).status, site.ask(request).status))
        self.assertEqual(([], [True], ["guarded"]), (site.messages, site.window.settled, site.traffic.duplicates))

    def test_all_or_none(self) -> None:
        """If one event can't be stored or finds no room, the answer is one refusal for all."""

        def no_room(*args: object) -> None:
            raise NoRoom

        site = GuardedWire(sender_named("alertmanager"), split="yes")
        site.consumer.failure = NotStored("disk full")
        self.assertEqual(503, site.ask(post(self.BODY, b"/in")).status)
        site = GuardedWire(sender_named("alertmanager"), split="yes")
        self.patch(site.consumer, "write_all", no_room)
        self.assertEqual((503, []), (site.ask(post(self.BODY, b"/in")).status, site.messages))

    def test_too_many(self) -> None:
        """More than 10,000 events are refused."""
        site = GuardedWire(split="/*")
        answer = site.ask(post(b"[" + b",".join([b"{}"] * 10_001) + b"]", b"/in"))
        self.assert_refused(site, answer, 413, "too_many_events")


class AccessTests(GuardedCase):
    """Who may come."""

    def test_tokens(self) -> None:
        """A token is named in messages and counts, and is in none of their values, wherever it stands."""
        cases = [
            ("header:authorization", b"/in", b"Authorization: Bearer s3cr3t\r\n"),
            ("header:x-token", b"/in", b"X-Token: s3cr3t\r\n"),
            ("query:token", b"/in?a=1&token=s3cr3t", b""),
            ("path:KEY", b"/in/s3cr3t", b""),
        ]
        for place, target, headers in cases:
            rules = {"include_request_headers": True}
            site = GuardedWire(tokens=tokens(place, edge=b"s3cr3t"), pattern="/in(/(?P<KEY>.*))?", rules=rules)
            answer = site.ask(post(BODY, target, headers))
            self.assertEqual(200, answer.status, place)
            (message,) = site.messages
            self.assertEqual(("edge", "token"), (message["webhook.token"], message["webhook.verified"]))
            self.assertNotIn("s3cr3t", str(message))
            self.assertEqual([("guarded", "edge")], site.traffic.shown_tokens)
            wrong = site.ask(post(BODY, target.replace(b"s3cr3t", b"other"), headers.replace(b"s3cr3t", b"other")))
            self.assertEqual(403, wrong.status, place)

    def test_address(self) -> None:
        """Only listed addresses may come; the trusted proxy header says which one it is."""
        allow = AllowList({"192.0.2.0/24": [parse_network("192.0.2.0/24")]})
        site = GuardedWire(allow=allow, rules={"proxy_header": "x-real-ip"})
        self.assertEqual(200, site.ask(post(BODY, b"/in")).status)
        self.assertEqual(200, site.ask(post(BODY, b"/in", b"X-Real-IP: 192.0.2.9\r\n"), peer="198.51.100.1").status)
        answer = site.ask(post(BODY, b"/in", b"X-Real-IP: 198.51.100.1\r\n"))
        self.assertEqual((403, "address_not_allowed"), (answer.status, json.loads(answer.body)["reason"]))
        self.assertEqual(403, site.ask(post(BODY, b"/in"), peer="198.51.100.1").status)

    def test_client(self) -> None:
        """Only listed client certificates may come, and what they say is in messages."""
        site = GuardedWire(clients=ClientPatterns(["*.shippers.example"]))
        self.assertEqual(403, site.ask(post(BODY, b"/in")).status)
        for name, status in (("a.shippers.example", 200), ("a.example", 403)):
            sender = site.connect(secure=True)
            client = ClientIdentity("", (name,), "CN=CA", "00" * 32 if status == 200 else "11" * 32)
            sender.protocol.peer = type(sender.protocol.peer)("192.0.2.7", 40000, True, client)
            sender.send(post(BODY, b"/in"))
            site.settle()
            self.assertEqual([status], sender.statuses())
        self.assertEqual(
            [("client", ["a.shippers.example"])],
            [(each["verified"], each["client.san"]) for each in self.provenance(site)],
        )

    def test_order(self) -> None:
        """The address comes first, then the client, the method, the token, the quota, and the rest of the head."""
        parts = {
            "allow": AllowList({"192.0.2.0/24": [parse_network("192.0.2.0/24")]}),
            "tokens": tokens("header:authorization", edge=b"s3cr3t"),
            "quota": SourceQuota(messages=1.0, burst=1.0),
            "buckets": Buckets(bytearray(BUCKETS_SIZE)),
        }
        site = GuardedWire(**parts)
        right = b"Authorization: Bearer s3cr3t\r\n"
        odd = b"Content-Encoding: odd\r\n"
        for peer, method, headers, reason in (
            ("198.51.100.1", b"PUT", odd, "address_not_allowed"),
            ("192.0.2.7", b"PUT", odd, "method_not_allowed"),
            ("192.0.2.7", b"POST", odd, "bad_token"),
            ("192.0.2.7", b"POST", right + odd, "unsupported_encoding"),
            ("192.0.2.7", b"POST", right + odd, "over_quota"),
        ):
            answer = site.ask(post(BODY, b"/in", headers).replace(b"POST", method, 1), peer=peer)
            self.assertEqual(reason, json.loads(answer.body)["reason"])

    def test_quota(self) -> None:
        """A body is charged by its announced size before it is read; a chunked one while it comes."""
        parts = {"quota": SourceQuota(bytes=10.0, burst=10.0), "buckets": Buckets(bytearray(BUCKETS_SIZE))}
        site = GuardedWire(**parts)
        self.assertEqual(200, site.ask(post(b"x" * 60, b"/in")).status)
        sender = site.connect()
        sender.send(b"POST /in HTTP/1.1\r\nHost: a\r\nContent-Length: 60\r\n\r\n")
        (answer,) = sender.responses()
        self.assertEqual((429, "2"), (answer.status, answer.headers["retry-after"]))
        self.assertEqual("over_quota", json.loads(answer.body)["reason"])
        sender = site.connect()
        sender.send(b"POST /in HTTP/1.1\r\nHost: a\r\n" + CHUNKED + b"\r\n28\r\n" + b"x" * 40 + b"\r\n")
        self.assertEqual([], sender.responses())
        sender.send(b"28\r\n" + b"x" * 40 + b"\r\n")
        (answer,) = sender.responses()
        self.assertEqual((429, "close"), (answer.status, answer.headers["connection"]))
        self.assertIn("retry-after", answer.headers)
        self.assertEqual(1, len(site.messages))
        self.assertEqual(["over_quota"] * 2, site.traffic.reasons)
