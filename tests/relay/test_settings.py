"""Tests of webhookrx.relay.settings."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from tests.relay.fake_broker import FakeBroker, fake_kind
from webhookrx.config.option_reader import COMMAND_LINE, ConfigProblems, Origin, RawValue
from webhookrx.relay.consumer import ConsumerKind
from webhookrx.relay.registry import find_kind
from webhookrx.relay.settings import OPTIONS, RelaySettings, relay_option_table, resolve_relay
from webhookrx.service import known_observers

#: The options of a good relay.
GOOD = {"from": "fake:fake://b/t", "group": "g", "to": "stdout", "dead": "file:dead.jsonl"}


def find(name: str) -> ConsumerKind:
    """Find a kind of consumer, the fake one too."""
    return fake_kind(FakeBroker()) if name == "fake" else find_kind(name)


class ResolveTests(SynchronousTestCase):
    """Settings made of the options of the command."""

    def resolve(self, **changed: str | None) -> RelaySettings:
        """Resolve good options with these changes; None leaves one out."""
        given = {
            name.replace("_", "-"): (RawValue(value, Origin((f"--{name}",), COMMAND_LINE)),)
            for name, value in {**GOOD, **changed}.items()
            if value is not None
        }
        return resolve_relay(given, known_observers.known(with_promises=False), {}, find)

    def problems(self, **changed: str | None) -> str:
        """Return what is wrong with these options."""
        return str(self.assertRaises(ConfigProblems, self.resolve, **changed))

    def test_good(self) -> None:
        """Good options become settings; files are named by their whole path."""
        settings = self.resolve()

        self.assertEqual(
            ("fake:fake://b/t", "g", "durable", 30.0),
            (settings.source, settings.group, settings.ack, settings.drain_timeout),
        )
        self.assertEqual("stdout", settings.target.name)
        assert settings.dead is not None
        self.assertEqual((os.path.abspath("dead.jsonl"),), settings.dead.args)
        self.assertIsNone(settings.admin)
        self.assertEqual((settings.target, settings.dead), settings.observers)

    def test_others(self) -> None:
        """The other options are those of a receiver."""
        settings = self.resolve(ack="written", admin="8080", drain_timeout="5s")

        assert settings.admin is not None
        self.assertIn("8080", settings.admin.socket)
        self.assertEqual(("written", 5.0), (settings.ack, settings.drain_timeout))

    def test_spool_needs_no_dead(self) -> None:
        """A spool keeps dead letters itself, so --dead may be left out; it may be given all the same."""
        directory = self.mktemp()
        spool = f"spool:{directory}:observer=stdout"

        self.assertIsNone(self.resolve(to=spool, dead=None).dead)
        self.assertEqual(
            (1, 2), (len(self.resolve(to=spool, dead=None).observers), len(self.resolve(to=spool).observers))
        )

    def test_mistakes(self) -> None:
        """Every mistake is a sentence that names its option."""
        for changed, sentence in (
            ({"from": None}, "--from is missing: the broker, such as kafka:kafka://host:9092/topic."),
            ({"to": None}, "--to is missing: an observer."),
            ({"group": None}, "--group is missing: the name that the relays have in common which share the work."),
            ({"dead": None}, "--to: --dead is missing: where messages go that the observer refuses for good"),
            ({"group": "a b"}, '--group: "a b" is not the name of a group'),
            ({"group": "x" * 101}, "is not the name of a group"),
            ({"group": "-a"}, "is not the name of a group"),
            ({"from": "amqp:x"}, '--from: There is no broker "amqp" to relay from.'),
            ({"from": "fake:fake://b/t:check=no"}, "--from: broker 'fake': it was to fail"),
            ({"to": "elephant:x"}, '--to: There is no observer "elephant".'),
            ({"dead": "file:x:colour=red"}, "--dead: observer 'file': unknown option \"colour\""),
            ({"to": "file:dead.jsonl"}, "--dead: It is the same as --to, which has refused those messages."),
            ({"ack": "soon"}, '--ack: "soon" is not one of durable, written, queued.'),
            ({"drain_timeout": "soon"}, "--drain_timeout: "),
            ({"admin": "pigeon"}, "--admin: "),
        ):
            self.assertIn(sentence, self.problems(**changed), changed)

    def test_back_into_the_broker(self) -> None:
        """Neither messages nor dead letters go where they come from: there would be no end of them."""
        source = "kafka:kafka://127.0.0.1:9092,127.0.0.2:9092/logs:tls=no"
        same = "It is the same as --from"
        for name in ("to", "dead"):
            for spec in (
                source,
                "kafka:kafka://127.0.0.2:9092/logs:acks=all",
                f"spool:{self.mktemp()}:observer=kafka:kafka://127.0.0.1:9092/logs",
            ):
                self.assertIn(f"--{name}: {same}", self.problems(**{"from": source, name: spec}))
            for other in ("kafka:kafka://127.0.0.1:9092/dead", "kafka:kafka://127.0.0.3:9092/logs", "file:logs"):
                self.resolve(**{"from": source, name: other})

    def test_all_mistakes(self) -> None:
        """All of them are found at once."""
        self.assertEqual(3, len(self.problems(**{"from": None, "group": "a b", "to": "elephant"}).splitlines()))

    def test_table(self) -> None:
        """The table of the docs has a row for each option."""
        self.assertEqual(len(OPTIONS) + 2, len(relay_option_table().splitlines()))
