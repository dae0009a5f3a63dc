"""The syslog observer without a network: its spec strings, and what it makes of a connection that fails."""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
from collections.abc import Sequence

from twisted.trial.unittest import SynchronousTestCase

from tests import documents
from tests.contracts.observer_contract import ObserverContract
from tests.specs import parse_observer
from tests.system.certificates import Authority, key_pem, write, write_ca_file
from webhookrx.errors import ConfigError, Rejected, Unavailable
from webhookrx.interfaces import IWaitingObserver
from webhookrx.message.rfc5424 import FACILITIES, SEVERITIES, SyslogFormat
from webhookrx.observers.sockets import Deadline, describe
from webhookrx.observers.syslog import SyslogObserver, build_syslog
from webhookrx.observers.syslog_options import SYSLOG_SPEC
from webhookrx.testing import make_message

#: What stands before MSG, without structured data.
HEADER = re.compile(rb"<\d+>1 \S+ \S+ \S+ \S+ \S+ -(?: (?:\xef\xbb\xbf)?)?")


class FakeConnection:
    """
    Keeps what is sent.

    @ivar check_error: raised by C{check} unless None.
    @ivar send_errors: raised by one C{send} each, in order.
    @ivar longest: longer messages are refused.
    """

    def __init__(self, sent: list[bytes]) -> None:
        self.sent = sent
        self.check_error: OSError | None = None
        self.send_errors: list[Exception] = []
        self.longest = 10_000
        self.is_closed = False

    def check(self) -> None:
        """Fail as told."""
        if self.check_error is not None:
            raise self.check_error

    def send(self, messages: Sequence[bytes]) -> dict[int, Rejected]:
        """Keep them, or fail as told."""
        if self.send_errors:
            raise self.send_errors.pop(0)
        refused = {place: Rejected("too long") for place, message in enumerate(messages) if len(message) > self.longest}
        self.sent += [message for place, message in enumerate(messages) if place not in refused]
        return refused

    def close(self) -> None:
        """Be closed."""
        self.is_closed = True


class FakeServer:
    """
    Makes connections.

    @ivar sent: what came on any of them.
    @ivar connections: each that was made.
    @ivar errors: raised by one attempt each, in order.
    """

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.connections: list[FakeConnection] = []
        self.errors: list[OSError] = []

    def connect(self, deadline: Deadline) -> FakeConnection:
        """Make a connection, or fail as told."""
        if self.errors:
            raise self.errors.pop(0)
        self.connections.append(FakeConnection(self.sent))
        return self.connections[-1]

    def texts(self) -> list[str]:
        """Return the MSG of all that came."""
        return [HEADER.sub(b"", data, count=1).decode() for data in self.sent]


def make_observer(server: FakeServer, max_size: int = 10_000) -> SyslogObserver:
    """Make an observer of that server."""
    return SyslogObserver(
        "syslog:fake", "server", "written", SyslogFormat(), server.connect, timeout=5, max_size=max_size
    )


class SyslogContractTests(ObserverContract, SynchronousTestCase):
    """A syslog observer is an observer."""

    def make_observer(self) -> SyslogObserver:
        """Make one of a server in memory."""
        self.server = FakeServer()
        return make_observer(self.server)

    def break_observer(self) -> None:
        """Refuse connections."""
        self.server.errors = [ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")] * 9

    def stored_texts(self) -> list[str]:
        """Read what came."""
        return self.server.texts()

    def test_waiting(self) -> None:
        """It is one that may wait."""
        self.assertTrue(IWaitingObserver.providedBy(self.make_observer()))


class ConnectionTests(SynchronousTestCase):
    """When it connects, and what a batch comes to."""

    def setUp(self) -> None:
        """Open an observer."""
        self.server = FakeServer()
        self.observer = make_observer(self.server)
        self.observer.open()
        self.addCleanup(self.observer.close)

    def store(self, *texts: str) -> Sequence[Exception | None] | None:
        """Store a batch."""
        return self.observer.store([self.observer.prepare(make_message(text)) for text in texts])

    def test_lazy(self) -> None:
        """It connects with the first batch, and then keeps the connection."""
        self.assertEqual([], self.server.connections)

        self.store("one")
        self.store("two")

        self.assertEqual(1, len(self.server.connections))

    def test_away(self) -> None:
        """A server that is away is reported in one line with its name; the next batch tries again."""
        self.server.errors = [ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")]

        error = self.assertRaises(Unavailable, self.store, "one")

        self.assertEqual("server: Connection refused", str(error))
        self.assertIsNone(self.store("one"))
        self.assertEqual(["one"], self.server.texts())

    def test_closed_between(self) -> None:
        """A connection that is found closed before a batch is opened anew for it."""
        self.store("one")
        self.server.connections[0].check_error = ConnectionResetError()

        self.assertIsNone(self.store("two"))

        self.assertTrue(self.server.connections[0].is_closed)
        self.assertEqual(["one", "two"], self.server.texts())

    def test_closed_during(self) -> None:
        """A batch that fails on an old connection is tried once more on a new one, whole."""
        self.store("one")
        self.server.connections[0].send_errors = [BrokenPipeError(errno.EPIPE, "Broken pipe")]

        self.assertIsNone(self.store("two", "three"))

        self.assertEqual(2, len(self.server.connections))
        self.assertEqual(["one", "two", "three"], self.server.texts())

    def test_new_connection_fails(self) -> None:
        """A batch that fails on a new connection is not tried again, and that connection is not used again."""
        self.store("one")
        self.observer.reopen()
        connect = self.server.connect

        def broken(deadline: Deadline) -> FakeConnection:
            connection = connect(deadline)
            connection.send_errors = [BrokenPipeError(errno.EPIPE, "Broken pipe")]
            return connection

        self.observer._connect = broken
        self.assertRaises(Unavailable, self.store, "two")

        self.assertEqual([True, True], [connection.is_closed for connection in self.server.connections])
        self.assertEqual(["one"], self.server.texts())

    def test_unexpected(self) -> None:
        """Whatever else goes wrong while a batch is sent, nothing follows on what may be half a frame."""
        self.store("one")
        self.server.connections[0].send_errors = [MemoryError()]

        self.assertRaises(MemoryError, self.store, "two")
        self.store("two")

        self.assertEqual([True, False], [connection.is_closed for connection in self.server.connections])
        self.assertEqual(["one", "two"], self.server.texts())

    def test_timeout(self) -> None:
        """After a timeout there is no time left for another connection, and none is made."""
        self.store("one")
        self.server.connections[0].send_errors = [TimeoutError("it did not answer within 5s")]

        error = self.assertRaises(Unavailable, self.store, "two")

        self.assertEqual("server: it did not answer within 5s", str(error))
        self.assertEqual(1, len(self.server.connections))

    def test_refused_by_transport(self) -> None:
        """A message that the transport can't take is rejected, and the others are stored."""
        self.store("one")
        self.server.connections[0].longest = 200

        outcomes = self.store("two", "x" * 300, "three")

        assert outcomes is not None
        self.assertEqual([True, False, True], [outcome is None for outcome in outcomes])
        self.assertIsInstance(outcomes[1], Rejected)
        self.assertEqual(["one", "two", "three"], self.server.texts())

    def test_max_size(self) -> None:
        """A message of more than max_size bytes is rejected for good before anything is sent, at its place."""
        self.observer = make_observer(self.server, 100)
        self.observer.open()
        self.addCleanup(self.observer.close)

        outcomes = self.store("x" * 100, "one")

        assert outcomes is not None
        self.assertEqual("160 bytes are more than max_size=100", str(outcomes[0]))
        self.assertIsInstance(outcomes[0], Rejected)
        self.assertIsNone(outcomes[1])
        self.assertEqual(["one"], self.server.texts())

    def test_nothing_fits(self) -> None:
        """When every message is too long there is no need of a connection."""
        self.observer = make_observer(self.server, 1)
        self.observer.open()
        self.addCleanup(self.observer.close)

        self.assertEqual(2, len(self.store("one", "two") or ()))
        self.assertEqual([], self.server.connections)

    def test_reopen(self) -> None:
        """Reopening closes the connection; the next batch makes another."""
        self.store("one")

        self.observer.reopen()
        closed = self.server.connections[0].is_closed
        self.store("two")

        self.assertTrue(closed)
        self.assertEqual(2, len(self.server.connections))

    def test_not_open(self) -> None:
        """One that is not open, or no more, has nothing to hurry and stores nothing."""
        self.observer.close()

        self.observer.hurry()
        self.assertRaises(Unavailable, self.store, "one")


class SpecTests(SynchronousTestCase):
    """Spec strings."""

    def build(self, spec: str) -> SyslogObserver:
        """Read a spec string as the configuration does."""
        observer = parse_observer(spec)
        return build_syslog(spec, observer.args, dict(observer.options), "durable")

    def test_destinations(self) -> None:
        """Each transport has its arguments, its port and its promise."""
        for spec, server, promise in (
            ("syslog:tcp:logs.example.com:601", "logs.example.com:601", "written"),
            ("syslog:tls:logs.example.com", "logs.example.com:6514", "written"),
            ("syslog:tls:192.0.2.1:10514", "192.0.2.1:10514", "written"),
            ("syslog:udp:localhost", "localhost:514", "queued"),
            ("syslog:udp:localhost:1514", "localhost:1514", "queued"),
            (r"syslog:tcp:\:\:1:601", "[::1]:601", "written"),
            ("syslog:tcp:[2001:db8::1]:601", "[2001:db8::1]:601", "written"),
            ("syslog:udp:[::1]", "[::1]:514", "queued"),
            ("syslog:unix:/dev/log", "/dev/log", "written"),
        ):
            observer = self.build(spec)
            self.assertEqual((server, promise, spec), (observer._server, observer.promise, observer.spec))

    def test_wrong(self) -> None:
        """An error quotes the value, and says what is allowed."""
        for spec, *expected in (
            ("syslog", "tcp, tls, udp, unix"),
            ("syslog:sctp:host:1", "tcp, tls, udp, unix"),
            ("syslog:tcp:host", "needs a port"),
            ("syslog:tcp", "HOST:PORT"),
            ("syslog:tcp::514", "HOST:PORT"),
            ("syslog:tcp:host:1:2", "HOST:PORT"),
            ("syslog:tcp:host:0", "'0'", "1 to 65535"),
            ("syslog:tcp:host:65536", "'65536'"),
            ("syslog:tcp:host:-1", "'-1'"),
            ("syslog:tcp:host:٣", "1 to 65535"),
            ("syslog:tcp:host:syslog", "'syslog'"),
            ("syslog:tcp:a b:1", "'a b'", "host name"),
            ("syslog:tcp:a..b:1", "'a..b'", "host name"),
            (f"syslog:tcp:{'x' * 64}:1", "host name"),
            ("syslog:unix", "absolute path"),
            ("syslog:unix:log", "absolute path"),
            ("syslog:unix:/dev/log:1", "absolute path"),
            (f"syslog:unix:/{'x' * 107}", "107 bytes"),
            ("syslog:udp:host:facility=nonsense", 'facility="nonsense"', "local7", "0 to 23"),
            ("syslog:udp:host:facility=24", 'facility="24"'),
            ("syslog:udp:host:severity=8", 'severity="8"', "emerg", "0 to 7"),
            ("syslog:udp:host:app_name=${", 'app_name="${"', "column 1"),
            ("syslog:udp:host:template=$(x)", 'template="$(x)"', "format-json"),
            ("syslog:udp:host:sd_id=meta", 'sd_id="meta"', "meta@32473"),
            ("syslog:udp:host:bom=maybe", 'bom="maybe"', "yes or no"),
            ("syslog:udp:host:timeout=0s", 'timeout="0s"', "1ms or more"),
            ("syslog:udp:host:timeout=2h", 'timeout="2h"', "1h or less"),
            ("syslog:udp:host:timeout=soon", 'timeout="soon"', "such as 30s"),
            ("syslog:udp:host:max_size=0", 'max_size="0"', "1B or more"),
            ("syslog:udp:host:max_size=x", 'max_size="x"', "10MiB"),
            ("syslog:tcp:host:1:framing=x", 'framing="x"', "octet-counting or newline"),
            ("syslog:tls:host:escape=maybe", 'escape="maybe"', "yes or no"),
            ("syslog:tcp:host:1:framing=newline:escape=no", "escape=no", "octet counting only", "forge"),
            ("syslog:udp:host:escape=no", "escape=no", "octet counting only", "forge"),
            ("syslog:unix:/dev/log:escape=no", "escape=no", "octet counting only", "forge"),
            ("syslog:tls:host:framing=newline", "framing=", "syslog:tcp: only"),
            ("syslog:tcp:host:1:ca_file=/x", "ca_file=", "syslog:tls: only"),
            ("syslog:udp:host:server_name=x", "server_name=", "syslog:tls: only"),
            ("syslog:tls:host:server_name=", "server_name= is empty"),
            ("syslog:tls:host:server_name=a b", "'a b'"),
            ("syslog:tls:host:ca_file=", 'ca_file="" is not a file'),
            ("syslog:tls:host:ca_file=/does/not/exist", "/does/not/exist"),
            ("syslog:tls:host:cert_file=/x", "go together"),
        ):
            error = str(self.assertRaises(ConfigError, self.build, spec))
            self.assertIn("'syslog'", error, spec)
            self.assertNotIn("\n", error)
            for part in expected:
                self.assertIn(part, error, spec)

    def test_options(self) -> None:
        """Facility, severity, application, structured data and text are what the options say."""
        for options, expected in (
            ("facility=local0:severity=info", b"<134>1 2026-01-02T03:04:05.678901Z 192.0.2.1 webhookrx - - - hello"),
            ("facility=16:severity=WARN", b"<132>1 2026-01-02T03:04:05.678901Z 192.0.2.1 webhookrx - - - hello"),
            ("facility=kern:severity=0", b"<0>1 2026-01-02T03:04:05.678901Z 192.0.2.1 webhookrx - - - hello"),
            (
                "app_name=hook-$HOST:template=[$MESSAGE] é:bom=no",
                "<13>1 2026-01-02T03:04:05.678901Z 192.0.2.1 hook-192.0.2.1 - - - [hello] é".encode(),
            ),
            (
                "sd_id=meta@1:bom=yes",
                (
                    b'<13>1 2026-01-02T03:04:05.678901Z 192.0.2.1 webhookrx - - [meta@1 HOST="192.0.2.1" '
                    b'SOURCEIP="192.0.2.1"] hello'
                ),
            ),
        ):
            observer = self.build(f"syslog:tcp:host:1:{options}")
            self.assertEqual(expected, observer.prepare(make_message()))

    def test_lines(self) -> None:
        """A text is one line, in structured data too; with escape=no, where frames count octets, it goes as it came."""
        text = "a\nb\r\x1b[2J\u2028\u202ec"
        escaped = rb"a\nb\r\x1b[2J\u2028\u202ec"
        for spec, expected in (
            ("syslog:tcp:host:1", escaped),
            ("syslog:tcp:host:1:escape=yes", escaped),
            ("syslog:tcp:host:1:escape=no", text.encode()),
            ("syslog:tcp:host:1:framing=octet-counting:escape=no", text.encode()),
            ("syslog:tcp:host:1:framing=newline", escaped),
            ("syslog:tcp:host:1:framing=newline:escape=yes", escaped),
            ("syslog:tls:host", escaped),
            ("syslog:tls:host:escape=no", text.encode()),
            ("syslog:udp:host", escaped),
            ("syslog:udp:host:escape=yes", escaped),
            ("syslog:unix:/dev/log", escaped),
        ):
            with self.subTest(spec):
                observer = self.build(f"{spec}:bom=no:sd_id=a@1")
                data = observer.prepare(make_message(text, {"NOTE": text}))

                self.assertTrue(data.endswith(b"] " + expected), data)
                value = expected.replace(b"\\", b"\\\\")
                self.assertIn(b'NOTE="%s"' % value, data)

    def test_certificates(self) -> None:
        """Files of certificates are read at once: a wrong or encrypted key is an error."""
        directory = self.mktemp()
        os.mkdir(directory)
        directory = os.path.abspath(directory)
        authority = Authority("authority")
        ca_file = write_ca_file(directory, "ca", authority)
        key_file, cert_file = authority.issue("client").write(directory, "client")
        other = authority.issue("other")
        other_key = write(os.path.join(directory, "other.pem"), key_pem(other.key))
        locked_key = write(os.path.join(directory, "locked.pem"), key_pem(other.key, b"pass phrase"))

        self.build(f"syslog:tls:localhost:ca_file={ca_file}:cert_file={cert_file}:key_file={key_file}")
        for wrong in (other_key, locked_key, cert_file):
            spec = f"syslog:tls:localhost:ca_file={ca_file}:cert_file={cert_file}:key_file={wrong}"
            self.assertIn(wrong, str(self.assertRaises(ConfigError, self.build, spec)))

    def test_certificates_go_wrong(self) -> None:
        """If a file has become wrong, the next connection fails with the reason."""
        directory = os.path.abspath(self.mktemp())
        os.mkdir(directory)
        ca_file = write_ca_file(directory, "ca", Authority("authority"))
        with socket.create_server(("127.0.0.1", 0)) as server:
            observer = self.build(f"syslog:tls:127.0.0.1:{server.getsockname()[1]}:ca_file={ca_file}")
            write(ca_file, b"")
            observer.open()
            self.addCleanup(observer.close)
            error = self.assertRaises(Unavailable, observer.store, [b"one"])

        self.assertIn("ca_file: ", str(error))
        self.assertIn(ca_file, str(error))


class DescribeTests(SynchronousTestCase):
    """Errors as people read them."""

    def test_lines(self) -> None:
        """Each is one line without codes."""
        handshake = ssl.SSLError(1, "[SSL: TLSV1_ALERT_UNKNOWN_CA] tlsv1 alert unknown ca (_ssl.c:1000)")
        handshake.reason = "TLSV1_ALERT_UNKNOWN_CA"
        for error, expected in (
            (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "Connection refused"),
            (ConnectionError("one;\n two"), "one; two"),
            (OSError(), "OSError"),
            (handshake, "TLS: tlsv1 alert unknown ca"),
        ):
            self.assertEqual(expected, describe(error))


class DocumentTests(SynchronousTestCase):
    """docs/reference/syslog-observer.md."""

    def test_options(self) -> None:
        """It has every option, facility and severity, and no other; its examples can be built."""
        page = documents.read("docs/reference/syslog-observer.md")
        table = page.partition("## Options")[2].partition("##")[0]
        rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]

        self.assertEqual(set(SYSLOG_SPEC.options), {name for row in rows for name in re.findall(r"`(\w+)`", row)})
        for name in (*FACILITIES, *SEVERITIES):
            if not re.fullmatch("local[1-6]", name):
                self.assertIn(f"`{name}`", table)
        specs = re.findall(r"^  - (syslog:\S+)$", page, re.MULTILINE)
        self.assertEqual(2, len(specs))
        for spec in specs:
            observer = parse_observer(spec)
            build_syslog(spec, observer.args, dict(observer.options), "durable")
