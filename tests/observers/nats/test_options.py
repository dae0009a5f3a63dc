"""Spec strings of the nats observer, its subjects, and its files of secrets."""

from __future__ import annotations

import json
import os
from base64 import urlsafe_b64encode

import nkeys  # type: ignore[import-untyped]
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.message.message import Value
from webhookrx.observers.keyed_record import unpack
from webhookrx.observers.nats.options import (
    LONGEST_TOKEN,
    NatsSecrets,
    NatsTarget,
    payload_limit,
    read_access,
    read_nats,
    safe_token,
)
from webhookrx.observers.registry import find_spec
from webhookrx.testing import make_message

USER_SEED = nkeys.from_seed(nkeys.encode_seed(b"0" * 32, nkeys.PREFIX_BYTE_USER)).seed.decode()


def read(url: str = "nats://127.0.0.1:4222/logs", **given: str) -> NatsTarget:
    """Read a spec string that is taken apart."""
    return read_nats([url], given)


def subject_of(template: str, **values: Value) -> str:
    """Return the subject of a message with these values."""
    return read(f"nats://127.0.0.1/{template}").subject(make_message("hello", dict(values)))


class OptionTests(SynchronousTestCase):
    """The options."""

    def assert_refused(self, words: str, url: str = "nats://127.0.0.1:4222/logs", **given: str) -> None:
        """It is an error with these words in it that names the observer."""
        error = self.assertRaises(ConfigError, read, url, **given)
        self.assertIn("observer 'nats'", str(error))
        self.assertIn(words, str(error))

    def test_servers(self) -> None:
        """Several servers, with the default port where there is none."""
        addresses = read("nats://a,b:4333,[::1]/logs").servers.addresses

        self.assertEqual(["a:4222", "b:4333", "[::1]:4222"], [str(server) for server in addresses.servers])

    def test_mistakes(self) -> None:
        """Each mistake is a sentence that says what is allowed."""
        for words, url in (
            ("names no subject", "nats://127.0.0.1"),
            ("names no subject", "nats://127.0.0.1/"),
            ("no user or password in the URL", "nats://me:hunter2@127.0.0.1/logs"),
            ("begin with nats:// or tls://", "http://127.0.0.1/logs"),
            ("is no token", "nats://127.0.0.1/logs.*"),
            ("is no token", "nats://127.0.0.1/logs.>"),
            ("is no token", "nats://127.0.0.1/logs..x"),
            ("is no token", "nats://127.0.0.1/.logs"),
            ("is no token", "nats://127.0.0.1/logs."),
            ("is no token", "nats://127.0.0.1/lo gs"),
            ("is no token", "nats://127.0.0.1/$$JS.API"),
            ("is no token", "nats://127.0.0.1/" + "x" * 129),
            ("can't be in a subject", "nats://127.0.0.1/logs.$(format-json)"),
            ("more than 16 tokens", "nats://127.0.0.1/" + ".".join("x" * 17)),
            ("column 1", "nats://127.0.0.1/logs.${"),
        ):
            with self.subTest(url):
                self.assert_refused(words, url)
        for words, given in (
            ("go together", {"user": "me"}),
            ("go together", {"password_file": "/x"}),
            ("two ways to log in", {"creds_file": "/x", "nkey_file": "/y"}),
            ("is empty", {"creds_file": ""}),
            ("goes with a tls:// URL", {"ca_file": "/x"}),
            ("takes a name", {"stream": "a.b"}),
            ("takes a name", {"stream": "a b"}),
            ("yes or no", {"synced": "always"}),
            ("otherwise all messages have one id", {"id": "same"}),
        ):
            with self.subTest(str(given)):
                self.assert_refused(words, **given)

    def test_password_in_the_open(self) -> None:
        """A password goes unencrypted to another machine only where the operator says so; a seed never leaves this."""
        self.assert_refused("allow_plaintext", "nats://logs.example/x", user="me", password_file="/x")

        read("nats://logs.example/x", user="me", password_file="/x", allow_plaintext="yes")
        read("tls://logs.example/x", user="me", password_file="/x")
        read("nats://localhost/x", user="me", password_file="/x")
        read("nats://logs.example/x", creds_file="/x")

    def test_every_option_is_declared(self) -> None:
        """The registry knows the observer, and which of its files are secrets."""
        spec = find_spec("nats")

        self.assertIn("stream", spec.options)
        self.assertLessEqual({"creds_file", "nkey_file", "password_file", "key_file"}, {*spec.secrets})
        self.assertLessEqual({*spec.secrets}, {*spec.files})


class SubjectTests(SynchronousTestCase):
    """Subjects."""

    def test_plain(self) -> None:
        """One without macros is as it is written."""
        self.assertEqual("logs.web_1.a-b", subject_of("logs.web_1.a-b"))

    def test_macros(self) -> None:
        """A macro is one token, or a part of one."""
        self.assertEqual("logs.web.x-h1", subject_of("logs.${SOURCE}.x-${HOST}", SOURCE="web", HOST="h1"))

    def test_dots_in_braces(self) -> None:
        """A dot in a name or a default separates no tokens, and adds none."""
        self.assertEqual("logs.v.x", subject_of("logs.${log.body.user}.x", **{"log.body.user": "v"}))
        self.assertEqual("logs.a_b", subject_of("logs.${NONE:-a.b}"))

    def test_hostile_values(self) -> None:
        """Whatever a sender writes, its value stays one token, and no wildcard or white space."""
        for value in ("a.b", "*", ">", "a b", "\r\nPUB x 1", "\x00", "é", "$JS", "a.>.b\t"):
            with self.subTest(repr(value)):
                subject = subject_of("logs.${HOST}.x", HOST=value)
                self.assertRegex(subject, r"\Alogs\.[A-Za-z0-9_-]+\.x\Z")

    def test_empty_and_long_values(self) -> None:
        """An empty value is a token of its own, and a long one is cut: a server closes connections for its line."""
        self.assertEqual("_", safe_token(""))
        self.assertEqual(LONGEST_TOKEN, len(safe_token("x" * 100_000)))

    def test_subject_is_kept_with_the_record(self) -> None:
        """What is prepared holds id, subject and line."""
        message = make_message("hello", {"RCPTID": "7", "HOST": "a.b"})

        record = unpack(read("nats://127.0.0.1/logs.${HOST}").encode(message))

        self.assertEqual(("7", b"logs.a_b"), (record.id, record.key))
        self.assertFalse(record.value.endswith(b"\n"))


class SecretFileTests(SynchronousTestCase):
    """Files of secrets."""

    def secrets(self, option: str, content: str) -> NatsSecrets:
        """Read a file with this content."""
        path = os.path.abspath(self.mktemp())
        with open(path, "w") as file:
            file.write(content)
        given = {option: path} | ({"user": "me"} if option == "password_file" else {})
        return read_access(read(**given).servers, SpecOptions("nats", given))[0]

    def test_creds(self) -> None:
        """A creds file holds a JWT and a seed."""
        content = (
            "-----BEGIN NATS USER JWT-----\neyJ.abc-_.sig\n------END NATS USER JWT------\n\nsome words\n"
            f"-----BEGIN USER NKEY SEED-----\n{USER_SEED}\n------END USER NKEY SEED------\n"
        )

        secrets = self.secrets("creds_file", content)

        self.assertEqual(("eyJ.abc-_.sig", USER_SEED), (secrets.jwt, secrets.seed))
        self.assertNotIn(USER_SEED, repr(secrets))

    def test_payload_limit(self) -> None:
        """The limit of a user on payloads is read from the JWT; anything else there is none."""
        for claims, limit in (
            ({"nats": {"payload": 2000}}, 2000),
            ({"nats": {"payload": -1}}, None),
            ({"nats": {"payload": "2000"}}, None),
            ({"nats": {"payload": True}}, None),
            ({"nats": 1}, None),
            ([], None),
        ):
            encoded = urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=")
            self.assertEqual(limit, payload_limit(b"head." + encoded + b".sig"), claims)
        for jwt in (b"", b"x", b"x.\xff.y", b"x.e30.y", b"x.bm90IGpzb24.y"):
            self.assertIsNone(payload_limit(jwt))

    def test_nkey(self) -> None:
        """An nkey file holds a seed."""
        self.assertEqual(USER_SEED, self.secrets("nkey_file", f"{USER_SEED}\n").seed)

    def test_wrong_files(self) -> None:
        """A file of another content is an error at once, which quotes none of it: nats-py would read it for ever."""
        for option, content, words in (
            ("creds_file", "hunter2", "holds no JWT"),
            ("creds_file", "-----BEGIN NATS USER JWT-----\neyJ.hunter2\n", "holds no seed"),
            ("nkey_file", "SUhunter2", "does not hold the seed"),
            ("nkey_file", "", "holds 0 lines"),
            ("password_file", "hunter2\nhunter3\n", "holds 2 lines"),
        ):
            with self.subTest(option):
                error = self.assertRaises(ConfigError, self.secrets, option, content)
                self.assertIn(words, str(error))
                self.assertNotIn("hunter2", str(error))
