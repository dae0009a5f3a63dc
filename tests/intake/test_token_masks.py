"""
Tests for L{webhookrx.intake.token_masks}.
"""

from __future__ import annotations

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from tests.intake.test_token_places import head
from webhookrx.intake.token_masks import PathMask, TokenMask
from webhookrx.intake.token_places import token_place


class PathMaskTests(SynchronousTestCase):
    def test_masked(self) -> None:
        """The token is masked wherever its text is, and paths of other sources are shown."""
        mask = PathMask([("/hook/(?P<key>[^/]*)/(?P<HOST>.*)", "key"), ("/(?P<k>[0-9]+)", "k")], ["/events", "/o/.*"])
        cases = {
            b"/hook/s3cr3t/a": b"/hook/***/a",
            b"/hook/s3cr3t/s3cr3t": b"/hook/***/***",
            b"/hook/%73/a": b"/hook/***/a",
            b"/hook//a": b"/hook//a",
            b"/123": b"/***",
            b"/events": b"/events",
            b"/o/s3cr3t": b"/o/s3cr3t",
        }
        for path, shown in cases.items():
            self.assertEqual(shown, mask.masked(path), path)

    def test_unknown(self) -> None:
        """Nothing is shown of a path that no pattern matches: it may be that of a token, mistyped around it."""
        mask = PathMask([("/hook/(?P<key>[^/]+)", "key")], ["/events"])
        for path in (b"/hook/s3cr3t/", b"/hok/s3cr3t", b"/", b"*", b""):
            self.assertEqual(b"/***", mask.masked(path))

    def test_other_pattern(self) -> None:
        """A path that another pattern matches, too, is masked all the same."""
        mask = PathMask([("/hook/(?P<key>[^/]+)", "key")], ["/.*"])
        self.assertEqual((b"/hook/***", b"/hok/x"), (mask.masked(b"/hook/s3cr3t"), mask.masked(b"/hok/x")))

    def test_no_tokens(self) -> None:
        """Where no path holds a token, all are shown."""
        self.assertEqual(b"/any/thing", PathMask([], ["/events"]).masked(b"/any/thing"))


class TokenMaskTests(SynchronousTestCase):
    def test_masked(self) -> None:
        """The token is masked at its place, and nothing else is."""
        request = replace(
            head((b"authorization", b"Bearer s3cr3t"), (b"x-key", b"s3cr3t"), query=b"token=s3cr3t&a=b"),
            path=b"/hook/s3cr3t",
        )
        cases = {
            "header:x-key": replace(request, headers=((b"authorization", b"Bearer s3cr3t"), (b"x-key", b"***"))),
            "query:token": replace(request, query=b"token=***&a=b"),
            "path:key": replace(request, path=b"/hook/***"),
            "header:authorization": replace(request, headers=((b"authorization", b"***"), (b"x-key", b"s3cr3t"))),
            "basic": request,
        }
        for text, masked in cases.items():
            self.assertEqual(masked, TokenMask(token_place(text), ["/hook/(?P<key>.*)"]).masked(request), text)
