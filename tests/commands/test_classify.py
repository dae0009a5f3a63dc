"""The subject C{classify}."""

from __future__ import annotations

import hmac
import json
import os
import re
from textwrap import dedent

from tests.commands.running import CommandCase, run_command
from tests.senders.test_samples import DATA
from webhookrx.senders import otlp, unpacking

REQUEST = """\
    POST /events?team=a HTTP/1.1
    Host: hooks.example.com
    X-Acme-Event: door.opened
    Content-Type: application/json

    {"at": "2026-11-20T11:05:07.5Z", "level": "bad", "door": "cellar", "site": "lab-1"}
"""
ENTRY = """\
    id: acme-doors
    vendor: acme
    product: doors
    service: "{header:x-acme-event}"
    description: Doors that open.
    source: https://acme.example/docs
    when:
      headers: {x-acme-event: "^door[.]"}
      body_keys: [at, door]
    time:
      - {at: /at}
    message:
      - "{header:x-acme-event}: {/door}"
    severity:
      - {at: /level, map: {bad: error}}
    host:
      - "{/site}"
    samples: [opened.http]
"""


class ClassifyCase(CommandCase):
    """A directory with an operator's own sender, and a request of it."""

    def setUp(self) -> None:
        """Write them."""
        super().setUp()
        os.mkdir("senders")
        self.write("senders/acme.yaml", ENTRY)
        self.write("senders/opened.http", REQUEST)
        self.write("senders/notes.txt", "not: [an entry")


class RequestTests(ClassifyCase):
    """A recorded request."""

    def test_classified(self) -> None:
        """It is told who has sent it and why, and what Parse takes from where."""
        status, out, err = run_command("classify", "senders/opened.http", "--senders", "senders")
        self.assertEqual((0, ""), (status, err))
        first, *rows = out.splitlines()
        self.assertEqual("acme-doors: acme/doors", first)
        self.assertEqual(
            [
                "  service     door.opened",
                "  confidence  high",
                "  why         header x-acme-event; body keys at, door",
                "  time        2026-11-20T11:05:07.500000000Z (1795172707500000000 ns)",
                "              from /at",
                "  message     door.opened: cellar",
                "              from header:x-acme-event, /door",
                "  severity    ERROR (17)",
                "              from /level",
                "  host        lab-1",
                "              from /site",
            ],
            rows,
        )

    def test_json(self) -> None:
        """In JSON it is one object, with the body that Parse would leave."""
        status, out, _ = run_command("classify", "senders/opened.http", "--senders", "senders", "--json")
        self.assertEqual(0, status)
        self.assertEqual(
            {
                "classified": True,
                "entry": "acme-doors",
                "vendor": "acme",
                "product": "doors",
                "service": "door.opened",
                "confidence": "high",
                "why": "header x-acme-event; body keys at, door",
                "also_matching": [],
                "time": {
                    "iso": "2026-11-20T11:05:07.500000000Z",
                    "unix_nano": 1795172707500000000,
                    "from": "/at",
                },
                "message": {"text": "door.opened: cellar", "from": "header:x-acme-event, /door"},
                "severity": {"number": 17, "text": "ERROR", "from": "/level"},
                "host": {"name": "lab-1", "from": "/site"},
                "body": {
                    "at": "2026-11-20T11:05:07.5Z",
                    "level": "bad",
                    "door": "cellar",
                    "site": "lab-1",
                    "message": "door.opened: cellar",
                },
            },
            json.loads(out),
        )

    def test_little(self) -> None:
        """What is not found is said; what else matches, too; a long message is cut."""
        self.write("senders/other.yaml", "{id: other, vendor: v, product: p, when: {body_keys: [door]}}")
        self.write("senders/acme.yaml", ENTRY.replace("{/door}", "{/text}"))
        request = b"X-Acme-Event: door.x\n\n" + json.dumps({"at": 0, "door": 1, "text": "x" * 1000}).encode()
        arguments = ("classify", "-", "--senders", "senders")
        status, out, _ = run_command(*arguments, stdin=request)
        rows = [line.split(None, 1) for line in out.splitlines()[1:]]
        self.assertEqual(0, status)
        self.assertIn(["also", "matching  other"], rows)
        self.assertIn(["severity", "not found"], rows)
        self.assertIn(["host", "not found"], rows)
        self.assertIn(["message", f"door.x: {'x' * 191}…"], rows)
        found = json.loads(run_command(*arguments, "--json", stdin=request).out)
        self.assertEqual([None, None, ["other"]], [found[name] for name in ("severity", "host", "also_matching")])
        self.assertEqual(1008, len(found["message"]["text"]))

    def test_nobody(self) -> None:
        """JSON of a sender that nobody knows is said to be that, with what the nearest entries miss."""
        self.write("senders/zoo.yaml", """\
            id: zoo
            vendor: v
            product: p
            when:
              any_header: [x-zoo, x-zoo-event]
              content_type: text/plain
              path: ^/zoo
              body_keys: [door]
              body: animal EXISTS
        """)  # fmt: skip
        request = b'X-Acme-Event: gate\nContent-Type: application/json\n\n{"door": "cellar"}'
        arguments = ("classify", "-", "--senders", "senders")
        status, out, err = run_command(*arguments, stdin=request)
        self.assertEqual((0, ""), (status, err))
        acme = ["header x-acme-event does not contain ^door[.]", "no body key at"]
        zoo = ["none of the headers x-zoo, x-zoo-event", "animal EXISTS (missing)", "content type is not text/plain"]
        zoo.append("path does not contain ^/zoo")
        self.assertEqual(
            "generic-json: no known sender\n"
            "  confidence  low\n"
            "  why         JSON\n"
            "  time        not found\n"
            "  message     not found\n"
            "  severity    not found\n"
            "  host        not found\n"
            f"  nearly  acme-doors  {'; '.join(acme)}\n"
            f"          zoo         {'; '.join(zoo)}\n",
            out,
        )
        status, out, _ = run_command(*arguments, "--json", stdin=request)
        self.assertEqual(0, status)
        nearly = [{"entry": "acme-doors", "failed": acme}, {"entry": "zoo", "failed": zoo}]
        found = json.loads(out)
        self.assertEqual(("generic-json", "low", nearly), (found["entry"], found["confidence"], found["nearly"]))

    def test_ways(self) -> None:
        """Of an entry that can be told in several ways, the one counts that lacks least."""
        self.write("senders/acme.yaml", """\
            id: acme
            vendor: v
            product: p
            when:
              - headers: {x-acme: "*"}
                query: {gate: ^north}
              - body_keys: [gate, door, key]
        """)  # fmt: skip
        for request, failed in (
            (b'{"gate": 1, "door": 2}', ["no body key key"]),
            (b'X-Acme: 1\n\n{"gate": 1}', ["no query parameter gate"]),
            (b"POST /?gate=south HTTP/1.1\nX-Acme: 1\n\n{}", ["query parameter gate does not contain ^north"]),
            (b"POST /?gate=north HTTP/1.1\n\n{}", ["no header x-acme"]),
        ):
            _, out, _ = run_command("classify", "-", "--senders", "senders", "--json", stdin=request)
            self.assertIn({"entry": "acme", "failed": failed}, json.loads(out)["nearly"], request)

    def test_nothing_near(self) -> None:
        """Where nothing is near nothing more is said; what is no JSON is of no entry at all."""
        unknown = (1, "no known sender\n", "")
        self.assertEqual(unknown, run_command("classify", "-", stdin=b"GET / HTTP/1.1\n\nhello"))
        status, out, _ = run_command("classify", "-", stdin=b"{}")
        self.assertEqual((0, False), (status, "nearly" in out))
        status, out, _ = run_command("classify", "-", "--json", stdin=b'{"msg": "hi", "level": "warning"}')
        found = json.loads(out)
        self.assertEqual(("generic-json", "", "low", "hi", "WARN"), (
            found["entry"], found["vendor"], found["confidence"], found["message"]["text"], found["severity"]["text"]
        ))  # fmt: skip

    def test_missing_header(self) -> None:
        """A header, or a member of the body, that is not there is named."""
        for request, missing in (
            (b'{"at": 1, "door": 2}', "no header x-acme-event"),
            (b'X-Acme-Event: door.opened\n\n{"at": 1}', "no body key door"),
        ):
            _, out, _ = run_command("classify", "-", "--senders", "senders", stdin=request)
            self.assertIn(f"  nearly  acme-doors  {missing}\n", out)

    def test_protobuf(self) -> None:
        """OTLP as protobuf is shown as Parse reads it; without the extra one line says what is missing."""
        sample = str(DATA / "samples/otlp-logs-protobuf.http")
        status, out, err = run_command("classify", sample)
        self.assertEqual((0, ""), (status, err))
        self.assertIn("  message     payment 4711 failed\n", out)
        for module in (otlp, unpacking):
            self.patch(module, "AVAILABLE", False)
        status, out, err = run_command("classify", sample)
        self.assertEqual((1, "", 1), (status, out, err.count("\n")))
        self.assertTrue(
            err.startswith("webhookrx: otlp-logs: body key resourceLogs; the extra otlp is not installed"), err
        )

    def test_no_request(self) -> None:
        """What is no recorded request is told in one line."""
        status, out, err = run_command("classify", "-", stdin=b"hello\x1b[2J")
        self.assertEqual((1, "", 1), (status, out, err.count("\n")))
        self.assertTrue(err.startswith("webhookrx: standard input: Line 1 is no header"), err)
        self.assertEqual((1, "", 'webhookrx: "missing" does not exist.\n'), run_command("classify", "missing"))

    def test_safe(self) -> None:
        """What a sender chose is shown and not obeyed."""
        body = json.dumps({"at": "2026-11-20T11:05:07Z", "door": "\x1b[2J\x9b\u202e\n", "site": "\x07"}).encode()
        for arguments in ((), ("--json",)):
            request = b"X-Acme-Event: door.\x9b\x07\n\n" + body
            status, out, err = run_command("classify", "-", "--senders", "senders", *arguments, stdin=request)
            self.assertEqual((0, ""), (status, err))
            self.assertTrue(out.replace("\n", "").isprintable(), out)
            self.assertEqual(1 if arguments else 11, out.count("\n"))

    def test_bad_entries(self) -> None:
        """Data files that can't be used are told of, and the others are used."""
        self.write("senders/bad.yml", "{id: bad, vendor: v, product: p, when: {}}")
        status, out, err = run_command("classify", "senders/opened.http", "--senders", "senders")
        self.assertEqual(0, status)
        self.assertTrue(out.startswith("acme-doors: "))
        self.assertRegex(err, r"^senders/bad\.yml:1:\d+: error: when: .* \[entry-evidence\]\n$")


class ListTests(ClassifyCase):
    """C{--list}."""

    def test_list(self) -> None:
        """It lists the senders of the package, and an operator's own when asked."""
        status, out, err = run_command("classify", "--list")
        self.assertEqual((0, ""), (status, err))
        heading, *rows = out.splitlines()
        self.assertEqual(["entry", "vendor/product", "description"], heading.split())
        self.assertGreater(len(rows), 30)
        self.assertEqual(sorted(rows), rows)
        self.assertIn(["github", "github/github"], [row.split()[:2] for row in rows])
        _, out, _ = run_command("classify", "--list", "--senders", "senders")
        self.assertEqual(len(rows) + 2, len(out.splitlines()))
        self.assertRegex(out, r"\nacme-doors +acme/doors +Doors that open\.\n")

    def test_json(self) -> None:
        """In JSON each is an object on a line."""
        _, out, _ = run_command("classify", "--list", "--senders", "senders", "--json")
        entries = {entry["id"]: entry for entry in map(json.loads, out.splitlines())}
        self.assertEqual(
            {
                "id": "acme-doors",
                "vendor": "acme",
                "product": "doors",
                "description": "Doors that open.",
                "source": "https://acme.example/docs",
            },
            entries["acme-doors"],
        )

    def test_bad_entries(self) -> None:
        """It fails when a data file can't be used."""
        self.write("senders/acme.yaml", "id: [")
        status, _, err = run_command("classify", "--list", "--senders", "senders")
        self.assertEqual(1, status)
        self.assertIn("[yaml-syntax]", err)


class CheckTests(ClassifyCase):
    """C{--check}."""

    def check(self, **files: str | bytes) -> tuple[int, list[str]]:
        """Check the directory with these files changed; return the status and the lines."""
        for name, text in files.items():
            self.write(f"senders/{name.replace('_', '.')}", text)
        status, out, err = run_command("classify", "--check", "senders")
        self.assertEqual("", err)
        return status, out.splitlines()

    def test_good(self) -> None:
        """Data files whose samples hit their own entries are in order."""
        self.assertEqual((0, ["1 file: 0 errors, 0 warnings"]), self.check())

    def test_bad_entry(self) -> None:
        """What is wrong with a data file is told."""
        status, (finding, summary) = self.check(acme_yaml=ENTRY.replace("map: {bad: error}", "map: {bad: eror}"))
        self.assertEqual((1, "1 file: 1 error, 0 warnings"), (status, summary))
        self.assertRegex(finding, r"^senders/acme\.yaml:15:\d+: error: severity\[0\]\.map\.bad: .* \[entry-severity\]$")

    def test_missed(self) -> None:
        """A sample that hits another entry, or none, is an error."""
        status, (finding, _) = self.check(opened_http='X-Acme-Event: gate\n\n{"at": 1, "door": 2}')
        self.assertEqual(1, status)
        self.assertEqual(
            'senders/acme.yaml:18:11: error: samples[0]: The request in "senders/opened.http" hits no definition. '
            "[sample-missed]",
            finding,
        )
        other = ENTRY.replace("acme-doors", "other").replace("product:", "priority: 1\n    product:")
        status, findings = self.check(opened_http=REQUEST, other_yaml=other)
        self.assertEqual((1, "2 files: 1 error, 0 warnings"), (status, findings[-1]))
        self.assertIn(
            'hits the definition "other": header x-acme-event; body keys at, door. [sample-missed]', findings[0]
        )

    def test_unreadable_sample(self) -> None:
        """So is one that can't be read, or is no request."""
        os.remove("senders/opened.http")
        status, (finding, _) = self.check()
        self.assertEqual(1, status)
        self.assertTrue(finding.endswith('"senders/opened.http" does not exist. [sample-unreadable]'), finding)
        status, (finding, _) = self.check(opened_http="hello")
        self.assertEqual(1, status)
        self.assertRegex(finding, r'"senders/opened.http": Line 1 is no header.* \[sample-unreadable\]$')

    def test_no_samples(self) -> None:
        """An entry without samples is worth a warning."""
        status, (finding, summary) = self.check(acme_yaml=ENTRY.replace("samples: [opened.http]", ""))
        self.assertEqual((0, "1 file: 0 errors, 1 warning"), (status, summary))
        self.assertRegex(finding, r"warning: samples: .* \[no-samples\]$")

    def test_signatures(self) -> None:
        """A sample verifies with what the file says that it is signed with, at the moment of its signature."""
        request, definition = dedent(REQUEST), dedent(ENTRY)
        body = request.partition("\n\n")[2]
        code = hmac.new(b"made up", f"1772439301.{body}".encode(), "sha256").hexdigest()
        signed = request.replace("\n\n", f"\nX-Acme-Signature: t=1772439301,v1={code}\n\n", 1)
        verify = (
            'verify: {at: "header:x-acme-signature", items: ",", signature: v1, signed: "{item:t}.{body}",\n'
            '  time: {at: "item:t"}}\nsigned_with: {secrets: [made up]}\n'
        )
        good = definition + verify
        self.assertEqual((0, ["1 file: 0 errors, 0 warnings"]), self.check(acme_yaml=good, opened_http=signed))
        unknown = good.replace("secrets:", "settings: {a: b}, secrets:")
        for entry, sample, expected in (
            (good, signed.replace("cellar", "attic"), r"error: samples\[0\]: .* \[sample-unproved\]$"),
            (good, request, r"warning: verify: .* \[no-signed-sample\]$"),
            (good.replace("made up", ""), signed, r"error: signed_with: .* \[sample-unproved\]$"),
            (unknown, signed, r'signed_with: There is no "a" among the settings. \[sample-unproved\]$'),
        ):
            status, findings = self.check(acme_yaml=entry, opened_http=sample)
            self.assertEqual(0 if "warning" in expected else 1, status)
            self.assertTrue(any(re.search(expected, finding) for finding in findings), findings)

    def test_takes_others(self) -> None:
        """So is one that takes requests of a sender that is built in."""
        entry = ENTRY.replace('x-acme-event: "^door[.]"', 'x-github-event: "*"').replace("body_keys: [at, door]", "")
        greedy = entry.replace("product:", "priority: 99\n    product:").replace("samples: [opened.http]", "")
        status, findings = self.check(acme_yaml=greedy)
        self.assertEqual((0, "1 file: 0 errors, 2 warnings"), (status, findings[-1]))
        self.assertRegex(
            findings[1], r"yaml:9:3: warning: when: It also takes requests of .*\bgithub, .* \[takes-others\]$"
        )
        # One that is to stand in for it may.
        status, findings = self.check(acme_yaml=greedy.replace("id: acme-doors", "id: github"))
        self.assertNotRegex("".join(findings), r"\bgithub\b")

    def test_json(self) -> None:
        """In JSON it is one object."""
        os.remove("senders/opened.http")
        status, out, _ = run_command("classify", "--check", "senders", "--json")
        found = json.loads(out)
        self.assertEqual((1, False, 1), (status, found["valid"], found["files"]))
        self.assertEqual(["sample-unreadable"], [finding["code"] for finding in found["findings"]])

    def test_no_directory(self) -> None:
        """A directory that is not there is told in one line."""
        self.assertEqual(
            (1, "", 'webhookrx: "missing" does not exist.\n'), run_command("classify", "--check", "missing")
        )

    def test_no_files(self) -> None:
        """One without data files is a mistake, not a success."""
        os.mkdir("empty")
        for option in ("--check", "--senders"):
            words = (option, "empty") if option == "--check" else (option, "empty", "--list")
            self.assertEqual(
                (1, "", 'webhookrx: "empty" holds no data files (*.yaml, *.yml).\n'), run_command("classify", *words)
            )

    def test_both(self) -> None:
        """The directory is given once."""
        status, out, err = run_command("classify", "--check", "senders", "--senders", "senders")
        self.assertEqual((2, ""), (status, out))
        self.assertIn("not allowed with argument --check", err)
