"""
Tests for L{webhookrx.crew.messages}.
"""

from __future__ import annotations

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests.operations.facts import make_facts
from webhookrx.config.settings import TLS, Listener, Observer, Settings, Source
from webhookrx.crew.messages import (
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
from webhookrx.errors import ConfigError
from webhookrx.operations.counters import Counters
from webhookrx.operations.facts import portable

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
        state = for_parent(msgspec.msgpack.encode(State(counters.plain(), portable(make_facts()), True)))
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
            said = msgspec.msgpack.encode(State(bad, portable(make_facts()), False))  # type: ignore[arg-type]
            self.assertRaises(msgspec.DecodeError, for_parent, said)

    def test_no_text(self) -> None:
        """The name of a file that is not UTF-8 is found before anything starts."""
        check(SETTINGS)
        settings = Settings((), (Observer("file", "file", ("/\udcff",)),))
        error = self.assertRaises(ConfigError, check, settings)
        self.assertIn("\\xff", str(error).replace("\\udcff", "\\xff"))
