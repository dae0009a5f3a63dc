"""
Tests for L{webhookrx.config.resolve}, with the sources and endpoints that it joins.
"""

from __future__ import annotations

import os
from datetime import timedelta

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import LOOPBACK, NOW, errors_of, start, write_text
from tests.system.certificates import Authority, self_signed, write_ca_file
from webhookrx.config.files import read_file
from webhookrx.settings import TLS, Limits, Listener, Observer, Settings, Source

AUTHORITY = Authority("root")
SERVER = AUTHORITY.issue("server")
EXPIRED = AUTHORITY.issue("old", not_after=NOW - timedelta(days=1))
OTHER = self_signed("other")


class ResolveTests(SynchronousTestCase):
    """
    Tests for L{resolve}.
    """

    def setUp(self) -> None:
        self.directory = self.mktemp()
        os.mkdir(self.directory)

    def config(self, text: str) -> str:
        """Write a configuration file and return its path."""
        return write_text(self.directory, "x.yaml", text)

    def origins(self, **options: str) -> dict[tuple[str, str], str]:
        """Return the origin of each setting, by section and name, with C{F} for the configuration file."""
        path = options.get("config", "/")
        return {(row.section, row.name): row.origin.replace(path, "F") for row in start(**options).effective}

    def test_defaults(self) -> None:
        """Nothing at all is a webhook source for every path on port 80, into a file."""
        messages = os.path.abspath("messages.jsonl")
        listener = Listener("tcp:80", "tcp:80:backlog=4096")
        expected = Settings(
            sources=(Source(listeners=(listener,)),),
            observers=(Observer(f"file:{messages}", "file", (messages,)),),
        )
        self.assertEqual(expected, start().settings)
        self.assertEqual({"default"}, set(self.origins().values()))

    def test_command_line(self) -> None:
        """Every option of the command line arrives in the settings."""
        token_file = write_text(self.directory, "tokens", "# ours\nfrom-file\n\n other \n")
        resolved = start(
            port=[LOOPBACK, "unix:x.sock"],
            source="webhook-json",
            paths=["/a", '["/b", "/c"]'],
            prefix="webhook.",
            on_parse_error="reject",
            auth_token=["first"],
            auth_token_file=[token_file],
            include_request_headers="yes",
            proxy_header="X-Real-IP",
            observer=["stdout", "file:m.jsonl"],
            ack="queued",
            limit=["body=2MiB", "header-time=5s"],
        )
        source = Source(
            name="default",
            variant="webhook-json",
            paths=("/a", "/b", "/c"),
            prefix="webhook.",
            auth_tokens=(b"first", b"from-file", b"other"),
            include_request_headers=True,
            proxy_header="x-real-ip",
            on_parse_error="reject",
            listeners=(
                Listener(LOOPBACK, f"{LOOPBACK}:backlog=4096"),
                Listener("unix:x.sock", f"unix:{os.path.abspath('x.sock')}:mode=666:backlog=4096:lockfile=0"),
            ),
        )
        settings = resolved.settings
        self.assertEqual((source,), settings.sources)
        self.assertEqual(["stdout", "file"], [observer.name for observer in settings.observers])
        self.assertEqual(("queued", Limits(body=2 * 1024 * 1024, header_time=5.0)), (settings.ack, settings.limits))

    def test_precedence(self) -> None:
        """The command line wins over a source's entry, that over the top of the file, and that over the default."""
        path = self.config(
            """
            source: webhook-json
            prefix: top.
            paths: [/top, /top2]
            proxy_header: x-top
            limits: {body: 1MiB, target: 2KiB}
            sources:
              - name: a
                port: unix:a
                paths: /a
                proxy_header: x-a
              - port: unix:b
                prefix: b.
            """
        )
        settings = start(config=path, proxy_header="x-line", limit=["body=3MiB"]).settings
        a, b = settings.sources
        self.assertEqual(("a", ("/a",), "top.", "x-line"), (a.name, a.paths, a.prefix, a.proxy_header))
        self.assertEqual(
            ("webhook-json-2", ("/top", "/top2"), "b.", "x-line"), (b.name, b.paths, b.prefix, b.proxy_header)
        )
        self.assertEqual(Limits(body=3 * 1024 * 1024, target=2048), settings.limits)
        origins = self.origins(config=path, proxy_header="x-line")
        expected = {
            ("a", "proxy-header"): "--proxy-header, command line",
            ("a", "paths"): "F:9",
            ("b", "paths"): "F:3",
            ("a", "prefix"): "F:2",
            ("b", "prefix"): "F:12",
            ("a", "on-parse-error"): "default",
            ("", "limit target"): "F:5",
            ("", "limit queue"): "default",
        }
        for (section, name), origin in expected.items():
            section = "webhook-json-2" if section == "b" else section
            self.assertEqual(origin, origins[section, name], (section, name))

    def test_every_option_has_an_origin(self) -> None:
        """Each option and each limit is shown once a source, or once for the service."""
        from webhookrx.config.option import Kind, OptionScope
        from webhookrx.config.options import OPTIONS

        found = list(self.origins())
        self.assertEqual(len(set(found)), len(found))
        for option in OPTIONS:
            if option.scope is not OptionScope.COMMAND and option.kind is not Kind.LIMITS:
                section = "default" if option.scope is OptionScope.SOURCE else ""
                self.assertIn((section, option.name), found)
        self.assertEqual(len(Limits.__dataclass_fields__), len([name for _, name in found if name[:6] == "limit "]))

    def test_tokens_of_the_highest_place(self) -> None:
        """A source's own tokens, by option or file, stand in place of those at the top, and do not join them."""
        token_file = write_text(self.directory, "tokens", "own\n")
        path = self.config(
            f"""
            auth_token: [shared1, shared2]
            sources:
              - port: unix:a
                auth_token_file: {token_file}
              - port: unix:b
            """
        )
        first, second = start(config=path).settings.sources
        self.assertEqual(((b"own",), (b"shared1", b"shared2")), (first.auth_tokens, second.auth_tokens))

    def test_secrets_are_masked(self) -> None:
        """No representation of what was resolved shows a token."""
        resolved = start(port=LOOPBACK, auth_token=["c4nary", "c4nary2"])
        self.assertNotIn("c4nary", repr(resolved))
        shown = {row.name: row.value for row in resolved.effective}
        self.assertEqual("*** ***", shown["auth-token"])

    def test_proxy_header(self) -> None:
        """yes stands for the usual header; no, or nothing, for none."""
        for text, name in (("yes", "x-forwarded-for"), ("no", None), ("", None), (" Forwarded ", "forwarded")):
            self.assertEqual(name, start(proxy_header=text).settings.sources[0].proxy_header)

    def test_parsing_defaults_above_both_variants(self) -> None:
        """A prefix at the top of a file may stand above webhook sources too, when one source parses."""
        path = self.config(
            """
            prefix: a.
            on_parse_error: reject
            sources:
              - {port: unix:a, source: webhook-json}
              - {port: unix:b}
            """
        )
        self.assertEqual(
            ["webhook-json", "webhook"], [source.variant for source in start(config=path).settings.sources]
        )

    def test_shared_endpoint(self) -> None:
        """Sources that name one endpoint share its listener, however each spells it, and each keeps its own rest."""
        path = self.config(
            """
            sources:
              - {port: 8181, paths: /a, auth_token: x}
              - {port: "tcp:8181", paths: /b}
            allow_plaintext_token: yes
            """
        )
        first, second = start(config=path).settings.sources
        self.assertEqual(first.listeners, second.listeners)
        self.assertEqual("8181", second.listeners[0].text)
        self.assertEqual(((b"x",), ()), (first.auth_tokens, second.auth_tokens))

    def test_hidden_patterns(self) -> None:
        """Patterns are judged in the order in which they are tried, also across sources, and each is blamed once."""
        path = self.config(
            """
            sources:
              - port: [8181, unix:a]
                paths: /.*
              - port: 8181
                paths: [/b, "/c"]
            """
        )
        warnings = start(config=path).settings.warnings
        self.assertEqual(2, len(warnings))
        for warning in warnings:
            self.assertIn("x.yaml:5: sources[1].paths: ", warning)
            self.assertIn("is hidden by", warning)

    def test_slow_patterns(self) -> None:
        """A pattern that RE2 can't run is an error with its place, but where a source, or all of it, takes the risk."""
        text = """
            {top}
            sources:
              - {{name: a, port: "8181", paths: '/(?=a).*', allow_slow_patterns: {a}}}
              - {{name: b, port: "8181", paths: '/(?=b).*'{b}}}
            """
        (error,) = errors_of(config=self.config(text.format(top="", a="yes", b="")))
        self.assertIn("x.yaml:3: sources[1].paths: ", error.text)
        self.assertIn(""""/(?=b).*" can't run on RE2""", str(error))
        self.assertTrue(str(error).endswith("allow_slow_patterns: yes (--allow-slow-patterns). [path-not-linear]"))
        for written in ({"top": "", "b": ", allow_slow_patterns: yes"}, {"top": "allow_slow_patterns: yes", "b": ""}):
            warnings = start(config=self.config(text.format(a="yes", **written))).settings.warnings
            self.assertEqual(2, len(warnings))
            for name, warning in zip("ab", warnings, strict=True):
                self.assertIn(f""""/(?={name}).*" can't run on RE2""", warning)
        self.assertEqual(1, len(errors_of(paths="/(?=a).*")))
        self.assertEqual(1, len(start(paths="/(?=a).*", allow_slow_patterns="yes").settings.warnings))
        path = self.config(text.format(top="allow_slow_patterns: yes", a="no", b=""))
        self.assertEqual(1, len(errors_of(config=path)))

    def test_patterns_on_different_endpoints(self) -> None:
        """A pattern hides nothing on an endpoint where it is not tried."""
        path = self.config("sources:\n - {port: unix:a, paths: /.*}\n - {port: unix:b, paths: /b}\n")
        self.assertEqual((), start(config=path).settings.warnings)

    def test_plain_text_tokens(self) -> None:
        """Tokens over plain HTTP are a warning where only this machine listens, or when they were allowed."""
        token_file = write_text(self.directory, "tokens", "x\n")
        for port in (LOOPBACK, r"tcp:0:interface=\:\:1", "tcp:0:interface=localhost", "unix:x", "systemd:UNIX:index=0"):
            (warning,) = start(port=port, auth_token_file=token_file).settings.warnings
            in_file = self.config(f"auth_token: abc\nport: '{port}'\n")
            self.assertEqual(1, len(start(config=in_file).settings.warnings), "a file is in no process list")
            self.assertIn("over plain HTTP", warning)
        resolved = start(port="8181", auth_token_file=token_file, allow_plaintext_token="yes")
        self.assertEqual((), resolved.settings.warnings)

    def test_warnings(self) -> None:
        """What is allowed but probably not meant is a warning with its place."""
        token_file = write_text(self.directory, "tokens", "x\n", mode=0o644)
        cases: list[tuple[dict[str, str | list[str]], str]] = [
            ({"auth_token": "x", "port": LOOPBACK}, "command line: --auth-token: Every user of this machine"),
            ({"auth_token_file": token_file, "port": LOOPBACK}, f'"{os.path.abspath(token_file)}" can be read'),
            ({"port": ["8181", "tcp:8181"]}, '--port: "tcp:8181" is given twice.'),
            ({"paths": ["/a", "/a"]}, '--paths: "/a" is hidden'),
            ({"tls_ca_dir": "/etc"}, "--tls-ca-dir: It is not used: no endpoint of the source speaks TLS."),
            ({"tls_use_system_cert_store": "yes"}, "no endpoint of the source speaks TLS"),
        ]
        for options, fragment in cases:
            self.assertIn(fragment, "\n".join(start(**options).settings.warnings), options)

    def test_state_directory(self) -> None:
        """Under systemd the default file lies in the state directory."""
        (observer,) = start({"STATE_DIRECTORY": os.path.abspath(self.directory)}).settings.observers
        self.assertEqual((os.path.abspath(f"{self.directory}/messages.jsonl"),), observer.args)

    def test_config_path(self) -> None:
        """The file that was read is known by its absolute path."""
        path = self.config("ack: queued")
        self.assertEqual(
            (os.path.abspath(path), "queued"), (start(config=path).config_file, start(config=path).settings.ack)
        )
        self.assertIs(None, start().config_file)

    def test_named_single_source(self) -> None:
        """The one source of a file without sources may have a name."""
        self.assertEqual("mine", start(config=self.config("name: mine")).settings.sources[0].name)


class ObserverTests(SynchronousTestCase):
    """
    Observers and the files that they name.
    """

    def test_secrets_for_everybody(self) -> None:
        """A file of secrets that everybody may read brings a warning, also behind a spool; a private one does not."""
        directory = self.mktemp()
        for mode, warned in ((0o644, True), (0o640, False)):
            path = write_text(directory, "secret", "x", mode)
            for spec in (f"http:https://h/:token_file={path}", f"spool:s:observer=syslog:tls:h:key_file={path}"):
                warnings = start(port=LOOPBACK, observer=spec).settings.warnings
                self.assertEqual(warned, any(path in text for text in warnings))


class TLSTests(SynchronousTestCase):
    """
    Tests for the TLS of listeners.
    """

    def setUp(self) -> None:
        self.directory = os.path.abspath(self.mktemp())
        os.mkdir(self.directory)
        self.key, self.cert = SERVER.write(self.directory, "server")
        self.other_key, self.other_cert = OTHER.write(self.directory, "other")
        for key in (self.key, self.other_key):
            os.chmod(key, 0o600)
        self.ca = write_ca_file(self.directory, "ca", AUTHORITY)

    def listeners(self, **options: str | list[str]) -> tuple[Listener, ...]:
        """Return the listeners of the one source."""
        return start(**options).settings.sources[0].listeners

    def test_files(self) -> None:
        """The settings have what was in the files, by their paths; it is not shown, and makes no other settings."""
        ca = {"tls_peer_verify": "yes", "tls_ca_file": self.ca}
        settings = start(tls_key_file=self.key, tls_cert_file=self.cert, **ca).settings
        self.assertEqual({path: read_file(path) for path in (self.key, self.cert, self.ca)}, settings.tls_files)
        self.assertNotIn("BEGIN", repr(settings))
        os.chmod(self.cert, 0o640)
        again = start(tls_key_file=self.key, tls_cert_file=self.cert, **ca).settings
        self.assertNotEqual(settings.tls_files, again.tls_files)
        self.assertEqual(settings, again)
        self.assertEqual({}, start(port=LOOPBACK).settings.tls_files)

    def test_default_port(self) -> None:
        """A key changes the default port from 80 to 443."""
        (listener,) = self.listeners(tls_key_file=self.key, tls_cert_file=self.cert)
        expected = Listener("tcp:443", "tcp:443:backlog=4096", tls=TLS(self.key, self.cert))
        self.assertEqual(expected, listener)

    def test_key_for_all_endpoints(self) -> None:
        """With a key every endpoint of the source speaks TLS, whatever it is."""
        ports = [
            "8181",
            "tcp:8182",
            "unix:x",
            "systemd:INET:index=0",
            "haproxy:tcp:8183",
            "ssl:8184",
            "haproxy:ssl:8185",
        ]
        for listener in self.listeners(port=ports, tls_key_file=self.key, tls_cert_file=self.cert):
            self.assertEqual(TLS(self.key, self.cert), listener.tls, listener.text)
            self.assertIs("haproxy" in listener.text, listener.proxy_protocol)

    def test_string_alone(self) -> None:
        """An ssl: string needs no option; without certKey= the certificate is in the file of the key."""
        both = os.path.join(self.directory, "both.pem")
        with open(both, "wb") as file:
            for path in (self.key, self.cert):
                with open(path, "rb") as part:
                    file.write(part.read())
        os.chmod(both, 0o600)
        tls, plain = self.listeners(port=[f"ssl:443:privateKey={both}", "80"])
        self.assertEqual((TLS(both, both), None), (tls.tls, plain.tls))

    def test_string_wins(self) -> None:
        """What an ssl: string says wins over the options, and they give the rest."""
        (listener,) = self.listeners(
            port=f"ssl:443:privateKey={self.other_key}:certKey={self.other_cert}:peerVerify=no",
            tls_key_file=self.key,
            tls_cert_file=self.cert,
            tls_peer_verify="yes",
            tls_ca_file=self.ca,
        )
        self.assertEqual(TLS(self.other_key, self.other_cert, ca_file=self.ca), listener.tls)
        (listener,) = self.listeners(
            port=f"ssl:443:privateKey={self.key}", tls_cert_file=self.cert, tls_peer_verify="yes", tls_ca_file=self.ca
        )
        self.assertEqual(TLS(self.key, self.cert, peer_verify=True, ca_file=self.ca), listener.tls)

    def test_policy(self) -> None:
        """All keys of the policy arrive from options and from a string."""
        from_options = self.listeners(
            tls_key_file=self.key,
            tls_cert_file=self.cert,
            tls_peer_verify="yes",
            tls_ca_file=self.ca,
            tls_use_system_cert_store="yes",
        )
        text = f"ssl:1:{self.key}:{self.cert}:peerVerify=yes:caFile={self.ca}:systemStore=yes:extraCertChain={self.ca}"
        from_string = self.listeners(port=text)
        expected = TLS(self.key, self.cert, peer_verify=True, ca_file=self.ca, system_store=True)
        self.assertEqual(expected, from_options[0].tls)
        self.assertEqual(
            TLS(self.key, self.cert, self.ca, peer_verify=True, ca_file=self.ca, system_store=True), from_string[0].tls
        )

    def test_relative_names(self) -> None:
        """Relative names are made absolute, since twistd may change its directory."""
        names = {"tls_key_file": os.path.relpath(self.key), "tls_cert_file": os.path.relpath(self.cert)}
        self.assertEqual(TLS(self.key, self.cert), self.listeners(**names)[0].tls)

    def test_token_over_tls(self) -> None:
        """A token on a TLS endpoint needs nothing else."""
        token_file = write_text(self.directory, "tokens", "x\n")
        resolved = start(tls_key_file=self.key, tls_cert_file=self.cert, auth_token_file=token_file)
        self.assertEqual((), resolved.settings.warnings)

    def test_warnings(self) -> None:
        """Trust that nobody asks for, old certificates, and endpoints without the policy are warnings."""
        old_key, old_cert = EXPIRED.write(self.directory, "old")
        pair = {"tls_key_file": self.key, "tls_cert_file": self.cert}
        ssl = f"ssl:443:{self.key}:{self.cert}"
        cases: list[tuple[dict[str, str | list[str]], str]] = [
            ({**pair, "tls_ca_file": self.ca}, "--tls-ca-file: It is not used: tls-peer-verify is no."),
            ({"port": f"{ssl}:systemStore=yes"}, "--port: It is not used: tls-peer-verify is no."),
            ({"tls_key_file": old_key, "tls_cert_file": old_cert}, "--tls-cert-file: certificate 1 of"),
            ({"tls_key_file": old_key, "tls_cert_file": old_cert}, "--tls-key-file: "),
            (
                {"port": [ssl, "80"], "tls_peer_verify": "yes", "tls_ca_file": self.ca},
                'No client certificate is requested on "80"',
            ),
        ]
        for options, fragment in cases:
            self.assertIn(fragment, "\n".join(start(**options).settings.warnings), options)

    def test_policy_on_part_of_the_endpoints(self) -> None:
        """Two kinds of endpoints without a policy are no reason for a warning."""
        resolved = start(port=[f"ssl:443:{self.key}:{self.cert}", "80"])
        self.assertEqual((), resolved.settings.warnings)
