"""
Tests for L{webhookrx.service.workers.messages}.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.operations.facts import make_facts
from webhookrx.errors import ConfigError
from webhookrx.operations import facts as facts_module
from webhookrx.operations.counters import Counters
from webhookrx.router.steps.step import Preprocessing, Probe, Regex, SetField, Step
from webhookrx.senders.definition import Decode, SenderDefinition, Severity, Time, When
from webhookrx.service.workers.messages import (
    Begin,
    Change,
    Changed,
    Failed,
    Hurry,
    Line,
    PortsClosed,
    Ready,
    Reopen,
    State,
    Stop,
    check,
    for_parent,
    for_worker,
)
from webhookrx.service.workers.portable_settings import portable
from webhookrx.settings import TLS, ConnectorSettings, Listener, Observer, RouterSettings, Settings, Source

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
        ("why",),
        (OWN,),
        json_files={"/t.json": b'{"a":1}'},
    )
    return replace(SETTINGS, sources=(*SETTINGS.sources, source), router=router)


class MessagesTests(SynchronousTestCase):
    """
    What is said is heard.
    """

    def test_to_worker(self) -> None:
        """Everything for a worker comes out as it went in; tokens with any bytes, and observers in observers, too."""
        inners = ("tcp:443",)
        for message, descriptors in (
            (Begin(SETTINGS, 1, 3, inners), 2),
            (Change(7, SETTINGS, inners), 1),
            (Reopen(), 0),
            (Stop(), 0),
            (Hurry(), 0),
        ):
            self.assertEqual(message, for_worker(msgspec.msgpack.encode(message)))
            self.assertEqual(descriptors, message.descriptors)

    def test_tls_files(self) -> None:
        """What was in keys and certificates comes along, those of a router as well; neither is in what is shown."""
        router = RouterSettings("edge-1", tls_files={"/key": (b"router's \xff", 0o640)})
        settings = replace(SETTINGS, router=router, tls_files={"/key": (b"-----secret", 0o600), "/cert": (b"c", 0)})
        begin = Begin(settings, 1, 3, ())
        heard = for_worker(msgspec.msgpack.encode(begin))
        assert isinstance(heard, Begin) and heard.settings.router is not None
        self.assertEqual(settings.tls_files, heard.settings.tls_files)
        self.assertEqual(router.tls_files, heard.settings.router.tls_files)
        for shown in (repr(heard), repr(heard.settings)):
            self.assertNotIn("secret", shown)
            self.assertNotIn("router's", shown)

    def test_connectors(self) -> None:
        """Connectors with steps of all kinds, and the operator's own senders, come out as they went in."""
        for steps in ((), STEPS):
            settings = with_connector(*steps)
            begin = for_worker(msgspec.msgpack.encode(Begin(portable(settings), 0, 1, ())))
            assert isinstance(begin, Begin)
            self.assertEqual(settings, begin.settings)
            assert settings.router is not None and begin.settings.router is not None
            self.assertEqual(settings.router.watched, begin.settings.router.watched)
            again = for_worker(msgspec.msgpack.encode(Change(1, portable(settings), ())))
            assert isinstance(again, Change)
            self.assertEqual(begin.settings, again.settings)

    def test_kept_state(self) -> None:
        """What is kept for the next start stays with the parent, who keeps it."""
        settings = replace(SETTINGS, router=RouterSettings("edge-1", good=b"all of the rules"))
        self.assertEqual(settings, portable(settings))
        self.assertNotIn(b"all of the rules", msgspec.msgpack.encode(portable(settings)))

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
                begin = for_worker(msgspec.msgpack.encode(Begin(portable(settings), 0, 1, ())))
                assert isinstance(begin, Begin)
                self.assertEqual(settings, begin.settings)

    def test_to_parent(self) -> None:
        """Everything for the parent comes out as it went in."""
        counters = Counters()
        counters.add("refused", "bad_token", "github", amount=3)
        counters.sources["github"].messages = 5
        for message in (
            Ready(),
            Failed("why"),
            Changed(7, True, "what"),
            PortsClosed(),
            Line("warn", "webhookrx.traffic", "text"),
        ):
            self.assertEqual(message, for_parent(msgspec.msgpack.encode(message)))
        state = for_parent(msgspec.msgpack.encode(State(counters.plain(), facts_module.portable(make_facts()), True)))
        assert isinstance(state, State)
        facts = make_facts()
        self.assertEqual(facts._replace(lanes=list(facts.lanes), sources=list(facts.sources)), state.facts)
        self.assertEqual(counters.summary(), Counters.from_plain(state.counters).summary())

    def test_other_languages(self) -> None:
        """What the other side says, and what nobody says, is no message."""
        for said in (msgspec.msgpack.encode(Ready()), b"", b"\xc1", msgspec.msgpack.encode({"type": "Begin"})):
            self.assertRaises(msgspec.DecodeError, for_worker, said)
        self.assertRaises(msgspec.DecodeError, for_parent, msgspec.msgpack.encode(Stop()))
        for mistake in ({"type": "Failed", "text": 7}, {"type": "Line", "level": "loud", "namespace": "", "text": ""}):
            self.assertRaises(msgspec.DecodeError, for_parent, msgspec.msgpack.encode(mistake))

    def test_bad_counts(self) -> None:
        """Counts that could not be added to those of others are no message."""
        counters = Counters()
        counters.add("refused", "bad_token")
        counters.sources["github"].answers.observe(1.0)
        good = counters.plain()
        for bad in (
            {**good, "counts": [[["refused"], "many"]]},
            {**good, "counts": [[["refused"], -1]]},
            {**good, "sources": {"github": [1, 2, 3.0, [[1, 2], 4.0]]}},
            {**good, "sources": {"github": [1, 2]}},
            {**good, "observers": {"stdout": [1, None, [[], 4.0]]}},
            {},
        ):
            said = msgspec.msgpack.encode(State(bad, facts_module.portable(make_facts()), False))  # type: ignore[arg-type]
            self.assertRaises(msgspec.DecodeError, for_parent, said)

    def test_no_text(self) -> None:
        """The name of a file that is not UTF-8 is found before anything starts."""
        check(SETTINGS)
        settings = Settings((), (Observer("file", "file", ("/\udcff",)),))
        error = self.assertRaises(ConfigError, check, settings)
        self.assertIn("\\xff", str(error).replace("\\udcff", "\\xff"))
