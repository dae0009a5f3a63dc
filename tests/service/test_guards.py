"""
Tests for L{webhookrx.service.guards}.
"""

from __future__ import annotations

import os
import time
from typing import Any

import msgspec
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from tests.intake.test_token_places import head
from webhookrx.guard.guard import Guard
from webhookrx.guard.quota import BUCKETS_SIZE, Buckets, SourceQuota
from webhookrx.intake.token_places import token_place
from webhookrx.intake.tokens import NamedToken
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.definitions import builtin_definition
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.service.guards import GuardMaker
from webhookrx.service.key_fetcher import KnownPublicKeys
from webhookrx.service.masks import path_mask, signature_headers, token_mask
from webhookrx.service.source_rules import rules_of
from webhookrx.service.subscriptions import Subscriptions
from webhookrx.settings import GuardSettings, Settings, Source

SECRET = NamedSecret("main", b"s3cr3t")


class GuardMakerTests(SynchronousTestCase):
    def guard(self, **options: Any) -> Guard:
        """Return the guard of a source with these options."""
        source = Source("s", guard=GuardSettings(**options))
        made: list[Buckets] = []

        def buckets() -> Buckets:
            made.append(Buckets(bytearray(os.urandom(16) + bytes(BUCKETS_SIZE - 16))))
            return made[-1]

        assert source.guard is not None
        rules = rules_of(source, Settings((source,), ()))
        guard = GuardMaker(buckets, None, time.time_ns, time.monotonic).guard(source, source.guard, rules)
        self.assertEqual(options.get("quota") is not None or options.get("handshake", False), bool(made))
        return guard

    def test_subscriptions(self) -> None:
        """Only a guard of SNS tells of what it has stored: what confirms subscriptions looks at nothing else."""
        told: list[tuple[Any, bytes]] = []
        subscriptions = Subscriptions(lambda url, done: True)
        self.patch(subscriptions, "stored", lambda settings, body: told.append((settings, body)))
        settings = {"topics": ("arn",), "confirm": True}
        for name, has_stored in (("aws-sns", True), ("github", False)):
            guard = GuardSettings(
                sender=builtin_definition(name),
                secrets=() if has_stored else (SECRET,),
                verify="required",
                sender_settings=settings if has_stored else {},
            )
            source = Source("s", guard=guard)
            maker = GuardMaker(
                lambda: self.fail("no quota"),
                KnownPublicKeys([b"x"], None),
                time.time_ns,
                time.monotonic,
                subscriptions,
            )
            stored = maker.guard(source, guard, rules_of(source, Settings((source,), ()))).parts.stored
            self.assertEqual(has_stored, stored is not None)
            if stored is not None:
                stored(b"{}")
        self.assertEqual([(settings, b"{}")], told)

    def test_decisions(self) -> None:
        """A guard takes the decisions that its options ask for, in their order, and no others."""
        github, zoom = builtin_definition("github"), builtin_definition("zoom")
        cases: list[tuple[dict[str, Any], list[str]]] = [
            ({}, ["method", "values"]),
            ({"allow": {"192.0.2.0/24": ("192.0.2.0/24",)}}, ["address", "method", "values"]),
            ({"allow_clients": ("a.example",)}, ["client", "method", "values"]),
            ({"tokens": (NamedToken("a", b"t"),)}, ["method", "token", "values"]),
            ({"quota": SourceQuota(messages=1.0)}, ["method", "quota", "values"]),
            ({"split": "lines"}, ["method", "values", "split"]),
            (
                {"sender": github, "secrets": (SECRET,), "verify": "required"},
                ["method", "values", "signature", "delivery"],
            ),
            ({"sender": github}, ["method", "values", "delivery"]),
            (
                {"sender": zoom, "secrets": (SECRET,), "verify": "note", "handshake": True},
                ["method", "handshake", "values", "signature", "signed_question"],
            ),
        ]
        for options, names in cases:
            guard = self.guard(**options)
            self.assertEqual(names, [name for name, _ in (*guard.on_head, *guard.on_body, *guard.on_storing)])

    def test_parts(self) -> None:
        """What the options say is in the parts of the guard."""
        guard = self.guard(
            sender=builtin_definition("github"),
            secrets=(SECRET, NamedSecret("old", b"old")),
            verify="note",
            allow={"github": ("192.0.2.0/24", "::/0"), "10.0.0.1": ("10.0.0.1/32",)},
            idempotency=60.0,
            tokens=(NamedToken("a", b"t"),),
            token_place=token_place("query:token"),
        )
        parts = guard.parts
        assert parts.allow is not None
        assert parts.tokens is not None
        self.assertEqual(
            ("github", "10.0.0.1", None), tuple(map(parts.allow.item_of, ("192.0.2.9", "10.0.0.1", "10.0.0.2")))
        )
        self.assertEqual("a", parts.tokens.check(head(query=b"token=t"), {}))
        self.assertEqual((False, 60.0, 2), (parts.must_verify, parts.window, parts.secrets))


class SharedPartsTests(SynchronousTestCase):
    """What many sources have in common."""

    def test_shared(self) -> None:
        """Equal definitions and networks are made ready once, as workers get them too; others are not mixed up."""
        github = builtin_definition("github")
        assert github is not None
        maker = GuardMaker(lambda: Buckets(bytearray(BUCKETS_SIZE)), None, time.time_ns, time.monotonic)

        def made(definition: SenderDefinition, network: str) -> Guard:
            settings = GuardSettings(definition, allow={"office": (network,)})
            source = Source("s", guard=settings)
            return maker.guard(source, settings, rules_of(source, Settings((source,), ())))

        first = made(github, "192.0.2.0/24")
        copy = msgspec.msgpack.decode(msgspec.msgpack.encode(github), type=SenderDefinition)
        same = made(copy, "192.0.2.0/24")
        self.assertIs(first.parts.sender, same.parts.sender)
        self.assertIs(first.parts.allow, same.parts.allow)
        other = made(replace(github, product="x"), "198.51.100.0/24")
        assert other.parts.sender is not None and other.parts.allow is not None
        self.assertEqual("x", other.parts.sender.product)
        self.assertTrue(other.parts.allow.allows("198.51.100.7"))
        self.assertFalse(other.parts.allow.allows("192.0.2.7"))


class MaskTests(SynchronousTestCase):
    def source(self, place: str, *paths: str, has_tokens: bool = True) -> Source:
        """Return a source with its token at some place."""
        tokens = (NamedToken("a", b"t"),) if has_tokens else ()
        return Source(place, paths=paths, guard=GuardSettings(tokens=tokens, token_place=token_place(place)))

    def test_path_mask(self) -> None:
        """Log lines show no path with a token in it, whichever source it is for."""
        sources = (
            Source("plain", paths=("/events",)),
            self.source("path:key", "/hook/(?P<key>.+)"),
            self.source("query:key", "/q/(?P<key>.+)"),
        )
        mask = path_mask(Settings(sources, ()))
        cases = {b"/hook/s3cr3t": b"/hook/***", b"/events": b"/events", b"/q/x": b"/q/x", b"/hok/s3cr3t": b"/***"}
        self.assertEqual(list(cases.values()), list(map(mask, cases)))
        self.assertEqual(b"/hok/x", path_mask(Settings(sources[::2], ()))(b"/hok/x"))

    def test_token_mask(self) -> None:
        """Recordings show no token of a source, wherever it is."""
        request = replace(head((b"x-key", b"s3cr3t"), query=b"key=s3cr3t"), path=b"/hook/s3cr3t")
        for place, shown in (
            ("header:x-key", ("***", "key=s3cr3t", "/hook/s3cr3t")),
            ("query:key", ("s3cr3t", "key=***", "/hook/s3cr3t")),
            ("path:key", ("s3cr3t", "key=s3cr3t", "/hook/***")),
        ):
            mask = token_mask(self.source(place, "/hook/(?P<key>.+)"))
            assert mask is not None
            masked = mask.masked(request)
            found = masked.values(b"x-key")[0], masked.query or b"", masked.path
            self.assertEqual(shown, tuple(each.decode() for each in found))
        for source in (self.source("query:key", has_tokens=False), Source("plain")):
            self.assertIsNone(token_mask(source))

    def test_secrets_that_are_sent(self) -> None:
        """A secret that the sender sends itself is masked, too; a signature is kept, even where credentials stand."""
        request = head(
            (b"x-gitlab-token", b"s3cr3t"),
            (b"x-webhook-secret", b"s3cr3t"),
            (b"authorization", b"HMAC signature"),
            query=b"secret=s3cr3t&a=b",
        )
        for name, masked, kept in (
            ("gitlab", [b"x-gitlab-token"], [b"webhook-signature"]),
            ("huggingface", [b"x-webhook-secret"], []),
            ("ms-teams-outgoing", [], [b"authorization"]),
        ):
            source = Source("s", guard=GuardSettings(sender=builtin_definition(name), verify="required"))
            mask = token_mask(source)
            shown = request if mask is None else mask.masked(request)
            self.assertEqual(masked, [each for each, value in shown.headers if value == b"***"], name)
            self.assertEqual(b"secret=***&a=b" if name == "huggingface" else request.query, shown.query)
            self.assertEqual(frozenset(kept), signature_headers(source))
        self.assertEqual(frozenset(), signature_headers(Source("plain")))
