"""
What is measured of stores: an observer, its client alone, and a receiver that sends to Kafka.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass

from benchmarks import load
from benchmarks.lab import Lab
from benchmarks.receivers import Receiver
from benchmarks.runs import Figures, Run, warmed_up
from benchmarks.stores.places import PARTITIONS, Place, Served, kafka
from benchmarks.tools import ROOT, Broken, Tools, Unavailable

_PATIENCE = 120.0
"""Seconds that a measurement may take besides its own."""


@dataclass(frozen=True)
class Storing(Run):
    """A store, fed batch after batch by its observer, or by the client that this one uses."""

    place: Place
    alone: bool = False

    @property
    def name(self) -> str:
        """The store, and what feeds it."""
        return f"{self.place.client} alone, {self.place.name}" if self.alone else f"webhookrx, {self.place.name}"

    def measure(self, lab: Lab) -> Figures:
        """Let a process of its own do it; returns C{rate} and C{cpu}, a message."""
        if lab.tools.twistd is not None:
            raise Unavailable("only the webhookrx of this interpreter can be looked at without a receiver")
        with self.place.serve() as served:
            done = subprocess.run(
                (sys.executable, "-m", "benchmarks.stores.process", *self._what(served), str(lab.seconds),
                 str(self.place.batch)),
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=lab.seconds + _PATIENCE,
                preexec_fn=lambda: os.sched_setaffinity(0, {lab.tools.cores.server}),
            )  # fmt: skip
        if done.returncode:
            raise Broken(f"{self.name}: {done.stderr[-500:]}")
        figures: Figures = json.loads(done.stdout)
        return figures

    def _what(self, served: Served) -> tuple[str, ...]:
        if self.alone:
            return ("alone", self.place.client, served.address, served.spec)
        return ("observer", served.spec)


@dataclass(frozen=True, kw_only=True)
class StoringReceiver(Receiver):
    """A receiver with one observer, which is not a file."""

    spec: str

    def command(self, tools: Tools, directory: str, port: int) -> tuple[str, ...]:
        """Return the command line with another observer."""
        command = list(super().command(tools, directory, port))
        command[command.index("--observer") + 1] = self.spec
        return tuple(command)


@dataclass(frozen=True)
class EndToEnd(Run):
    """A receiver that sends to Kafka, asked by wrk as often as it answers."""

    connections: int = 512

    @property
    def name(self) -> str:
        """What it is, and behind C{@} the connections."""
        return f"webhookrx to Kafka @{self.connections}"

    def measure(self, lab: Lab) -> Figures:
        """Return C{rate} and C{cpu}, a request; every answer must be for a record in the topic."""
        with kafka() as served:
            server = StoringReceiver(name=f"webhookrx to Kafka {served.address}", ack="durable", spec=served.spec)
            running = lab.get(server)
            try:
                # It connects at the first message.
                with warmed_up(running, 64):
                    pass
                cpu, began = running.cpu_seconds(), time.monotonic()
                answers = load.wrk(lab, running, "plain", self.connections, lab.seconds)
                cpu, seconds = running.cpu_seconds() - cpu, time.monotonic() - began
                stored = _records(served.address)
            finally:
                lab.end(server)
        if stored < answers.answered:
            raise Broken(f"{answers.answered} messages were answered, and only {stored} are in the topic")
        return {
            "rate": answers.answered / answers.seconds,
            "cpu": cpu / answers.answered * 1e6,
            "busy": cpu / seconds,
            "p50": answers.p50,
            "p99": answers.p99,
        }


def _records(brokers: str) -> int:
    """Return how many records the topic has had."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "count", "log_level": 0})
    try:
        ends = [
            consumer.get_watermark_offsets(TopicPartition("logs", partition), timeout=30)[1]
            for partition in range(PARTITIONS)
        ]
    finally:
        consumer.close()
    return sum(ends)
