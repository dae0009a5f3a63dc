"""
Tests for L{webhookrx.service.routes}.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.http.guarded_wire import sender_of
from tests.http.wire import AtOnce, Traffic, Wire
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.judge import Accepted, Admission, Receipt, admit, judge
from webhookrx.intake.token_places import token_place
from webhookrx.intake.tokens import NamedToken
from webhookrx.router.connector_intake import ConnectorRules, judge_connector
from webhookrx.router.steps.step import Preprocessing, Step
from webhookrx.senders.definition import SenderDefinition, When
from webhookrx.senders.definitions import builtin_definition
from webhookrx.service.routes import build_roots, connector_labels, masked_record, tls_files
from webhookrx.service.source_rules import by_listener, classifier_for, connector_rules, rules_of
from webhookrx.settings import (
    ConnectorSettings,
    GuardSettings,
    Limits,
    Listener,
    Observer,
    RouterSettings,
    Settings,
    Source,
)
from webhookrx.testing import RECEIVED

FIRST = Listener("8181", "tcp:8181")
SECOND = Listener("unix:/run/x", "unix:/run/x", proxy_protocol=True)


class MaskedRecordTests(SynchronousTestCase):
    """What is recorded of a request."""

    def test_masked(self) -> None:
        """A token in the query is masked; a source without one is recorded as it is, or not at all."""
        recorded: list[tuple[bytes | None, bytes]] = []

        def record(head: Head, body: bytes, signatures: Collection[bytes] = ()) -> None:
            recorded.append((head.query, body))

        guard = GuardSettings(tokens=(NamedToken("a", b"t"),), token_place=token_place("query:token"))
        head = Head(b"POST", b"/in", b"token=t", (), Peer("192.0.2.1", 40000, False))
        for source in (Source(guard=guard), Source()):
            masked = masked_record(source, record)
            assert masked is not None
            masked(head, b"x")
        self.assertEqual([(b"token=***", b"x"), (b"token=t", b"x")], recorded)
        self.assertIsNone(masked_record(Source(guard=guard), None))

    def test_in_body(self) -> None:
        """A secret in the body is masked, whatever becomes of the request; a body that may hide one is not recorded."""
        recorded: list[bytes] = []

        def record(head: Head, body: bytes, signatures: Collection[bytes] = ()) -> None:
            recorded.append(body)

        head = Head(b"POST", b"/in", None, (), Peer("192.0.2.1", 40000, False))
        for verify in ("required", "note", "off"):
            source = Source(guard=GuardSettings(sender=builtin_definition("meraki"), verify=verify))
            masked = masked_record(source, record)
            assert masked is not None
            masked(head, b'{"sharedSecret":"a"}')
            masked(head, b"{'sharedSecret':'a'}")
        kept = [b'{"sharedSecret":"a"}', b"{'sharedSecret':'a'}"]
        self.assertEqual([b'{"sharedSecret":"***"}'] * 2 + kept, recorded)


class MaskedHeadersTests(SynchronousTestCase):
    """Headers that messages do not show."""

    def test_of_all(self) -> None:
        """What a definition in use looks for proofs in is masked at any source; what is masked anyway is not named."""
        own = sender_of(
            "when: {headers: {x-proof: '*'}}\n"
            'verify: {at: ["header:X-Proof", "header:x-seal-*", "header:x-hub-signature"], encoding: hex}\n'
        )
        guard = GuardSettings(sender=own, tokens=(NamedToken("a", b"b"),), token_place=token_place("header:X-Door"))
        sources = (Source("guarded", guard=guard), Source("plain"))
        settings = Settings(sources, (Observer("stdout", "stdout"),))
        names = [rules_of(source, settings).masked_headers for source in sources]
        self.assertEqual([{"x-proof", "x-seal-*", "x-door"}, {"x-proof", "x-seal-*"}], names)
        settings = Settings((Source("plain"),), (), router=RouterSettings("edge", senders=(own,)))
        self.assertEqual({"x-proof", "x-seal-*"}, rules_of(settings.sources[0], settings).masked_headers)
        self.assertEqual(set(), rules_of(sources[1], Settings(sources[1:], ())).masked_headers)


class RoutesTests(SynchronousTestCase):
    """What sources become."""

    def test_shared_endpoints(self) -> None:
        """Sources that name the same endpoint share it, in the order of the settings."""
        one = Source("one", listeners=(FIRST,))
        two = Source("two", listeners=(SECOND, FIRST))
        self.assertEqual([(FIRST, [one, two]), (SECOND, [two])], by_listener([one, two]))

    def test_rules(self) -> None:
        """A source's options become its rules."""
        source = Source(
            "one",
            "webhook-json",
            prefix="p.",
            auth_tokens=(b"t",),
            include_request_headers=True,
            proxy_header="forwarded",
            on_parse_error="reject",
            keep_message="unparsed",
        )
        rules = rules_of(source, Settings((source,), (Observer("stdout", "stdout"),)))
        self.assertEqual(
            ("one", True, "p.", True, b"forwarded", False, False, 10 * 2**20),
            (
                rules.name,
                rules.parse_json,
                rules.prefix,
                rules.include_request_headers,
                rules.proxy_header,
                rules.keep_unparsed,
                rules.keep_text,
                rules.body_limit,
            ),
        )
        self.assertTrue(rules.tokens.accepts([b"Bearer t"]))
        self.assertFalse(rules.tokens.accepts([]))


def connector(name: str, port: int = 8181, preprocessing: Preprocessing | None = None) -> Source:
    """Return a connector."""
    labels = {"product": "webhook", "vendor": "acme", "team": "a", "b.c/d": ""}
    details = ConnectorSettings(name, port, labels, preprocessing or Preprocessing())
    listener = Listener(str(port), f"tcp:{port}")
    return Source(f"edge-1-{name}-in", "connector", ("/in",), listeners=(listener,), connector=details)


class ConnectorTests(SynchronousTestCase):
    """What connectors become."""

    def settings(self, *sources: Source, **router: Any) -> Settings:
        """Return the settings of a router."""
        return Settings(sources, (), limits=Limits(body=7), router=RouterSettings("edge-1", {"site": "fra"}, **router))

    def test_rules(self) -> None:
        """A connector's details and those of its router become its rules."""
        source = connector("hooks", preprocessing=Preprocessing(steps=(Step(probe="p"),)))
        assert source.connector is not None
        rules = connector_rules(source, source.connector, self.settings(source), None)
        self.assertEqual(("edge-1-hooks-in", 7), (rules.name, rules.body_limit))
        self.assertEqual(
            {"type": "webhook", "name": "edge-1-hooks-in", "port": 8181, "labels": dict(source.connector.labels)},
            rules.connector,
        )
        self.assertEqual({"name": "edge-1", "labels": {"site": "fra"}}, rules.router)
        self.assertEqual((("probe", "p"), ("step_error", "1 probe")), rules.processing.possible_events)
        self.assertFalse(rules.include_request_headers)
        source = replace(source, include_request_headers=True)
        assert source.connector is not None
        self.assertTrue(connector_rules(source, source.connector, self.settings(), None).include_request_headers)

    def test_roots(self) -> None:
        """Connectors and sources get resources of their kinds, and what steps may count is there from the start."""
        traffic, wire = Traffic(), Wire()
        steps = Preprocessing(classify=True, steps=(Step(select="log.body EXISTS", label="x"),))
        settings = self.settings(Source("s", listeners=(FIRST,)), connector("c", 8182), connector("d", 8183, steps))
        roots = build_roots(settings, wire.consumer, traffic, lambda: Receipt(RECEIVED, "id"), AtOnce())
        self.assertEqual(["tcp:8181", "tcp:8182", "tcp:8183"], list(roots))
        judges = [resource._judge for root in roots.values() for resource in root._resources]
        self.assertEqual([judge, judge_connector, judge_connector], judges)
        first, (source, events) = traffic.expected
        self.assertEqual(("edge-1-c-in", ()), first)
        self.assertEqual("edge-1-d-in", source)
        self.assertEqual(
            {("classified", ""), ("step_error", "classify"), ("dropped", "x"), ("step_error", "x")}, set(events)
        )

    def test_health(self) -> None:
        """Health is asked for at the paths of all sources of an endpoint, and only there."""
        wire, ready = Wire(), [True]
        sources = (
            Source("one", listeners=(FIRST,), health="/one"),
            Source("two", paths=("/two",), listeners=(FIRST, SECOND)),
            replace(connector("c", 8182), health="/c"),
        )
        roots = build_roots(
            self.settings(*sources),
            wire.consumer,
            Traffic(),
            lambda: Receipt(RECEIVED, "id"),
            AtOnce(),
            ready=lambda: ready[0],
        )
        for name, path, statuses in (
            ("tcp:8181", b"/one", (200, 503)),
            ("tcp:8182", b"/c", (200, 503)),
            ("unix:/run/x", b"/one", (404, 404)),
            ("tcp:8182", b"/one", (404, 404)),
        ):
            for ready[0], status in zip((True, False), statuses, strict=True):
                answer = Wire(root=roots[name]).ask(b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % path)
                self.assertEqual(status, answer.status, (name, path))

    def test_classifier(self) -> None:
        """There is one classifier when anybody classifies, which knows the operator's kinds of senders, too."""
        self.assertIsNone(classifier_for(self.settings(Source("s"), connector("c"))))
        own = (SenderDefinition("github", "mine", "own", When(headers={"x-mine": "*"})),)
        for preprocessing in (Preprocessing(classify=True), Preprocessing(steps=(Step(classify=True),))):
            source = connector("c", preprocessing=preprocessing)
            assert source.connector is not None
            settings = self.settings(source, senders=own)
            rules = connector_rules(source, source.connector, settings, classifier_for(settings))
            self.assertIsInstance(rules, ConnectorRules)
            for headers, vendor in (
                (((b"x-mine", b"1"),), "mine"),
                # Theirs stands in for ours of that id.
                (((b"x-github-event", b"push"), (b"x-github-delivery", b"1")), None),
                (((b"x-gitlab-event", b"Push Hook"),), "gitlab"),
            ):
                self.assertEqual(vendor, _vendor(rules, headers), headers)

    def test_classifier_in_use(self) -> None:
        """A reload takes the classifier that is in use, as long as senders are the same; with nobody it is gone."""
        source = connector("c", preprocessing=Preprocessing(classify=True))
        own, other = (
            (SenderDefinition(name, name, "own", When(headers={f"x-{name}": "*"})),) for name in ("mine", "yours")
        )
        before = classifier_for(self.settings(source, senders=own))
        again = (SenderDefinition("mine", "mine", "own", When(headers={"x-mine": "*"})),)
        self.assertIs(before, classifier_for(self.settings(source, connector("d"), senders=again)))
        after = classifier_for(self.settings(source, senders=other))
        self.assertIsNot(before, after)
        gone = weakref.ref(after)
        del after
        gc.collect()
        self.assertIsNone(gone())
        self.assertIsNotNone(classifier_for(self.settings(source, senders=other)))

    def test_labels(self) -> None:
        """Each connector has its labels for metrics; sources have none."""
        self.assertEqual(
            (("edge-1-c-in", "c", "webhook", "8181", "webhook", "acme", "b.c/d=,product=webhook,team=a,vendor=acme"),),
            connector_labels(self.settings(Source("s"), connector("c"))),
        )

    def test_tls_files(self) -> None:
        """Endpoints of sources have their files from the settings, those of connectors from the router."""
        sources = (Source("s", listeners=(FIRST,)), connector("c", 8182))
        of_sources, of_router = {"/k": (b"source", 0o600)}, {"/k": (b"router", 0o600)}
        settings = replace(self.settings(*sources), tls_files=of_sources)
        assert settings.router is not None
        settings = replace(settings, router=replace(settings.router, tls_files=of_router))
        name = sources[1].listeners[0].socket
        self.assertEqual({FIRST.socket: of_sources, name: of_router}, tls_files(settings))
        self.assertEqual({FIRST.socket: {}}, tls_files(Settings(sources[:1], ())))


def _vendor(rules: ConnectorRules, headers: tuple[tuple[bytes, bytes], ...]) -> object:
    head = Head(b"POST", b"/in", b"", headers, Peer("192.0.2.1", 40000, False))
    admission = admit(head, rules, {})
    assert isinstance(admission, Admission)
    verdict = judge_connector(head, admission, b"{}", Receipt(RECEIVED, "id"))
    assert isinstance(verdict, Accepted)
    meta: Any = verdict.message.values["meta"]
    return meta.get("vendor")
