"""Tests of the fake broker by the contract of all consumers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.relay_consumer_contract import RelayConsumerContract
from tests.relay.fake_broker import FakeBroker, FakeConsumer
from webhookrx.relay.consumer import Consumer


class FakeConsumerContractTests(RelayConsumerContract, SynchronousTestCase):
    """The fake keeps to the contract."""

    def setUp(self) -> None:
        self.broker = FakeBroker()

    def make_consumer(self, group: str = "g") -> Consumer:
        return FakeConsumer(self.broker, group)

    def publish(self, values: Sequence[bytes], ids: Sequence[str] | None = None) -> None:
        for number, value in enumerate(values):
            self.broker.publish(value, ids[number] if ids else "")

    def kill(self, consumer: Consumer) -> None:
        self.broker.let_go(cast("FakeConsumer", consumer))
