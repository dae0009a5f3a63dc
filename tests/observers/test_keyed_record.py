"""Messages as one bytes object with id, key and time."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests import examples  # noqa: F401
from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.message.encoders import encode_line
from webhookrx.message.message import Value
from webhookrx.observers.keyed_record import KeyedRecord, pack, read_keyed_format, unpack
from webhookrx.testing import RECEIVED, make_message


def encoded(values: dict[str, Value], default_key: str | None = None, **given: str) -> KeyedRecord:
    """Encode a message as the options say."""
    message = make_message("hello", {"RCPTID": "id-1", **values})
    return unpack(read_keyed_format(SpecOptions("kafka", given), default_key).encode(message))


class PackTests(SynchronousTestCase):
    """Packed and unpacked."""

    @given(
        st.text(st.characters(exclude_categories=("Cs",))),
        st.binary(),
        st.integers(-(2**63), 2**63 - 1),
        st.binary(),
    )
    def test_round_trip(self, own: str, key: bytes, received: int, value: bytes) -> None:
        """A record comes back as it was."""
        record = KeyedRecord(own, key, received, value)

        self.assertEqual(record, unpack(pack(record)))

    def test_size(self) -> None:
        """The frame costs 16 bytes, which the chain counts with the rest."""
        self.assertEqual(16 + 2 + 3 + 4, len(pack(KeyedRecord("ab", b"key", 1, b"long"))))


class KeyedFormatTests(SynchronousTestCase):
    """The options id, key and template."""

    def test_defaults(self) -> None:
        """Without options it is the message's own id, no key, its time, and its line without the end."""
        message = make_message("hello", {"RCPTID": "id-1"})
        record = unpack(read_keyed_format(SpecOptions("kafka", {})).encode(message))

        self.assertEqual(KeyedRecord("id-1", b"", RECEIVED, encode_line(message)[:-1]), record)
        self.assertEqual("hello", json.loads(record.value)["MESSAGE"])

    def test_default_key(self) -> None:
        """A store with keys has a default; an empty option switches it off, another one replaces it."""
        self.assertEqual(b"192.0.2.1", encoded({}, "${HOST}").key)
        self.assertEqual(b"", encoded({}, "${HOST}", key="").key)
        self.assertEqual("grün/1".encode(), encoded({"SOURCE": "grün"}, "${HOST}", key="${SOURCE}/1").key)

    def test_template(self) -> None:
        """A template makes the value, as one line without its end."""
        self.assertEqual(b"got hello\\nyou", encoded({"MESSAGE": "hello\nyou"}, template="got $MESSAGE").value)

    def test_id(self) -> None:
        """A template makes the id, as one line."""
        self.assertEqual("x-a\\nb", encoded({"D": "a\nb"}, id="x-${D}").id)
        self.assertEqual("id-1", encoded({}, id="${D}").id)

    def test_mistakes(self) -> None:
        """What is no template is refused."""
        for option in ("id", "key", "template"):
            error = self.assertRaises(ConfigError, encoded, {}, None, **{option: "${"})
            self.assertIn(f'{option}="${{": column 1', str(error))
