"""
What comes of the requests of well-known senders.
"""

from __future__ import annotations

import http.client
import shutil
import subprocess
from typing import Any

from tests.system.receiver import ANY_PORT, PATIENCE, Receiver, ReceiverCase
from tests.system.senders import SAMPLES, Sample

CURL = shutil.which("curl")

CONFIG = f"""
include_request_headers: yes
sources:
  - {{name: raw, source: webhook, port: "{ANY_PORT}", paths: [/raw]}}
  - {{name: json, source: webhook-json, port: "{ANY_PORT}", paths: [/json]}}
  - {{name: prefixed, source: webhook-json, port: "{ANY_PORT}", paths: [/prefixed], prefix: "hook."}}
"""


class SampleTests(ReceiverCase):
    """
    Samples posted over one connection that stays, as senders do.
    """

    def post_all(self, path: str) -> list[tuple[Sample, dict[str, Any]]]:
        """Post all samples and return each with its message."""
        receiver = self.shared(config=CONFIG, port=None)
        client = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=PATIENCE)
        self.addCleanup(client.close)
        for sample in SAMPLES:
            client.request("POST", path, sample.body, sample.headers)
            response = client.getresponse()
            self.assertEqual((200, b'{"status":"received"}'), (response.status, response.read()), sample.name)
        messages = receiver.messages()
        self.assertEqual(len(SAMPLES), len(messages))
        self.assertNotIn(b"s3cret-gitlab-token", b"".join(receiver.lines()))
        return list(zip(SAMPLES, messages, strict=True))

    def test_raw(self) -> None:
        """C{webhook} keeps each body as it came, whatever it is called, unpacked when it was packed."""
        for sample, message in self.post_all("/raw"):
            self.assertEqual(sample.text, message["MESSAGE"], sample.name)
            self.assertEqual(len(sample.text.encode()), message["RAWMSG_SIZE"], sample.name)
            self.assertEqual("127.0.0.1", message["HOST"], sample.name)
            self.assertEqual(set(), message.keys() & sample.pairs.keys() - SEEN, sample.name)

    def test_json(self) -> None:
        """C{webhook-json} takes JSON apart, whatever the content type says; what is no JSON it keeps."""
        for sample, message in self.post_all("/json"):
            found = {name: message.get(name, "missing") for name in sample.pairs}
            self.assertEqual(sample.pairs, found, sample.name)
            self.assertEqual(not sample.parses, "webhook.parse_error" in message, sample.name)
            if "MESSAGE" not in sample.pairs:
                self.assertEqual(sample.text, message["MESSAGE"], sample.name)

    def test_prefix(self) -> None:
        """With a prefix, each pair has it, and nothing else changes."""
        for sample, message in self.post_all("/prefixed"):
            for name, value in sample.pairs.items():
                if name not in RECEIVED:
                    self.assertEqual(value, message.get(f"hook.{name}", "missing"), (sample.name, name))
            self.assertEqual((sample.text, "127.0.0.1"), (message["MESSAGE"], message["SOURCEIP"]), sample.name)

    def test_headers(self) -> None:
        """Headers are recorded under their usual names, and credentials are not."""
        for sample, message in self.post_all("/raw"):
            recorded = message["webhook.headers"]
            self.assertEqual(sample.recorded, {name: recorded.get(name) for name in sample.recorded}, sample.name)
            self.assertEqual([str(len(sample.body))], recorded["Content-Length"], sample.name)


#: Names that a message has whatever was posted, and those that only the receiver sets.
SEEN = {"MESSAGE", "HOST", "SOURCEIP"}
RECEIVED = {"SOURCEIP"}


class CurlTests(ReceiverCase):
    """
    C{curl} with nothing but a body calls it a form, and it is not one.
    """

    if CURL is None:
        skip = "curl is not installed"

    def curl(self, receiver: Receiver, path: str, *arguments: str) -> dict[str, Any]:
        """Post with C{curl} and return the message."""
        assert CURL is not None
        url = f"http://127.0.0.1:{receiver.port}{path}"
        subprocess.run(
            [CURL, "-q", "-sS", "-f", "--noproxy", "*", *arguments, url],
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )
        return receiver.messages()[-1]

    def test_default_content_type(self) -> None:
        """The body is not touched, nor what it seems to say."""
        receiver = self.shared(config=CONFIG, port=None)
        for text in ("a=1&b=%20+&c", '{"a": "1&2"}', "hello", "&" * 2000):
            message = self.curl(receiver, "/raw?a=1&a=2&b=%20+x", "-d", text)
            self.assertEqual(text, message["MESSAGE"])
            self.assertEqual(["application/x-www-form-urlencoded"], message["webhook.headers"]["Content-Type"])
            self.assertEqual((["1", "2"], "  x"), (message["webhook.query.a"], message["webhook.query.b"]))
            self.assertNotIn("c", message)

    def test_json_by_default(self) -> None:
        """C{webhook-json} parses what is JSON though it is called a form."""
        receiver = self.shared(config=CONFIG, port=None)
        message = self.curl(receiver, "/json", "-d", '{"MESSAGE": "hi", "n": 1.50, "a": {"b": [1, "x"]}}')
        self.assertEqual(("hi", 1.5, [1, "x"]), (message["MESSAGE"], message["n"], message["a.b"]))
        self.assertIn(b'"n":1.50,', receiver.lines()[-2])

    def test_upload_of_a_form(self) -> None:
        """A form with files is one body too."""
        receiver = self.shared(config=CONFIG, port=None)
        message = self.curl(receiver, "/raw", "-F", "field=value", "-F", "file=hello;filename=a.txt")
        self.assertTrue(message["MESSAGE"].startswith("-----"), message)
        self.assertIn('name="field"\r\n\r\nvalue\r\n', message["MESSAGE"])

    def test_bytes(self) -> None:
        """Bytes that are not UTF-8 are there exactly."""
        receiver = self.shared(config=CONFIG, port=None)
        with open(receiver.path("bytes"), "wb") as file:
            file.write(b"\x00\xff\xfe\r\n")
        message = self.curl(receiver, "/raw", "--data-binary", f"@{receiver.path('bytes')}")
        self.assertEqual(("\x00\ufffd\ufffd\r\n", "AP/+DQo="), (message["MESSAGE"], message["webhook.body_base64"]))
