"""Tests for what the documents say."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import yaml
from twisted.trial.unittest import SynchronousTestCase

import twisted.plugins
from tests import documents
from tests.contracts.observer_contract import ObserverContract
from tests.private_names import used_private_names
from tests.specs import parse_observer
from tests.system.certificates import Authority, server_settings, write_ca_file
from webhookrx.config.option_reader import Origin, RawValue
from webhookrx.config.options import BY_YAML_KEY, OPTIONS
from webhookrx.config.resolve import Environment, Resolved, resolve
from webhookrx.console.settings import resolve_console
from webhookrx.guard import quota
from webhookrx.http import protocol
from webhookrx.http.answers import RECEIVED, refusal
from webhookrx.idempotency import key_ring
from webhookrx.intake import json_body as payload
from webhookrx.intake import networks, pairs
from webhookrx.intake import urlencoded as query
from webhookrx.intake.head import Head, Peer
from webhookrx.intake.judge import Accepted, Admission, Receipt, admit, judge
from webhookrx.intake.path_patterns import PathPatterns
from webhookrx.message.encoders import encode_line
from webhookrx.message.macros import ALIASES, DATE_MACROS, HARD_MACROS, SOFT_MACROS
from webhookrx.router.rules.rules_file import read_rules
from webhookrx.senders.signatures import named_secrets
from webhookrx.service import known_observers
from webhookrx.service.source_rules import rules_of
from webhookrx.settings import Observer
from webhookrx.testing import RECEIVED as RECEIVED_AT
from webhookrx.testing import make_message

#: Top-level keys of configurations of other programs.
OTHERS_KEYS = {"sinks", "receivers", "groups", "exporters", "scrape_configs"}
#: Those of rules files, of data files of senders, and of parts of them, which tests of their own read.
RULE_KEYS = {"behaviour", "connector_rules", "hosts", "preprocessing", "signed_with", "steps", "when"}
#: Where the examples have their files.
DIRECTORIES = re.compile(
    "/etc/webhookrx|/etc/hooks|/run/credentials/webhookrx.service|/run/webhookrx|/var/log(/webhookrx)?"
)
#: What the examples take from the environment.
ENVIRONMENT = {"WEBHOOK_TOKEN": "token", "PORT": "8181", "SITE": "one"}
#: As the examples of docs/reference/messages.md have it.
RECEIPT = Receipt(RECEIVED_AT, "01a1f8c9307a-c49c42be-0000000001")


def settings_of(text: str, path: str) -> Resolved:
    """Return what a YAML text comes to; it is written to C{path} first."""
    with open(path, "w") as file:
        file.write(text)
    environment = Environment(
        ENVIRONMENT,
        datetime.now(UTC),
        known_observers.known(with_promises=True),
    )
    return resolve({"config": (RawValue(path, Origin(("--config",), "test")),)}, environment)


class LinkTests(SynchronousTestCase):
    """From page to page."""

    def test_links(self) -> None:
        """Every link to a file leads to one, and every anchor to a heading."""
        for page in documents.pages():
            for path, anchor in documents.links(page.read_text()):
                target = (page.parent / path).resolve() if path else page
                self.assertTrue(target.exists(), f"{page.name}: {path}")
                if anchor:
                    self.assertIn(anchor, documents.anchors(target.read_text()), f"{page.name}: {path}#{anchor}")

    def test_all_pages(self) -> None:
        """README leads to each of the four parts, whose own README leads to every page of it; so does the menu."""
        pages = {page.relative_to(documents.ROOT).as_posix() for page in documents.pages()}
        reached = {path for path, _ in documents.links(documents.read("README.md"))}
        for part in ("how-to", "reference", "explanation"):
            self.assertIn(f"docs/{part}/README.md", reached)
            text = documents.read(f"docs/{part}/README.md")
            reached |= {os.path.normpath(f"docs/{part}/{path}") for path, _ in documents.links(text)}
        self.assertEqual(set(), {page for page in pages if page.startswith("docs/")} - reached)
        self.assertEqual([], [page for page in pages if f'"{page}"' not in documents.read("zensical.toml")])

    def test_fences(self) -> None:
        """Every fenced block says what it holds, and is closed."""
        for page in documents.pages():
            text = page.read_text()
            self.assertEqual(2 * len(documents.blocks(text)), len(re.findall(r"^```", text, re.MULTILINE)), page.name)
            self.assertNotIn("", [block.language for block in documents.blocks(text)], page.name)


class TableTests(SynchronousTestCase):
    """What is made from the code."""

    def test_current(self) -> None:
        """The tables are what C{python -m tests.documents} writes."""
        for name, (page, make) in documents.TABLES.items():
            text = documents.read(page)
            self.assertEqual(documents.with_table(text, name, make()), text, f"{page}: run python -m tests.documents")

    def test_no_place(self) -> None:
        """A page without a place for its table is a mistake."""
        self.assertRaises(ValueError, documents.with_table, "<!-- begin other -->\n", "options", "")

    def test_macros(self) -> None:
        """The page on messages names every macro, soft and hard."""
        words = set(re.findall(r"`([A-Z0-9_-]+)`", documents.read("docs/reference/messages.md")))
        with_moment = HARD_MACROS - {moment + name for moment in ("R_", "S_", "C_", "P_") for name in DATE_MACROS}
        self.assertEqual(set(), (with_moment | SOFT_MACROS | ALIASES.keys()) - words)

    def test_migration(self) -> None:
        """The page on migration has a line for every option of a source of the collector."""
        text = documents.read("docs/how-to/migration.md")
        for name in (
            "port", "paths", "prefix", "auth_token", "include_request_headers", "proxy_header", "tls_cert_file",
            "tls_key_file", "tls_peer_verify", "tls_ca_file", "tls_ca_dir", "tls_use_system_cert_store",
        ):  # fmt: skip
            self.assertIn(f"| `{name}(", text)
            self.assertIn(name, BY_YAML_KEY)


class FixedLimitTests(SynchronousTestCase):
    """The limits that nobody can set."""

    def test_numbers(self) -> None:
        """The page says what the code does."""
        page = documents.read("docs/reference/limits.md")
        for what, number in (
            ("query parameters", f"{query.MAX_PARAMETERS:,}"),
            ("depth of JSON", f"{payload.MAX_DEPTH:,}"),
            ("values in a JSON body", f"{payload.MAX_ELEMENTS:,}"),
            ("body that is read as JSON", f"{payload.MAX_JSON // 1024**2} MiB"),
            ("body that is tried as JSON5", f"{payload.MAX_UNUSUAL // 1024} KiB"),
            ("pairs of one body", f"{pairs.MAX_PAIRS:,}"),
            ("digits of an integer in a longer body", f"{payload.MAX_DIGITS}"),
            ("body with unpaired surrogates", f"{payload.MAX_REPAIRED // 1024} KiB"),
            ("deliveries in [idempotency windows](../explanation/idempotency.md)", f"{key_ring.CAPACITY:,}"),
            ("addresses with a quota that is not full", f"{quota.ADDRESSES:,}"),
            ("secrets of a source", f"{named_secrets.MAX_SECRETS}"),
            ("networks of one list", f"{networks.MOST_NETWORKS:,}"),
            ("refused body that is read to keep the connection", f"{protocol.DISCARDED_BODY // 1024} KiB"),
        ):
            self.assertIn(f"| {what} | {number} |", page)


class ReadmeTests(SynchronousTestCase):
    """The page that is read first."""

    def test_first_blocks(self) -> None:
        """The first two sh blocks set up what they need; one listens on 127.0.0.1:8181, the other runs the tests."""
        run, test = [block.text for block in documents.blocks(documents.read("README.md")) if block.language == "sh"][
            :2
        ]
        for block in (run, test):
            lines = block.splitlines()
            self.assertEqual("python3 -m venv .venv", lines[0])
            self.assertEqual([], [line for line in lines[1:] if not line.startswith(".venv/bin/")])
            self.assertIn("pip install ", lines[1])
        self.assertTrue(run.endswith("/webhookrx --port tcp:8181:interface=127.0.0.1\n"))
        self.assertTrue(test.endswith(" -m twisted.trial -j4 tests\n"))

    def test_first_message(self) -> None:
        """The line that it shows has the names and values of a message like that."""
        text = documents.read("README.md")
        shown = json.loads(next(block.text for block in documents.blocks(text) if block.language == "json"))
        sent = re.search(r"^curl -d '([^']*)' 'http://127.0.0.1:8181([^'?]*)\?([^']*)'$", text, re.MULTILINE)
        assert sent is not None
        message = example("source: webhook", sent[2], sent[3], sent[1], self.mktemp())
        expected = {**json.loads(message), "ISODATE": "", "RCPTID": "", "HOST": "127.0.0.1", "SOURCEIP": "127.0.0.1"}
        self.assertEqual({**expected, "SOURCEPORT": 0}, {**shown, "ISODATE": "", "RCPTID": "", "SOURCEPORT": 0})
        self.assertEqual(list(json.loads(message)), list(shown))
        self.assertIn(RECEIVED.body.decode(), text)


def example(source: str, path: str, query: str, body: str, file: str, headers: dict[str, str] | None = None) -> str:
    """Return the JSON line of a request to a source, given as YAML."""
    settings = settings_of(f"port: tcp:8181:interface=127.0.0.1\n{source}", os.path.abspath(file)).settings
    source_settings = settings.sources[0]
    lines = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    head = Head(b"POST", path.encode(), query.encode(), lines, Peer("192.0.2.1", 40000, False))
    match = PathPatterns(source_settings.paths).match(head.path)
    assert match is not None, path
    admission = admit(head, rules_of(source_settings, settings), match[1])
    assert isinstance(admission, Admission), admission
    verdict = judge(head, admission, body.encode(), RECEIPT)
    assert isinstance(verdict, Accepted), verdict
    return encode_line(verdict.message).decode()


class MessageExampleTests(SynchronousTestCase):
    """The examples in docs/reference/messages.md."""

    def test_examples(self) -> None:
        """Each source makes of each request exactly the message that is shown."""
        found = documents.blocks(documents.read("docs/reference/messages.md"))
        ran = 0
        for (source, request), (_, shown) in pairwise(pairwise(found)):
            if (source.language, request.language, shown.language) != ("yaml", "http", "json"):
                continue
            head, _, body = request.text.rstrip("\n").partition("\n\n")
            line, *headers = head.splitlines()
            path, _, query = line.split(" ")[1].partition("?")
            fields = dict(header.split(": ", 1) for header in headers)
            line = example(source.text, path, query, body, self.mktemp(), fields)
            expected = re.sub(r'^\{"ISODATE":"[^"]*"', '{"ISODATE":""', shown.text)
            self.assertEqual(expected, re.sub(r'^\{"ISODATE":"[^"]*"', '{"ISODATE":""', line))
            ran += 1
        self.assertEqual(5, ran)


class TutorialTests(SynchronousTestCase):
    """docs/tutorial/first-receiver.md; L{YamlExampleTests} loads its configuration."""

    def test_message(self) -> None:
        """The request to its configured source gives the values that it names."""
        text = documents.read("docs/tutorial/first-receiver.md")
        (config,) = (block.text for block in documents.blocks(text) if block.language == "yaml")
        source = yaml.safe_load(config)["sources"][0]
        sent = re.search(r"-d '([^']+)' http://127.0.0.1:8181(/events/\S+)", text)
        assert sent is not None
        named = re.findall(r'`("[\w.]+":[^`]+)`', text.partition("The new line in")[2].partition("\n\n")[0])
        kept = {key: source[key] for key in ("source", "paths", "prefix")}
        line = example(yaml.safe_dump(kept), sent[2], "", sent[1], self.mktemp())

        self.assertEqual(3, len(named))
        for pair in named:
            self.assertIn(pair, line)


class ConsoleTutorialTests(SynchronousTestCase):
    """docs/console/tutorial.md."""

    def setUp(self) -> None:
        self.text = documents.read("docs/console/tutorial.md")

    def test_console(self) -> None:
        """The options of its console are good ones, and the rule to try has another port."""
        found = re.search(r"^twistd .* webhookrx-console ((?:.*\\\n)*.*)$", self.text, re.MULTILINE)
        assert found is not None
        words = found[1].replace("\\\n", " ").split()
        given = {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}
        origin = Origin(("command",), "test")
        settings = resolve_console({name: (RawValue(value, origin),) for name, value in given.items()})
        self.assertEqual("https://127.0.0.1:9443", settings.routers_url)
        self.assertIn(f"--console {settings.routers_url} ", self.text)
        self.assertIn(f"init --db {given['db']} --url {settings.url}\n", self.text)
        page = documents.read("webhookrx/console/pages/overview.py")
        (port,) = re.findall(r'"rule_port": "(\d+)"', page)
        self.assertNotIn(f":{port}", settings.url)
        self.assertIn(f"http://localhost:{port}/events", self.text)

    def test_rule(self) -> None:
        """The rule that it writes has no mistake."""
        found = re.search(r"^    ```text\n(    name: try\n.*?)^    ```$", self.text, re.MULTILINE | re.DOTALL)
        assert found is not None
        first, *others = textwrap.dedent(found[1]).splitlines()
        rule = "\n".join(["connector_rules:", f"  - {first}", *(f"    {line}" for line in others)])
        self.assertEqual([], [str(each) for each in read_rules(rule.encode(), "tutorial").diagnostics])


class YamlExampleTests(SynchronousTestCase):
    """The YAML on all pages."""

    def test_loads(self) -> None:
        """Each configuration of ours loads, once the files that it names are there."""
        directory = os.path.abspath(self.mktemp())
        os.mkdir(directory)
        authority = Authority("Root")
        server_settings(directory, authority.issue("server"), "tls")
        write_ca_file(directory, "ca", authority)
        for name, pair_file in (
            ("key.pem", "tls-key.pem"),
            ("chain.pem", "tls-cert.pem"),
            ("cert.pem", "tls-cert.pem"),
        ):
            os.symlink(os.path.join(directory, pair_file), os.path.join(directory, name))
        for name, text in (
            ("token", "TOKEN\n"),
            ("github", "2026-11 = SECRET\n"),
            ("stripe", "main = SECRET\n"),
            ("github-meta.json", '{"hooks": ["192.0.2.0/24"]}'),
            ("office", "198.51.100.0/24\n"),
        ):
            path = os.path.join(directory, name)
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, 0o600)
        loaded = 0
        for page in documents.pages():
            for block in documents.blocks(page.read_text()):
                if block.language != "yaml":
                    continue
                content = yaml.safe_load(block.text)
                if isinstance(content, dict) and "connector_rules" in content:
                    self.assertEqual(
                        [], [str(found) for found in read_rules(block.text.encode(), page.name).diagnostics]
                    )
                elif isinstance(content, dict) and not (OTHERS_KEYS | RULE_KEYS) & content.keys():
                    text = DIRECTORIES.sub(directory, block.text)
                    settings_of(text, os.path.join(directory, "webhookrx.yaml"))
                    loaded += 1
        self.assertGreater(loaded, 10)

    def test_options(self) -> None:
        """Every option that a twistd command shows is one of ours or of twistd's."""
        ours = {f"--{option.name}" for option in OPTIONS} | {"--version", "--help"}
        for page in documents.pages():
            for block in documents.blocks(page.read_text()):
                for line in block.text.replace("\\\n", " ").splitlines():
                    if block.language == "sh" and re.search(r"\btwistd?\b.* webhookrx ", line):
                        words = set(re.findall(r"\s(--[a-z-]+)", line.partition(" webhookrx ")[2].partition(" | ")[0]))
                        self.assertEqual(set(), words - ours, f"{page.name}: {line}")

    def test_statuses(self) -> None:
        """The answers that docs/reference/statuses.md shows are the ones that are sent."""
        from webhookrx.errors import BAD_TOKEN, NO_ROOM

        text = documents.read("docs/reference/statuses.md")
        for answer in (RECEIVED, refusal(BAD_TOKEN), refusal(NO_ROOM)):
            self.assertIn(answer.body.decode(), text)


class ObserverExampleTests(ObserverContract, SynchronousTestCase):
    """The plugin in docs/how-to/write-an-observer.md, as third parties would install it."""

    def setUp(self) -> None:
        """Put it into a directory of plugins."""
        text = documents.read("docs/how-to/write-an-observer.md")
        plugins, self.directory = os.path.abspath(self.mktemp()), os.path.abspath(self.mktemp())
        os.mkdir(plugins)
        os.mkdir(self.directory)
        with open(os.path.join(plugins, "webhookrx_spooldir.py"), "w") as file:
            file.write(next(block.text for block in documents.blocks(text) if block.language == "python"))
        self.patch(twisted.plugins, "__path__", [plugins, *twisted.plugins.__path__])
        self.addCleanup(twisted.plugins.__dict__.pop, "webhookrx_spooldir", None)
        self.addCleanup(sys.modules.pop, "twisted.plugins.webhookrx_spooldir", None)

    def make_observer(self):  # type: ignore[no-untyped-def]
        """See L{ObserverContract}."""
        return known_observers.build_observer(parse_observer(f"spooldir:{self.directory}"), "durable")

    def break_observer(self) -> None:
        """See L{ObserverContract}."""
        os.rename(self.directory, f"{self.directory}.away")

    def stored_texts(self) -> list[str]:
        """See L{ObserverContract}."""
        texts = []
        for name in sorted(os.listdir(self.directory)):
            with open(os.path.join(self.directory, name)) as file:
                texts.append(json.loads(file.read())["MESSAGE"])
        return texts


class ObserverPageTests(SynchronousTestCase):
    """The rest of docs/reference/observers.md."""

    def test_built_in(self) -> None:
        """It names our own observers."""
        text = documents.read("docs/reference/observers.md")
        for name in ("file", "stdout", "observer"):
            self.assertIn(f"## `{name}`", text)

    def test_colon_in_template(self) -> None:
        """A colon in a template is written with a backslash, as docs/reference/messages.md says."""
        parsed = parse_observer(r"stdout:template=${HOST\:-nobody} said $MESSAGE")
        render = known_observers.build_observer(
            Observer(parsed.text, parsed.name, parsed.args, parsed.options), "written"
        ).prepare
        self.assertEqual(b"nobody said hi\n", render(make_message("hi", {"HOST": ""})))


class ArchitectureTests(SynchronousTestCase):
    """The map of the house."""

    def test_packages(self) -> None:
        """Every room says in its docstring what it is for, and is in the distribution."""
        package = documents.ROOT / "webhookrx"
        text = documents.read("setup.cfg")
        for room in {path.parent for path in package.rglob("*.py")}:
            name = ".".join(room.relative_to(documents.ROOT).parts)
            self.assertIn(f"    {name}\n", text)
            self.assertIn('"""', (room / "__init__.py").read_text(encoding="utf-8"), name)

    def test_names(self) -> None:
        """The modules, classes and functions that ARCHITECTURE names are there."""
        package = documents.ROOT / "webhookrx"
        modules = {
            ".".join(path.relative_to(package).with_suffix("").parts): defined_names(path)
            for path in package.rglob("*.py")
        }
        rooms = {module.rpartition(".")[0] for module in modules}
        text = documents.with_table(documents.read("ARCHITECTURE.md"), "rooms", "")
        stale = []
        compiled = {path.name for path in (documents.ROOT / "speedups").iterdir()}
        for name in sorted(set(re.findall(r"`([a-z]\w*(?:\.\w+)+)`", text)) - compiled):
            lead, _, last = name.rpartition(".")
            lead = re.sub(r"\.[A-Z]\w*$", "", lead)
            found = [module for module in modules if f".{module}".endswith((f".{name}", f".{lead}"))]
            here = any(f".{module}".endswith(f".{name}") or last in modules[module] for module in found)
            foreign = name.partition(".")[0] in ("twisted", "systemd", "meta", "log") or last in (
                "md",
                "cfg",
                "py",
                "json",
                "yaml",
                "toml",
            )
            if not here and not foreign and name not in rooms:
                stale.append(name)
        self.assertEqual([], stale)

    def test_members(self) -> None:
        """Each C{Class.name} in ARCHITECTURE.md is one of the code."""
        defined: dict[str, set[str]] = {}
        for path in (documents.ROOT / "webhookrx").rglob("*.py"):
            for each in ast.walk(ast.parse(path.read_text())):
                if isinstance(each, ast.ClassDef):
                    defined.setdefault(each.name, set()).update(_names_in(each))
        text = (documents.ROOT / "ARCHITECTURE.md").read_text()
        named = re.findall(r"`(?:[a-z_]+\.)*(_?[A-Z]\w+)\.([a-z_]\w*)(?:\(\))?`", text)
        self.assertGreater(len(named), 30)
        others = {"OpenSSL", "README"}
        self.assertEqual(
            [], [pair for pair in named if pair[0] not in others and pair[1] not in defined.get(pair[0], ())]
        )


def defined_names(path: Path) -> set[str]:
    """Return all names that a module defines, those in classes and functions among them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
    return names


def _names_in(definition: ast.ClassDef) -> Iterator[str]:
    """Yield the names of methods and attributes of a class."""
    for node in ast.walk(definition):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(value=ast.Name(id="self"), attr=name):
                yield name


class PrivateNamesTests(SynchronousTestCase):
    """The table of private names in ARCHITECTURE.md."""

    def test_complete(self) -> None:
        """It has all private names of others that the modules use, and no more."""
        _, _, text = (documents.ROOT / "ARCHITECTURE.md").read_text().partition("\n## Private names\n")
        rows = re.findall(r"^\| `([\w.]+)` \| (`[^|]+`) \| [^|]+ \|$", text.partition("\n## ")[0], re.M)
        listed = {module: set(re.findall(r"`([^`]+)`", names)) for module, names in rows}
        self.assertEqual(used_private_names(), listed, "bring the table of private names in ARCHITECTURE.md up to date")
