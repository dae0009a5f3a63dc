"""
Tests for L{webhookrx.intake.judge}.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from functools import partial
from random import Random
from typing import Any
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake import header_masking as recorded_headers
from webhookrx.intake.head import Head, HeaderLines, Peer
from webhookrx.intake.judge import (
    Accepted,
    Admission,
    Receipt,
    Refused,
    SourceRules,
    admission_of_path,
    admit,
    admit_by_path,
    base64_text,
    judge,
    unpacked,
)
from webhookrx.message.encoders import encode_line
from webhookrx.message.macros import is_hard_macro, isodate
from webhookrx.yield_point import PIECE, pause_by

RECEIPT = Receipt(1_767_323_045_678_901_234, "id-1")

PEER = Peer("192.0.2.7", 1, False)


def make_head(
    *headers: tuple[bytes, bytes],
    method: bytes = b"POST",
    query: bytes = b"",
    peer: tuple[str, int | None] = ("192.0.2.7", 40000),
    secure: bool = False,
) -> Head:
    """Return a head with those headers."""
    return Head(method, b"/in", query, list(headers), Peer(*peer, secure))


def make_rules(**options: Any) -> SourceRules:
    """Return rules that differ from the defaults by those options."""
    return SourceRules(**{"name": "default", "parse_json": False, "body_limit": 1000, "unpack_ratio": 100, **options})


class IntakeTestCase(SynchronousTestCase):
    """Judges whole requests."""

    def judge(
        self, body: bytes = b"", head: Head | None = None, groups: dict[str, bytes] | None = None, **options: Any
    ) -> Accepted | Refused:
        """Admit and judge a request."""
        head = head or make_head()
        admission = admit(head, make_rules(**options), groups or {})
        if isinstance(admission, Refused):
            return admission
        plain = unpacked(admission, body)
        return plain if isinstance(plain, Refused) else judge(head, admission, plain, RECEIPT)

    def accept(self, *args: Any, **options: Any) -> dict[str, Any]:
        """Judge a request that is accepted and return its values as they come out of a JSON line."""
        verdict = self.judge(*args, **options)
        assert isinstance(verdict, Accepted), verdict
        values: dict[str, Any] = json.loads(encode_line(verdict.message))
        return values

    def reason(self, *args: Any, **options: Any) -> str:
        """Judge a request that is refused and return why."""
        verdict = self.judge(*args, **options)
        assert isinstance(verdict, Refused), verdict
        self.assertEqual("default", verdict.source)
        return verdict.reason.word


class AdmitTests(IntakeTestCase):
    """Decisions at the end of the head."""

    def test_order(self) -> None:
        """Method comes before token, token before what the rest of the head says."""
        rules = make_rules(auth_tokens=(b"t",))
        bad_encoding = (b"content-encoding", b"x")
        token = (b"authorization", b"Bearer t")
        for head, reason in (
            (make_head(bad_encoding, method=b"PUT"), "method_not_allowed"),
            (make_head(bad_encoding), "bad_token"),
            (make_head(token, bad_encoding), "unsupported_encoding"),
            (make_head(token, query=b"%ff"), "bad_encoding"),
        ):
            verdict = admit(head, rules, {})
            assert isinstance(verdict, Refused)
            self.assertEqual(reason, verdict.reason.word)
        self.assertIsInstance(admit(make_head(token), rules, {}), Admission)

    def test_bad_group(self) -> None:
        """Captured text that is not UTF-8 is refused, only after the token."""
        self.assertEqual("bad_encoding", self.reason(groups={"HOST": b"%ff"}))
        self.assertEqual("bad_token", self.reason(groups={"HOST": b"%ff"}, auth_tokens=(b"t",)))

    def test_shared_admission(self) -> None:
        """Heads with nothing but their path share an admission, and what another one has does not get into it."""
        rules = make_rules()
        by_path = admission_of_path(rules, {"HOST": b"a%20b"})
        assert isinstance(by_path, Admission)
        for head in (make_head(), make_head(query=b""), make_head((b"content-type", b"x"))):
            self.assertIs(by_path, admit_by_path(head, rules, by_path))
        both = make_head((b"content-encoding", b"gzip"), query=b"q=1")
        admission = admit_by_path(both, rules, by_path)
        assert isinstance(admission, Admission)
        self.assertEqual(({"q": "1"}, [b"gzip"]), (admission.query, admission.encodings))
        self.assertEqual([{"HOST": "a b"}] * 2, [admission.groups, by_path.groups])
        self.assertEqual(({}, []), (by_path.query, by_path.encodings))
        self.assertEqual("bad_encoding", self.reason(head=make_head(query=b"%ff")))

    def test_refused_by_path(self) -> None:
        """A path that is not UTF-8 is refused after method, token and encodings, and before the query."""
        rules = make_rules(auth_tokens=(b"t",))
        by_path = admission_of_path(rules, {"HOST": b"%ff"})
        token, bad = (b"authorization", b"Bearer t"), (b"content-encoding", b"x")
        many = b"&a" * 1001
        for head, reason in (
            (make_head(token, bad, method=b"PUT"), "method_not_allowed"),
            (make_head(bad), "bad_token"),
            (make_head(token, bad, query=many), "unsupported_encoding"),
            (make_head(token, query=many), "bad_encoding"),
            (make_head(token), "bad_encoding"),
        ):
            verdict = admit_by_path(head, rules, by_path)
            assert isinstance(verdict, Refused)
            self.assertEqual((reason, "default"), (verdict.reason.word, verdict.source))

    def test_notable(self) -> None:
        """What was picked out of the head before is not looked for again; other headers are."""
        lines = [(b"authorization", b"Bearer t"), (b"x-real-ip", b"203.0.113.9"), (b"x-real-ip", b"203.0.113.8")]
        found = Head(b"POST", b"/in", b"", lines, Peer("192.0.2.7", 40000, False), {b"authorization": [b"Bearer t"]})
        for head in (found, make_head(*lines)):
            self.assertEqual(
                ([b"Bearer t"], [], [b"203.0.113.9", b"203.0.113.8"]),
                tuple(map(head.values, (b"authorization", b"content-encoding", b"x-real-ip"))),
            )


class RawMessageTests(IntakeTestCase):
    """Messages of C{webhook}."""

    def test_all_of_it(self) -> None:
        """A message has the body as it is, and what the receiver saw."""
        self.assertEqual(
            {
                "ISODATE": isodate(RECEIPT.received),
                "HOST": "192.0.2.7",
                "MESSAGE": '{"a":\r\n1}',
                "SOURCE": "default",
                "SOURCEIP": "192.0.2.7",
                "SOURCEPORT": 40000,
                "TRANSPORT": "http",
                "RAWMSG_SIZE": 9,
                "TAGS": ".source.default",
                "RCPTID": "id-1",
            },
            self.accept(b'{"a":\r\n1}'),
        )

    def test_bodies(self) -> None:
        """No body is dropped or changed; what is not UTF-8 is there exactly beside its escapes."""
        for body, message, exact in (
            (b"", "", None),
            (b"a\x00b", "a\x00b", None),
            ("é\u2028".encode(), "é\u2028", None),
            (b"a\xffb", "a\ufffdb", "Yf9i"),
        ):
            values = self.accept(body)
            self.assertEqual((message, exact), (values["MESSAGE"], values.get("webhook.body_base64")))

    def test_turns_of_others(self) -> None:
        """A long body lets others have their turn after each piece, also once it is Base64; a short one needs not."""
        for size, turns in ((100, 0), (5 * PIECE, 6)):
            taken: list[None] = []
            pause_by(partial(taken.append, None))
            try:
                base64_text(bytes(size))
            finally:
                pause_by(lambda: None)
            self.assertEqual(turns, len(taken))

    def test_long_body(self) -> None:
        """However long a body is that is not UTF-8, its Base64 is that of all of it."""
        for size in (PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 2):
            body = Random(size).randbytes(size)
            values = self.accept(body, body_limit=size)
            self.assertEqual(b64encode(body).decode(), values["webhook.body_base64"])

    def test_unpacked(self) -> None:
        """The message is the unpacked body, and so is its size."""
        values = self.accept(gzip.compress(b"hello"), make_head((b"content-encoding", b"gzip")))
        self.assertEqual(("hello", 5), (values["MESSAGE"], values["RAWMSG_SIZE"]))

    def test_nothing_left_out(self) -> None:
        """A body that is not taken apart leaves nothing out, nor does one that says nothing that is ours."""
        for body, parse_json in ((b'{"TAGS":1}', False), (b'{"a":1}', True), (b"text", True)):
            verdict = self.judge(body, parse_json=parse_json)
            assert isinstance(verdict, Accepted)
            self.assertEqual(0, verdict.left_out)
        self.assertEqual((0, ()), (Accepted(verdict.message).left_out, Accepted(verdict.message).notes))

    def test_unpacking_fails(self) -> None:
        """A body that does not unpack, or unpacks to too much, is refused."""
        head = make_head((b"content-encoding", b"gzip"))
        self.assertEqual("bad_compression", self.reason(b"x", head))
        self.assertEqual("body_too_large", self.reason(gzip.compress(b"x" * 1001), head))

    def test_query(self) -> None:
        """Query parameters are pairs; a repeated one is a list."""
        values = self.accept(head=make_head(query=b"a=1&b=x+y%C3%A9&b=&c"))
        self.assertEqual(("1", ["x yé", ""], ""), tuple(values[f"webhook.query.{name}"] for name in ("a", "b", "c")))

    def test_groups(self) -> None:
        """Path groups set what they name, soft macros too; an empty HOST is none."""
        values = self.accept(b"body", groups={"HOST": b"h%2F1", "MESSAGE": b"m", "site": b""})
        self.assertEqual(("h/1", "m", ""), (values["HOST"], values["MESSAGE"], values["site"]))
        self.assertEqual("192.0.2.7", self.accept(groups={"HOST": b""})["HOST"])

    def test_headers(self) -> None:
        """Headers are recorded when asked for: spelled as people do, all values, credentials masked."""
        head = make_head(
            (b"x-github-event", b"push"),
            (b"x-a", b"1"),
            (b"x-a", "é".encode()),
            (b"x-b", b"\xe9"),
            (b"authorization", b"Bearer CANARY"),
            (b"cookie", b"CANARY"),
            (b"x-gitlab-token", b"CANARY"),
        )
        self.assertEqual(
            {
                "X-Github-Event": ["push"],
                "X-A": ["1", "é"],
                "X-B": ["é"],
                "Authorization": ["***"],
                "Cookie": ["***"],
                "X-Gitlab-Token": ["***"],
            },
            self.accept(head=head, include_request_headers=True)["webhook.headers"],
        )
        self.assertNotIn("webhook.headers", self.accept(head=head))

    def test_headers_of_a_block(self) -> None:
        """It makes no difference to them how a head keeps its lines, and whether they are plain."""
        for lines in (
            [],
            [b"x-GitHub-event: push", b"AUTHORIZATION:CANARY", b"X-Token:\tCANARY ", b"A:", b'B: : \t"b" ,c  '],
            [b"X-A: 1", b"Cookie: CANARY", b"x-a: 2", b"COOKIE: CANARY"],
            ["X-A: é".encode(), b"X-B: \xe9", b"X-Api-Key: \xe9", b"X-B: b"],
        ):
            headers = HeaderLines(b"\r\n".join([b"POST /host:b HTTP/1.1", b"Host: a", *lines, b"", b""]))
            recorded = [
                self.accept(head=Head(b"POST", b"/", b"", given, PEER), include_request_headers=True)["webhook.headers"]
                for given in (headers, list(headers))
            ]
            self.assertEqual(*map(list, recorded))
            self.assertEqual(*recorded)
            self.assertEqual(len({line.split(b":")[0].lower() for line in lines}) + 1, len(recorded[0]))
            self.assertNotIn("CANARY", str(recorded))

    def test_headers_at_once(self) -> None:
        """Where lines are plain and no name is repeated they are not looked at one by one as bytes."""
        head = Head(
            b"POST",
            b"/",
            b"",
            HeaderLines(b"POST / HTTP/1.1\r\nHost: a\r\nX-B: b\r\n\r\n"),
            PEER,
            {},
        )
        with mock.patch.object(HeaderLines, "__iter__", side_effect=AssertionError):
            values = self.accept(head=head, include_request_headers=True)
        self.assertEqual({"Host": ["a"], "X-B": ["b"]}, values["webhook.headers"])

    def test_names_are_kept(self) -> None:
        """A name of up to 64 bytes is looked at once and kept, until there are 1024; then it begins anew."""
        names = recorded_headers._NAMES
        names.clear()
        self.addCleanup(names.clear)
        for number in range(1024):
            self.assertEqual((f"X-{number}", False, False), names[f"x-{number}"])
        self.assertEqual(1024, len(names))
        self.assertEqual(("X" + "x" * 64, False, False), names["x" * 65])
        self.assertEqual(1024, len(names))
        self.assertEqual(("X" + "x" * 63, False, False), names["x" * 64])
        self.assertEqual(["x" * 64], list(names))

    def test_made_up_headers(self) -> None:
        """Names that a sender makes up take no memory for long, and each is spelled and judged all the same."""
        for number in range(3000):
            made_up = f"x-{number}-token".encode()
            values = self.accept(head=make_head((made_up, b"1"), (b"y" * 65, b"2")), include_request_headers=True)
            expected = {f"X-{number}-Token": ["***"], "Y" + "y" * 64: ["2"]}
            self.assertEqual(expected, values["webhook.headers"])
        self.assertLessEqual(len(recorded_headers._NAMES), 1024)
        self.assertNotIn("y" * 65, recorded_headers._NAMES)

    def test_credentials(self) -> None:
        """Whatever a header with credentials is called, its value is not recorded; others are."""
        for name in (
            "Authorization",
            "Proxy-Authorization",
            "X-Original-Authorization",
            "Authentication",
            "X-Auth",
            "X-Auth-User",
            "X-Auth-Email",
            "Auth-User",
            "Auth",
            "Cookie",
            "Set-Cookie",
            "Token",
            "X-Token",
            "Private-Token",
            "X-Splunk-Token",
            "X-Csrf-Token",
            "X-Api-Key",
            "DD-API-KEY",
            "ApiKey",
            "Ocp-Apim-Subscription-Key",
            "X-Webhook-Secret",
            "Password",
            "X-Session-Id",
            "X-Goog-Iap-Jwt-Assertion",
            "X-Amz-Credential",
            "X-Hub-Signature-256",
            "X-Shopify-Hmac-Sha256",
        ):
            head = make_head((name.lower().encode(), b"CANARY"))
            values = self.accept(head=head, include_request_headers=True)["webhook.headers"]
            self.assertEqual([["***"]], list(values.values()), name)
            block = HeaderLines(b"POST / HTTP/1.1\r\n%b: CANARY\r\n\r\n" % name.encode())
            head = Head(b"POST", b"/", b"", block, PEER)
            values = self.accept(head=head, include_request_headers=True)["webhook.headers"]
            self.assertEqual([["***"]], list(values.values()), name)
        for name in (
            "X-Author",
            "X-Designated",
            "X-Github-Event",
            "Host",
            "User-Agent",
            "Content-Type",
            "X-Key",
        ):
            head = make_head((name.lower().encode(), b"shown"))
            values = self.accept(head=head, include_request_headers=True)["webhook.headers"]
            self.assertEqual({name: ["shown"]}, values)

    def test_transport(self) -> None:
        """TLS shows, and a UNIX socket has no port."""
        values = self.accept(head=make_head(peer=("127.0.0.1", None), secure=True))
        self.assertEqual(("https", "127.0.0.1"), (values["TRANSPORT"], values["SOURCEIP"]))
        self.assertNotIn("SOURCEPORT", values)


class ProxyHeaderTests(IntakeTestCase):
    """Who the sender is behind a proxy."""

    def test_table(self) -> None:
        """The trusted header, and no other, says who; the connection's peer is kept beside."""
        for headers, expected in (
            ([], ("192.0.2.7", 40000)),
            ([(b"x-real-ip", b"203.0.113.9")], ("192.0.2.7", 40000)),
            ([(b"x-forwarded-for", b"198.51.100.1, 203.0.113.9")], ("203.0.113.9", None)),
            ([(b"x-forwarded-for", b"203.0.113.9:81")], ("203.0.113.9", 81)),
            ([(b"x-forwarded-for", b"unknown")], ("192.0.2.7", 40000)),
        ):
            values = self.accept(head=make_head(*headers), proxy_header="x-forwarded-for")
            self.assertEqual(expected, (values["SOURCEIP"], values.get("SOURCEPORT")), headers)
            self.assertEqual(("192.0.2.7", 40000), (values["PEERIP"], values["PEERPORT"]))
            self.assertEqual(expected[0], values["HOST"])

    def test_without_option(self) -> None:
        """Without the option no header is trusted."""
        values = self.accept(head=make_head((b"x-forwarded-for", b"203.0.113.9")))
        self.assertEqual("192.0.2.7", values["SOURCEIP"])
        self.assertNotIn("PEERIP", values)

    def test_counted(self) -> None:
        """Text that is no address is counted."""
        verdict = self.judge(head=make_head((b"f", b"nobody"), peer=("127.0.0.1", None)), proxy_header="f")
        assert isinstance(verdict, Accepted)
        self.assertEqual(("bad_proxy_header",), verdict.notes)
        self.assertNotIn("PEERPORT", verdict.message.values)


class JSONMessageTests(IntakeTestCase):
    """Messages of C{webhook-json}."""

    def accept(self, *args: Any, **options: Any) -> dict[str, Any]:
        """Judge by C{webhook-json}."""
        return super().accept(*args, **{"parse_json": True, **options})

    def test_pairs(self) -> None:
        """Members are pairs with the prefix in front; the body stays as MESSAGE unless a member replaces it."""
        body = b'{"a":{"b":1.50},"MESSAGE":"m","PROGRAM":"p","l":["x"],"n":null}'
        values = self.accept(body)
        self.assertEqual(
            (1.5, "m", "p", ["x"], None), tuple(values[name] for name in ("a.b", "MESSAGE", "PROGRAM", "l", "n"))
        )
        values = self.accept(body, prefix="p.")
        self.assertEqual((body.decode(), "m", 1.5), (values["MESSAGE"], values["p.MESSAGE"], values["p.a.b"]))

    def test_nothing_forged(self) -> None:
        """A payload can't say what the receiver saw; what it tried is left out and counted."""
        forged = {
            "SOURCEIP": "6.6.6.6",
            "PEERIP": "6.6.6.6",
            "RCPTID": "forged",
            "ISODATE": "1970",
            "TAGS": "forged",
            "TRANSPORT": "forged",
            "RAWMSG_SIZE": 6,
            "webhook": {"headers": {"X": "forged"}, "query": {"a": "forged"}, "parse_error": "x", "body_base64": "x"},
            "DATE": "forged",
        }
        body = json.dumps(forged).encode()
        head = make_head((b"x-a", b"1"), query=b"a=1")
        for options in ({}, {"proxy_header": "x-forwarded-for"}, {"include_request_headers": True}):
            verdict = self.judge(body, head, parse_json=True, **options)
            assert isinstance(verdict, Accepted)
            values = dict(verdict.message.values)
            self.assertEqual(body.decode(), values.pop("MESSAGE"))
            self.assertNotIn("forged", str(values))
            self.assertNotIn("6.6.6.6", str(values))
            self.assertEqual("1", values["webhook.query.a"])
            self.assertEqual(12, verdict.left_out)

    def test_later_wins(self) -> None:
        """A path group wins over the payload; a payload's HOST over the peer; an empty one over nothing."""
        self.assertEqual("g", self.accept(b'{"HOST":"p"}', groups={"HOST": b"g"})["HOST"])
        self.assertEqual("p", self.accept(b'{"HOST":"p"}')["HOST"])
        self.assertEqual("192.0.2.7", self.accept(b'{"HOST":""}')["HOST"])
        self.assertEqual("192.0.2.7", self.accept(b'{"HOST":null}')["HOST"])

    def test_not_json(self) -> None:
        """What is not JSON is kept, with the reason beside it, or refused if the operator said so."""
        for body in (b"", b"text", b"1", b'"s"', b"null", b'{"a":', b"\xff", b'{"a":1} x'):
            values = self.accept(body)
            self.assertEqual(body.decode("utf-8", "replace"), values["MESSAGE"])
            self.assertTrue(values["webhook.parse_error"])
            self.assertEqual("bad_payload", self.reason(body, parse_json=True, keep_unparsed=False))
        verdict = self.judge(b"text", parse_json=True)
        assert isinstance(verdict, Accepted)
        self.assertEqual(("unparsed_payload",), verdict.notes)

    def test_forms(self) -> None:
        """A form that says so becomes pairs as JSON does, by the same rules; another, and plain text, is kept."""
        form = make_head((b"content-type", b"application/x-www-form-urlencoded"))
        values = self.accept(b"a=1&HOST=h&SOURCEIP=x", form)
        self.assertEqual(
            ("a=1&HOST=h&SOURCEIP=x", "1", "h", "192.0.2.7"),
            tuple(values[name] for name in ("MESSAGE", "a", "HOST", "SOURCEIP")),
        )
        self.assertEqual("m", self.accept(b"MESSAGE=m", form)["MESSAGE"])
        values = self.accept(b"payload=%7B%22a%22%3A%7B%22b%22%3A1%7D%7D", form, prefix="p.")
        self.assertEqual((1, False), (values["p.a.b"], "webhook.parse_error" in values))
        for body, head in ((b"a=1", make_head()), (b"disk is full", form), (b"level=error msg=x", form)):
            values = self.accept(body, head)
            self.assertEqual((body.decode(), True), (values["MESSAGE"], "webhook.parse_error" in values))
            self.assertEqual("bad_payload", self.reason(body, head, parse_json=True, keep_unparsed=False))
        self.assertEqual(1, self.accept(b'{"a":1}', form)["a"])
        self.assertEqual(1, self.accept(b"{'a':1}", form)["a"])

    def test_too_large_form(self) -> None:
        """A form whose pairs would take too much is kept whole, and none of them is set."""
        form = make_head((b"content-type", b"application/x-www-form-urlencoded"))
        body = b"&".join(b"%d=x" % number for number in range(1000))
        values = self.accept(body, form, prefix="p" * 1000)
        self.assertEqual(body.decode(), values["MESSAGE"])
        self.assertIn("webhook.parse_error", values)
        self.assertFalse([name for name in values if name.startswith("p")])

    def test_no_text(self) -> None:
        """Where only unparsed bodies are kept, those that became pairs are there once; what was left out is beside."""
        for body, head in (
            (b'{"a":1}', make_head()),
            (b"[1]", make_head()),
            (b"a=1", make_head((b"content-type", b"application/x-www-form-urlencoded"))),
        ):
            values = self.accept(body, head, keep_text=False)
            self.assertEqual((False, False), ("MESSAGE" in values, "webhook.left_out" in values), body)
        self.assertEqual("m", self.accept(b'{"MESSAGE":"m"}', keep_text=False)["MESSAGE"])
        self.assertIs(None, self.accept(b'{"MSG":null}', keep_text=False)["MESSAGE"])
        values = self.accept(b"text", keep_text=False)
        self.assertEqual(("text", True), (values["MESSAGE"], "webhook.parse_error" in values))
        body = b'{"PID":1,"SOURCEIP":"x","webhook":{"left_out":{"y":1},"query":{"a":[2]}}}'
        values = self.accept(body, make_head(query=b"a=1"), keep_text=False)
        self.assertEqual(
            {"SOURCEIP": "x", "webhook.left_out": {"y": 1}, "webhook.query.a": [2]}, values["webhook.left_out"]
        )
        self.assertEqual(("1", 1, "192.0.2.7"), (values["webhook.query.a"], values["PID"], values["SOURCEIP"]))
        self.assertNotIn("webhook.left_out", self.accept(body))

    def test_two_notes(self) -> None:
        """Of one request both are counted: that it is not JSON, and that the proxy names no address."""
        verdict = self.judge(b"text", make_head((b"f", b"nobody")), parse_json=True, proxy_header="f")
        assert isinstance(verdict, Accepted)
        self.assertEqual(["bad_proxy_header", "unparsed_payload"], sorted(verdict.notes))

    def test_no_pairs_of_half_a_payload(self) -> None:
        """Of a payload that turns out to be too large, none of its pairs is set."""
        body = json.dumps({"MESSAGE": "m", "a": 1, "n" * 1000: {str(number): 0 for number in range(1000)}}).encode()
        values = self.accept(body, body_limit=10**6)
        self.assertEqual((body.decode(), None), (values["MESSAGE"], values.get("a")))
        self.assertIn("too long", values["webhook.parse_error"])

    def test_array(self) -> None:
        """A top-level array sets numbered names."""
        values = self.accept(b'[1,"two",{"a":3}]', prefix="p.")
        self.assertEqual((1, "two", {"a": 3}), (values["p.1"], values["p.2"], values["p.3"]))

    @given(
        st.dictionaries(
            st.text(max_size=8) | st.sampled_from(["SOURCEIP", "MSG", "webhook"]), st.text() | st.integers()
        ),
        st.sampled_from(["", "p.", "SOURCE", "webhook."]),
    )
    def test_facts_stand(self, payload: dict[str, Any], prefix: str) -> None:
        """Whatever a payload says, and whatever its prefix, the facts are the receiver's and the line is one line."""
        body = json.dumps(payload).encode()
        verdict = self.judge(body, parse_json=True, prefix=prefix, body_limit=10**6)
        assert isinstance(verdict, Accepted)
        line = encode_line(verdict.message)
        values = json.loads(line)
        self.assertEqual(1, len(line.decode().splitlines()))
        self.assertEqual(("192.0.2.7", 40000, "id-1"), (values["SOURCEIP"], values["SOURCEPORT"], values["RCPTID"]))
        self.assertEqual(len(body), values["RAWMSG_SIZE"])
        hard = {"ISODATE", "SOURCEIP", "SOURCEPORT", "TRANSPORT", "RAWMSG_SIZE", "TAGS", "RCPTID"}
        self.assertEqual(hard, {name for name in values if is_hard_macro(name)})

    @given(st.binary(max_size=300))
    def test_any_body(self, body: bytes) -> None:
        """Any body becomes a message whose line is one line of JSON."""
        values = self.accept(body)
        self.assertEqual(len(body), values["RAWMSG_SIZE"])
