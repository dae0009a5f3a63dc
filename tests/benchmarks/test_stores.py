"""Tests for L{benchmarks.stores}: that what is stored are messages, and that the answers are those that stores give."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import cast

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.stores.answering import answer
from benchmarks.stores.messages import message, ready
from benchmarks.stores.places import PLACES
from benchmarks.stores.runs import Storing, StoringReceiver
from benchmarks.tools import Tools
from webhookrx.config.observers import parse_observer
from webhookrx.observers.http_stores.exchange import HTTPAnswer
from webhookrx.observers.http_stores.observer import HTTPObserver
from webhookrx.observers.http_stores.store import Finding, Verdict
from webhookrx.observers.registry import build, find_spec


class MessageTests(SynchronousTestCase):
    """What is stored."""

    def test_ids(self) -> None:
        """Each message has an id of its own, which a client alone gets, too."""
        made = [ready(message(number)) for number in range(5000)]
        self.assertEqual(5000, len({each.id for each in made}))
        for each in made[::500]:
            values = json.loads(each.line)
            self.assertEqual((each.id, each.host, 311), (values["RCPTID"], values["HOST"], len(values["MESSAGE"])))

    def test_hosts(self) -> None:
        """Messages of a batch come from many hosts: keys and labels differ."""
        self.assertEqual(200, len({ready(message(number)).host for number in range(500)}))


class AnsweringTests(SynchronousTestCase):
    """What the program in the place of HTTP stores says."""

    def test_believed(self) -> None:
        """Its answers tell each observer that all is stored, whatever body that has made."""
        token = self.mktemp()
        with open(token, "w") as file:
            file.write("t\n")
        for kind, rest in (
            ("http", "/in"),
            ("clickhouse", "/default.logs"),
            ("elasticsearch", "/logs"),
            ("loki", ""),
            ("otlp", ""),
            ("splunk-hec", f":token_file={token}"),
        ):
            with self.subTest(kind):
                spec = f"{kind}:http://127.0.0.1:9{rest}"
                observer = build(parse_observer(spec, find_spec), "durable")
                assert isinstance(observer, HTTPObserver)
                lines = [observer.prepare(message(number)) for number in range(3)]
                status, body = answer(kind, observer._store.make(lines).content)
                reading = observer._store.read(HTTPAnswer(status, beginning=body), len(lines))
                findings = [reading] if isinstance(reading, Finding) else list(cast("Sequence[Finding]", reading))
                self.assertEqual({Verdict.STORED}, {finding.verdict for finding in findings})


class RunTests(SynchronousTestCase):
    """What is measured."""

    def test_names(self) -> None:
        """No two runs have one name."""
        names = [Storing(place, alone).name for place in PLACES for alone in (True, False)]
        self.assertEqual(len(names), len({*names}))

    def test_one_observer(self) -> None:
        """The receiver that sends to a store has that observer and no file."""
        directory = self.mktemp()
        os.mkdir(directory)
        server = StoringReceiver(name="a", spec="kafka:kafka://127.0.0.1:1/logs")
        command = server.command(Tools(), directory, 1)
        self.assertEqual(1, command.count("--observer"))
        self.assertEqual("kafka:kafka://127.0.0.1:1/logs", command[command.index("--observer") + 1])
