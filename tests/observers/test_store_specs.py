"""What the spec strings of all stores have in common."""

from __future__ import annotations

import os
import re
import socket
from unittest import mock

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from tests.documents import STORES
from tests.specs import parse_observer
from webhookrx.errors import ConfigError
from webhookrx.interfaces import LARGEST_BATCH, IMessageObserver, IStoreObserver
from webhookrx.observers.registry import find_spec, known_names
from webhookrx.promises import is_weaker
from webhookrx.service import known_observers

#: A store on another machine: the beginning of its URL, and what is behind the host.
URLS = {
    "kafka": ("kafka://", "/topic"),
    "nats": ("tls://", "/logs.${SOURCE}"),
    "redis": ("rediss://", "/0/stream"),
    "postgresql": ("postgresql://", "/db/table"),
    "s3": ("s3://", "/logs"),
    "clickhouse": ("https://", "/db.table"),
    "elasticsearch": ("https://", "/index"),
    "opensearch": ("https://", "/index"),
    "splunk-hec": ("https://", ""),
    "loki": ("https://", ""),
    "otlp": ("https://", ""),
}
#: What makes the connection unencrypted: another scheme, or options.
PLAIN = {
    "kafka": ("kafka://", ":tls=no"),
    "nats": ("nats://", ""),
    "redis": ("redis://", ""),
    "postgresql": ("postgresql://", ":tls=no"),
    "clickhouse": ("http://", ""),
    "elasticsearch": ("http://", ""),
    "opensearch": ("http://", ""),
    "splunk-hec": ("http://", ""),
    "loki": ("http://", ""),
    "otlp": ("http://", ""),
}
#: The options that a store can't do without.
NEEDED = {"splunk-hec": ("token_file",)}
#: What goes with a file of a secret, and what the file holds.
BESIDE = {
    "kafka password_file": ":user=me:sasl=plain",
    "nats password_file": ":user=me",
    "redis password_file": ":user=me",
    "postgresql password_file": ":user=me",
    "clickhouse password_file": ":user=me",
}
CONTENTS = {"headers_file": "X-Secret: c4nary\n", "librdkafka_file": "client.id=c4nary\n"}
#: Files whose form is more than a line; they have tests of their own.
OF_THEIR_OWN = {"creds_file", "nkey_file", "credentials_file", "librdkafka_file"}


class StoreSpecTests(SynchronousTestCase):
    """Each store that there is."""

    def setUp(self) -> None:
        """Forbid connections and names."""
        self.path = os.path.abspath(self.mktemp())
        os.makedirs(self.path)
        for name in ("connect", "connect_ex", "sendto"):
            self.patch(socket.socket, name, mock.Mock(side_effect=AssertionError("--check opens no socket")))
        self.patch(socket, "getaddrinfo", mock.Mock(side_effect=AssertionError("--check asks for no name")))

    def file(self, name: str, content: str) -> str:
        """Write a file that only its owner can read; return its path."""
        path = os.path.join(self.path, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(content)
        return path

    def spec(self, name: str, host: str = "store.example.com", scheme: str = "", rest: str = "") -> str:
        """Return a spec string that is right, behind a spool if it needs one."""
        begin, path = URLS[name]
        needed = "".join(
            f":{option}={self.file(option, 'c4nary')}" for option in NEEDED.get(name, ()) if f":{option}=" not in rest
        )
        text = f"{name}:{scheme or begin}{host}{path}{needed}{rest}"
        return f"spool:{self.path}/spool:observer={text}" if find_spec(name).needs_spool else text

    def build(self, text: str) -> IMessageObserver:
        """Make an observer as the service does, and take it from behind its spool."""
        built = known_observers.build_observer(parse_observer(text), "durable")
        return getattr(built, "inner", built)

    def stores(self) -> tuple[str, ...]:
        """Return all of them, each of which the registry knows."""
        self.assertLessEqual({*STORES}, {*known_names()})
        return STORES

    def test_interface(self) -> None:
        """Each is an observer of a store: it says what it promises, and why that is no more. Nobody is asked."""
        for name in self.stores():
            with self.subTest(name):
                observer = self.build(self.spec(name))
                self.assertTrue(verifyObject(IStoreObserver, observer))
                assert IStoreObserver.providedBy(observer)
                self.assertEqual(is_weaker(observer.promise, "durable"), bool(observer.promise_reason))
                self.assertFalse(re.search(r"[.;,\s]$", observer.promise_reason), observer.promise_reason)
                if observer.wants is not None:
                    self.assertLessEqual(observer.wants.bytes, LARGEST_BATCH)

    def test_unknown_option(self) -> None:
        """An unknown option is named, its value is not."""
        for name in self.stores():
            with self.subTest(name):
                error = self.assertRaises(ConfigError, self.build, self.spec(name, rest=":bogus=c4nary"))
                self.assertIn(f"observer '{name}': unknown option \"bogus\"", str(error))
                self.assertNotIn("c4nary", str(error))

    def test_no_url(self) -> None:
        """Without a URL, or with another one, the sentence shows one that is right."""
        for name in self.stores():
            for text in (name, f"{name}:", f"{name}:gopher://h/x", f"{name}:host.example.com", f"{name}://host/x"):
                spool = f"spool:{self.path}/spool:observer=" if find_spec(name).needs_spool else ""
                with self.subTest(text):
                    error = self.assertRaises(ConfigError, self.build, spool + text)
                    self.assertIn(f"observer '{name}'", str(error))
                    self.assertIn("://", str(error))

    def test_password(self) -> None:
        """A password in the URL is refused, and quoted by nobody."""
        for name in self.stores():
            for who in ("me:c4nary@", "c4nary@", "me:c4nary/@", "me:c4nary=@", "me:c4nary:x=1@", "me:c4nary?#@"):
                with self.subTest(f"{name} {who}"):
                    error = self.assertRaises(ConfigError, self.build, self.spec(name, host=f"{who}store.example.com"))
                    self.assertNotIn("c4nary", str(error))

    def test_password_like_a_path(self) -> None:
        """Nobody quotes one with a slash in it, whose first part looks like a server. Over HTTP it is a path."""
        for name in self.stores():
            for who in ("me:1/c4nary@", "me/c4nary@", "me.de/c4nary x@"):
                with self.subTest(f"{name} {who}"):
                    try:
                        self.build(self.spec(name, host=f"{who}store.example.com"))
                    except ConfigError as error:
                        self.assertNotIn("c4nary", str(error))
                    else:
                        self.assertEqual("https://", URLS[name][0])

    def test_secrets_in_the_open(self) -> None:
        """No secret goes unencrypted to another machine: a mistake, unless it is meant; on this machine it is none."""
        for name in self.stores():
            if name not in PLAIN:
                continue
            scheme, options = PLAIN[name]
            for option in find_spec(name).secrets:
                if option == "key_file" or option in OF_THEIR_OWN:
                    continue
                path = self.file(option, CONTENTS.get(option, "c4nary\n"))
                rest = f"{options}{BESIDE.get(f'{name} {option}', '')}:{option}={path}"
                with self.subTest(f"{name} {option}"):
                    error = self.assertRaises(ConfigError, self.build, self.spec(name, scheme=scheme, rest=rest))
                    self.assertIn("would show", str(error))
                    self.assertIn("allow_plaintext=yes", str(error))
                    self.assertNotIn("c4nary", str(error))
                    self.build(self.spec(name, scheme=scheme, rest=f"{rest}:allow_plaintext=yes"))
                    for host in ("localhost", "127.0.0.1", "[::1]"):
                        self.build(self.spec(name, host, scheme, rest))

    def test_missing_files(self) -> None:
        """A file that is not there is named with its option."""
        for name in self.stores():
            for option in find_spec(name).files:
                beside = BESIDE.get(f"{name} {option}", "")
                if option in ("cert_file", "key_file"):
                    beside = f":{'key_file' if option == 'cert_file' else 'cert_file'}={self.path}/none"
                with self.subTest(f"{name} {option}"):
                    text = self.spec(name, rest=f"{beside}:{option}={self.path}/none")
                    error = self.assertRaises(ConfigError, self.build, text)
                    self.assertIn(option, str(error))
                    self.assertIn(f"{self.path}/none", str(error))

    def test_no_verification_switch(self) -> None:
        """No option turns off that certificates are checked."""
        for name in self.stores():
            for option in find_spec(name).options:
                self.assertFalse(re.search("verify|insecure|skip|check", option), f"{name} {option}")
