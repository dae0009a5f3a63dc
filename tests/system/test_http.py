"""
HTTP over real sockets: with C{curl}, with Python's own client, and byte by byte.
"""

from __future__ import annotations

import gzip
import http.client
import os
import shutil
import subprocess
from collections.abc import Iterator

from tests.pieces import pieces
from tests.system.doubtful_requests import DOUBTFUL, ODD
from tests.system.receiver import ANY_PORT, PATIENCE, ReceiverCase, post

CURL = shutil.which("curl")
NETCAT = shutil.which("nc")

MiB = 1024 * 1024

CONFIG = f"""
sources:
  - {{name: open, port: "{ANY_PORT}", paths: [/in, "/events/(?P<HOST>.*)"]}}
  - {{name: guarded, port: "{ANY_PORT}", paths: [/guarded], auth_token: s3cret}}
limits: {{body: 1MiB}}
"""


class CurlCase(ReceiverCase):
    """
    With C{curl}, as people do it.
    """

    if CURL is None:
        skip = "curl is not installed"

    def curl(self, *arguments: str, body: bytes | None = None) -> tuple[int, bytes, int]:
        """Return status, body of the answer, and how many bytes of a body were sent; C{curl} must be content."""
        assert CURL is not None
        given = () if body is None else ("--data-binary", "@-")
        done = subprocess.run(
            [CURL, "-q", "-sS", "--noproxy", "*", "-w", "%{stderr}%{http_code} %{size_upload}", *given, *arguments],
            input=body,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        self.assertEqual(0, done.returncode, (arguments, done.stderr))
        status, sent = done.stderr.split()[-2:]
        return int(status), done.stdout, int(sent)


class StatusTests(CurlCase):
    """
    The table of statuses.
    """

    ROWS = (
        # arguments, path, status, and what the body holds
        (["-d", "hi"], "/in", 200, "received"),
        (["-d", ""], "/in", 200, "received"),
        (["-d", "hi", "--http1.0"], "/in", 200, "received"),
        (["-d", "hi", "-H", "Transfer-Encoding: chunked"], "/in", 200, "received"),
        (["-d", "hi", "-H", "Content-Encoding: identity"], "/in", 200, "received"),
        (["-d", "hi"], "/events/a.example?x=1&x=2", 200, "received"),
        (["-d", "hi", "-H", "Authorization: Bearer s3cret"], "/guarded", 200, "received"),
        (["-d", "hi", "-H", "Authorization: Basic s3cret"], "/guarded", 200, "received"),
        (["-d", "hi"], "/guarded", 403, "bad_token"),
        (["-d", "hi", "-H", "Authorization: Bearer other"], "/guarded", 403, "bad_token"),
        (["-d", "hi", "-H", "Authorization: s3cret"], "/guarded", 403, "bad_token"),
        (["-d", "hi", "-u", "s3cret:"], "/guarded", 403, "bad_token"),
        (
            ["-d", "hi", "-H", "Authorization: Bearer s3cret", "-H", "Authorization: Bearer s3cret"],
            "/guarded",
            403,
            "bad_token",
        ),
        (["-d", "hi"], "/", 404, "no_matching_path"),
        (["-d", "hi"], "/in/", 404, "no_matching_path"),
        (["-d", "hi"], "/events", 404, "no_matching_path"),
        (["-d", "hi", "--path-as-is"], "/../in", 404, "no_matching_path"),
        ([], "/in", 405, "method_not_allowed"),
        (["-X", "PUT", "-d", "hi"], "/in", 405, "method_not_allowed"),
        (["-X", "PATCH", "-d", "hi"], "/guarded", 405, "method_not_allowed"),
        (["-X", "post", "-d", "hi"], "/in", 405, "method_not_allowed"),
        (["-X", "OPTIONS"], "/in", 405, "method_not_allowed"),
        ([], "/nowhere", 404, "no_matching_path"),
        (["-d", "hi"], "/events/%ff", 400, "bad_encoding"),
        (["-d", "hi"], "/in?a=%ff", 400, "bad_encoding"),
        (["-d", "hi", "-H", "Content-Encoding: compress"], "/in", 415, "unsupported_encoding"),
        (["-d", "hi", "-H", "Content-Encoding: gzip, gzip, gzip"], "/in", 415, "unsupported_encoding"),
        (["-d", "hi", "-H", "Content-Encoding: gzip"], "/in", 400, "bad_compression"),
        (["-d", "hi", "-H", "Expect: a miracle"], "/in", 417, "bad_expectation"),
        (["-d", "hi"], "/in?" + "a" * 9000, 414, "target_too_long"),
        (["-d", "hi", "-H", "X: " + "a" * 17000], "/in", 431, "headers_too_large"),
        (["-d", "hi", *["-H", "X: a"] * 101], "/in", 431, "headers_too_large"),
        (["-d", "hi", "-H", "Host:"], "/in", 400, "bad_request"),
    )

    def test_statuses(self) -> None:
        """Each request has the status and the reason of the table, and only the accepted ones become messages."""
        receiver = self.shared(config=CONFIG, port=None)
        accepted = 0
        for arguments, path, status, word in self.ROWS:
            found, body, _ = self.curl(*arguments, f"http://127.0.0.1:{receiver.port}{path}")
            self.assertEqual((status, True), (found, f'"{word}"'.encode() in body), (arguments, path, body))
            accepted += status == 200
            self.assertEqual(accepted, len(receiver.messages()), (arguments, path))

    def test_headers(self) -> None:
        """Answers say what they are and who answers, not more; a 405 says what is allowed."""
        receiver = self.shared(config=CONFIG, port=None)
        for path, options in (("/in", ["-d", "hi"]), ("/nowhere", ["-d", "hi"]), ("/in", []), ("/in", ["-I"])):
            _, answer, _ = self.curl("-i", *options, f"http://127.0.0.1:{receiver.port}{path}")
            head = answer.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
            headers = dict(line.split(": ", 1) for line in head)
            self.assertEqual(
                ("webhookrx", "application/json", "nosniff"),
                (headers["Server"], headers["Content-Type"], headers["X-Content-Type-Options"]),
            )
            self.assertIn("Date", headers)
            self.assertEqual("POST" if path == "/in" and "-d" not in options else None, headers.get("Allow"))

    def test_compressed(self) -> None:
        """A compressed body becomes the message that it was."""
        receiver = self.shared(config=CONFIG, port=None)
        url = f"http://127.0.0.1:{receiver.port}/in"
        self.curl("-H", "Content-Encoding: gzip", url, body=gzip.compress(b"hello" * 1000))
        self.assertEqual(["hello" * 1000], [message["MESSAGE"] for message in receiver.messages()])


class RefusedUploadTests(CurlCase):
    """
    Bodies that nobody wants: their senders see the answer, not a reset.
    """

    UPLOADS = (
        ("/nowhere", 404, "no_matching_path"),
        ("/guarded", 403, "bad_token"),
        ("/in", 413, "body_too_large"),
    )

    def test_expectation(self) -> None:
        """A sender that waits for its 100 gets the refusal instead and sends nothing."""
        receiver = self.shared(config=CONFIG, port=None)
        for path, status, word in self.UPLOADS:
            url = f"http://127.0.0.1:{receiver.port}{path}"
            found, body, sent = self.curl("-H", "Expect: 100-continue", url, body=bytes(2 * MiB))
            self.assertEqual((status, True, 0), (found, word.encode() in body, sent), path)
        self.assertEqual([], receiver.messages())

    def test_expectation_met(self) -> None:
        """A sender that may send gets its 100 at once, and one message comes of it."""
        receiver = self.shared(config=CONFIG, port=None)
        url = f"http://127.0.0.1:{receiver.port}/in"
        options = ("-H", "Expect: 100-continue", "--expect100-timeout", "15", "--max-time", "10")
        self.assertEqual(200, self.curl(*options, url, body=bytes(MiB))[0])
        self.assertEqual([MiB], [message["RAWMSG_SIZE"] for message in receiver.messages()])

    def test_no_expectation(self) -> None:
        """A sender that doesn't ask first sees the answer too, with a length or in chunks."""
        receiver = self.shared(config=CONFIG, port=None)
        for path, status, word in self.UPLOADS:
            url = f"http://127.0.0.1:{receiver.port}{path}"
            for options in ([], ["-H", "Transfer-Encoding: chunked"]):
                found, body, _ = self.curl("-H", "Expect:", *options, url, body=bytes(2 * MiB))
                self.assertEqual((status, True), (found, word.encode() in body), (path, options))
        self.assertEqual([], receiver.messages())

    def test_deaf_sender(self) -> None:
        """C{http.client} sends 20 MB before it reads a byte, and then finds the 413, with a length or in chunks."""
        receiver = self.shared("--paths", "/in")

        def chunks() -> Iterator[bytes]:
            for _ in range(20):
                yield bytes(MiB)

        for body, headers in ((bytes(20 * MiB), {}), (chunks(), {"Transfer-Encoding": "chunked"})):
            client = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=PATIENCE)
            self.addCleanup(client.close)
            client.request("POST", "/in", body, headers, encode_chunked=bool(headers))
            response = client.getresponse()
            self.assertEqual((413, "close"), (response.status, response.getheader("Connection")))
            self.assertIn(b"body_too_large", response.read())
        self.assertEqual([], receiver.messages())


class ConnectionTests(ReceiverCase):
    """
    What a connection can go through.
    """

    def test_pipelining(self) -> None:
        """A thousand requests sent at once are answered in order, refusals among them, on a connection that stays."""
        receiver = self.shared("--paths", "/in")
        requests = [post(str(number).encode(), "/nowhere" if number % 7 == 3 else "/in") for number in range(1000)]
        connection = self.connect(receiver.port)
        connection.send(b"".join(requests))
        statuses = [answer.status for answer in (connection.answer() for _ in requests) if answer is not None]
        self.assertEqual([404 if number % 7 == 3 else 200 for number in range(1000)], statuses)
        expected = [str(number) for number in range(1000) if number % 7 != 3]
        self.assertEqual(expected, [message["MESSAGE"] for message in receiver.messages()])
        self.assertEqual(200, self.asked(connection, post(b"one more")))

    def test_byte_by_byte(self) -> None:
        """Requests may come one byte a packet."""
        receiver = self.shared("--paths", "/in")
        connection = self.connect(receiver.port)
        chunked = b"POST /in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
        for request in (post(b"hello"), chunked, post(b"hello")):
            for byte in request:
                connection.send(bytes([byte]))
            answer = connection.answer()
            self.assertEqual(200, answer and answer.status)
        self.assertEqual(["hello", "hi", "hello"], [message["MESSAGE"] for message in receiver.messages()])

    def test_half_close(self) -> None:
        """A sender that says that it has said all still gets every answer, and then the end."""
        receiver = self.shared("--paths", "/in")
        for requests, statuses in (
            (post(b"1"), [200]),
            (post(b"2", version="1.0"), [200]),
            (post(b"3") + post(b"4") + post(b"5"), [200, 200, 200]),
            (post(b"x", "/nowhere"), [404]),
            (post(b"6") + post(b"x", "/nowhere") + post(b"7"), [200, 404, 200]),
            (b"nonsense\r\n\r\n", [400]),
        ):
            connection = self.connect(receiver.port).send(requests).half_close()
            self.assertEqual(statuses, [answer.status for answer in connection.answers()], requests)
        self.assertEqual(list("1234567"), [message["MESSAGE"] for message in receiver.messages()])

    def test_half_close_inside(self) -> None:
        """A request that is cut short becomes no message, and its connection ends at once."""
        receiver = self.shared("--paths", "/in")
        whole = post(b"hello")
        for cut in (4, 30, len(whole) - 1):
            connection = self.connect(receiver.port, seconds=5).send(whole[:cut]).half_close()
            self.assertNotIn(200, [answer.status for answer in connection.answers()])
        self.assertEqual([], receiver.messages())

    def test_netcat(self) -> None:
        """C{nc} that closes its side at the end of its input prints the answer."""
        if NETCAT is None or b"-N" not in subprocess.run([NETCAT, "-h"], capture_output=True, check=False).stderr:
            self.skipTest("there is no nc with -N (netcat-openbsd)")
        receiver = self.shared("--paths", "/in")
        done = subprocess.run(
            [NETCAT, "-N", "127.0.0.1", str(receiver.port)],
            input=post(b"from nc"),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        self.assertTrue(done.stdout.startswith(b"HTTP/1.1 200 OK\r\n"), done)
        self.assertEqual(["from nc"], [message["MESSAGE"] for message in receiver.messages()])

    def test_http_1_0(self) -> None:
        """HTTP/1.0 closes after one answer unless it asks otherwise, and is told when it may go on."""
        receiver = self.shared("--paths", "/in")
        connection = self.connect(receiver.port).send(post(b"a", version="1.0"))
        (answer,) = connection.answers()
        self.assertEqual((200, "close"), (answer.status, answer.headers.get("connection")))

        connection = self.connect(receiver.port)
        for text in (b"b", b"c"):
            kept = connection.send(post(text, version="1.0", headers=["Connection: keep-alive"])).answer()
            assert kept is not None
            self.assertEqual((200, "keep-alive"), (kept.status, kept.headers.get("connection")))
        self.assertEqual(["a", "b", "c"], [message["MESSAGE"] for message in receiver.messages()])

    def test_connection_close(self) -> None:
        """Who asks for the end gets it after the answer."""
        receiver = self.shared("--paths", "/in")
        connection = self.connect(receiver.port).send(post(b"a", headers=["Connection: close"]) + post(b"ignored"))
        self.assertEqual([(200, "close")], [(each.status, each.headers["connection"]) for each in connection.answers()])
        self.assertEqual(["a"], [message["MESSAGE"] for message in receiver.messages()])

    def test_unix_socket(self) -> None:
        """A UNIX socket is an endpoint like others; its peers are this machine and have no port."""
        if CURL is None:
            self.skipTest("curl is not installed")
        receiver = self.start(port="unix:socket")
        done = subprocess.run(
            [CURL, "-q", "-sS", "--unix-socket", receiver.path("socket"), "-d", "hi", "http://receiver/in"],
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )
        self.assertEqual(b'{"status":"received"}', done.stdout)
        (message,) = receiver.messages()
        self.assertEqual(("hi", "127.0.0.1"), (message["MESSAGE"], message["SOURCEIP"]))
        self.assertNotIn("SOURCEPORT", message)
        self.assertEqual(200, self.ask(receiver.path("socket"), post(b"again")).status)
        receiver.stop()
        self.assertFalse(os.path.exists(receiver.path("socket")))

    def asked(self, connection: object, request: bytes) -> int:
        """Send a request on a connection and return the status of its answer."""
        answer = connection.send(request).answer()  # type: ignore[attr-defined]
        assert answer is not None
        return int(answer.status)


class DoubtfulRequestTests(ReceiverCase):
    """
    Requests that two readers could read in two ways.
    """

    def test_doubtful(self) -> None:
        """Each is answered once, soon, with a 4xx; then the connection ends, and no message has come of it."""
        receiver = self.shared()
        wrong = []
        for name, request in DOUBTFUL.items():
            connection = self.connect(receiver.port, seconds=5)
            try:
                answers = connection.send(request).answers()
            except OSError as error:
                wrong.append((name, repr(error)))
            else:
                if len(answers) != 1 or not 400 <= answers[0].status < 500 or answers[0].reason is None:
                    wrong.append((name, repr(answers)))
            connection.socket.close()
        self.assertEqual([], wrong)
        self.assertEqual([], receiver.messages())
        self.assertNotIn("Traceback", receiver.log())

    def test_odd(self) -> None:
        """What only looks odd becomes one message, the same each time."""
        receiver = self.shared()
        wrong = []
        for name, request in ODD.items():
            connection = self.connect(receiver.port, seconds=5)
            answer = connection.send(request).answer()
            if answer is None or answer.status != 200:
                wrong.append((name, answer))
            connection.socket.close()
        self.assertEqual([], wrong)
        self.assertEqual(["hello"] * len(ODD), [message["MESSAGE"] for message in receiver.messages()])

    def test_cut_anywhere(self) -> None:
        """A doubtful request is no less doubtful when it comes in two packets."""
        receiver = self.shared()
        for name in ("length and chunked", "chunk longer than its size", "LF alone everywhere", "folded encoding"):
            request = DOUBTFUL[name]
            for cut in range(1, min(len(request), 120), 7):
                connection = self.connect(receiver.port, seconds=5)
                for packet in pieces(request, [cut]):
                    connection.send(packet)
                answers = connection.answers()
                self.assertEqual(1, len(answers), (name, cut))
                self.assertIn(answers[0].status, range(400, 500), (name, cut))
                connection.socket.close()
        self.assertEqual([], receiver.messages())
