"""
Tests for L{webhookrx.intake.tokens}.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.intake.test_token_places import head
from webhookrx.intake.token_places import token_place
from webhookrx.intake.tokens import NamedToken, TokenCheck, check_token, parse_token_file, read_tokens

ACCEPTED = [
    b"Bearer s3cr3t",
    b"bearer s3cr3t",
    b"Basic s3cr3t",
    b"Splunk s3cr3t",
    b"X-1.2~!#$%&'*+^_`| s3cr3t",
]
REFUSED = [
    b"",
    b" ",
    b"s3cr3t",
    b" s3cr3t",
    b"Bearer",
    b"Bearer ",
    b"Bearer  s3cr3t",
    b"Bearer\ts3cr3t",
    b"Bearer s3cr3t ",
    b" Bearer s3cr3t",
    b"Bearer s3cr3t x",
    b"Bearer S3CR3T",
    b"Bearer s3cr3",
    b"Bearer s3cr3tt",
    b"Bearer wrong",
    b"Bearer:s3cr3t",
    b"Be@rer s3cr3t",
    b"B\xe9arer s3cr3t",
    b"Bearer, Basic s3cr3t",
    b"Bearer s3cr3t\n",
    b"Bearer s3cr3t\0",
    b"Bearer czNjcjN0",
    b'Bearer "s3cr3t"',
    b"Bearer token=s3cr3t",
]


class TokenFileTests(SynchronousTestCase):
    def test_lines(self) -> None:
        """One token a line; comments, blank lines and white space around do not count."""
        text = "\ufeff# for the old sender\nfirst\r\n\n \t \n  second\t\n   # indented\nthird#not-a-comment\nétoile"

        self.assertEqual(
            [b"first", b"second", b"third#not-a-comment", "étoile".encode()],
            parse_token_file(text),
        )

    def test_nothing(self) -> None:
        """A file of comments has no tokens."""
        for text in ("", "\n", "# only\n#this"):
            self.assertEqual([], parse_token_file(text))

    def test_other_line_ends(self) -> None:
        """Only a line feed ends a line: a form feed or a Unicode line end inside stays, for check_token to find."""
        self.assertEqual([b"a\x0cb"], parse_token_file("a\x0cb\n"))
        self.assertEqual(["a\u2028b".encode()], parse_token_file("a\u2028b\n"))

    def test_bytes_that_are_not_utf8(self) -> None:
        """What C{surrogateescape} made of a foreign byte becomes that byte again."""
        self.assertEqual([b"caf\xe9"], parse_token_file(b"caf\xe9\n".decode("utf-8", "surrogateescape")))


class CheckTokenTests(SynchronousTestCase):
    def test_usable(self) -> None:
        """Any visible text can be a token, as bytes or text."""
        for token in ("s3cr3t", b"s3cr3t", "a#b", "étoile", b"caf\xe9", "=" * 5000):
            self.assertIsNone(check_token(token))

    def test_empty(self) -> None:
        """An empty token is a mistake."""
        for token in ("", b""):
            self.assertEqual("The token is empty.", check_token(token))

    def test_never_matches(self) -> None:
        """White space or a control character inside can never come in; the sentence does not show the token."""
        for token in ("s3cr3t x", "s3cr3t\t", b"s3cr3t\r", "s3\0cr3t", "s3cr3t\x7f", " s3cr3t"):
            problem = check_token(token)

            assert problem is not None
            self.assertIn("can ever match", problem)
            self.assertNotIn("s3", problem)


def digest(token: bytes) -> str:
    return "sha256:" + hashlib.sha256(token).hexdigest()


class ReadTokensTests(SynchronousTestCase):
    def test_lines(self) -> None:
        """A line has a name or a number, and a token or the digest of one."""
        text = f"# ours\nold = abc\ns3cr3t=\nnew = {digest(b'x')}\nsha256:{digest(b'y')[7:].upper()}\n"

        self.assertEqual(
            [
                NamedToken("old", b"abc"),
                NamedToken("3", b"s3cr3t="),
                NamedToken("new", sha256=hashlib.sha256(b"x").digest()),
                NamedToken("5", sha256=hashlib.sha256(b"y").digest()),
            ],
            read_tokens(text),
        )

    def test_basic(self) -> None:
        """For Basic a value is a user, a colon and a password, which may hold blanks and colons."""
        self.assertEqual(
            [NamedToken("a", b"user:pa ss:word"), NamedToken("2", b"user:"), NamedToken("3", sha256=b"\x01" * 32)],
            read_tokens("a = user:pa ss:word\nuser:\nsha256:" + "01" * 32, token_place("basic")),
        )
        for text in ("a = user", ":password", "a = user:pass\x01word"):
            error = self.assertRaises(ValueError, read_tokens, text, token_place("basic"))
            self.assertEqual("Line 1: It is no user:password, as basic wants it.", str(error))

    def test_mistakes(self) -> None:
        """A token that no request could show, and a digest that is none, are mistakes that quote no token."""
        for text, problem in (
            ("s3cr3t x", "white space"),
            ("a = s3cr3t x", "white space"),
            ("sha256:s3cr3t", "64 hexadecimal digits"),
            ("a = sha256:" + "0" * 63, "64 hexadecimal digits"),
            ("a = s3cr3t\na = s3cr3t", "that of line 1"),
        ):
            error = self.assertRaises(ValueError, read_tokens, text)
            self.assertIn(problem, str(error))
            self.assertIn("Line ", str(error))
            self.assertNotIn("s3cr3t", str(error))

    def test_repr(self) -> None:
        """Its representation shows neither the token nor its digest."""
        shown = repr(read_tokens(f"a = s3cr3t\n{digest(b's3cr3t')}"))
        self.assertNotIn("s3cr3t", shown)
        self.assertNotIn(digest(b"s3cr3t")[7:15], shown)
        self.assertIn("a", shown)


class NamedCheckTests(SynchronousTestCase):
    def test_names(self) -> None:
        """The name of the token that a request shows is returned, whether the token or its digest is known."""
        check = TokenCheck([NamedToken("old", b"abc"), *read_tokens(f"x\nnew = {digest(b'def')}")])
        for shown, name in ((b"abc", "old"), (b"x", "1"), (b"def", "new"), (b"", None), (b"ABC", None)):
            self.assertEqual(name, check.check(head((b"authorization", b"Bearer " + shown)), {}), shown)

    def test_digest_is_no_token(self) -> None:
        """Who knows the digest of a token alone does not come in by showing it in any form."""
        raw = hashlib.sha256(b"s3cr3t").digest()
        check = TokenCheck(read_tokens(f"a = {digest(b's3cr3t')}"), token_place("query:token"))
        for shown in (raw, raw.hex().encode(), digest(b"s3cr3t").encode(), b"sha256:" + raw):
            encoded = b"".join(b"%%%02x" % byte for byte in shown)
            self.assertIsNone(check.check(head(query=b"token=" + encoded), {}))
        self.assertEqual("a", check.check(head(query=b"token=s3cr3t"), {}))

    def test_first_name(self) -> None:
        """Of one token with two names, the first is told."""
        check = TokenCheck([NamedToken("a", b"x"), NamedToken("b", b"x"), *read_tokens(f"c = {digest(b'x')}")])
        self.assertEqual("a", check.check(head((b"authorization", b"Bearer x")), {}))

    def test_places(self) -> None:
        """A token counts at the one place where it is looked for."""
        requests = {
            "header:authorization": (head((b"authorization", b"Bearer a:b")), {}),
            "header:x-key": (head((b"x-key", b"a:b")), {}),
            "query:token": (head(query=b"token=a:b"), {}),
            "path:key": (head(), {"key": "a:b"}),
            "basic": (head((b"authorization", b"Basic " + b64encode(b"a:b"))), {}),
        }
        for text in requests:
            place = token_place(text)
            check = TokenCheck(read_tokens("n = a:b", place), place)
            for other, (request, groups) in requests.items():
                self.assertEqual("n" if other == text else None, check.check(request, groups), (text, other))

    def test_none(self) -> None:
        """Without tokens no name is told: whether one is needed is another question."""
        self.assertIsNone(TokenCheck([]).check(head((b"authorization", b"Bearer x")), {}))

    def test_empty(self) -> None:
        """Nothing shown is never a token, not even where the digest of nothing is one."""
        check = TokenCheck(read_tokens(digest(b"")), token_place("query:token"))
        self.assertIsNone(check.check(head(query=b"token="), {}))

    def test_all_are_compared(self) -> None:
        """Every token is compared once and at one length, whichever matches."""
        check = TokenCheck([*read_tokens(f"a\nb\n{digest(b'c')}\n{digest(b'd')}")])
        compared: list[tuple[int, int]] = []

        def compare(left: bytes, right: bytes) -> bool:
            compared.append((len(left), len(right)))
            return left == right

        self.patch(hmac, "compare_digest", compare)
        for shown in (b"a", b"b", b"c", b"d", b"e"):
            compared.clear()
            self.assertEqual(shown != b"e", check.check(head((b"authorization", b"x " + shown)), {}) is not None)
            self.assertEqual([(32, 32)] * 4, compared)


class TokenCheckTests(SynchronousTestCase):
    def test_accepted(self) -> None:
        """Any one scheme word, one blank and the token are accepted."""
        check = TokenCheck([b"s3cr3t"])

        for value in ACCEPTED:
            self.assertTrue(check.accepts([value]), value)

    def test_refused(self) -> None:
        """Anything else is refused."""
        check = TokenCheck([b"s3cr3t"])

        for value in REFUSED:
            self.assertFalse(check.accepts([value]), value)

    def test_one_header(self) -> None:
        """No Authorization line is refused, and so are two, even when both are right."""
        check = TokenCheck([b"s3cr3t"])

        self.assertFalse(check.accepts([]))
        self.assertFalse(check.accepts([b"Bearer s3cr3t", b"Bearer s3cr3t"]))

    def test_several(self) -> None:
        """Each of several tokens is accepted, whichever place it has."""
        check = TokenCheck([b"old", b"new", b"newest"])

        for token in (b"old", b"new", b"newest"):
            self.assertTrue(check.accepts([b"Bearer " + token]))
        self.assertFalse(check.accepts([b"Bearer oldnew"]))

    def test_none_configured(self) -> None:
        """Without a token everything is accepted."""
        check = TokenCheck([])

        for values in ([], [b""], [b"Bearer x"], [b"Bearer x", b"Basic y"]):
            self.assertTrue(check.accepts(values))

    def test_tokens_that_never_match(self) -> None:
        """An empty token, or one with a blank, lets nobody in."""
        check = TokenCheck([b"", b"a b"])

        for value in (b"Bearer ", b"Bearer a b", b"Bearer", b""):
            self.assertFalse(check.accepts([value]))

    def test_bytes(self) -> None:
        """Bytes above ASCII are compared as they are."""
        check = TokenCheck([b"caf\xe9"])

        self.assertTrue(check.accepts([b"Bearer caf\xe9"]))
        self.assertFalse(check.accepts(["Bearer café".encode()]))

    def test_all_are_compared(self) -> None:
        """Every token is compared, in constant time and at one length, whichever one matches."""
        check = TokenCheck([b"one", b"second", b"the-third-of-them"])
        compared: list[tuple[int, int]] = []

        def compare(left: bytes, right: bytes) -> bool:
            compared.append((len(left), len(right)))
            return left == right

        self.patch(hmac, "compare_digest", compare)
        for token in (b"one", b"the-third-of-them", b"w"):
            compared.clear()
            check.accepts([b"Bearer " + token])
            self.assertEqual([(32, 32)] * 3, compared)

    def test_repr(self) -> None:
        """Neither its representation nor what it holds shows a token."""
        check = TokenCheck([b"s3cr3t"])

        self.assertEqual("<TokenCheck of 1 tokens>", repr(check))
        self.assertNotIn("s3cr3t", repr([getattr(check, name) for name in check.__slots__]))

    def test_digests_differ(self) -> None:
        """Digests are keyed: two checks of the same token hold different ones."""
        self.assertNotEqual(TokenCheck([b"t"])._plain, TokenCheck([b"t"])._plain)

    @given(st.lists(st.binary(max_size=40), max_size=3))
    def test_never_raises(self, values: list[bytes]) -> None:
        """No value is accepted by chance, and none raises."""
        self.assertFalse(TokenCheck([b"a-token-that-is-long-enough-not-to-be-found"]).accepts(values))

    @given(st.from_regex(rb"[!-~\x80-\xff]{1,60}", fullmatch=True))
    def test_usable_means_accepted(self, token: bytes) -> None:
        """A token with which L{check_token} finds no fault is accepted when shown."""
        self.assertIsNone(check_token(token))
        self.assertTrue(TokenCheck([b"other", token]).accepts([b"Bearer " + token]))
