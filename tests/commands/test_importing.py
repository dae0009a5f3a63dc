"""
Tests for C{webhookrx import}.
"""

from __future__ import annotations

import os
from textwrap import dedent
from typing import Any, NamedTuple

import yaml
from twisted.trial.unittest import SynchronousTestCase

from tests.commands.running import run_command
from tests.config.starting import start, write_text
from webhookrx.commands.collector_text import read_collector
from webhookrx.commands.importing import as_yaml
from webhookrx.settings import Source


class Case(NamedTuple):
    """
    A configuration of the collector that can be carried over.

    @ivar sources: the keys of ours, but for name and kind where they say nothing.
    @ivar comments: words that the comments have.
    """

    text: str
    sources: list[dict[str, Any]]
    comments: tuple[str, ...] = ()


#: As manuals, issues and people have them.
CARRIED = [
    Case(
        'source s_webhook {\nwebhook-json(\n    port(8181)\n    paths(["/events","/events/(?P<HOST>.*)"])\n    );\n};',
        [
            {
                "name": "s_webhook",
                "source": "webhook-json",
                "port": 8181,
                "paths": ["/events", "/events/(?P<HOST>.*)"],
            }
        ],
        ("answers 200", "without keep-hostname(yes)"),
    ),
    Case(
        'source s { webhook(port(8080) ip("127.0.0.1")); };',
        [{"name": "s", "source": "webhook", "port": "tcp:8080:interface=127.0.0.1"}],
    ),
    Case(
        'source s { webhook(ip("::1")); };',
        [{"name": "s", "source": "webhook", "port": "tcp:80:interface=\\:\\:1"}],
    ),
    Case(
        'source s { webhook(port(8080) proxy-header("x-forwarded-for")); };',
        [{"name": "s", "source": "webhook", "port": 8080, "proxy_header": "x-forwarded-for"}],
        ("reads no lists",),
    ),
    Case(
        'source s { webhook(port(181) auth_token("dGVzdF9zZWdlskfoe0aF90b2tlbg==")); };',
        [{"name": "s", "port": 181, "auth_token": "dGVzdF9zZWdlskfoe0aF90b2tlbg=="}],
        ("auth_token_file", "A token over plain HTTP"),
    ),
    Case(
        """
        @version: current
        @include "scl.conf"
        @include "conf.d/*.conf"
        @define port 8443
        options { keep-hostname(yes); };
        # source old { webhook(port(1)); };
        source s_hooks {
          webhook_json(
            port(`port`)
            prefix(github.)
            tls-key-file("/etc/hooks/key.pem") tls_cert_file('/etc/hooks/cert.pem')
            tls_peer_verify(yes) tls_ca_file("/etc/hooks/ca.pem")
            include-request-headers(yes) persist-name("hooks") keep-hostname(yes) use-dns(no)
            flags(no-parse) log-iw-size(1000)
          );
        };
        destination d_file { file("/var/log/hooks.jsonl" template("$(format-json --scope all-nv-pairs)\\n")); };
        log { source(s_hooks); destination(d_file); flags(flow-control); };
        """,
        [
            {
                "name": "s_hooks",
                "source": "webhook-json",
                "port": 8443,
                "prefix": "github.",
                "tls_key_file": "/etc/hooks/key.pem",
                "tls_cert_file": "/etc/hooks/cert.pem",
                "tls_peer_verify": True,
                "tls_ca_file": "/etc/hooks/ca.pem",
                "include_request_headers": True,
            }
        ],
        ("conf.d/*.conf", "credentials in it are masked", "numbers of an array", "names are never looked up"),
    ),
    Case(
        "log { source { webhook(port(1234)); webhook-json(port(1235)); }; destination { file(x); }; };",
        [
            {"name": "webhook-1", "source": "webhook", "port": 1234},
            {"name": "webhook-json-2", "source": "webhook-json", "port": 1235},
        ],
    ),
    Case(
        'source "my hooks" { webhook(); webhook(port(2) paths([]) auth_token("")); };\nsource s_net { network(); };',
        [{"name": "my-hooks", "source": "webhook"}, {"name": "my-hooks-2", "source": "webhook", "port": 2}],
        ('It was "my hooks" there', "every path is taken", "no token is asked for"),
    ),
    Case(
        'source s { webhook(port(1) tls_key_file(k) tls_cert_file(c) tls_peer_verify("no") tls_ca_dir("/d")); };',
        [
            {
                "name": "s",
                "port": 1,
                "tls_key_file": "k",
                "tls_cert_file": "c",
                "tls_peer_verify": True,
                "tls_ca_dir": "/d",
            }
        ],
        ('takes the text "no" in quotes for yes', "Relative names"),
    ),
    Case(
        r"""source s { webhook(paths(["/a\\d+", '/b\d', "/c\"", "/${env:X}"])); };""",
        [{"name": "s", "paths": [r"/a\d+", r"/b\d", '/c"', "/$${env:X}"]}],
    ),
]

#: What can't be carried over: the text, the line of the mistake, and words of it.
LOST = [
    ('source s {\n webhook(\n  tags("a"));\n};', 3, "tags() can't be carried over"),
    ("source s { webhook(ip(localhost)); };", 1, "is no address"),
    ("source s { webhook(port(70000)); };", 1, "no port from 1 to 65535"),
    ("source s { webhook(port(abc)); };", 1, "no port from 1 to 65535"),
    ("source s { webhook(port(1 2)); };", 1, "port() takes one value and has 2"),
    ("source s { webhook(port(1) port(2)); };", 1, "port() is given twice"),
    ("source s { webhook(prefix(x.)); };", 1, "belongs to webhook-json()"),
    ('source s { webhook(auth_token("a b")); };', 1, "auth_token() holds a blank"),
    ("source s { webhook(auth_token('${X}')); };", 1, "auth_token() holds ${…}"),
    ("source s { webhook(include_request_headers(maybe)); };", 1, "neither yes nor no"),
    ("source s { webhook(tls_cert_file(c)); };", 1, "is plain HTTP to the collector"),
    ("source s { webhook(tls_key_file(k)); };", 1, "needs tls_cert_file()"),
    ("source s { webhook(tls_key_file(k) tls_cert_file(c) tls_peer_verify(yes)); };", 1, "no CA to verify clients by"),
    ("source s {\n webhook();\n network(port(1)); };", 3, "network is no webhook"),
    ("source s { channel { source { webhook(); }; parser { json-parser(); }; }; };", 1, "What channel does"),
    ("source s { webhook(8181); };", 1, "takes options such as port(8181)"),
    ("source s { webhook(port(`p`)); };", 1, "`p` is defined neither"),
    ("source s { webhook(paths((x))); };", 1, "brackets of its own"),
    ("source s { webhook(hook-commands(startup(x))); };", 1, "no commands are run"),
    ("block source s() { webhook(port(1)); };\nsource t { webhook(); };", 1, "stands in no source block"),
    ("source s { webhook(port(1);", 1, "is not closed"),
    ('source s { webhook(); };\nsource t { webhook(port("1)); };', 2, "in quotes has no end"),
]


class CollectorTests(SynchronousTestCase):
    """
    C{webhookrx import collector}.
    """

    def test_carried(self) -> None:
        """Each option that is the same is there, and each that is not has its comment."""
        for case in CARRIED:
            text, mistakes = as_yaml(read_collector(dedent(case.text), {}))
            self.assertEqual([], mistakes, case.text)
            found = yaml.safe_load(text)["sources"]
            for expected, each in zip(case.sources, found, strict=True):
                self.assertEqual(each, each | expected)
                self.assertEqual({"name", "source"} | expected.keys(), each.keys())
            comments = "\n".join(line for line in text.splitlines() if line.lstrip().startswith("#"))
            for words in case.comments:
                self.assertIn(words, comments, case.text)

    def test_is_used(self) -> None:
        """What is printed is a configuration that can be used, where its files are there."""
        for case in CARRIED:
            if "tls" in case.text:
                continue
            text, _ = as_yaml(read_collector(dedent(case.text), {}))
            settings = start(config=write_text(self.mktemp(), "x.yaml", text)).settings
            for expected, source in zip(case.sources, settings.sources, strict=True):
                self.assertEqual(expected["name"], source.name)
                paths = [path.replace("$${", "${") for path in expected.get("paths", Source().paths)]
                self.assertEqual(paths, list(source.paths))
                token = expected.get("auth_token")
                self.assertEqual((token.encode(),) if token else (), source.auth_tokens)

    def test_lost(self) -> None:
        """What can't be carried over is an error with its line; the rest is carried over all the same."""
        for text, line, words in LOST:
            printed, mistakes = as_yaml(read_collector(text, {}))
            self.assertTrue(any(each.line == line and words in each.text for each in mistakes), (text, mistakes))
            if "not closed" not in words:
                self.assertTrue(yaml.safe_load(printed)["sources"], text)

    def test_environment(self) -> None:
        """What C{@define} does not say the environment does."""
        text, mistakes = as_yaml(read_collector("source s { webhook(port(`P`)); };", {"P": "81"}))
        self.assertEqual(([], 81), (mistakes, yaml.safe_load(text)["sources"][0]["port"]))

    def test_command(self) -> None:
        """YAML goes to standard output, what is lost to standard error, and the status tells."""
        for text, status in (("source s { webhook(port(1)); };", 0), ("source s { webhook(port(1) tags(x)); };", 1)):
            path = write_text(self.mktemp(), "c.conf", text)
            done, out, err = run_command("import", "collector", path)
            self.assertEqual((status, bool(status)), (done, f"{path}:1: error: tags()" in err))
            self.assertEqual(1, yaml.safe_load(out)["sources"][0]["port"])

    def test_nothing(self) -> None:
        """A file without webhooks, and one that is not there, are errors, and nothing is printed."""
        path = write_text(self.mktemp(), "c.conf", "source s { network(); };")
        for name, words in ((path, "There is no source with webhook()"), (os.path.abspath("no"), "does not exist")):
            status, out, err = run_command("import", "collector", name)
            self.assertEqual((1, ""), (status, out))
            self.assertIn(words, err)
