"""Tests of webhookrx.relay.decoding."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake.json_body import MAX_DEPTH
from webhookrx.message.encoders import decode_stored, encode_line, encode_object, encode_stored
from webhookrx.message.macros import isodate
from webhookrx.message.message import Message
from webhookrx.message.template import Template
from webhookrx.relay.consumer import Record
from webhookrx.relay.decoding import decode_record
from webhookrx.testing import RECEIVED

NOW = 1_800_000_000_000_000_000


def record(value: bytes, id: str = "", received: int | None = None) -> Record:
    """Return a record of this value."""
    return Record(value, id, "logs/3/42", received, None)


def source_values(**values: Any) -> dict[str, Any]:
    """Return values as a source makes them."""
    return {
        "ISODATE": isodate(RECEIVED),
        "HOST": "h",
        "MESSAGE": "hello",
        "SOURCE": "s",
        **values,
        "RCPTID": "id-1",
    }


def router_values(**body: Any) -> dict[str, Any]:
    """Return a record of the router form."""
    return {
        "log": {"body": body, "attributes": {}, "observed_time_unix_nano": RECEIVED, "time_unix_nano": 0},
        "meta": {"id": "id-2", "host": {"name": "h"}},
    }


class LineTests(SynchronousTestCase):
    """Lines that webhookrx has written."""

    def test_source_form(self) -> None:
        """A message of the source form comes back with values, order, id and time."""
        message = Message(source_values(n=1, t=True, none=None, deep={"b": [1, "x"], "a": {}}), RECEIVED)

        decoded = decode_record(record(encode_object(message), "other"), NOW)

        self.assertTrue(decoded.is_line)
        self.assertEqual(list(message.values.items()), list(decoded.message.values.items()))
        self.assertEqual(RECEIVED // 1000 * 1000, decoded.message.received)

    def test_router_form(self) -> None:
        """So does one of the router form, with its time to the nanosecond."""
        message = Message(router_values(user="ü", n=2), RECEIVED)

        decoded = decode_record(record(encode_object(message)), NOW)

        self.assertTrue(decoded.is_line)
        self.assertEqual(message.values, decoded.message.values)
        self.assertEqual(RECEIVED, decoded.message.received)

    def test_same_line(self) -> None:
        """It is written as the same line again, to the last byte, numbers of any length and spelling included."""
        head = f'{{"ISODATE":"{isodate(RECEIVED)}","MESSAGE":"x","RCPTID":"i"'.encode()
        for number in (b"1.10", b"1E400", b"-0", b"-0.0", b"1e-7", b"123456789012345678901234567890", b"9" * 4000):
            for name in (b'"n":', b'"o":{"n":[', b'"\\u2028":'):
                value = head + b"," + name + number + {b'"o":{"n":[': b"]}"}.get(name, b"") + b"}"
                for ending in (b"", b"\n"):
                    decoded = decode_record(record(value + ending), NOW)

                    self.assertTrue(decoded.is_line)
                    self.assertEqual(value + b"\n", encode_line(decoded.message))

    def test_templates(self) -> None:
        """Templates of it have what those of the original had."""
        message = Message(source_values(amount=msgspec.Raw(b"1.50")), RECEIVED)
        decoded = decode_record(record(encode_object(message)), NOW).message
        template = Template.parse("${amount} ${RCPTID} ${HOST} ${R_UNIXTIME} ${R_ISODATE}")

        self.assertEqual(template.render(message), template.render(decoded))

    def test_misleading_characters(self) -> None:
        """A line that somebody else has written as ours can't end a line for a reader, or hide something."""
        value = encode_object(Message(source_values(), RECEIVED)).replace(b"hello", "a\u2028b\u202ec\x7f".encode())
        for spaced in (value, value.replace(b'","', b'"\n,\r"'), value.replace(b'","', b'",\t"')):
            line = encode_line(decode_record(record(spaced), NOW).message)

            self.assertEqual(1, len(line.decode().splitlines()))
            self.assertTrue(line.removesuffix(b"\n").isascii())
            self.assertNotIn(b"\x7f", line)
            self.assertEqual("a\u2028b\u202ec\x7f", msgspec.json.decode(line)["MESSAGE"])


class TextTests(SynchronousTestCase):
    """Any other value."""

    def test_text(self) -> None:
        """It is the text of a message, with an id from its place, the broker's time, and its topic as source."""
        decoded = decode_record(record(b"hello \xc3\xbc", received=RECEIVED), NOW)

        self.assertFalse(decoded.is_line)
        self.assertEqual(RECEIVED, decoded.message.received)
        self.assertEqual(
            {
                "ISODATE": isodate(RECEIVED),
                "MESSAGE": "hello ü",
                "SOURCE": "logs",
                "RAWMSG_SIZE": 8,
                "RCPTID": f"logs/3/42/{RECEIVED // 1_000_000}",
            },
            decoded.message.values,
        )

    def test_without_time(self) -> None:
        """Without a time of the broker it is received now, and its id is its place alone."""
        for received in (None, 0, -1):
            message = decode_record(record(b"x", received=received), NOW).message

            self.assertEqual(NOW, message.received)
        self.assertEqual("logs/3/42", decode_record(record(b"x"), NOW).message.values["RCPTID"])

    def test_id_beside_it(self) -> None:
        """An id beside the value is its id, unless it could not stand in a header."""
        for id, expected in (
            ("a-1", "a-1"),
            ("a b", "logs/3/42"),
            ("a\n", "logs/3/42"),
            ("ü", "logs/3/42"),
            ("x" * 201, "logs/3/42"),
        ):
            self.assertEqual(expected, decode_record(record(b"x", id), NOW).message.values["RCPTID"])

    def test_not_utf_8(self) -> None:
        """Bytes that are no UTF-8 are there in Base64 as well."""
        values = decode_record(record(b"\xff\x00a"), NOW).message.values

        self.assertEqual("\ufffd\x00a", values["MESSAGE"])
        self.assertEqual("/wBh", values["webhook.body_base64"])

    def test_deep_line(self) -> None:
        """What nests deeper than any line of ours is a text, which every encoder takes, that of a spool, too."""
        for deep in (b"[" * 900 + b"1" * 700 + b"]" * 900, b'{"a":' * 990 + b"1" + b"}" * 990):
            value = b'{"ISODATE":"2026-01-01T00:00:00+00:00","RCPTID":"a","x":%b}' % deep

            decoded = decode_record(record(value), NOW)

            self.assertFalse(decoded.is_line)
            self.assertEqual(value.decode(), decoded.message.values["MESSAGE"])
            self.assertEqual(decoded.message.values, decode_stored(encode_stored(decoded.message)).values)

    def test_deepest_line(self) -> None:
        """A line with the deepest body that a source takes is one, with what a message has around the body."""
        body: Any = 1
        for _ in range(MAX_DEPTH - 1):
            body = [body]
        message = Message(router_values(deep=body), RECEIVED)

        decoded = decode_record(record(encode_object(message)), NOW)

        self.assertTrue(decoded.is_line)
        self.assertEqual(message.values, decoded.message.values)

    def test_no_line(self) -> None:
        """What only looks like a line is a text: without an id or a time, of another type, or cut off."""
        line = encode_object(Message(source_values(), RECEIVED))
        router = encode_object(Message(router_values(), RECEIVED))
        for value in (
            b"",
            b"{}",
            b"[]",
            b"null",
            b'"x"',
            line[:-1],
            line + b"{}",
            line.replace(b"RCPTID", b"RCPT"),
            line.replace(b'"id-1"', b'""'),
            line.replace(b'"id-1"', b"1"),
            line.replace(b"ISODATE", b"DATE"),
            line.replace(isodate(RECEIVED).encode(), b"2026-01-02T03:04:05"),
            line.replace(isodate(RECEIVED).encode(), b"yesterday"),
            line.replace(isodate(RECEIVED).encode(), b"1969-12-31T00:00:00+00:00"),
            line.replace(b"hello", b"\\ud800"),
            line.replace(b"hello", b"\xff"),
            router.replace(b"id-2", b""),
            router.replace(str(RECEIVED).encode(), b"-1"),
            router.replace(str(RECEIVED).encode(), b"%d" % (1 << 63)),
            router.replace(b'"meta"', b'"beta"'),
            b'{"a":' * 100_000,
        ):
            decoded = decode_record(record(value), NOW)

            self.assertFalse(decoded.is_line, value[:80])
            self.assertEqual(value.decode("utf-8", "replace"), decoded.message.values["MESSAGE"])

    @given(st.binary(), st.text(), st.none() | st.integers())
    def test_never_raises(self, value: bytes, id: str, received: int | None) -> None:
        """Any bytes, id and time become a message that can be written on one line."""
        for bytes_ in (value, b"{" + value, b'{"log":{' + value):
            message = decode_record(record(bytes_, id, received), NOW).message

            self.assertEqual(1, encode_line(message).count(b"\n"))
