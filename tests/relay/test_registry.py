"""Tests of webhookrx.relay.registry."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.relay.fake_broker import FakeBroker, fake_kind
from webhookrx.errors import ConfigError
from webhookrx.relay.consumer import Consumer, ConsumerKind
from webhookrx.relay.registry import build_consumer, find_kind


class BuildConsumerTests(SynchronousTestCase):
    """Consumers made of spec strings."""

    def build(self, text: str) -> Consumer:
        def find(name: str) -> ConsumerKind:
            return fake_kind(FakeBroker()) if name == "fake" else find_kind(name)

        return build_consumer(text, "g", find)

    def test_built(self) -> None:
        """A spec string becomes a consumer that knows it."""
        self.assertEqual("fake:fake://b:1,c:2/t:check=yes", self.build("fake:fake://b:1,c:2/t:check=yes").spec)

    def test_mistakes(self) -> None:
        """Every mistake is a sentence that says what is allowed."""
        for text, sentence in (
            ("kafak:kafka://b/t", 'There is no broker "kafak" to relay from. Did you mean "kafka"?'),
            ("spool:dir:observer=stdout", 'There is no broker "spool" to relay from. '),
            ("fake:fake://b/t:cheque=no", "broker 'fake': unknown option \"cheque\"; its options are check"),
            ("fake:fake://b/t:check=maybe", "broker 'fake': check=\"maybe\" is not known; it takes yes or no"),
        ):
            error = self.assertRaises(ConfigError, self.build, text)
            self.assertIn(sentence, str(error))
