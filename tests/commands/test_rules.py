"""The subject C{rules}."""

from __future__ import annotations

import json
import os
from functools import partial

from tests.commands.running import CommandCase, Ran, run_command
from tests.config.starting import write_text
from tests.system.certificates import Authority, write
from webhookrx.commands import rules_reading
from webhookrx.config.machine import HostFacts

RULES = """\
    connector_rules:
      - name: edge
        selector: label.site = fra AND label.wec = enabled
        labels: {team: secops}
        suffix: in
        protocol: HTTP
        port: 8080
      - {name: lab, selector: "name =~ ^lab-", protocol: HTTP, port: 8081}
    hosts:
      - {name: fra-1, labels: {site: fra, wec: enabled}, ip: [192.0.2.1, "2001:db8::1"], os: linux, meta: {rack: 7}}
      - {name: fra-2, labels: {site: fra}}
      - {name: lab-1, labels: {site: ber, wec: enabled}}
"""
CLASH = """\
    connector_rules:
      - {name: one, selector: label.a = x, protocol: HTTP, port: 8080}
      - {name: two, selector: label.b = x, protocol: HTTP, port: 8080}
"""
HTTPS = """\
    connector_rules:
      - name: tls
        selector: name = fra-1
        protocol: HTTPS
        port: 8443
        key_file: KEY
        cert_file: CERT
"""


class RulesCase(CommandCase):
    """Rules files that are good and bad, on a machine that is called C{here}."""

    def setUp(self) -> None:
        super().setUp()
        here = HostFacts("here", "here.example.com", ("192.0.2.7",), "linux", "x86_64", "1.2.3")
        self.patch(rules_reading, "this_host", lambda: here)

    def rules(self, verb: str, text: str | bytes, *arguments: str) -> Ran:
        """Run a verb on a rules file with this text."""
        return run_command("rules", verb, self.write("rules.yaml", text), *arguments)


LINUX = "connector_rules: [{name: lin, selector: os = linux, protocol: HTTP, port: 8181}]\n"


DEMO = """\
id: demo
vendor: demo
product: demo
when: {headers: {x-demo-event: '*'}}
verify: {at: 'header:x-demo-signature', key: base64}
"""


class CheckTests(RulesCase):
    """C{rules check}."""

    def test_valid(self) -> None:
        """A file that is in order gets one line."""
        self.assertEqual((0, "2 rules, 3 hosts: 0 errors, 0 warnings\n", ""), self.rules("check", RULES))
        one = "connector_rules: [{name: a, protocol: HTTP, port: 8080}]\nhosts: [{name: b}]"
        self.assertEqual((0, "1 rule, 1 host: 0 errors, 0 warnings\n", ""), self.rules("check", one))

    def test_findings(self) -> None:
        """Everything that is wrong is told, in the order of the file, with place, field and code."""
        bad = RULES.replace("AND", "ADN").replace("port: 8081", "port: 99999").replace("suffix", "sufix")
        status, out, err = self.rules("check", bad)
        self.assertEqual((1, ""), (status, err))
        *findings, summary = out.splitlines()
        starts = (
            "rules.yaml:3:32: error: connector_rules[0].selector: ",
            "rules.yaml:5:5: error: connector_rules[0].sufix: ",
            "rules.yaml:8:66: error: connector_rules[1].port: ",
        )
        ends = (". [selector-syntax]", '"suffix"? [unknown-key]', ". [port-range]")
        self.assertEqual(3, len(findings))
        for finding, start, end in zip(findings, starts, ends, strict=True):
            self.assertTrue(finding.startswith(start) and finding.endswith(end), finding)
        self.assertRegex(summary, r"^\d rules?, 3 hosts: 3 errors, 0 warnings$")

    def test_warnings(self) -> None:
        """Warnings are allowed, unless asked otherwise."""
        text = RULES.replace("port: 8081", "port: 81")
        status, out, _ = self.rules("check", text)
        self.assertEqual(0, status)
        self.assertRegex(out, r"warning: .* \[port-privileged\]\n2 rules, 3 hosts: 0 errors, 1 warning\n$")
        self.assertEqual((1, out), self.rules("check", text, "--strict")[:2])
        for option, valid in (((), True), (("--strict",), False)):
            _, out, _ = self.rules("check", text, "--json", *option)
            self.assertEqual(valid, json.loads(out)["valid"])

    def test_slow_patterns(self) -> None:
        """A path that RE2 can't run is an error, and a warning as for a router that takes the risk."""
        text = "connector_rules: [{name: a, protocol: HTTP, port: 8181, paths: ['/(?=a)']}]"
        status, out, _ = self.rules("check", text)
        self.assertEqual(1, status)
        self.assertIn("rules.yaml:1:65: error: connector_rules[0].paths[0]: ", out)
        self.assertIn("[path-not-linear]", out)
        status, out, _ = self.rules("check", text, "--allow-slow-patterns")
        self.assertEqual(0, status)
        self.assertIn("[path-slow]", out)

    def test_json(self) -> None:
        """In JSON it is one object."""
        status, out, err = self.rules("check", RULES.replace("port: 8081", "port: 0"), "--json")
        found = json.loads(out)
        (finding,) = found.pop("findings")
        self.assertEqual((1, "", {"valid": False, "rules": 2, "hosts": 3}), (status, err, found))
        self.assertTrue(finding.pop("sentence").startswith("0 is not a port"))
        self.assertEqual(
            {
                "code": "port-range",
                "severity": "error",
                "file": "rules.yaml",
                "line": 8,
                "column": 66,
                "field": "connector_rules[1].port",
            },
            finding,
        )

    def test_unreadable(self) -> None:
        """A file that can't be read, or is none, is a finding as well."""
        for text, code in ((b"a: [", "yaml-syntax"), (b"\xff", "not-utf8"), (b"", "empty-file")):
            status, out, _ = self.rules("check", text)
            self.assertEqual(1, status)
            self.assertIn(f"[{code}]\n0 rules, 0 hosts: ", out)
        os.mkdir("directory")
        for name in ("missing.yaml", "directory"):
            status, out, err = run_command("rules", "check", name)
            self.assertEqual((1, ""), (status, err))
            self.assertRegex(out, rf'^{name}: error: "{name}" .*\. \[file-unreadable\]\n0 rules, 0 hosts: 1 error, ')
            _, out, _ = run_command("rules", "check", name, "--json")
            self.assertEqual(["file-unreadable"], [each["code"] for each in json.loads(out)["findings"]])

    def test_standard_input(self) -> None:
        """C{-} reads standard input."""
        status, out, _ = run_command("rules", "check", "-", stdin=b"connector_rules: 7")
        self.assertEqual(1, status)
        self.assertTrue(out.startswith("standard input:1:18: error: "), out)

    def test_safe(self) -> None:
        """What a file holds, or is called, is shown and not obeyed."""
        name = self.write("evil\x1b[2J\udcff.yaml", 'connector_rules: [{name: "a\\u202e\\u009b", protocl: "\\u009b"}]')
        for arguments in ((), ("--json",)):
            _, out, err = run_command("rules", "check", name, *arguments)
            self.assertTrue((out + err).replace("\n", "").isprintable(), out)
            out.encode()

    def test_router(self) -> None:
        """With a router, what clashes on that one is told, too; its labels come from the inventory and the options."""
        check = partial(self.rules, "check")
        self.assertEqual(0, check(CLASH)[0])
        self.assertEqual(0, check(CLASH, "--router", "r", "--router-label", "a=x")[0])
        status, out, _ = check(CLASH, "--router", "r", "--router-label", "a=x", "--router-label", "b=x")
        self.assertEqual(1, status)
        self.assertRegex(out, r'error: connector_rules\[1\]\.port: .*"one".*"two".* "r"; .*\[port-clash\]')
        status, out, _ = check(
            f"{CLASH}    hosts: [{{name: r, labels: {{a: x}}}}]", "--router", "r", "--router-label", "b=x"
        )
        self.assertEqual((1, 1), (status, out.count("[port-clash]")))

    def test_clash_everywhere(self) -> None:
        """A clash that is one on all routers is told once."""
        text = CLASH.replace("selector: label.a = x, ", "").replace("selector: label.b = x, ", "")
        _, out, _ = self.rules("check", text, "--router", "r")
        self.assertEqual(1, out.count("[port-clash]"))

    def test_files(self) -> None:
        """Key and certificate files are looked at when that is asked for."""
        identity = Authority("Root").issue("server")
        key, certificate = identity.write(os.getcwd(), "good")
        other, _ = Authority("Root").issue("other").write(os.getcwd(), "other")
        os.chmod(key, 0o600)
        empty = write(os.path.abspath("empty"), b"")
        check = partial(self.rules, "check")
        for key_file, cert_file, code, field in (
            (key, certificate, "", ""),
            ("/no/such/key", certificate, "tls-file-missing", "key_file"),
            (key, "/no/such/certificate", "tls-file-missing", "cert_file"),
            (empty, certificate, "tls-file-not-pem", "key_file"),
            (other, certificate, "key-mismatch", "cert_file"),
        ):
            text = HTTPS.replace("KEY", key_file).replace("CERT", cert_file)
            self.assertEqual(0, check(text).status)
            status, out, _ = check(text, "--files")
            self.assertEqual(bool(code), status == 1, out)
            if code:
                line = 6 if field == "key_file" else 7
                self.assertRegex(out, rf"^rules.yaml:{line}:\d+: error: connector_rules\[0\]\.{field}: .*\[{code}\]")
                self.assertEqual(0, check(text, "--files", "--router", "ber-1").status)
                self.assertEqual(1, check(text, "--files", "--router", "fra-1").status)

    def test_files_of_this_machine(self) -> None:
        """With a router, files of rules that match this machine are looked at; of another, nobody knows whether."""
        text = HTTPS.replace("name = fra-1", "os = linux").replace("KEY", "/no/key").replace("CERT", "/no/cert")
        status, out, _ = self.rules("check", text, "--files", "--router", "r")
        self.assertEqual((1, 2), (status, out.count("[tls-file-missing]")))
        status, out, _ = self.rules("check", text, "--files", "--router", "r", "--elsewhere")
        self.assertEqual(0, status)
        self.assertRegex(out, r"warning: .*\.selector: It may match: os unknown; .* \[selector-may-match\]")
        self.assertEqual(2, self.rules("check", text, "--elsewhere").status)

    def test_json_files(self) -> None:
        """JSON files that expressions name are looked at when that is asked for."""
        good = write(os.path.abspath("good.json"), b'{"a": 1}')
        bad = write(os.path.abspath("bad.json"), b"1")
        step = "expression: 'meta.a = cache_json_file(\"PATH\").a;'"
        rule = f"connector_rules: [{{name: a, protocol: HTTP, port: 8080, preprocessing: {{steps: [{{{step}}}]}}}}]"
        for path, code in ((good, ""), ("/no/such.json", "json-file-missing"), (bad, "json-file-unusable")):
            text = rule.replace("PATH", path)
            self.assertEqual(0, self.rules("check", text).status)
            status, out, _ = self.rules("check", text, "--files")
            self.assertEqual(bool(code), status == 1, out)
            if code:
                where = r"connector_rules\[0\]\.preprocessing\.steps\[0\]\.expression"
                self.assertRegex(out, rf"^rules.yaml:1:\d+: error: {where}: .*\[{code}\]")

    def test_unhidden(self) -> None:
        """A step that removes or masks something, and keeps what it fails on, is warned of."""
        begin = "connector_rules: [{name: a, protocol: HTTP, port: 8080, preprocessing: {steps: [{"
        for step in ("unset: log.body.x", "set: {field: log.body.x, value: '***'}", "expression: unset(log.body.x);"):
            _, out, _ = self.rules("check", f"{begin}{step}}}]}}}}]")
            self.assertRegex(out, r"warning: .*on_error: drop.*\[step-keeps-unhidden\]\n1 rule, .* 1 warning\n$")
            for wanted in ("drop", "tag"):
                _, out, _ = self.rules("check", f"{begin}{step}, on_error: {wanted}}}]}}}}]")
                self.assertEqual("1 rule, 0 hosts: 0 errors, 0 warnings\n", out)

    def test_guards(self) -> None:
        """With files, secrets, tokens and senders are looked at as on a router, and no secret is shown."""
        directory = os.path.abspath(self.mktemp())
        secrets = write_text(directory, "secrets", "one = c4nary\n")
        senders = os.path.dirname(write_text(f"{directory}/senders", "demo.yaml", DEMO))
        rule = "connector_rules:\n- {name: a, protocol: HTTP, port: 8181, sender: demo, secrets_file: %s}\n"
        status, out, _ = self.rules("check", rule % secrets)
        self.assertEqual((0, 1), (status, out.count("[sender-not-built-in]")))
        status, out, _ = self.rules("check", rule % secrets, "--files", "--senders", senders)
        self.assertEqual((1, 1), (status, out.count("[secret-unusable]")))
        self.assertNotIn("c4nary", out)
        write_text(directory, "secrets", "one = c2VjcmV0\n")
        ended = self.rules("check", rule % secrets, "--files", "--senders", senders)
        self.assertEqual((0, "1 rule, 0 hosts: 0 errors, 0 warnings\n"), ended[:2])
        status, out, _ = self.rules("check", rule % "/no/such", "--files", "--senders", senders)
        self.assertEqual((1, 1), (status, out.count("[secrets-file-missing]")))
        other = (rule % secrets).replace("demo", "dem")
        self.assertIn("[sender-unknown]", self.rules("check", other, "--files", "--senders", senders).out)
        self.assertIn("[sender-not-built-in]", self.rules("check", other, "--files").out)

    def test_files_not_named(self) -> None:
        """Files that are not named, or not by an absolute path, are one finding each and not two."""
        text = HTTPS.replace("KEY", "key.pem").replace("    cert_file: CERT\n", "")
        self.assertEqual(self.rules("check", text).out, self.rules("check", text, "--files").out)


class PreviewTests(RulesCase):
    """C{rules preview}."""

    def test_rules(self) -> None:
        """Each rule shows the hosts that match, and why the others do not."""
        expected = (
            "rule edge: 1 of 3 hosts match\n"
            "  label.site = fra AND label.wec = enabled\n"
            "    yes  fra-1\n"
            "    no   fra-2  label.wec = enabled (missing)\n"
            "    no   lab-1  label.site = fra (is ber)\n"
            "rule lab: 1 of 3 hosts match\n"
            "  name =~ ^lab-\n"
            "    yes  lab-1\n"
            "    no   fra-1  name =~ ^lab- (is fra-1)\n"
            "    no   fra-2  name =~ ^lab- (is fra-2)\n"
        )
        self.assertEqual((0, expected, ""), self.rules("preview", RULES))
        one = expected[expected.index("rule lab") :]
        self.assertEqual((0, one, ""), self.rules("preview", RULES, "--rule", "lab"))

    def test_selector(self) -> None:
        """A selector of one's own is tried in the same way."""
        _, out, _ = self.rules("preview", RULES, "--selector", "ip = 2001:db8::1 OR meta.rack = 7")
        self.assertEqual(["selector: 1 of 3 hosts match", "    yes  fra-1"], out.splitlines()[0:3:2])
        self.assertIn("no   lab-1  ip = 2001:db8::1 (missing); meta.rack = 7 (missing)", out)
        _, out, _ = self.rules("preview", RULES, "--selector", "")
        self.assertEqual(
            ["selector: 3 of 3 hosts match", "  no selector: every router", "    yes  fra-1"], out.splitlines()[:3]
        )

    def test_bad_selector(self) -> None:
        """What is wrong with it is pointed at."""
        status, out, err = self.rules("preview", RULES, "--selector", "name = a & b")
        line, caret, sentence = err.splitlines()
        self.assertEqual((1, "", "name = a & b", "         ^"), (status, out, line, caret))
        self.assertTrue(sentence.startswith("column 10: "))
        status, out, err = self.rules("preview", RULES, "--json", "--selector", "name = a & b")
        self.assertEqual((1, ""), (status, err))
        self.assertEqual(
            ("name = a & b", 1, 10), tuple(json.loads(out)[name] for name in ("selector", "line", "column"))
        )

    def test_json(self) -> None:
        """In JSON it is one object for each rule."""
        status, out, err = self.rules("preview", RULES, "--json")
        edge, lab = map(json.loads, out.splitlines())
        self.assertEqual((0, "", "lab"), (status, err, lab["rule"]))
        self.assertEqual(
            {
                "rule": "edge",
                "selector": "label.site = fra AND label.wec = enabled",
                "hosts": 3,
                "matching": ["fra-1"],
                "not_matching": 2,
                "why_not": [
                    {
                        "host": "fra-2",
                        "terms": [{"term": "label.wec = enabled", "column": 22, "field": "label.wec", "found": None}],
                    },
                    {
                        "host": "lab-1",
                        "terms": [{"term": "label.site = fra", "column": 1, "field": "label.site", "found": ["ber"]}],
                    },
                ],
            },
            edge,
        )
        _, out, _ = self.rules("preview", RULES, "--json", "--selector", "name = x")
        self.assertNotIn("rule", json.loads(out))

    def test_mistakes(self) -> None:
        """The rest of a file with mistakes is shown all the same, and the mistakes on standard error."""
        status, out, err = self.rules("preview", RULES.replace("AND", "ADN"))
        self.assertEqual(1, status)
        self.assertIn("[selector-syntax]", err)
        self.assertTrue(out.startswith("rule edge: its selector is no query\n"), out)
        self.assertIn("rule lab: 1 of 3 hosts match\n", out)
        _, out, _ = self.rules("preview", RULES.replace("AND", "ADN"), "--json")
        self.assertEqual(
            ("edge", 1, 18), tuple(json.loads(out.splitlines()[0])[name] for name in ("rule", "line", "column"))
        )

    def test_nothing(self) -> None:
        """Without hosts, or without the rule that is asked for, there is nothing to see."""
        self.assertEqual(
            (1, "", "webhookrx: rules.yaml: no hosts can be read; a preview needs an inventory of them.\n"),
            self.rules("preview", CLASH),
        )
        self.assertEqual(
            (1, "", 'webhookrx: There is no rule "lob". Did you mean "lab"?\n'),
            self.rules("preview", RULES, "--rule", "lob"),
        )
        self.assertEqual(
            (1, "", "webhookrx: There are no rules.\n"), self.rules("preview", "hosts: [{name: a}]", "--rule", "a")
        )
        status, out, err = run_command("rules", "preview", "missing.yaml")
        self.assertEqual((1, "", 'webhookrx: "missing.yaml" does not exist.\n'), (status, out, err))

    def test_fleet(self) -> None:
        """Of 1,000 hosts and 200 rules the first of each kind are shown, the counts are of all."""
        rules = [
            f"  - {{name: rule-{number}, selector: label.site = s{number % 2}, protocol: HTTP, port: {2000 + number}}}"
            for number in range(200)
        ]
        hosts = [f"  - {{name: h{number:04}, labels: {{site: s{number % 2}}}}}" for number in range(1000)]
        text = "\n".join(["connector_rules:", *rules, "hosts:", *hosts])
        status, out, err = self.rules("preview", text)
        self.assertEqual((0, ""), (status, err))
        self.assertEqual(200, out.count(": 500 of 1,000 hosts match\n"))
        self.assertEqual(200, out.count("    … and 490 more that match, 490 more that do not (--all)\n"))
        self.assertEqual(2000, out.count("    no   h"))
        _, out, _ = self.rules("preview", text, "--rule", "rule-7", "--all")
        self.assertEqual(500, out.count("    yes  h"))
        self.assertEqual(500, out.count("    no   h"))
        self.assertNotIn("--all", out)
        _, out, _ = self.rules("preview", text, "--rule", "rule-7", "--json")
        found = json.loads(out)
        self.assertEqual((500, 500, 10), (len(found["matching"]), found["not_matching"], len(found["why_not"])))


class ExplainTests(RulesCase):
    """C{rules explain}."""

    def test_host(self) -> None:
        """A router of the inventory has its labels and metadata from there."""
        expected = (
            "router fra-1\n"
            "  labels  site=fra wec=enabled\n"
            "  ip      192.0.2.1 2001:db8::1\n"
            "  os      linux\n"
            '  meta    {"rack":7}\n'
            "\n"
            "1 connector from 2 rules\n"
            "\n"
            "fra-1-edge-in\n"
            "  rule           edge\n"
            "  protocol       HTTP\n"
            "  port           8080\n"
            "  paths          /events\n"
            "                 /events/(?P<HOST>.*)\n"
            "  labels         product=webhook vendor=generic team=secops\n"
            "  preprocessing  none\n"
            "\n"
            "no connector from\n"
            "  lab  name =~ ^lab- (is fra-1)\n"
        )
        self.assertEqual((0, expected, ""), self.rules("explain", RULES, "--router", "fra-1"))

    def test_labels(self) -> None:
        """Labels that are given join those of the inventory, and win over them."""
        explain = partial(self.rules, "explain", RULES, "--router")
        _, out, _ = explain("fra-2", "--router-label", "wec=enabled")
        self.assertIn("\n1 connector from 2 rules\n\nfra-2-edge-in\n", out)
        _, out, _ = explain("fra-1", "--router-label", "site=ber")
        self.assertIn("\n0 connectors from 2 rules\n", out)
        self.assertIn("  edge  label.site = fra (is ber)\n", out)

    def test_other_router(self) -> None:
        """One that is not in the inventory has the labels that are given, and the metadata of this machine."""
        _, out, _ = self.rules("explain", RULES, "--router", "lab-9")
        self.assertTrue(
            out.startswith(
                "router lab-9 (not one of the hosts; labels as given, metadata of this machine)\n"
                "  ip        192.0.2.7\n  hostname  here\n  fqdn      here.example.com\n  os        linux\n"
                "  arch      x86_64\n  version   1.2.3\n\n1 connector"
            ),
            out,
        )
        self.assertIn("\nlab-9-lab-lab\n", out)

    def test_this_machine(self) -> None:
        """A rule on metadata goes by those of this machine, for a router of the inventory when it is this machine."""
        for name, host, connectors in (
            ("r", "", 1),
            ("r", "{name: r, os: plan9}", 0),
            ("r", "{name: r, hostname: here}", 1),
            ("r", "{name: r, fqdn: here.example.com}", 1),
            ("r", "{name: r, ip: [192.0.2.1, 192.0.2.7]}", 1),
            ("here", "{name: here}", 1),
            ("here", "{name: here, os: plan9}", 0),
            ("r", "{name: r}", 0),
            ("r", "{name: r, hostname: there}", 0),
        ):
            _, out, _ = self.rules("explain", f"{LINUX}hosts: [{host}]", "--router", name)
            self.assertIn(f"\n{connectors} connector", out, host)
            self.assertEqual(host in ("{name: r}", "{name: r, hostname: there}"), "may match: os unknown" in out, host)

    def test_elsewhere(self) -> None:
        """Of another machine nothing is known: what depends on that is said to."""
        _, out, _ = self.rules("explain", LINUX, "--router", "r", "--elsewhere")
        self.assertEqual(
            "router r (not one of the hosts; labels as given, metadata unknown)\n\n0 connectors from 1 rule\n\n"
            "perhaps a connector from\n  lin  may match: os unknown\n",
            out,
        )
        _, out, _ = self.rules("explain", LINUX, "--router", "r", "--elsewhere", "--json")
        found = json.loads(out)
        self.assertEqual((False, True), (found["this_machine"], "os" in found["unknown"]))
        (other,) = found["without_connector"]
        self.assertEqual((True, "may match: os unknown"), (other["may_match"], other["reason"]))

    def test_preprocessing(self) -> None:
        """Steps are told in words, HTTPS shows its files."""
        text = (
            HTTPS.replace("KEY", "/etc/key.pem").replace("CERT", "/etc/cert.pem")
            + """\
        preprocessing:
          classify: yes
          parse: yes
          steps:
            - {set: {field: meta.team, value: [a, 1]}}
            - {set: [{field: meta.a, value: true}, {field: meta.b, value: "%s"}]}
            - {unset: [meta.a, meta.b], label: tidy, on_error: drop}
            - {unset: meta.c, condition: meta.d EXISTS, on_error: tag}
            - {select: log.body.x EXISTS, condition: meta.a = 1}
            - {select: ""}
            - {regex: {pattern: "(?P<a>x)", ignore_case: yes}}
            - {probe: seen}
            - {probe: {name: done}}
            - {classify: yes}
            - {parse: yes}
            - expression: |
                meta.a = "1";

                meta.b = "2";
    """
            % ("x" * 100)
        )
        status, out, err = self.rules("explain", text, "--router", "fra-1")
        self.assertEqual((0, ""), (status, err))
        words = out[out.index("  key ") :]
        classify = "Classify: find the sender of the message"
        parse = "Parse: take time, message, severity and host of a known sender from it"
        self.assertEqual(
            [
                "key            /etc/key.pem",
                "certificate    /etc/cert.pem",
                "labels         product=webhook vendor=generic",
                f"preprocessing  {classify}",
                parse,
                '1. set meta.team to ["a",1]',
                f'2. set meta.a to true, meta.b to "{"x" * 70}…',
                "3. tidy: unset meta.a, meta.b; the message is dropped when it fails",
                "4. unset meta.c, if meta.d EXISTS; the message gets a note in meta.step_errors when it fails",
                "5. go on only with messages that match log.body.x EXISTS, if meta.a = 1",
                "6. go on only with messages that match anything",
                "7. match log.body against (?P<a>x) in any case; its groups into log.attributes",
                "8. count as seen",
                "9. count as done",
                f"10. {classify}",
                f"11. {parse}",
                '12. run meta.a = "1"; … (1 more line)',
            ],
            [line.strip() for line in words.splitlines()],
        )

    def test_clash(self) -> None:
        """Two rules that want one port of this router are an error."""
        labels = ("--router-label", "a=x", "--router-label", "b=x")
        status, out, err = self.rules("explain", CLASH, "--router", "r", *labels)
        self.assertEqual((1, ""), (status, err))
        self.assertIn("\n1 connector from 2 rules\n\nr-one-one\n", out)
        self.assertIn("no connector from\n  two  it clashes with another rule\n", out)
        self.assertRegex(out, r"\n\nrules.yaml:3:\d+: error: connector_rules\[1\]\.port: .*\[port-clash\]\n$")
        _, out, _ = self.rules("explain", CLASH, "--router", "r", "--json", *labels)
        self.assertEqual(["port-clash"], [each["code"] for each in json.loads(out)["clashes"]])

    def test_mistakes(self) -> None:
        """Mistakes of the file are told on standard error, and what can be read is shown."""
        status, out, err = self.rules("explain", RULES.replace("AND", "ADN"), "--router", "lab-1")
        self.assertEqual(1, status)
        self.assertIn("[selector-syntax]", err)
        self.assertIn("\nlab-1-lab-lab\n", out)
        self.assertIn("  edge  its selector is no query\n", out)

    def test_headers(self) -> None:
        """A rule that puts headers into messages says so."""
        given = ("--router", "fra-2", "--router-label", "wec=enabled")
        with_headers = RULES.replace("port: 8080", "port: 8080\n        include_request_headers: yes")
        _, out, _ = self.rules("explain", with_headers, *given)
        self.assertIn("headers        in log.attributes, credentials masked\n", out)
        _, out, _ = self.rules("explain", RULES, *given)
        self.assertNotIn("headers", out)

    def test_guard(self) -> None:
        """What a rule says of its sender, and of who may send, is shown in its own words; no file is read."""
        given = ("--router", "fra-2", "--router-label", "wec=enabled")
        fields = (
            "sender: github", "secrets_file: /no/such", "handshake: no", "quota: {messages: 1/s, per: address}",
            "allow: [office, '::/0']", "sender_settings: {a: [b, c]}",
        )  # fmt: skip
        rules = RULES.replace("port: 8080", "port: 8080\n        " + "\n        ".join(fields))
        status, out, _ = self.rules("explain", rules, *given)
        self.assertEqual(0, status)
        shown = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.startswith("  ")}
        self.assertEqual((["github"], ["/no/such"]), (shown["sender"], shown["secrets_file"]))
        self.assertEqual((["no"], ["a=b", "c"]), (shown["handshake"], shown["sender_settings"]))
        self.assertEqual((["messages=1/s", "per=address"], ["office", "::/0"]), (shown["quota"], shown["allow"]))
        (connector,) = json.loads(self.rules("explain", rules, *given, "--json")[1])["connectors"]
        self.assertEqual(("github", False), (connector["sender"], connector["handshake"]))
        self.assertEqual({"a": ["b", "c"]}, connector["sender_settings"])

    def test_json(self) -> None:
        """In JSON it is one object."""
        _, out, _ = self.rules("explain", RULES, "--router", "fra-2", "--router-label", "wec=enabled", "--json")
        found = json.loads(out)
        self.assertEqual({"name": "fra-2", "labels": {"site": "fra", "wec": "enabled"}}, found["router"])
        self.assertEqual((True, []), (found["in_inventory"], found["clashes"]))
        (connector,) = found["connectors"]
        self.assertEqual(
            {
                "name": "fra-2-edge-in",
                "rule": "edge",
                "port": 8080,
                "protocol": "HTTP",
                "paths": ["/events", "/events/(?P<HOST>.*)"],
                "key_file": "",
                "cert_file": "",
                "health": "",
                "labels": {"product": "webhook", "vendor": "generic", "team": "secops"},
                "preprocessing": {},
                "include_request_headers": False,
                "in_words": [],
            },
            connector,
        )
        (other,) = found["without_connector"]
        self.assertEqual(("lab", "name =~ ^lab- (is fra-2)"), (other["rule"], other["reason"]))

    def test_bad_names(self) -> None:
        """Names and labels that a router can't have are mistakes in the arguments."""
        for arguments in (
            ("--router", "a b"),
            ("--router", "r", "--router-label", "a"),
            ("--router", "r", "--router-label", "a b=c"),
            ("--router", "r", "--router-label", "a=b c"),
        ):
            status, out, err = self.rules("explain", RULES, *arguments)
            self.assertEqual((2, ""), (status, out))
            self.assertIn("usage:", err)
