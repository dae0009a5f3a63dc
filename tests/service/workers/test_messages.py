"""
Tests for L{webhookrx.service.workers.messages}.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.operations.snapshots import EMPTY, make_snapshot
from webhookrx.errors import ConfigError
from webhookrx.guard.quota import SourceQuota
from webhookrx.intake.token_places import TokenPlace
from webhookrx.intake.tokens import NamedToken
from webhookrx.interfaces import LaneStatus
from webhookrx.operations.counters import Counters
from webhookrx.operations.snapshot import merge
from webhookrx.router.gate import ClosedConnector, GateReason
from webhookrx.router.steps.step import Preprocessing, Probe, Regex, SetField, Step
from webhookrx.senders.definition import Decode, SenderDefinition, Severity, Time, When
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.service.shared_state import STATE_FILES
from webhookrx.service.workers.messages import (
    Began,
    Begin,
    CannotBegin,
    ChangeSettings,
    Finish,
    LogLine,
    PortsClosed,
    Reopen,
    Report,
    SettingsChanged,
    StopNow,
    check,
    encode,
    portable,
    read_for_parent,
    read_for_worker,
)
from webhookrx.settings import (
    TLS,
    BundleInUse,
    ConnectorSettings,
    GuardSettings,
    Listener,
    Observer,
    RouterSettings,
    Settings,
    Source,
)

STEPS = (
    Step(select="log.body EXISTS", condition="meta.host.name = a", label="some"),
    Step(set=SetField(field="meta.a", value="text")),
    Step(set=(SetField(field="meta.a", value=None), SetField(field="meta.b", value=[True, {"c": [1.5, 2]}]))),
    Step(unset="log.body.a"),
    Step(unset=("log.body.a", "log.body.b")),
    Step(regex=Regex(pattern="(?P<a>b)", ignore_case=True)),
    Step(probe="p"),
    Step(probe=Probe(name="q")),
    Step(classify=True),
    Step(parse=True),
    Step(expression="drop();"),
)

OWN = SenderDefinition(
    "acme",
    "acme",
    "widget",
    When(headers={"x-acme": "*"}, any_header=("a", "b"), body_keys=("c",)),
    decode=(Decode("/a"),),
    time=(Time("/t"),),
    severity=(Severity("/s", {"f*": "error"}),),
    message=("{/m}",),
)

SETTINGS = Settings(
    (
        Source(
            "github",
            auth_tokens=(b"secret \xff",),
            listeners=(Listener("ssl:443", "tcp:443", proxy_protocol=True, tls=TLS("/key", "/cert")),),
        ),
    ),
    (Observer("spool:/x:observer=y", "spool", ("/x",), (("observer", "y"),), Observer("y", "y")),),
    admin=Listener("9090", "tcp:9090"),
    workers=3,
)


def with_connector(*steps: Step) -> Settings:
    """Return the settings of a router, too."""
    labels = {"product": "webhook", "vendor": "generic"}
    connector = ConnectorSettings("hooks", 8181, labels, Preprocessing(classify=True, steps=steps))
    source = Source("edge-1-hooks-in", "connector", listeners=(Listener("8181", "tcp:8181"),), connector=connector)
    router = RouterSettings(
        "edge-1",
        {"site": "fra"},
        {"/rules.yaml": (1, -2, 1 << 63), "/senders": ()},
        (GateReason("why", "/k"),),
        (OWN,),
        closed=(ClosedConnector("edge-1-a-b", "a", 8443, "why"),),
        json_files={"/t.json": b'{"a":1}'},
        bundle=BundleInUse(7, "ab", ("customer",)),
    )
    return replace(SETTINGS, sources=(*SETTINGS.sources, source), router=router)


class MessagesTests(SynchronousTestCase):
    """
    What is sent is received.
    """

    def test_to_worker(self) -> None:
        """Everything for a worker comes out as it went in; tokens with any bytes, and observers in observers, too."""
        sockets = {"tcp:443": 9}
        for message, descriptors in (
            (Begin(SETTINGS, 1, 3, sockets), 3 + STATE_FILES),
            (ChangeSettings(7, SETTINGS, sockets), 1),
            (Reopen(), 0),
            (Finish(), 0),
            (StopNow(), 0),
        ):
            self.assertEqual(message, read_for_worker(encode(message)))
            self.assertEqual(descriptors, message.descriptors)

    def test_tls_files(self) -> None:
        """What was in keys and certificates comes along, those of a router as well; neither is in what is shown."""
        router = RouterSettings("edge-1", tls_files={"/key": (b"router's \xff", 0o640)})
        settings = replace(SETTINGS, router=router, tls_files={"/key": (b"-----secret", 0o600), "/cert": (b"c", 0)})
        begin = Begin(settings, 1, 3, {})
        received = read_for_worker(encode(begin))
        assert isinstance(received, Begin) and received.settings.router is not None
        self.assertEqual(settings.tls_files, received.settings.tls_files)
        self.assertEqual(router.tls_files, received.settings.router.tls_files)
        for shown in (repr(received), repr(received.settings)):
            self.assertNotIn("secret", shown)
            self.assertNotIn("router's", shown)

    def test_connectors(self) -> None:
        """Connectors with steps of all kinds, and the operator's own senders, come out as they went in."""
        for steps in ((), STEPS):
            settings = with_connector(*steps)
            begin = read_for_worker(encode(Begin(portable(settings), 0, 1, {})))
            assert isinstance(begin, Begin)
            self.assertEqual(settings, begin.settings)
            assert settings.router is not None and begin.settings.router is not None
            self.assertEqual(settings.router.watched, begin.settings.router.watched)
            again = read_for_worker(encode(ChangeSettings(1, portable(settings), {})))
            assert isinstance(again, ChangeSettings)
            self.assertEqual(begin.settings, again.settings)

    def test_guards(self) -> None:
        """Workers get guards whole, with every definition of a sender that comes with the package."""
        for definition in builtin_definitions():
            guard = GuardSettings(
                definition,
                (NamedSecret("one", b"s \xff"),),
                ("/a/secrets",),
                "note",
                handshake=True,
                split="/a/*",
                idempotency=1.5,
                quota=SourceQuota(1.0, 2.0, per="token"),
                allow={"office": ("192.0.2.0/24", "::/0")},
                allow_clients=("*.a",),
                tokens=(NamedToken("edge", b"t"), NamedToken("2", sha256=b"\0" * 32)),
                token_place=TokenPlace("query", "t"),
                public_url="https://a",
                sender_settings={"topics": ("a", "b"), "confirm": True, "audience": "c"},
            )
            settings = replace(SETTINGS, sources=(replace(SETTINGS.sources[0], guard=guard),), signing_certs=(b"\xff",))
            message = ChangeSettings(1, portable(settings), {})
            self.assertEqual(message, read_for_worker(encode(message)))

    def test_kept_state(self) -> None:
        """What is kept for the next start stays with the parent."""
        settings = replace(SETTINGS, router=RouterSettings("edge-1", good=b"all of the rules"))
        self.assertEqual(settings, portable(settings))
        self.assertNotIn(b"all of the rules", encode(portable(settings)))

    def test_numbers(self) -> None:
        """Numbers of steps come out exactly, whatever MessagePack has for them."""
        for value in (
            msgspec.Raw(b"1.10"),
            msgspec.Raw(b"1e400"),
            10**30,
            -(10**30),
            16**5000,
            (1 << 64) - 1,
            1 << 64,
            -(1 << 63),
            -(1 << 63) - 1,
            [1, {"a": msgspec.Raw(b"0.0"), "b": [1 << 70]}],
        ):
            for fields in (SetField(field="meta.x", value=value), (SetField(field="meta.x", value=value),)):
                settings = with_connector(Step(set=fields), Step(probe="p"))
                check(settings)
                begin = read_for_worker(encode(Begin(portable(settings), 0, 1, {})))
                assert isinstance(begin, Begin)
                self.assertEqual(settings, begin.settings)

    def test_to_parent(self) -> None:
        """Everything for the parent comes out as it went in."""
        counters = Counters()
        counters.add("refused", "bad_token", "github", amount=3)
        counters.sources["github"].messages = 5
        for message in (
            Began(),
            CannotBegin("why"),
            SettingsChanged(7, True, "what"),
            PortsClosed(),
            LogLine("warn", "webhookrx.traffic", "text"),
        ):
            self.assertEqual(message, read_for_parent(encode(message)))
        report = read_for_parent(encode(Report(counters, make_snapshot(), True)))
        assert isinstance(report, Report)
        self.assertEqual(merge([make_snapshot()]), merge([report.snapshot]))
        self.assertEqual((counters, True), (report.counters, report.stuck))

    def test_not_utf_8(self) -> None:
        """Text for the parent that is not UTF-8, such as the name of a file, has escapes, wherever it stands."""
        counters = Counters()
        counters.add("not_stored", "file:/caf\udce9")
        counters.observers["file:/caf\udce9"].messages = 1
        snapshot = make_snapshot(
            endpoints={"unix:/\udce9": True},
            lanes=[LaneStatus("file:/\udce9"), LaneStatus("spool:/é", backlog=EMPTY._replace(away="/\udce9: gone"))],
            sources=["\udce9", "é"],
            certificates={"/\udce9": 1.0},
            blocked=(GateReason("/\udce9", "/\udce9"),),
            closed=(ClosedConnector("n", "r", 80, "/\udce9"),),
            not_taken="/\udce9",
        )
        report = read_for_parent(encode(Report(counters, snapshot, False)))
        assert isinstance(report, Report)
        arrived = report.snapshot
        self.assertEqual({"unix:/\\udce9": True}, arrived.endpoints)
        self.assertEqual(["file:/\\udce9", "spool:/é"], [lane.spec for lane in arrived.lanes])
        self.assertEqual("/\\udce9: gone", arrived.lanes[1].backlog.away if arrived.lanes[1].backlog else None)
        self.assertEqual((["\\udce9", "é"], {"/\\udce9": 1.0}), (arrived.sources, arrived.certificates))
        escaped = "/\\udce9"
        self.assertEqual((GateReason(escaped, escaped),), arrived.blocked)
        self.assertEqual((ClosedConnector("n", "r", 80, escaped),), arrived.closed)
        self.assertEqual("/\\udce9", arrived.not_taken)
        self.assertEqual(1, report.counters.get("not_stored", "file:/caf\\udce9"))
        self.assertEqual(1, report.counters.observers["file:/caf\\udce9"].messages)

    def test_other_languages(self) -> None:
        """A message of the other direction, and anything else, is refused."""
        for said in (encode(Began()), b"", b"\xc1", msgspec.msgpack.encode({"type": "Begin"})):
            self.assertRaises(msgspec.DecodeError, read_for_worker, said)
        self.assertRaises(msgspec.DecodeError, read_for_parent, encode(Finish()))
        for mistake in (
            {"type": "CannotBegin", "text": 7},
            {"type": "LogLine", "level": "loud", "namespace": "", "text": ""},
        ):
            self.assertRaises(msgspec.DecodeError, read_for_parent, msgspec.msgpack.encode(mistake))

    def test_bad_counts(self) -> None:
        """Counts that could not be added to those of others are no message."""
        report = msgspec.to_builtins(Report(Counters(), make_snapshot(), False))
        for bad in (
            {"counts": {("refused",): "many"}},
            {"counts": {("refused",): -1}},
            {"sources": {"github": [1, 2, 3.0, [[1, 2], 4.0]]}},
            {"sources": {"github": [1, 2]}},
            {"observers": {"stdout": [1, None, [[], 4.0]]}},
            {"others": {}},
        ):
            encoded = msgspec.msgpack.encode({**report, "counters": bad})
            self.assertRaises(msgspec.DecodeError, read_for_parent, encoded)
        self.assertIsInstance(read_for_parent(msgspec.msgpack.encode(report)), Report)

    def test_no_text(self) -> None:
        """The name of a file that is not UTF-8 is found before anything starts."""
        check(SETTINGS)
        settings = Settings((), (Observer("file", "file", ("/\udcff",)),))
        error = self.assertRaises(ConfigError, check, settings)
        self.assertIn("\\xff", str(error).replace("\\udcff", "\\xff"))
