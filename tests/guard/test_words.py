"""
Tests for L{webhookrx.guard.words} and L{webhookrx.guard.word_reader}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.guard.quota import SourceQuota
from webhookrx.guard.word_reader import GuardValues, read_words
from webhookrx.guard.words import GuardWords
from webhookrx.intake.token_places import TokenPlace

#: Options with a wrong value, the code of the mistake, and a part of its sentence.
BAD = (
    ({"verify": "requried"}, "bad-verify", 'not one of required, note, off. Did you mean "required"?'),
    ({"verify": "yes"}, "bad-verify", "not one of required, note, off."),
    ({"split": "line"}, "bad-split", 'or a JSON pointer such as /events/*. Did you mean "lines"?'),
    ({"split": "events"}, "bad-split", '"events" is not one of no, yes, lines, documents, or a JSON pointer'),
    ({"split": "/a~2"}, "bad-split", "is no JSON pointer"),
    ({"idempotency": "a day"}, "bad-window", "is not a duration"),
    ({"idempotency": "yes"}, "bad-window", "is not a duration"),
    ({"idempotency": "0s"}, "bad-window", "write 1s to 30d, such as 24h, or off."),
    ({"idempotency": "31d"}, "bad-window", "write 1s to 30d"),
    ({"quota": ("messages=fast",)}, "bad-quota", '"fast" is not a rate'),
    ({"quota": ("message=1/s",)}, "bad-quota", 'Did you mean "messages"?'),
    ({"quota": ("burst=10s",)}, "bad-quota", "A quota needs messages, bytes or both"),
    ({"quota": ("messages=1/s", "messages=2/s")}, "bad-quota", '"messages" is given twice.'),
    ({"quota": ("messages=1/s", "per=token")}, "needs-token", "leave per: token out"),
    ({"allow": ("192.0.2.1/24",)}, "bad-network", "the network is 192.0.2.0/24"),
    ({"allow": ("::/0", "10.0.0.0/33")}, "bad-network", '"10.0.0.0/33" is no network'),
    ({"allow_clients": ("a.*.b",)}, "bad-client", "a wildcard is the whole first label"),
    ({"allow_clients": ("sha256:12",)}, "bad-client", "64 hexadecimal digits"),
    ({"auth_token_in": "cookie:a", "has_tokens": True}, "bad-token-place", "query:NAME, path:GROUP or basic"),
    ({"auth_token_in": "header:a b", "has_tokens": True}, "bad-token-place", "can't be the name of a header"),
    ({"auth_token_in": "basic"}, "needs-token", "There is no token: give auth_token_file"),
    ({"public_url": "logs.example.net"}, "bad-public-url", "does not begin with https:// or http:// and a host"),
    ({"public_url": "ftp://a"}, "bad-public-url", "does not begin with https:// or http://"),
    ({"public_url": "https:///a"}, "bad-public-url", "and a host"),
    ({"public_url": "https://a:x"}, "bad-public-url", "is no URL, such as https://logs.example.net"),
    ({"public_url": "https://a/ b"}, "bad-public-url", "visible ASCII alone"),
    ({"public_url": "https://a?b"}, "bad-public-url", "a query or a fragment"),
)


class ReadWordsTests(SynchronousTestCase):
    """
    Tests for L{read_words}.
    """

    def test_nothing(self) -> None:
        """Without a word there is neither a value nor a mistake."""
        self.assertEqual((GuardValues(), []), read_words(GuardWords()))

    def test_values(self) -> None:
        """Each word becomes the value that it stands for."""
        words = GuardWords(
            verify="note",
            split="/events/*",
            idempotency="24h",
            quota=("messages=100/s", "per=token"),
            allow=("github", "192.0.2.0/24", "2001:db8::1"),
            allow_clients=("*.example.net",),
            has_tokens=True,
            auth_token_in="query:token",
            public_url="https://logs.example.net:8443/hooks",
        )
        place = TokenPlace("query", "token")
        expected = GuardValues(
            "note", "/events/*", 86400.0, SourceQuota(100.0, per="token"), place, "https://logs.example.net:8443/hooks"
        )
        self.assertEqual((expected, []), read_words(words))

    def test_flags(self) -> None:
        """yes and no have their other words where a flag is one of the values."""
        for split, meant in (("yes", "yes"), ("on", "yes"), ("no", "no"), ("False", "no"), ("lines", "lines")):
            self.assertEqual(meant, read_words(GuardWords(split=split))[0].split)
        for off in ("no", "off"):
            self.assertEqual((GuardValues(), []), read_words(GuardWords(idempotency=off)))

    def test_mistakes(self) -> None:
        """Each wrong value is one mistake, at its option, that says what is allowed."""
        for fields, code, part in BAD:
            _, found = read_words(GuardWords(**fields))  # type: ignore[arg-type]
            self.assertEqual([code], [each.code for each in found], fields)
            self.assertIn(part, found[0].sentence)
            self.assertIn(found[0].path[0], fields)

    def test_item(self) -> None:
        """The mistake of an item of a list is at that item."""
        _, (found,) = read_words(GuardWords(allow=("::/0", "nö")))
        self.assertEqual(("allow", 1), found.path)

    def test_no_password(self) -> None:
        """A URL with a password in it is not quoted."""
        _, (found,) = read_words(GuardWords(public_url="https://me:c4nary@a"))
        self.assertNotIn("c4nary", found.sentence)

    def test_without_sender(self) -> None:
        """What is about a sender is misplaced without one; ways to split that need none, and no, are not."""
        about = {
            "secrets_file": ("/a",),
            "verify": "off",
            "handshake": True,
            "idempotency": "1h",
            "public_url": "https://a",
            "sender_settings": {"a": ("b",)},
            "split": "yes",
        }
        for name, value in about.items():
            words = GuardWords(**{name: value})  # type: ignore[arg-type]
            self.assertEqual((name,), words.without_sender)
            self.assertEqual((), GuardWords(sender="a", **{name: value}).without_sender)  # type: ignore[arg-type]
        for split in ("no", "lines", "documents", "/a"):
            words = GuardWords(
                split=split, handshake=False, idempotency="off", allow=("::/0",), quota=("bytes=1MiB/s",)
            )
            self.assertEqual((), words.without_sender)
