"""
The mistakes that people make at the first start, each with the option that is blamed, its place, and what is said.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import LOOPBACK, errors_of, write_text
from tests.system.certificates import Authority, key_pem, self_signed, write, write_ca_file

AUTHORITY = Authority("root")
SERVER = AUTHORITY.issue("server")
OTHER = self_signed("other")

TOKEN = "c4nary-token"


class Mistake(NamedTuple):
    """
    A mistake on the command line. C{{key}} and the like in a value stand for files that L{Files} makes.
    """

    options: dict[str, str | Sequence[str]]
    option: str
    fragment: str


class FileMistake(NamedTuple):
    """A mistake in a configuration file, and the line that is blamed."""

    text: str
    line: int
    option: str
    fragment: str


PAIR = {"tls_key_file": "{key}", "tls_cert_file": "{cert}"}

ON_THE_COMMAND_LINE = [
    # Endpoints.
    Mistake({"port": "abc"}, "--port", '"abc" is of no known kind'),
    Mistake({"port": ""}, "--port", "An endpoint is empty"),
    Mistake({"port": "70000"}, "--port", '"70000" is not a port'),
    Mistake({"port": "-5"}, "--port", '"-5" is not a port'),
    Mistake({"port": "tcp:8181:iface=127.0.0.1"}, "--port", 'Did you mean "interface"?'),
    Mistake({"port": "tcp:8181:interface=::1"}, "--port", "the colons of an IPv6 address are escaped"),
    Mistake({"port": "tls:443"}, "--port", 'Did you mean "ssl"?'),
    Mistake({"port": ["8181", "8181:interface=127.0.0.1"]}, "--port", "starts with a port"),
    Mistake({"port": ["8181", "tcp:8181:interface=127.0.0.1"]}, "--port", "can't take the same address"),
    Mistake({"port": ["8181", "tcp6:8181"]}, "--port", "can't take the same address"),
    Mistake({"port": ["8181", "haproxy:tcp:8181"]}, "--port", "can't take the same address"),
    Mistake({"port": ["8181", "tcp:8181:backlog=5"]}, "--port", "can't take the same address"),
    Mistake({"port": "unix:/no/such/x.sock"}, "--port", '"/no/such" does not exist'),
    # Source options.
    Mistake({"keep_message": "unparsed"}, "--keep-message", "It needs source webhook-json"),
    Mistake({"source": "webhook-json", "keep_message": "no"}, "--keep-message", '"no" is not one of yes, unparsed'),
    Mistake({"paths": "events"}, "--paths", '"events" can never match: every path begins with'),
    Mistake({"health": "healthz"}, "--health", '"healthz" is not a path'),
    Mistake({"health": "/.*"}, "--health", '"/.*" is not one path'),
    Mistake({"source": "webhook_json"}, "--source", 'not one of webhook, webhook-json. Did you mean "webhook-json"?'),
    Mistake({"source": ["webhook", "webhook-json"]}, "--source", "It is given twice"),
    Mistake({"prefix": "a."}, "--prefix", "It needs source webhook-json"),
    Mistake({"prefix": "", "source": "webhook"}, "--prefix", "It needs source webhook-json"),
    Mistake({"on_parse_error": "reject"}, "--on-parse-error", "It needs source webhook-json"),
    Mistake({"on_parse_error": "drop", "source": "webhook-json"}, "--on-parse-error", '"drop" is not one of keep'),
    Mistake({"paths": "/(a"}, "--paths", "does not compile"),
    Mistake({"paths": "/(?P<A>x)/(?P<A>y)"}, "--paths", "more than one group"),
    Mistake({"paths": "/(?P<SOURCEIP>.*)"}, "--paths", "hard macro"),
    Mistake({"paths": '["/a"'}, "--paths", "not a JSON list of strings"),
    Mistake({"paths": "[1, 2]"}, "--paths", "not a JSON list of strings"),
    Mistake({"paths": "[]"}, "--paths", "The list is empty"),
    Mistake({"proxy_header": "X Forwarded"}, "--proxy-header", '"x forwarded" is not the name of a header'),
    Mistake({"proxy_header": "x-real-ip:"}, "--proxy-header", "is not the name of a header"),
    Mistake({"proxy_header": "Authorization"}, "--proxy-header", "carries the token"),
    Mistake({"include_request_headers": "maybe"}, "--include-request-headers", '"maybe" is neither yes nor no'),
    # Tokens.
    Mistake({"auth_token": TOKEN}, "--auth-token", "plain HTTP"),
    Mistake({"auth_token_file": "{tokens}"}, "--auth-token-file", "plain HTTP"),
    Mistake({"auth_token": TOKEN, "port": "tcp:8181:interface=10.0.0.1"}, "--port", "--allow-plaintext-token"),
    Mistake({"auth_token": TOKEN, "port": "haproxy:tcp:8181"}, "--port", "--allow-plaintext-token"),
    Mistake({"auth_token": TOKEN, "port": "systemd:INET:index=0"}, "--port", "--allow-plaintext-token"),
    Mistake({"auth_token": TOKEN, "port": [LOOPBACK, "8181"]}, "--port", 'plain HTTP to "8181"'),
    Mistake({"auth_token": "", "port": LOOPBACK}, "--auth-token", "The token is empty"),
    Mistake({"auth_token": f"{TOKEN} x", "port": LOOPBACK}, "--auth-token", "white space"),
    Mistake({"auth_token_file": "/no/such", "port": LOOPBACK}, "--auth-token-file", '"/no/such" does not exist'),
    Mistake({"auth_token_file": "", "port": LOOPBACK}, "--auth-token-file", "is a directory"),
    Mistake({"auth_token_file": "{empty}", "port": LOOPBACK}, "--auth-token-file", "holds no token"),
    Mistake({"auth_token_file": "{comments}", "port": LOOPBACK}, "--auth-token-file", "holds no token"),
    Mistake({"auth_token_file": "{spaced_tokens}", "port": LOOPBACK}, "--auth-token-file", "white space"),
    # TLS.
    Mistake({"tls_key_file": "{key}"}, "--tls-key-file", "tls-cert-file is missing"),
    Mistake({"tls_cert_file": "{cert}"}, "--tls-cert-file", "tls-key-file is missing"),
    Mistake({"tls_key_file": "{key}", "port": "ssl:443"}, "--port", "has no certificate: add certKey="),
    Mistake({"port": "ssl:443"}, "--port", "has no key: add privateKey="),
    Mistake({"port": "ssl:443:certKey={cert}"}, "--port", "has no key: add privateKey="),
    Mistake({"port": "ssl:443:privateKey={key}"}, "--port", "holds no certificate"),
    Mistake({"port": "ssl:443:privateKey={key}:certKey={other_cert}"}, "--port", "does not match"),
    Mistake({"port": "ssl:443:cafile=x"}, "--port", 'Did you mean "caFile"?'),
    Mistake({**PAIR, "tls_key_file": "/no/key"}, "--tls-key-file", '"/no/key" does not exist'),
    Mistake({**PAIR, "tls_key_file": ""}, "--tls-key-file", "It is empty"),
    Mistake({**PAIR, "tls_cert_file": "/no/cert"}, "--tls-cert-file", '"/no/cert" does not exist'),
    Mistake({**PAIR, "tls_key_file": "{directory}"}, "--tls-key-file", "is a directory"),
    Mistake({**PAIR, "tls_key_file": "{encrypted}"}, "--tls-key-file", "is encrypted"),
    Mistake({**PAIR, "tls_key_file": "{empty}"}, "--tls-key-file", "is empty"),
    Mistake({**PAIR, "tls_key_file": "{comments}"}, "--tls-key-file", "no private key in PEM format"),
    Mistake({**PAIR, "tls_key_file": "{cert}"}, "--tls-key-file", "no private key in PEM format"),
    Mistake({**PAIR, "tls_cert_file": "{comments}"}, "--tls-cert-file", "no certificate in PEM format"),
    Mistake({**PAIR, "tls_cert_file": "{other_cert}"}, "--tls-cert-file", "does not match the certificate"),
    Mistake({**PAIR, "tls_cert_file": "{reversed}"}, "--tls-cert-file", "wrong order"),
    Mistake({"tls_peer_verify": "yes", "tls_ca_file": "{ca}"}, "--tls-peer-verify", "need TLS"),
    Mistake({**PAIR, "tls_peer_verify": "yes"}, "--tls-peer-verify", "can't be verified without one of"),
    Mistake({"port": "ssl:443:{key}:{cert}:peerVerify=yes"}, "--port", "can't be verified without one of"),
    Mistake({**PAIR, "tls_peer_verify": "yes", "tls_ca_file": "/no/ca"}, "--tls-ca-file", "does not exist"),
    Mistake({**PAIR, "tls_peer_verify": "yes", "tls_ca_file": "{key}"}, "--tls-ca-file", "no certificate in PEM"),
    Mistake({**PAIR, "tls_peer_verify": "yes", "tls_ca_dir": "/no/dir"}, "--tls-ca-dir", "does not exist"),
    Mistake({**PAIR, "tls_peer_verify": "yes", "tls_ca_dir": "{key}"}, "--tls-ca-dir", "is not a directory"),
    Mistake({**PAIR, "tls_peer_verify": "yes", "tls_ca_dir": "{empty_directory}"}, "--tls-ca-dir", "is empty"),
    Mistake({**PAIR, "tls_peer_verify": "yes", "tls_ca_dir": "{directory}"}, "--tls-ca-dir", "openssl rehash"),
    # The service.
    Mistake({"observer": "fiel:x"}, "--observer", 'There is no observer "fiel". Did you mean "file"?'),
    Mistake({"observer": ""}, "--observer", "names no observer"),
    Mistake({"observer": "file:/no/such/x"}, "--observer", '"/no/such" does not exist'),
    Mistake({"observer": "stdout:x"}, "--observer", "takes no path"),
    Mistake({"observer": ["file:x", "file:./x"]}, "--observer", "is given twice"),
    Mistake({"observer": ["file:x", "spool:s:observer=file:x"]}, "--observer", "is given twice"),
    Mistake({"observer": ["https://h/x"]}, "--observer", "Write http:https://"),
    Mistake({"observer": ["spool:s:observer=nope"]}, "--observer", 'no observer "nope"'),
    Mistake({"ack": "disk"}, "--ack", '"disk" is not one of durable, written, queued'),
    Mistake({"limit": "body"}, "--limit", "not of the form NAME=VALUE"),
    Mistake({"limit": "boddy=1"}, "--limit", 'Did you mean "body"?'),
    Mistake({"limit": "body=big"}, "--limit", "a size such as"),
    Mistake({"limit": "connections=0"}, "--limit", "more than 0"),
    Mistake({"limit": ["body=1", "body=2"]}, "--limit", "The limit body is given twice"),
    Mistake({"limit": "queue=19MiB"}, "--limit", "The queue of 19MiB never has room for a body of 10MiB"),
    Mistake({"config": "/no/such.yaml"}, "--config", '"/no/such.yaml" does not exist'),
    Mistake({"config": "{directory}"}, "--config", "is a directory"),
    Mistake({"config": ["{good}", "{good}"]}, "--config", "It is given twice"),
    Mistake({"paths": "/\udcff"}, "--paths", "not UTF-8"),
]

IN_THE_FILE = [
    FileMistake("ack: queued\nport: abc", 2, "port", "no known kind"),
    FileMistake("port:\n  - 1\n  - 70000", 3, "port", '"70000" is not a port'),
    FileMistake("paths:\n - /a\n - /(b", 3, "paths", "does not compile"),
    FileMistake("sourcs: []", 1, "", 'Did you mean "sources"?'),
    FileMistake("sources:\n  - port: 1\n    pahts: /a", 3, "sources[0]", 'Did you mean "paths"?'),
    FileMistake("sources:\n  - port: 1\n    ack: queued", 3, "sources[0].ack", "move it to the top level"),
    FileMistake(
        "sources:\n  - source: webhook\n    prefix: a.", 3, "sources[0].prefix", "It needs source webhook-json"
    ),
    FileMistake("prefix: a.\nsources:\n  - port: 1", 1, "prefix", "It needs source webhook-json"),
    FileMistake("sources:\n  - {name: a, port: 1}\n  - {name: a, port: 2}", 3, "sources[1].name", '"a" already'),
    FileMistake("sources:\n  - name: a b\n    port: 1", 2, "sources[0].name", '"a b" is not a valid name'),
    FileMistake("sources:\n  - {name: a}\n  - {name: b, port: 'haproxy:80'}", 3, "sources[1].port", 'source "a" has'),
    FileMistake(
        "sources:\n  - {name: a, port: 'haproxy:80'}\n  - {name: b}", 3, "sources[1]", 'source "b" has "tcp:80"'
    ),
    FileMistake(
        "sources:\n"
        "  - {name: a, port: 'ssl:443:{key}:{cert}'}\n"
        "  - {name: b, port: 443, tls_key_file: '{other_key}', tls_cert_file: '{other_cert}'}",
        3,
        "sources[1].port",
        'One endpoint has one TLS setting, but here it has two: source "a" has',
    ),
    FileMistake(
        "sources:\n  - {name: a, port: 8181}\n  - {name: b, port: 'ssl:8181:{key}:{cert}'}",
        3,
        "sources[1].port",
        'source "a" has "8181", source "b" has "ssl:8181',
    ),
    FileMistake("tls_key_file: '{key}'\nsources:\n  - port: 1", 1, "tls_key_file", "tls-cert-file is missing"),
    FileMistake("tls_peer_verify: 'perhaps'", 1, "tls_peer_verify", "neither yes nor no"),
    FileMistake("tls_peer_verify: 1", 1, "tls_peer_verify", "neither yes nor no"),
    FileMistake("limits:\n  body: 1MiB\n  boddy: 2MiB", 3, "limits", 'Did you mean "body"?'),
    FileMistake("limits: {header_time: soon}", 1, "limits", "a time such as"),
    FileMistake(f"port: 8181\nauth_token: {TOKEN}", 1, "port", "plain HTTP"),
    FileMistake(f"sources:\n  - paths: /a\n    auth_token: {TOKEN}", 3, "sources[0].auth_token", "plain HTTP"),
    FileMistake(f"auth_tokn: {TOKEN}", 1, "", 'There is no key "auth_tokn". Did you mean "auth_token"?'),
    FileMistake(f"auth_token: *{TOKEN}", 1, "--config", "begins with * is written in quotes"),
    FileMistake("auth_token: ''\nport: unix:x", 1, "auth_token", "The token is empty"),
    FileMistake("observers:\n - stdout\n - stdout:x", 3, "observers", "takes no path"),
    FileMistake("observers:\n - fil:x", 2, "observers", 'Did you mean "file"?'),
    FileMistake("port: [1\nack: queued", 2, "--config", "This is not YAML"),
    FileMistake("threads: 4", 1, "", 'There is no key "threads"'),
    FileMistake("regulations: x.yaml", 1, "", 'There is no key "regulations"'),
]


class Files:
    """The files that the tables name."""

    def __init__(self, directory: str) -> None:
        self.names = {"directory": directory, "empty_directory": os.path.join(directory, "empty.d")}
        os.makedirs(self.names["empty_directory"])
        self.names["key"], self.names["cert"] = SERVER.write(directory, "server")
        self.names["other_key"], self.names["other_cert"] = OTHER.write(directory, "other")
        self.names["ca"] = write_ca_file(directory, "ca", AUTHORITY)
        self._add("encrypted", key_pem(SERVER.key, b"pass phrase"))
        self._add("empty", b"")
        self._add("good", b"port: 8181\n")
        self._add("comments", b"# nothing yet\n\n")
        self._add("tokens", TOKEN.encode())
        self._add("spaced_tokens", f"{TOKEN} {TOKEN}\n".encode())
        with open(self.names["ca"], "rb") as ca, open(self.names["cert"], "rb") as cert:
            self._add("reversed", ca.read() + cert.read())

    def _add(self, name: str, content: bytes) -> None:
        self.names[name] = write(os.path.join(self.names["directory"], name), content)

    def put_in(self, text: str) -> str:
        """Return a text with the names of files in their places."""
        for name, path in self.names.items():
            text = text.replace(f"{{{name}}}", path)
        return text


class StartMistakeTests(SynchronousTestCase):
    """
    Each mistake of the tables is an error; no other is made of it, and no token is in its text.
    """

    def setUp(self) -> None:
        self.files = Files(os.path.abspath(self.mktemp()))

    def test_on_the_command_line(self) -> None:
        """The option is named as it was given, the text says what is allowed, and one mistake is one error."""
        for options, option, fragment in ON_THE_COMMAND_LINE:
            given = {
                name: self.files.put_in(value)
                if isinstance(value, str)
                else [self.files.put_in(text) for text in value]
                for name, value in options.items()
            }
            errors = errors_of(**given)
            self.assertEqual(1, len(errors), (options, errors))
            self.assertIn(fragment, errors[0].sentence)
            self.assertEqual((option, "command line"), (errors[0].field, errors[0].where))
            self.assert_fit_for_a_log(errors[0].sentence)

    def test_in_the_file(self) -> None:
        """File, line and key are named, and one mistake is one error."""
        for text, line, option, fragment in IN_THE_FILE:
            path = write_text(self.files.names["directory"], "x.yaml", self.files.put_in(text))
            errors = errors_of(config=path)
            self.assertEqual(1, len(errors), (text, errors))
            self.assertIn(fragment, errors[0].sentence)
            self.assertEqual((option, f"{path}:{line}"), (errors[0].field, errors[0].where), text)
            self.assert_fit_for_a_log(errors[0].sentence)

    def assert_fit_for_a_log(self, problem: str) -> None:
        """It is one printable line without a token."""
        self.assertTrue(problem.isprintable(), problem)
        self.assertNotIn(TOKEN, problem)

    def test_every_observer(self) -> None:
        """Each observer that can't be used is an error."""
        self.assertEqual(2, len(errors_of(observer=["fil:x", "stdout:x", "stdout"])))

    def test_flag_twice(self) -> None:
        """A flag may be given twice; it means the same."""
        self.assertEqual([], errors_of(allow_plaintext_token=["yes", "yes"]))

    def test_all_at_once(self) -> None:
        """All mistakes of a start are shown together."""
        path = write_text(self.files.names["directory"], "x.yaml", "pahts: /a\nlimits: {body: 0}\n")
        errors = errors_of(config=path, port="abc", ack="disk", observer="x:y", paths="/(a", auth_token="")
        self.assertEqual(
            ["", "--ack", "--observer", "limits", "--port", "--auth-token", "--paths"],
            [error.field for error in errors],
        )
