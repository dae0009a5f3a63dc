"""
Tests for L{webhookrx.intake.token_places}.
"""

from __future__ import annotations

from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake.head import Head, Peer
from webhookrx.intake.token_places import AUTHORIZATION, TokenPlace, token_place

#: Texts, and the places that they are.
PLACES = {
    "header:authorization": AUTHORIZATION,
    "header:Authorization": AUTHORIZATION,
    "header:X-Api-Key": TokenPlace("header", "x-api-key"),
    "query:access_token": TokenPlace("query", "access_token"),
    "path:key": TokenPlace("path", "key"),
    "path:MSG": TokenPlace("path", "MESSAGE"),
    "basic": TokenPlace("basic", ""),
}


def head(*headers: tuple[bytes, bytes], query: bytes | None = None) -> Head:
    return Head(b"POST", b"/in", query, headers, Peer("192.0.2.7", 40000, True))


def basic(credentials: bytes, scheme: bytes = b"Basic") -> Head:
    return head((b"authorization", scheme + b" " + b64encode(credentials)))


class TokenPlaceTests(SynchronousTestCase):
    def test_texts(self) -> None:
        """A place is read as people write it."""
        for text, place in PLACES.items():
            self.assertEqual(place, token_place(text), text)

    def test_mistakes(self) -> None:
        """Anything else is refused with what is allowed."""
        for text in (
            "",
            "header",
            "header:",
            "header:a b",
            "query:",
            "query:a=b",
            "query:a%20",
            "query:a[]",
            "path:1a",
        ):
            self.assertRaises(ValueError, token_place, text)
        for text in ("path:", "cookie:a", "basic:a", "Basic", " basic", "header:a\n", "query:a\n", "path:a\n", "é:a"):
            error = self.assertRaises(ValueError, token_place, text)
            self.assertIn("header:authorization, header:NAME, query:NAME, path:GROUP or basic", str(error))

    def test_shown_as_text(self) -> None:
        """As text a place is what people write."""
        for text in ("header:authorization", "query:access_token", "path:key", "basic"):
            self.assertEqual(text, str(token_place(text)))

    def test_authorization(self) -> None:
        """In C{Authorization} it is the second of exactly two words."""
        for value, shown in ((b"Bearer a", b"a"), (b"x a", b"a"), (b"a", None), (b"Bearer  a", None), (b"", None)):
            self.assertEqual(shown, AUTHORIZATION.shown(head((b"authorization", value)), {}), value)

    def test_header(self) -> None:
        """Any other header is the token itself, and it is there once."""
        place = token_place("header:X-Key")
        self.assertEqual(b"a", place.shown(head((b"x-key", b"a")), {}))
        self.assertEqual(b"Bearer a", place.shown(head((b"x-key", b"Bearer a")), {}))
        self.assertIsNone(place.shown(head(), {}))
        self.assertIsNone(place.shown(head((b"x-key", b"a"), (b"x-key", b"a")), {}))

    def test_query(self) -> None:
        """A parameter of the query is percent-decoded, a plus sign stays, and it is there once."""
        place = token_place("query:token")
        cases = {
            None: None,
            b"": None,
            b"token": None,
            b"token=": b"",
            b"token=a": b"a",
            b"x=y&token=a&z": b"a",
            b"token=a%2Bb+c%3D": b"a+b+c=",
            b"token=a=b": b"a=b",
            b"token=%ff": b"\xff",
            b"token=a&token=a": None,
            b"Token=a": None,
            b"xtoken=a": None,
            b"to%6ben=a": None,
        }
        for query, shown in cases.items():
            self.assertEqual(shown, place.shown(head(query=query), {}), query)

    def test_path(self) -> None:
        """A group of the path is the token once it is decoded; one that took no part shows none."""
        place = token_place("path:key")
        self.assertEqual("é".encode(), place.shown(head(), {"key": "é"}))
        self.assertIsNone(place.shown(head(), {"other": "a"}))

    def test_basic(self) -> None:
        """Of Basic authentication it is all that was encoded, whose first colon ends the user."""
        place = token_place("basic")
        for credentials in (b"user:pass", b"user:pa:ss", b"user:", b":pass", b"user:\xff"):
            self.assertEqual(credentials, place.shown(basic(credentials), {}))
        self.assertEqual(b"a:b", place.shown(basic(b"a:b", b"bAsIc"), {}))

    def test_no_basic(self) -> None:
        """Another scheme, text that is not strictly Base64, no colon, and two headers show nothing."""
        place = token_place("basic")
        good = (b"authorization", b"Basic " + b64encode(b"a:b"))
        for request in (
            head(),
            head(good, good),
            basic(b"a:b", b"Bearer"),
            basic(b"ab"),
            head((b"authorization", b"Basic")),
            head((b"authorization", b"Basic a:b")),
            head((b"authorization", b"Basic YTpi=")),
            head((b"authorization", b"Basic YTp")),
            head((b"authorization", b"Basic YTpi YTpi")),
            head((b"authorization", b"Basic YTpi\n")),
        ):
            self.assertIsNone(place.shown(request, {}))

    def test_refusal(self) -> None:
        """A sender is told where the token belongs, without a name that is ours."""
        self.assertIn("Authorization header", AUTHORIZATION.refusal)
        for text, where in (
            ("header:x-key", "a header of its own."),
            ("query:secretly", "the query."),
            ("path:secretly", "the path."),
            ("basic", "Basic authentication."),
        ):
            refusal = token_place(text).refusal
            self.assertTrue(refusal.endswith(where), refusal)
            self.assertNotIn("secretly", refusal)

    def test_left_out(self) -> None:
        """What holds the token is left out of query and groups, however often it is there, and nothing else is."""
        query: dict[str, str | list[str]] = {"token": ["a", "b"], "x": "y"}
        groups = {"token": "a", "x": "y"}
        for text, without in (("query:token", (["x"], ["token", "x"])), ("path:token", (["token", "x"], ["x"]))):
            place = token_place(text)
            self.assertEqual(without, (list(place.query_without(query)), list(place.groups_without(groups))))
        self.assertIs(query, token_place("query:other").query_without(query))
        self.assertIs(groups, token_place("path:other").groups_without(groups))
        self.assertIs(query, AUTHORIZATION.query_without(query))

    def test_masked_query(self) -> None:
        """For people the value in the query is masked, however its name is encoded."""
        place = token_place("query:token")
        cases = {
            b"": b"",
            b"a=b&token=s3cr3t&c": b"a=b&token=***&c",
            b"token=s3cr3t&to%6Ben=s3cr3t": b"token=***&to%6Ben=***",
            b"token": b"token",
            b"tokens=a": b"tokens=a",
        }
        for query, masked in cases.items():
            self.assertEqual(masked, place.masked_query(query))
        self.assertEqual(b"token=a", AUTHORIZATION.masked_query(b"token=a"))

    @given(st.sampled_from(sorted(PLACES)), st.lists(st.binary(max_size=60), max_size=3), st.binary(max_size=60))
    def test_never_raises(self, text: str, values: list[bytes], query: bytes) -> None:
        """Whatever a request holds, it shows bytes or nothing."""
        place = token_place(text)
        name = b"authorization" if place.kind == "basic" else place.name.encode()
        shown = place.shown(head(*((name, value) for value in values), query=query + b"&access_token=" + query), {})
        self.assertIsInstance(shown, (bytes, type(None)))
        place.masked_query(query)
