"""The kafka observer and the relay's consumer with TLS and a password, before librdkafka's mock cluster."""

from __future__ import annotations

import os
import ssl
import warnings

import trustme

from tests.contracts.secret_contract import all_texts, forms_of
from tests.system.kafka_tls_proxy import SecureProxy
from tests.system.receiver import wait_until
from tests.system.servers.kafka_mock import KafkaMock
from tests.system.servers.process import ServerCase
from webhookrx.errors import Unavailable
from webhookrx.observers.kafka.observer import KafkaObserver
from webhookrx.observers.kafka.options import read_kafka
from webhookrx.relay.consumer import Record
from webhookrx.relay.registry import build_consumer
from webhookrx.testing import make_message

SECRET, NEW_SECRET = "first-5ecret-aQ7", "second-5ecret-zX9"
MiB = 1024 * 1024


class KafkaTLSTests(ServerCase):
    """A cluster of one broker behind TLS."""

    def setUp(self) -> None:
        """Start the broker, and make an authority."""
        self.kafka = self.serve(KafkaMock, 1)
        self.kafka.join_soon()
        self.kafka.make_topic("logs", 1)
        self.authority = trustme.CA()
        self.ca_file = os.path.abspath(self.mktemp())
        self.authority.cert_pem.write_to_path(self.ca_file)
        self.password_file = os.path.abspath(self.mktemp())
        self.write_secret(SECRET)

    def write_secret(self, secret: str) -> None:
        """Write the password."""
        with open(self.password_file, "w") as file:
            file.write(f"{secret}\n")
        os.chmod(self.password_file, 0o600)

    def secure(self, name: str = "127.0.0.1", password: str | None = None, tls: bool = True) -> SecureProxy:
        """Put a proxy before the broker, with a certificate for a name, and have the broker name it."""
        context = None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.authority.issue_cert(name).configure_cert(context)
            self.context = context
        proxy = SecureProxy(int(self.kafka.bootstrap.rpartition(":")[2]), context, password)
        self.addCleanup(proxy.stop)
        self.kafka.advertise(1, proxy.port)
        return proxy

    def make_observer(self, port: int, host: str = "127.0.0.1", **options: str) -> KafkaObserver:
        """Make an open one."""
        target = read_kafka([f"kafka://{host}:{port}/logs"], {"retry_for": "5s", **options})
        observer = KafkaObserver("kafka:spec", target, report_topic=lambda *_: None)
        observer.open()
        self.addCleanup(observer.close)
        return observer

    def store(self, observer: KafkaObserver) -> Exception | None:
        """Store one message."""
        return (observer.store([observer.prepare(make_message())]) or [None])[0]

    def test_stored(self) -> None:
        """With the right authority and name messages are stored."""
        proxy = self.secure()

        self.assertIsNone(self.store(self.make_observer(proxy.port, tls="yes", ca_file=self.ca_file)))

    def test_wrong_certificate(self) -> None:
        """A certificate for another name, or of an unknown authority, stores nothing, and a sentence says why."""
        for name, options in (
            ("other.example.com", {"ca_file": self.ca_file}),
            ("127.0.0.2", {"ca_file": self.ca_file}),
            ("127.0.0.1", {}),
        ):
            with self.subTest(name):
                proxy = self.secure(name)
                problem = self.store(self.make_observer(proxy.port, tls="yes", **options))
                self.assertIsInstance(problem, Unavailable)
                self.assertIn("(look at tls=, ca_file=", str(problem))

    def test_old_tls(self) -> None:
        """TLS 1.1 is not spoken."""
        proxy = self.secure()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self.context.minimum_version = ssl.TLSVersion.TLSv1
            self.context.maximum_version = ssl.TLSVersion.TLSv1_1
            self.context.set_ciphers("ALL:@SECLEVEL=0")

        problem = self.store(self.make_observer(proxy.port, tls="yes", ca_file=self.ca_file))

        self.assertIsInstance(problem, Unavailable)

    def test_plain_server(self) -> None:
        """A server that speaks no TLS gets no password."""
        proxy = self.secure(password=SECRET, tls=False)
        options = {"tls": "yes", "ca_file": self.ca_file, "user": "me", "password_file": self.password_file}

        problem = self.store(self.make_observer(proxy.port, **options))

        self.assertIsInstance(problem, Unavailable)
        self.assertEqual([], proxy.shown)

    def test_password(self) -> None:
        """The password is shown, and read again on reopen; of a wrong one the code is told, not the broker's words."""
        proxy = self.secure(password=NEW_SECRET)
        options = {"tls": "yes", "ca_file": self.ca_file, "user": "me", "password_file": self.password_file}
        with all_texts() as texts:
            observer = self.make_observer(proxy.port, **options)
            problem = self.store(observer)
            self.assertIsInstance(problem, Unavailable)
            self.assertIn("_AUTHENTICATION (look at user= and password_file=)", str(problem))
            self.assertIn(SECRET, proxy.shown)
            self.write_secret(NEW_SECRET)
            observer.reopen()
            self.assertIsNone(self.store(observer))
            self.assertEqual(NEW_SECRET, proxy.shown[-1])
        for text in [*texts, str(problem), repr(problem), repr(vars(observer))]:
            for form in [*forms_of(SECRET), *forms_of(NEW_SECRET)]:
                self.assertNotIn(form, text)

    def test_relay(self) -> None:
        """The relay reads with TLS and a password, and uses another one from the next connection on."""
        proxy = self.secure(password=SECRET)
        options = f"tls=yes:ca_file={self.ca_file}:user=me:password_file={self.password_file}"
        given = {"tls": "yes", "ca_file": self.ca_file, "user": "me", "password_file": self.password_file}
        self.assertIsNone(self.store(self.make_observer(proxy.port, **given)))
        consumer = build_consumer(f"kafka:kafka://127.0.0.1:{proxy.port}/logs:{options}", "g")
        consumer.open()
        self.addCleanup(consumer.close)
        records: list[Record] = []

        def arrives(count: int) -> bool:
            try:
                records.extend(consumer.fetch(10, MiB, 0.2))
                consumer.settle(records)
            except Unavailable:
                return False
            return len(records) == count

        wait_until(lambda: arrives(1), "the first record")
        proxy.password = NEW_SECRET
        self.write_secret(NEW_SECRET)
        consumer.reopen()
        proxy.cut()
        self.assertIsNone(self.store(self.make_observer(proxy.port, **given)))

        wait_until(lambda: arrives(2), "the second record")
