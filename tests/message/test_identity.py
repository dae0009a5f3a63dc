"""The id of a message."""

from __future__ import annotations

import hashlib

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.message.encoders import decode_stored, encode_stored
from webhookrx.message.identity import LONGEST_ID, is_unique, message_id, parse_id
from webhookrx.message.message import Message
from webhookrx.testing import make_message


class MessageIdTests(SynchronousTestCase):
    """The receiver's own id."""

    def test_source_form(self) -> None:
        """It is RCPTID."""
        self.assertEqual("0a1b-7", message_id(make_message(values={"RCPTID": "0a1b-7"})))

    def test_router_form(self) -> None:
        """It is meta.id."""
        self.assertEqual("0a1b-7", message_id(Message({"log": {"body": "x"}, "meta": {"id": "0a1b-7"}}, 1)))

    def test_spooled(self) -> None:
        """It is the same after a spool has kept the message."""
        message = make_message(values={"RCPTID": "0a1b-7"})

        self.assertEqual("0a1b-7", message_id(decode_stored(encode_stored(message))))

    def test_none(self) -> None:
        """A message of others may have none, or something else in its place."""
        self.assertEqual("", message_id(make_message()))
        self.assertEqual("", message_id(make_message(values={"RCPTID": 5})))
        self.assertEqual("", message_id(Message({"log": {}, "meta": {"id": None}}, 1)))

    def test_foreign(self) -> None:
        """One that others wrote can be put into a header: it is one line, and not too long."""
        self.assertEqual("a\\r\\nX: 1", message_id(make_message(values={"RCPTID": "a\r\nX: 1"})))
        self.assertEqual("grün", message_id(make_message(values={"RCPTID": "grün"})))
        for text in ("ü" * 300, "x" * 513):
            own = message_id(make_message(values={"RCPTID": text}))
            self.assertEqual(hashlib.sha256(text.encode()).hexdigest(), own)


class UniqueTests(SynchronousTestCase):
    """Whether a template tells messages apart."""

    def test_table(self) -> None:
        """It does when the receiver's id is in it."""
        for text in ("$RCPTID", "a-${RCPTID}", "${RCPTID:-none}", "$( format-json )", "$$$RCPTID"):
            self.assertTrue(is_unique(text), text)
        for text in ("", "$MESSAGE", "RCPTID", "$$RCPTID", "$RCPTIDS", "${RCPTID_}", "${HOST:-RCPTID}"):
            self.assertFalse(is_unique(text), text)


class ParseIdTests(SynchronousTestCase):
    """Ids by a template."""

    def test_template(self) -> None:
        """It is the template's text, as one line."""
        identify = parse_id("${SOURCE}/${webhook.headers.X-Delivery}")

        self.assertEqual(
            "github/7\\n8", identify(make_message(values={"SOURCE": "github", "webhook.headers.X-Delivery": "7\n8"}))
        )

    def test_long(self) -> None:
        """One that is longer than stores take is its hash: still one id for one text."""
        identify = parse_id("$MESSAGE")
        short, long, other = "x" * LONGEST_ID, "x" * (LONGEST_ID + 1), "x" * (LONGEST_ID + 2)

        self.assertEqual(short, identify(make_message(short)))
        self.assertEqual(hashlib.sha256(long.encode()).hexdigest(), identify(make_message(long)))
        self.assertNotEqual(identify(make_message(long)), identify(make_message(other)))

    def test_empty(self) -> None:
        """A message for which it is empty has its own id."""
        identify = parse_id("${webhook.headers.X-Delivery}")

        self.assertEqual("0a1b-7", identify(make_message(values={"RCPTID": "0a1b-7"})))

    def test_no_macro(self) -> None:
        """A template that is the same for all messages would make them one."""
        for text in ("", "all", "$$"):
            error = self.assertRaises(ValueError, parse_id, text)
            self.assertIn("takes a template with a macro", str(error))

    def test_no_template(self) -> None:
        """What is no template says why."""
        self.assertIn("column 1", str(self.assertRaises(ValueError, parse_id, "${")))
