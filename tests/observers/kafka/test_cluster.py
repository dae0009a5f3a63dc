"""
Tests for L{webhookrx.observers.kafka.cluster} and L{webhookrx.observers.kafka.options}.
"""

from __future__ import annotations

import os

from confluent_kafka import KafkaException, Producer
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.specs import parse_observer
from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.message.encoders import encode_line
from webhookrx.observers import registry
from webhookrx.observers.kafka.cluster import ALLOWED, read_properties
from webhookrx.observers.kafka.observer import KafkaObserver
from webhookrx.observers.kafka.options import KafkaFormat, decode, read_kafka
from webhookrx.observers.keyed_record import KeyedFormat
from webhookrx.testing import make_message

LOCAL = "kafka://127.0.0.1:1/logs"
REMOTE = "kafka://b1.example.com,b2.example.com:9093/logs"

#: What would change what is safe, how long we wait, whom we trust, or which code runs.
FORBIDDEN = (
    "acks",
    "api.version.request",
    "auto.offset.reset",
    "bootstrap.servers",
    "debug",
    "delivery.report.only.error",
    "delivery.timeout.ms",
    "enable.auto.commit",
    "enable.gapless.guarantee",
    "enable.idempotence",
    "enable.sasl.oauthbearer.unsecure.jwt",
    "enable.ssl.certificate.verification",
    "group.id",
    "interceptors",
    "log_level",
    "max.in.flight",
    "message.max.bytes",
    "message.send.max.retries",
    "message.timeout.ms",
    "partitioner",
    "plugin.library.paths",
    "queue.buffering.max.messages",
    "request.required.acks",
    "request.timeout.ms",
    "retries",
    "sasl.kerberos.kinit.cmd",
    "sasl.password",
    "security.protocol",
    "socket.timeout.ms",
    "ssl.ca.location",
    "ssl.cipher.suites",
    "ssl.endpoint.identification.algorithm",
    "ssl.engine.location",
    "ssl.providers",
    "test.mock.num.brokers",
    "topic.metadata.propagation.max.ms",
    "transactional.id",
    "no.such.property",
)


class KafkaSpecTests(SynchronousTestCase):
    """Spec strings."""

    def file(self, text: str) -> str:
        """Write a file."""
        path = os.path.abspath(self.mktemp())
        with open(path, "w") as file:
            file.write(text)
        return path

    def problem(self, url: str, **options: str) -> str:
        """Return what is wrong, whether the spec or a file says so."""
        return str(self.assertRaises(ConfigError, lambda: read_kafka([url], options).properties()))

    def test_safe(self) -> None:
        """What makes a message safe is always asked for, and messages time out as the option says."""
        properties = read_kafka([LOCAL], {"retry_for": "4s"}).properties()

        for name, value in {
            "acks": "all",
            "enable.idempotence": True,
            "enable.gapless.guarantee": True,
            "max.in.flight.requests.per.connection": 1,
            "partitioner": "murmur2_random",
            "message.timeout.ms": 4000,
            "delivery.report.only.error": False,
            "compression.type": "zstd",
            "security.protocol": "plaintext",
            "log_level": 0,
            "enable.metrics.push": False,
        }.items():
            self.assertEqual(value, properties[name], name)
        Producer(properties).close()

    def test_leader_only(self) -> None:
        """With acks=1 one request at a time is under way, which keeps the order."""
        properties = read_kafka([LOCAL], {"acks": "1"}).properties()

        self.assertEqual("1", properties["acks"])
        self.assertEqual(1, properties["max.in.flight.requests.per.connection"])
        Producer(properties).close()

    def test_tls(self) -> None:
        """TLS is the default but for this machine, with certificates and names checked."""
        properties = read_kafka([REMOTE], {}).properties()

        self.assertEqual("b1.example.com:9092,b2.example.com:9093", properties["bootstrap.servers"])
        self.assertEqual("ssl", properties["security.protocol"])
        self.assertIs(True, properties["enable.ssl.certificate.verification"])
        self.assertEqual("https", properties["ssl.endpoint.identification.algorithm"])
        self.assertEqual("plaintext", read_kafka([REMOTE], {"tls": "no"}).properties()["security.protocol"])

    def test_password(self) -> None:
        """User and password go by SASL."""
        path = self.file("s3cret\n")
        given = {"user": "me", "password_file": path}
        properties = read_kafka([REMOTE], {**given, "sasl": "scram-512"}).properties()

        self.assertEqual("sasl_ssl", properties["security.protocol"])
        self.assertEqual(
            ("SCRAM-SHA-512", "me", "s3cret"),
            tuple(properties[f"sasl.{name}"] for name in ("mechanism", "username", "password")),
        )
        self.assertEqual("PLAIN", read_kafka([LOCAL], given).properties()["sasl.mechanism"])

    def test_plaintext(self) -> None:
        """No secret goes unencrypted to another machine, whichever file it is in, unless that is meant."""
        path = self.file("s3cret\n")
        given = {"user": "me", "password_file": path, "tls": "no"}
        self.assertIn("tls=yes", self.problem(REMOTE, **given))
        read_kafka([REMOTE], {**given, "allow_plaintext": "yes"}).properties()
        read_kafka([LOCAL], given).properties()
        token = self.file("sasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.client.secret = s3cret\n")
        problem = self.problem(REMOTE, librdkafka_file=token, tls="no")
        self.assertIn("tls=yes", problem)
        self.assertNotIn("s3cret", problem)

    def test_mistakes(self) -> None:
        """Each mistake is a sentence that names observer and option."""
        for url, options, words in (
            ("kafka://h:1/", {}, "is no topic"),
            ("kafka://h:1/a/b", {}, "is no topic"),
            ("kafka://h:1/..", {}, "is no topic"),
            ("http://h:1/logs", {}, "kafka://"),
            ("kafka://me:s3cret@h:1/logs", {}, "password_file="),
            (LOCAL, {"user": "me"}, "go together"),
            (LOCAL, {"sasl": "plain"}, "goes with user="),
            (LOCAL, {"ca_file": "/x"}, "goes with tls=yes"),
            (LOCAL, {"acks": "0"}, "all or 1"),
            (LOCAL, {"retry_for": "0"}, "1s or more"),
            (LOCAL, {"partitioner": "mine"}, "murmur2_random"),
            (REMOTE, {"ca_file": "/no/such"}, "ca_file"),
            (LOCAL, {"user": "me", "password_file": "/no/such"}, "password_file"),
        ):
            with self.subTest(url=url, **options):
                problem = self.problem(url, **options)
                self.assertIn("observer 'kafka'", problem)
                self.assertIn(words, problem)
                self.assertNotIn("s3cret", problem)

    def test_file(self) -> None:
        """The file of properties sets what it may."""
        path = self.file("# tuning\n\nbatch.size = 200000\nclient.rack=a\nlinger.ms=5\n")
        properties = read_kafka([LOCAL], {"librdkafka_file": path}).properties()

        self.assertEqual(("200000", "a", "5"), tuple(properties[x] for x in ("batch.size", "client.rack", "linger.ms")))
        Producer(properties).close()

    def test_allowed_properties_exist(self) -> None:
        """Each property that the file may set is known to librdkafka."""
        for name in ALLOWED:
            with self.subTest(name):
                try:
                    Producer({name: "", "log_level": 0}).close()
                except KafkaException as error:
                    self.assertNotIn("No such", str(error))

    def test_forbidden_properties(self) -> None:
        """Nothing in the file weakens what is safe, waiting or trust, or runs code; its value is not quoted."""
        for name in FORBIDDEN:
            with self.subTest(name):
                problem = self.problem(LOCAL, librdkafka_file=self.file(f"{name} = s3cret\n"))
                self.assertIn(name, problem)
                self.assertIn("may not", problem)
                self.assertNotIn("s3cret", problem)

    def test_bad_files(self) -> None:
        """A line that is none, twice the same, a mechanism of another option, and a token asked for in the open."""
        for text, words in (
            ("s3cret\n", "line 1"),
            ("client.id=a\nclient.id=b\n", "again"),
            ("sasl.mechanism=PLAIN\n", "OAUTHBEARER"),
            ("linger.ms=5000\n", "linger.ms"),
            ("sasl.oauthbearer.token.endpoint.url=http://idp.example.com/token\n", "https://"),
            ("sasl.oauthbearer.token.endpoint.url=http://127.0.0.1@idp.example.com/\n", "https://"),
        ):
            with self.subTest(text):
                problem = self.problem(LOCAL, librdkafka_file=self.file(text))
                self.assertIn(words, problem)
                self.assertNotIn("s3cret", problem)
        read_properties(
            self.file("sasl.oauthbearer.token.endpoint.url=http://127.0.0.1:8080/token\n"), SpecOptions("kafka", {})
        )

    def test_built(self) -> None:
        """A spec string becomes an observer, and a bad value in the file is told at once."""
        observer = registry.build(parse_observer(f"kafka:{LOCAL}"), "durable")
        self.assertIsInstance(observer, KafkaObserver)
        path = self.file("batch.size=many\n")
        error = self.assertRaises(
            ConfigError, registry.build, parse_observer(f"kafka:{LOCAL}:librdkafka_file={path}"), "durable"
        )
        self.assertIn("batch.size", str(error))

    @given(st.text(max_size=300), st.text(max_size=20))
    def test_prepared(self, source: str, host: str) -> None:
        """What prepare makes is taken apart again, whatever the names are."""
        message = make_message("text", {"SOURCE": source, "HOST": host, "RCPTID": "x"})
        read = KafkaFormat(KeyedFormat())
        got, own, key, value = decode(read.encode(message))

        self.assertEqual(source.encode("utf-8", "surrogatepass")[:512], got)
        self.assertEqual((b"x", b""), (own, key))
        self.assertEqual(encode_line(message)[:-1], value)
