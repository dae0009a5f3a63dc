"""
Tests for L{webhookrx.intake.tokens}.
"""

from __future__ import annotations

import hmac

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake.tokens import TokenCheck, check_token, parse_token_file

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
        self.assertNotEqual(TokenCheck([b"t"])._digests, TokenCheck([b"t"])._digests)

    @given(st.lists(st.binary(max_size=40), max_size=3))
    def test_never_raises(self, values: list[bytes]) -> None:
        """No value is accepted by chance, and none raises."""
        self.assertFalse(TokenCheck([b"a-token-that-is-long-enough-not-to-be-found"]).accepts(values))

    @given(st.from_regex(rb"[!-~\x80-\xff]{1,60}", fullmatch=True))
    def test_usable_means_accepted(self, token: bytes) -> None:
        """A token with which L{check_token} finds no fault is accepted when shown."""
        self.assertIsNone(check_token(token))
        self.assertTrue(TokenCheck([b"other", token]).accepts([b"Bearer " + token]))
