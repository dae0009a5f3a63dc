"""
Tests for L{webhookrx.config.router_form}.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from textwrap import dedent
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import NOW, check_observer, given, write_text
from tests.system.certificates import self_signed, write
from webhookrx.config import router_form
from webhookrx.config.check import check_report
from webhookrx.config.files import LAST_SET, read_file, signature_of, write_state
from webhookrx.config.machine import HostFacts
from webhookrx.config.observers import KnownObservers
from webhookrx.config.option_reader import ConfigProblems
from webhookrx.config.resolve import Environment, Resolved, resolve
from webhookrx.config.rule_files import read_last_set
from webhookrx.observers.registry import find_spec
from webhookrx.router.gate import ClosedConnector
from webhookrx.router.rules.rule import DEFAULT_PATHS
from webhookrx.router.steps.step import Preprocessing, Step
from webhookrx.settings import TLS, ConnectorSettings, Listener, RouterSettings, Settings, Source

IDENTITY = self_signed("host")
HOST = HostFacts("lab", "lab.example.com", ("192.0.2.1",), "linux", "x86_64", "1.2.3")

PLAIN = "{name: hooks, protocol: HTTP, port: 8181}"


class RouterCase(SynchronousTestCase):
    """A directory with a rules file."""

    def setUp(self) -> None:
        self.directory = os.path.abspath(self.mktemp())
        os.mkdir(self.directory)
        self.asked = 0

    def path(self, name: str) -> str:
        """Return the path of a file in the directory."""
        return os.path.join(self.directory, name)

    def rules(self, *rules: str) -> str:
        """Write a rules file; return its path."""
        return write_text(self.directory, "rules.yaml", "connector_rules:\n" + "".join(f"- {each}\n" for each in rules))

    def tls_rule(self, name: str = "tls", port: int = 8443, missing: str = "") -> str:
        """Return a rule for HTTPS, of whose two files one may be missing."""
        key, cert = (
            f"/no/{name}" if role == missing else path for role, path in zip(("key", "cert"), self.pair(), strict=True)
        )
        return f"{{name: {name}, protocol: HTTPS, port: {port}, key_file: {key}, cert_file: {cert}}}"

    def pair(self) -> tuple[str, str]:
        """Write a key and a certificate that fit."""
        key, cert = IDENTITY.write(self.directory, "host")
        os.chmod(key, 0o600)
        return key, cert

    def host(self) -> HostFacts:
        """Say what machine it is."""
        self.asked += 1
        return HOST

    def start(self, running: Settings | None = None, **options: str | Sequence[str]) -> Resolved:
        """Resolve these options."""
        environment = Environment(
            {}, NOW, KnownObservers(("file", "stdout"), check_observer, find_spec), host=self.host
        )
        return resolve(given(**options), environment, running)

    def settings(self, running: Settings | None = None, **options: str | Sequence[str]) -> Settings:
        """Return the settings of these options."""
        return self.start(running, **options).settings

    def errors(self, **options: str | Sequence[str]) -> list[str]:
        """Return what is wrong with these options, without the directory."""
        return [
            each.text.replace(f"{self.directory}/", "")
            for each in self.assertRaises(ConfigProblems, self.start, **options).errors
        ]


class ConnectorTests(RouterCase):
    """
    From rules to connectors.
    """

    def test_plain(self) -> None:
        """A rule for every router gives a connector for plain HTTP, and there is no other source."""
        settings = self.settings(rules=self.rules(PLAIN))
        (source,) = settings.sources
        labels = {"product": "webhook", "vendor": "generic"}
        expected = Source(
            "lab-hooks-hooks", "connector", DEFAULT_PATHS,
            listeners=(Listener("8181", "tcp:8181:backlog=4096"),),
            connector=ConnectorSettings("hooks", 8181, labels, Preprocessing()),
        )  # fmt: skip
        self.assertEqual(expected, source)
        self.assertEqual(RouterSettings("lab"), settings.router)
        self.assertEqual((), settings.warnings)

    def test_headers_and_health(self) -> None:
        """What a rule says of headers and of health holds for its connector."""
        rule = PLAIN.removesuffix("}") + ", include_request_headers: yes, health: /healthz}"
        (source,) = self.settings(rules=self.rules(rule)).sources
        self.assertEqual((True, "/healthz"), (source.include_request_headers, source.health))
        (source,) = self.settings(rules=self.rules(PLAIN)).sources
        self.assertEqual((False, ""), (source.include_request_headers, source.health))

    def test_https(self) -> None:
        """A rule for HTTPS has its key and certificate."""
        key, cert = self.pair()
        rule = (
            "{name: t, suffix: in, protocol: HTTPS, port: 8443, paths: [/a, /b], labels: {team: x}, "
            "include_request_headers: yes, "
            f"key_file: {key}, cert_file: {cert}, preprocessing: {{classify: yes, steps: [{{probe: p}}]}}}}"
        )
        (source,) = self.settings(rules=self.rules(rule), router_name="edge-1").sources
        self.assertEqual(TLS(key, cert), source.listeners[0].tls)
        self.assertEqual(("edge-1-t-in", ("/a", "/b")), (source.name, source.paths))
        self.assertTrue(source.include_request_headers)
        assert source.connector is not None
        self.assertEqual({"product": "webhook", "vendor": "generic", "team": "x"}, source.connector.labels)
        self.assertEqual(Preprocessing(classify=True, steps=(Step(probe="p"),)), source.connector.preprocessing)

    def test_selectors(self) -> None:
        """Selectors see the name, the labels and the facts of this machine."""
        rules = [
            f"{{name: r{number}, protocol: HTTP, port: {1024 + number}, selector: '{selector}'}}"
            for number, selector in enumerate(
                (
                    "name = edge", "label.site = fra", "hostname = lab", "fqdn = lab.example.com", "ip = 192.0.2.1",
                    "os = linux", "arch = x86_64", "version = 1.2.3", "name = other", "label.site = ber",
                )
            )
        ]  # fmt: skip
        settings = self.settings(rules=self.rules(*rules), router_name="edge", router_label=["site=fra", "a.b/c="])
        self.assertEqual([f"edge-r{number}-r{number}" for number in range(8)], [each.name for each in settings.sources])
        self.assertEqual({"site": "fra", "a.b/c": ""}, settings.router and settings.router.labels)
        self.assertEqual(1, self.asked)

    def test_none(self) -> None:
        """When no rule matches that is a warning; so is an empty file of rules."""
        for rules in (self.rules("{name: a, protocol: HTTP, port: 8181, selector: name = other}"), self.rules()):
            settings = self.settings(rules=rules)
            self.assertEqual((), settings.sources)
            self.assertIn('No rule matches this router, "lab".', "\n".join(settings.warnings))

    def test_watched(self) -> None:
        """The rules file and the directory of senders are watched; good keys and certificates are not."""
        os.mkdir(senders := self.path("senders"))
        write_text(senders, "a.yaml", "{id: a, vendor: v, product: p, when: {headers: {x-a: '*'}}}")
        rules = self.rules(self.tls_rule())
        settings = self.settings(rules=rules, senders=senders)
        assert settings.router is not None
        self.assertEqual({rules, senders}, set(settings.router.watched))
        before = settings.router.watched
        write_text(self.directory, "rules.yaml", "connector_rules: []\n")
        after = self.settings(rules=rules, senders=senders).router
        assert after is not None
        self.assertEqual([senders], [path for path in before if before[path] == after.watched[path]])

    def test_changed_while_it_is_read(self) -> None:
        """What changes behind the back of who reads it counts as a change: it is watched as it was before."""
        check, read = router_form.check_rule_files, router_form.read_file
        rules = self.rules(self.tls_rule(missing="key").replace("/no/tls", self.path("late")))

        def check_slowly(*arguments: Any) -> Any:
            found = check(*arguments)
            write_text(self.directory, "late", "key")
            return found

        def read_slowly(path: str) -> tuple[bytes, int]:
            content = read(path)
            write_text(self.directory, "rules.yaml", "connector_rules: []\n")
            return content

        self.patch(router_form, "check_rule_files", check_slowly)
        self.patch(router_form, "read_file", read_slowly)
        router = self.settings(rules=rules).router
        assert router is not None
        for path in (rules, self.path("late")):
            self.assertNotEqual(signature_of(path), router.watched[path])

    def test_signatures_are_no_settings(self) -> None:
        """That a file was written anew with the same rules changes no setting."""
        before = self.settings(rules=self.rules(PLAIN))
        os.remove(self.path("rules.yaml"))
        self.assertEqual(before, self.settings(rules=self.rules(PLAIN)))

    def test_yaml(self) -> None:
        """All options stand in a configuration file, labels as a mapping or a list, and the command line wins."""
        rules = self.rules("{name: hooks, protocol: HTTP, port: 8181, selector: label.site = fra}")
        for labels in ("{site: fra, wec: enabled}", "[site=fra, wec=enabled]"):
            config = write_text(
                self.directory, "c.yaml", f"rules: {rules}\nrouter_name: edge\nrouter_labels: {labels}\n"
            )
            settings = self.settings(config=config)
            self.assertEqual(RouterSettings("edge", {"site": "fra", "wec": "enabled"}), settings.router)
            self.assertEqual(["edge-hooks-hooks"], [each.name for each in settings.sources])
            router = self.settings(config=config, router_name="other", router_label="site=ber").router
            self.assertEqual(RouterSettings("other", {"site": "ber"}), router)

    def test_own_senders(self) -> None:
        """Data files of the directory are read, and other files in it are not."""
        senders = self.path("senders")
        for name in ("a.yaml", "b.yml"):
            write_text(senders, name, f"{{id: {name[0]}, vendor: v, product: p, when: {{headers: {{x-a: '*'}}}}}}")
        write_text(senders, "README", "{")
        router = self.settings(rules=self.rules(PLAIN), senders=senders).router
        self.assertEqual(["a", "b"], [entry.id for entry in (router.senders if router else ())])

    def test_no_data_files(self) -> None:
        """A directory without data files is a warning."""
        os.mkdir(senders := self.path("senders"))
        warnings = self.settings(rules=self.rules(PLAIN), senders=senders).warnings
        self.assertEqual([f'command line: --senders: "{senders}" holds no data files (*.yaml).'], list(warnings))

    def test_without_rules(self) -> None:
        """What is of routers alone is not used without rules, and warned of; this machine is not even looked at."""
        settings = self.settings(router_name="x", router_label="a=b")
        self.assertEqual(
            [f"command line: --{name}: It is not used without --rules." for name in ("router-name", "router-label")],
            list(settings.warnings),
        )
        self.assertEqual(
            (None, ["default"], 0), (settings.router, [each.name for each in settings.sources], self.asked)
        )


class MistakeTests(RouterCase):
    """
    What can't be used.
    """

    def test_rules(self) -> None:
        """Mistakes in the rules file are said with line, column, field and code: all of them at once."""
        rules = write_text(
            self.directory, "rules.yaml",
            """
            connector_rules:
              - name: a
                protocol: HTTP
                prot: 1
              - {name: b, protocol: HTTP, port: 70000, selector: 'name ='}
            """,
        )  # fmt: skip
        found = self.errors(rules=rules)
        for line, code in (
            ("2:5: ", "missing-key"),
            ("4:5: ", "unknown-key"),
            ("5:", "port-range"),
            ("5:", "selector-syntax"),
        ):
            self.assertTrue(
                any(each.startswith(f"rules.yaml:{line}") and each.endswith(f"[{code}]") for each in found),
                (code, found),
            )
        self.assertIn('connector_rules[0].prot: There is no key "prot" here. Did you mean "port"?', "\n".join(found))

    def test_no_yaml(self) -> None:
        """What is no YAML is said with its place."""
        (found,) = self.errors(rules=write_text(self.directory, "rules.yaml", "connector_rules:\n- {name: a\n"))
        self.assertRegex(found, r"^rules\.yaml:\d+:\d+: .*\[yaml-syntax\]$")

    def test_warnings_of_rules(self) -> None:
        """What is probably not meant is warned of at its place."""
        (warning,) = self.settings(rules=self.rules("{name: a, protocol: HTTP, port: 81}")).warnings
        self.assertRegex(warning, r"rules\.yaml:2:\d+: connector_rules\[0\]\.port: .*\[port-privileged\]$")

    def test_missing_files(self) -> None:
        """A rules file, or a directory of senders, that is not there is an error."""
        self.assertEqual(
            ['command line: --rules: "none.yaml" does not exist.'], self.errors(rules=self.path("none.yaml"))
        )
        self.assertEqual(
            ['command line: --senders: "none" does not exist.'],
            self.errors(rules=self.rules(PLAIN), senders=self.path("none")),
        )
        self.assertEqual(["command line: --rules: It is empty; a name is needed."], self.errors(rules=""))

    def test_names_and_labels(self) -> None:
        """Names and labels that routers can't have are errors at their place."""
        rules = self.rules(PLAIN)
        for options, problem in (
            ({"router_name": "a b"}, '--router-name: "a b" is not a name'),
            ({"router_name": "x" * 250}, ""),
            ({"router_label": "site"}, '--router-label: "site" is not a label; write KEY=VALUE.'),
            ({"router_label": ["a=b", "a=c"]}, '--router-label: The label "a" is given twice.'),
            ({"router_label": "=b"}, "--router-label: "),
            ({"router_label": "a=b c"}, '--router-label: "b c" is not the value of a label'),
        ):  # fmt: skip
            found = self.errors(rules=rules, **options)  # type: ignore[arg-type]
            self.assertEqual(1, len(found), found)
            self.assertIn(f"command line: {problem}" if problem else "[connector-name-too-long]", found[0])

    def test_host_name(self) -> None:
        """A host name that is no name for a router is an error, unless another is given."""
        self.patch(self, "host", lambda: HOST._replace(hostname="-"))
        self.assertIn('"-" is not a name', self.errors(rules=self.rules(PLAIN))[0])
        self.assertEqual("x", self.settings(rules=self.rules(PLAIN), router_name="x").sources[0].name[0])

    def test_clash(self) -> None:
        """Two rules that want one port on this router are an error that names both."""
        (found,) = self.errors(
            rules=self.rules(
                "{name: a, protocol: HTTP, port: 8181, selector: name = lab}",
                "{name: b, protocol: HTTP, port: 8181, selector: os = linux}",
            )
        )
        self.assertRegex(found, r'^rules\.yaml:3:\d+: connector_rules\[1\]\.port: .*"a" and "b".*\[port-clash\]$')

    def test_senders(self) -> None:
        """Data files with mistakes are errors with their place."""
        senders = self.path("senders")
        write_text(senders, "a.yaml", "id: a\nvendor: v\nproduct: p\n")
        (found,) = self.errors(rules=self.rules(PLAIN), senders=senders)
        self.assertRegex(found, r"^senders/a\.yaml:1:1: .*\[missing-key\]$")


class BesideSourcesTests(RouterCase):
    """
    Sources and connectors in one receiver.
    """

    def test_both(self) -> None:
        """As soon as an option of sources is there, there are sources, before the connectors."""
        rules = self.rules(PLAIN)
        config = write_text(self.directory, "c.yaml", "sources: [{name: one, port: 8182}]\n")
        for options in ({"port": "8182"}, {"paths": "/in"}, {"config": config}):
            settings = self.settings(rules=rules, **options)
            self.assertEqual([None, "hooks"], [each.connector and each.connector.rule for each in settings.sources])

    def test_same_address(self) -> None:
        """An address that both want is an error that names both."""
        for port in ("8181", "tcp:8181:interface=127.0.0.1", "tcp6:8181"):
            (found,) = self.errors(rules=self.rules(PLAIN), port=port)
            self.assertEqual(
                f'rules: Source "default" has "{port}", and connector "lab-hooks-hooks" has port 8181: '
                "two endpoints can't take one address.",
                found,
            )

    def test_same_name(self) -> None:
        """A name that both have is an error."""
        config = write_text(self.directory, "c.yaml", "name: lab-hooks-hooks\nport: 8182\n")
        (found,) = self.errors(rules=self.rules(PLAIN), config=config)
        self.assertEqual('sources: A connector has the name "lab-hooks-hooks", too.', found)

    def test_admin(self) -> None:
        """The endpoint for operators can't be a connector's."""
        self.assertIn("Senders use", self.errors(rules=self.rules(PLAIN), admin="8181")[0])


def names(settings: Settings) -> list[str]:
    """Return the names of the sources."""
    return [source.name for source in settings.sources]


class LastSetTests(RouterCase):
    """
    A start with what was in use before.
    """

    def setUp(self) -> None:
        super().setUp()
        self.state_dir = self.path("state")

    def start(self, running: Settings | None = None, **options: str | Sequence[str]) -> Resolved:
        """Resolve these options, as the router C{edge}; what is good is kept."""
        resolved = super().start(running, **{"state_dir": self.state_dir, "router_name": "edge", **options})
        keep(resolved.settings)
        return resolved

    def test_kept(self) -> None:
        """What is kept is the set that is good, with its senders; and no key."""
        write_text(self.path("senders"), "a.yaml", "{id: a, vendor: v, product: p, when: {headers: {x-a: '*'}}}")
        rules = self.rules(PLAIN, self.tls_rule())
        settings = self.settings(rules=rules, router_label="a=b", senders=self.path("senders"))
        kept = read_last_set(self.state_dir)
        assert kept is not None and settings.router is not None
        self.assertEqual(("edge", {"a": "b"}), (kept.router, kept.labels))
        self.assertEqual(names(settings), [each.name for each in kept.connectors])
        self.assertEqual(settings.router.senders, kept.senders)
        with open(os.path.join(self.state_dir, LAST_SET), "rb") as file:
            self.assertNotIn(b"PRIVATE", file.read())
        self.settings(rules=self.rules(self.tls_rule(missing="key")))
        self.assertEqual(kept, read_last_set(self.state_dir))

    def test_nowhere(self) -> None:
        """Without a directory nothing is kept."""
        settings = super().start(rules=self.rules(PLAIN)).settings
        self.assertEqual((None, b""), (settings.state_dir, settings.router and settings.router.good))

    def test_missing_certificate(self) -> None:
        """With a certificate missing, the last set begins, but for the connectors whose files are gone."""
        plain = [f"{{name: p{number}, protocol: HTTP, port: {8100 + number}}}" for number in range(5)]
        first = self.settings(rules=self.rules(*plain, self.tls_rule()), router_label="a=b")
        tls = self.tls_rule()
        os.remove(self.path("host-cert.pem"))
        # The rules have changed meanwhile, and the options: nothing of that counts yet.
        rules = self.rules(
            *plain[:2],
            "{name: new, protocol: HTTP, port: 8200}",
            tls,
        )
        settings = self.settings(rules=rules, router_name="other")
        self.assertEqual(names(first)[:5], names(settings))
        self.assertEqual(
            ("edge", {"a": "b"}), (settings.router and settings.router.name, settings.router and settings.router.labels)
        )
        self.assertRegex(settings.blocked[0].text, "rules.yaml:5.*host-cert.pem.*does not exist")
        self.assertEqual((self.path("host-cert.pem"),), settings.gate_paths)
        (closed,) = settings.closed
        self.assertRegex(closed.sentence, '^Connector "edge-tls-tls" is closed: .*host-cert.pem" does not exist')
        self.assertIn(self.path("host-cert.pem"), settings.watched)
        # It comes back, and all changes are taken.
        self.pair()
        opened = self.settings(settings, rules=rules, router_name="other")
        self.assertEqual(["other-new-new", "other-p0-p0", "other-p1-p1", "other-tls-tls"], names(opened))
        self.assertEqual(((), ()), (opened.blocked, opened.closed))

    def test_files_of_the_last_set(self) -> None:
        """A connector of the last set begins with its files, though the rules want others that are missing."""
        first = self.settings(rules=self.rules(self.tls_rule()))
        settings = self.settings(rules=self.rules(self.tls_rule(missing="key")))
        self.assertEqual((first.sources, ()), (settings.sources, settings.closed))
        assert settings.router is not None and first.router is not None
        self.assertEqual(first.router.tls_files, settings.router.tls_files)

    def test_bad_rules(self) -> None:
        """With a rules file that can't be used, or senders that can't, the last set begins, and it is said why."""
        first = self.settings(rules=self.rules(PLAIN))
        bad_senders = self.path("senders")
        write_text(bad_senders, "a.yaml", "{id: a}")
        clash = self.rules(PLAIN, "{name: b, protocol: HTTP, port: 8181}")
        for options, reason in (
            ({"rules": self.path("none.yaml")}, 'none.yaml" does not exist'),
            ({"rules": write_text(self.directory, "bad.yaml", "connector_rules: [")}, "bad.yaml"),
            ({"rules": clash}, "[port-clash]"),
        ):
            settings = self.settings(**options)
            self.assertEqual(first.sources, settings.sources)
            self.assertIn(reason, settings.not_taken)
            self.assertIn(reason, "".join(settings.warnings))
            self.assertIn(options["rules"], settings.watched)
            self.assertEqual((), settings.blocked)
            # What runs is no reason to take them at a reload, or at a look.
            self.assertRaises(ConfigProblems, self.settings, settings, **options)
            environment = Environment(
                {}, NOW, KnownObservers(("file",), check_observer, find_spec), host=self.host, checks_only=True
            )
            self.assertRaises(ConfigProblems, resolve, given(state_dir=self.state_dir, **options), environment)
        settings = self.settings(rules=self.rules(PLAIN), senders=bad_senders)
        self.assertEqual((first.sources, True), (settings.sources, bool(settings.not_taken)))
        good = self.settings(settings, rules=self.rules("{name: c, protocol: HTTP, port: 1234}"))
        self.assertEqual((["edge-c-c"], ""), (names(good), good.not_taken))

    def test_senders_that_are_no_text(self) -> None:
        """Senders that are no text are told like others, where nothing stands in for them."""
        os.mkdir(self.path("senders"))
        write(self.path("senders/a.yaml"), b"\xff")
        errors = self.errors(rules=self.rules(PLAIN), senders=self.path("senders"))
        self.assertIn("[not-utf8]", errors[0])

    def test_bad_options(self) -> None:
        """What is wrong elsewhere ends the start, whatever there was before."""
        self.settings(rules=self.rules(PLAIN))
        self.assertRaises(ConfigProblems, self.settings, rules=self.rules(PLAIN), limit="body=x")
        self.assertRaises(ConfigProblems, self.settings, rules=self.rules(PLAIN), router_name="-")

    def test_bad_last_set(self) -> None:
        """One that can't be used is told where it is wanted, and stands in for nothing."""
        write_text(self.state_dir, LAST_SET, "{}")
        error = self.assertRaises(ConfigProblems, self.settings, rules=self.path("none.yaml"))
        self.assertIn("none.yaml", str(error))
        settings = self.settings(rules=self.rules(PLAIN, self.tls_rule(missing="key")))
        self.assertIn(f"{LAST_SET} is damaged", "".join(settings.warnings))
        self.assertEqual(["edge-hooks-hooks"], names(settings))
        settings = self.settings(rules=self.rules(PLAIN))
        self.assertEqual((), settings.warnings)

    def test_json_files(self) -> None:
        """A connector of the last set begins with the JSON file that it names, and stays closed without one."""
        teams = write_text(self.directory, "teams.json", "{}")
        step = f"expression: 'meta.team = cache_json_file(\"{teams}\").a;'"
        looks_up = f"{{name: looks-up, protocol: HTTP, port: 8182, preprocessing: {{steps: [{{{step}}}]}}}}"
        first = self.settings(rules=self.rules(PLAIN, looks_up))
        settings = self.settings(rules=self.rules(self.tls_rule(missing="key")))
        assert settings.router is not None and first.router is not None
        self.assertEqual((first.sources, ()), (settings.sources, settings.closed))
        self.assertEqual(first.router.json_files, settings.router.json_files)
        self.assertIn(teams, settings.watched)
        os.remove(teams)
        for rules in (self.rules(PLAIN, looks_up), self.path("none.yaml")):
            settings = self.settings(rules=rules)
            self.assertEqual(["edge-hooks-hooks"], names(settings))
            (closed,) = settings.closed
            self.assertRegex(
                closed.sentence, '^Connector "edge-looks-up-looks-up" is closed: .*teams.json" does not exist'
            )
            self.assertIn(teams, settings.watched)

    def test_systemd(self) -> None:
        """systemd's directory is taken where none is named; without rules it is for nothing."""
        environment = Environment(
            {"STATE_DIRECTORY": "/var/lib/x"},
            NOW,
            KnownObservers(("file", "stdout"), check_observer, find_spec),
            host=self.host,
        )
        options = given(rules=self.rules(PLAIN), observer="stdout")
        self.assertEqual("/var/lib/x", resolve(options, environment).settings.state_dir)
        self.assertIsNone(resolve(given(observer="stdout"), environment).settings.state_dir)
        self.assertIn("--state-dir", self.errors(rules=self.rules(PLAIN), state_dir="/no/such/place")[0])

    def test_report(self) -> None:
        """C{--check} says where connectors come from that are not by the rules as they are."""
        self.settings(rules=self.rules(PLAIN))
        report = check_report(
            self.start(rules=self.rules("{name: new, protocol: HTTP, port: 1234}", self.tls_rule(missing="key")))
        )
        self.assertIn("source edge-hooks-hooks\n", report)
        self.assertIn("(the last good set)", report)


def keep(settings: Settings) -> None:
    """Keep what is good, as a receiver does once it is in use."""
    if settings.state_dir is not None and settings.router is not None and settings.router.good:
        write_state(settings.state_dir, LAST_SET, settings.router.good)


class GateTests(RouterCase):
    """
    Keys and certificates that are missing.
    """

    def test_at_the_start(self) -> None:
        """
        A router that begins with a closed gate has the connectors whose files are there, says what is wrong with the
        others, and waits for all files of its rules.
        """
        rules = self.rules(PLAIN, self.tls_rule("one", 8443, "key"), self.tls_rule("two", 8444, "cert"))
        settings = self.settings(rules=rules, router_name="edge")
        assert settings.router is not None
        self.assertEqual((["edge-hooks-hooks"], "edge"), (names(settings), settings.router.name))
        key, cert = self.pair()
        self.assertEqual({rules, key, cert, "/no/one", "/no/two"}, set(settings.router.watched))
        first, second = settings.router.blocked
        self.assertRegex(
            first.text,
            r'rules\.yaml:3:\d+: .*\[1\]\.key_file: "/no/one" does not exist\. \[tls-file-missing\]$',
        )
        self.assertRegex(second.text, r'rules\.yaml:4:\d+: connector_rules\[2\]\.cert_file: "/no/two" does not exist')
        self.assertEqual(
            (("/no/one", "/no/two"), ("/no/one", "/no/two")), ((first.path, second.path), settings.gate_paths)
        )
        self.assertEqual(
            (
                ClosedConnector("edge-one-one", "one", 8443, '"/no/one" does not exist.'),
                ClosedConnector("edge-two-two", "two", 8444, '"/no/two" does not exist.'),
            ),
            settings.closed,
        )
        closed = [
            'Connector "edge-one-one" is closed: "/no/one" does not exist.',
            'Connector "edge-two-two" is closed: "/no/two" does not exist.',
        ]
        blocked = [f"The router is blocked: {each.text}" for each in (first, second)]
        self.assertEqual([*blocked, *closed], list(settings.warnings))
        # It stays so, whatever else changes, until all of them are there.
        rules = self.rules("{name: new, protocol: HTTP, port: 8182}", self.tls_rule("one", 8443, "key"))
        after = self.settings(settings, rules=rules, router_name="edge")
        self.assertEqual((names(settings), settings.closed), (names(after), after.closed))
        opened = self.settings(after, rules=self.rules(self.tls_rule("one", 8443)), router_name="edge")
        self.assertEqual((["edge-one-one"], (), ()), (names(opened), opened.closed, opened.blocked))

    def test_while_it_runs(self) -> None:
        """What runs stays as it is, with name, labels and senders, whatever rules and options say; the rest changes."""
        senders = self.path("senders")
        write_text(senders, "a.yaml", "{id: a, vendor: v, product: p, when: {headers: {x-a: '*'}}}")
        before = self.settings(rules=self.rules(PLAIN), router_name="edge", router_label="a=b", port="9000")
        rules = self.rules("{name: hooks, protocol: HTTP, port: 8182}", self.tls_rule(missing="key"))
        after = self.settings(
            before,
            rules=rules,
            router_name="other",
            router_label="c=d",
            senders=senders,
            port="9001",
            limit="body=1MiB",
        )
        assert before.router is not None and after.router is not None
        self.assertEqual(before.sources[1:], after.sources[1:])
        self.assertEqual(replace(before.router, blocked=after.router.blocked), after.router)
        self.assertIn("/no/tls", after.router.watched)
        self.assertEqual(("9001", 2**20), (after.sources[0].listeners[0].text, after.limits.body))
        # Still closed, for another reason; then open.
        rules = self.rules(self.tls_rule(missing="cert"))
        again = self.settings(after, rules=rules, router_name="other", port="9001")
        self.assertEqual(before.sources[1:], again.sources[1:])
        opened = self.settings(again, rules=self.rules(self.tls_rule()), router_name="other", port="9001")
        self.assertEqual(["default", "other-tls-tls"], [each.name for each in opened.sources])
        self.assertEqual(RouterSettings("other"), opened.router)

    def test_first_rules(self) -> None:
        """Where there was no router, a closed gate leaves it without connectors."""
        after = self.settings(self.settings(), rules=self.rules(self.tls_rule(missing="key")), router_name="edge")
        self.assertEqual(((), "edge"), (after.sources, after.router and after.router.name))

    def test_sources_against_what_runs(self) -> None:
        """As long as the gate is closed, an address is taken by the connector that runs, not by what is to follow."""
        before = self.settings(rules=self.rules(PLAIN))
        rules = self.rules(self.tls_rule(missing="key"))
        error = self.assertRaises(ConfigProblems, self.settings, before, rules=rules, port="8181")
        self.assertIn('connector "lab-hooks-hooks" has port 8181', str(error))
        self.assertEqual(2, len(self.settings(before, rules=rules, port="8443").sources))

    def test_tls_files(self) -> None:
        """
        The router has what was in the files of its connectors. While it is blocked that is what was there when they
        began to run, also of files that are good; a source that names the same files has them as they are.
        """
        rules = self.rules(self.tls_rule())
        first = self.settings(rules=rules)
        key, cert = self.path("host-key.pem"), self.path("host-cert.pem")
        assert first.router is not None
        self.assertEqual({key: read_file(key), cert: read_file(cert)}, first.router.tls_files)
        self.assertEqual({}, first.tls_files)
        before = dict(first.router.tls_files)
        os.chmod(cert, 0o640)
        rules = self.rules(self.tls_rule(), self.tls_rule("other", 8444, missing="key"))
        tls = {"tls_key_file": key, "tls_cert_file": cert}
        blocked = self.settings(first, rules=rules, port="8445", **tls)
        assert blocked.router is not None and blocked.blocked
        self.assertEqual(before, blocked.router.tls_files)
        self.assertEqual({key: read_file(key), cert: read_file(cert)}, blocked.tls_files)
        self.assertNotEqual(before, blocked.tls_files)

    def test_slow_paths(self) -> None:
        """A path that RE2 can't run is an error, unless the operator takes the risk; that alone makes no source."""
        rules = self.rules("{name: a, protocol: HTTP, port: 8181, paths: ['/(?=a).*']}")
        (error,) = self.errors(rules=rules)
        self.assertRegex(error, r"^rules\.yaml:2:\d+: connector_rules\[0\]\.paths\[0\]: .* \[path-not-linear\]$")
        settings = self.settings(rules=rules, allow_slow_patterns="yes")
        self.assertEqual(["lab-a-a"], [source.name for source in settings.sources])
        (warning,) = settings.warnings
        self.assertTrue(warning.endswith("[path-slow]"), warning)
        self.assertEqual(1, len(self.errors(rules=rules, allow_slow_patterns="no")))

    def test_files_of_others(self) -> None:
        """Files of rules that are not for this router are no business of it."""
        elsewhere = self.tls_rule(missing="key").replace("{", "{selector: name = other, ")
        settings = self.settings(rules=self.rules(PLAIN, elsewhere))
        self.assertEqual((1, ()), (len(settings.sources), settings.router and settings.router.blocked))

    def test_expired(self) -> None:
        """A certificate that is only doubtful is warned of and closes nothing."""
        rule = self.tls_rule()
        os.chmod(self.path("host-key.pem"), 0o644)
        settings = self.settings(rules=self.rules(rule))
        self.assertEqual(1, len(settings.sources))
        self.assertRegex(
            settings.warnings[0], r"rules\.yaml:2:\d+: connector_rules\[0\]\.key_file: .*\[key-file-open\]$"
        )


class JsonFileTests(RouterCase):
    """
    JSON files that expressions name.
    """

    def rule(self, path: str) -> str:
        """Return a rule with a step that looks something up."""
        step = "expression: 'meta.team = cache_json_file(\"" + path + '")[log.body.host] ?? "none";\''
        return f"{{name: hooks, protocol: HTTP, port: 8181, preprocessing: {{steps: [{{{step}}}]}}}}"

    def test_read(self) -> None:
        """A file is read with the rules, and is watched: what it holds is a setting, so that a change is one."""
        path = write_text(self.directory, "teams.json", '{"a": "b"}')
        rules = self.rules(self.rule(path))
        before = self.settings(rules=rules).router
        assert before is not None
        self.assertEqual({path: b'{"a": "b"}'}, before.json_files)
        self.assertEqual({rules, path}, set(before.watched))
        self.assertEqual((), before.blocked)
        write_text(self.directory, "teams.json", '{"a": "c"}')
        after = self.settings(rules=rules).router
        assert after is not None
        self.assertNotEqual(before, after)
        self.assertEqual({path: b'{"a": "c"}'}, after.json_files)

    def test_missing(self) -> None:
        """
        One that is missing or no JSON closes the gate and its connector, says so at its place in the rules, and is
        waited for.
        """
        path = self.path("teams.json")
        rules = self.rules(PLAIN.replace("hooks", "other").replace("8181", "8182"), self.rule(path))
        for content, code in ((None, "json-file-missing"), ("{", "json-file-unusable"), ('"a"', "json-file-unusable")):
            if content is not None:
                write_text(self.directory, "teams.json", content)
            settings = self.settings(rules=rules)
            assert settings.router is not None
            self.assertEqual(["lab-other-other"], names(settings))
            (closed,) = settings.closed
            self.assertEqual(("lab-hooks-hooks", 8181), (closed.name, closed.port))
            (reason,) = settings.router.blocked
            self.assertRegex(
                reason.text, r"rules\.yaml:3:\d+: connector_rules\[1\]\.preprocessing\.steps\[0\]\.expression: .*"
            )
            self.assertIn(f"[{code}]", reason.text)
            self.assertEqual(path, reason.path)
            self.assertIn(path, settings.router.watched)
        write_text(self.directory, "teams.json", "{}")
        self.assertEqual(2, len(self.settings(rules=rules).sources))

    def test_while_it_runs(self) -> None:
        """As long as it can't be used, what runs goes on with what was read before."""
        path = write_text(self.directory, "teams.json", '{"a": "b"}')
        before = self.settings(rules=self.rules(self.rule(path)))
        write_text(self.directory, "teams.json", "[")
        after = self.settings(before, rules=self.rules(self.rule(path)))
        assert before.router is not None and after.router is not None
        self.assertEqual(before.sources, after.sources)
        self.assertEqual(before.router.json_files, after.router.json_files)
        self.assertEqual(1, len(after.router.blocked))


class CheckTests(RouterCase):
    """
    What C{--check} says.
    """

    def report(self, running: Settings | None = None, **options: str | Sequence[str]) -> str:
        """Return it without the directory."""
        return check_report(self.start(running, **options)).replace(f"{self.directory}/", "")

    def test_report(self) -> None:
        """It has the router, and each connector with its places in the rules file."""
        rule = dedent("""\
        name: hooks
          protocol: HTTP
          port: 8181
          labels: {team: a}""")
        report = self.report(rules=self.rules(rule), router_label="site=fra")
        for line in (
            "  rules                       rules.yaml ",
            "  router-name                 lab ",
            "  router-label                site=fra ",
            "source lab-hooks-hooks\n",
            "  rule    hooks ",
            "(rules.yaml:4)",
            "  paths   /events /events/(?P<HOST>.*) ",
            "  labels  product=webhook vendor=generic team=a ",
            "  listens on tcp:8181:backlog=4096, plain HTTP\n",
        ):
            self.assertIn(line, report)
        self.assertNotIn("source default", report)

    def test_blocked(self) -> None:
        """It says that the router would be blocked, and which connectors would begin."""
        report = self.report(rules=self.rules(self.tls_rule(missing="key"), PLAIN))
        self.assertIn("source lab-hooks-hooks\n", report)
        self.assertIn("(rules.yaml:3)", report)
        self.assertIn("but the router is blocked: nothing changes until that is corrected.", report)
        report = self.report(rules=self.rules(self.tls_rule(missing="key")))
        self.assertIn("warning: The router is blocked: rules.yaml:2:", report)
        self.assertNotIn("source ", report)

    def test_as_it_runs(self) -> None:
        """Where connectors run whose rules have gone, that is said in place of a line of the file."""
        running = self.settings(rules=self.rules(PLAIN))
        report = self.report(running, rules=self.rules(self.tls_rule(missing="key")))
        self.assertIn("(as it runs)", report)
