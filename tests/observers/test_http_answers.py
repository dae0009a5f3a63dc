"""What an answer means for the messages, and what is told of it."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.observers.http_answers import EXCERPT, Answer, Verdict


class VerdictTests(SynchronousTestCase):
    """Stored, refused for good, or to be tried again."""

    def test_each_status(self) -> None:
        """2xx is stored; 400, 413 and 422 speak of the messages; all others may be mended by somebody."""
        for status in range(200, 600):
            with self.subTest(status):
                if status < 300:
                    expected = Verdict.STORED
                else:
                    expected = Verdict.REFUSED if status in (400, 413, 422) else Verdict.LATER

                self.assertIs(expected, Answer(status).verdict)


class DescribeTests(SynchronousTestCase):
    """One line for an operator."""

    def test_phrase(self) -> None:
        """The phrase is the standard's; a status that it does not have stands alone."""
        self.assertEqual("it answers 503 Service Unavailable", Answer(503).describe())
        self.assertEqual("it answers 599", Answer(599).describe())

    def test_hint(self) -> None:
        """Where an operator must do something the option is named."""
        for status, word in [
            (401, "token_file="),
            (403, "cert_file="),
            (404, "URL"),
            (415, "gzip="),
            (302, "redirect"),
        ]:
            with self.subTest(status):
                self.assertIn(word, Answer(status).describe())

    def test_excerpt(self) -> None:
        """The beginning of its body follows, on one line, without control characters."""
        text = Answer(400, body=b'{"error":\r\n  "\x1b[2J\xff\x00bad\xe2\x80\xae"}').describe()

        self.assertEqual(r'it answers 400 Bad Request: {"error": "\u001b[2J\xff\u0000bad\u202e"}', text)

    def test_long_excerpt(self) -> None:
        """A long body is cut off."""
        text = Answer(400, body=b"a" * 4096).describe()

        self.assertTrue(text.endswith(": " + "a" * EXCERPT + "…"))

    def test_no_excerpt(self) -> None:
        """Where the other end may repeat a secret, nothing of its body is told."""
        text = Answer(403, body=b"bad token").describe(excerpt=False)

        self.assertEqual("it answers 403 Forbidden (look at token_file=, headers_file= and cert_file=)", text)
