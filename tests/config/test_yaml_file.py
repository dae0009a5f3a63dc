"""
Tests for L{webhookrx.config.yaml_file}.
"""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import start, write_text
from webhookrx.config.option_reader import NOWHERE, ConfigFile, ConfigProblems, Problems, RawOptions
from webhookrx.config.resolve import Resolved
from webhookrx.config.yaml_file import References, bare_reference, read_config_file
from webhookrx.errors import ConfigError
from webhookrx.typed_yaml.typed_reader import MOST_MISTAKES

SECRET = "c4nary"


def texts(layer: RawOptions) -> dict[str, list[str]]:
    """Return the values of a layer as texts."""
    return {name: [value.text for value in values] for name, values in layer.items()}


class ReadConfigFileTests(SynchronousTestCase):
    """
    Tests for L{read_config_file}.
    """

    environ: dict[str, str] = {}

    def read(self, text: str) -> tuple[ConfigFile, list[str]]:
        """Return what a file holds, and its problems with C{F} for its name."""
        path = write_text(self.mktemp(), "x.yaml", text)
        problems = Problems()
        file = read_config_file(path, problems, self.environ, NOWHERE)
        return file, [error.text.replace(path, "F") for error in problems.errors]

    def test_everything(self) -> None:
        """All keys are read with their line, spelled with - or _, at the top and in sources."""
        file, errors = self.read(
            """
            observers:
              - stdout
              - file:x.jsonl
            ack: written
            limits: {body: 10MiB, header-time: 5s}
            allow-plaintext-token: yes
            auth_token_file: [a, b]
            sources:
              - name: github
                source: webhook-json
                port: 8443
                paths: ["/a", /b]
                tls-peer-verify: "no"
              - paths: /c
            """
        )
        self.assertEqual([], errors)
        top = {
            "observer": ["stdout", "file:x.jsonl"],
            "ack": ["written"],
            "limit": ["body=10MiB", "header_time=5s"],
            "allow-plaintext-token": ["yes"],
            "auth-token-file": ["a", "b"],
        }
        self.assertEqual(top, texts(file.options))
        assert file.sources is not None
        github, other = file.sources
        assert github.name is not None
        self.assertEqual("github", github.name.text)
        expected = {"source": ["webhook-json"], "port": ["8443"], "paths": ["/a", "/b"], "tls-peer-verify": ["no"]}
        self.assertEqual(expected, texts(github.options))
        self.assertIs(None, other.name)
        self.assertTrue(str(github.options["paths"][0].origin).endswith("x.yaml:12"))
        self.assertEqual((("sources", 1), 14), (other.origin.path, other.origin.line))
        self.assertEqual(("sources", 1, "paths"), other.options["paths"][0].origin.path)
        self.assertTrue(str(file.options["observer"][1].origin).endswith("x.yaml:3"))

    def test_values_are_what_was_written(self) -> None:
        """No value turns into a number, a date or a flag on its way."""
        for value in ("0123", "1_000", "12:30", "2026-11-20", "0x10", "yes", ".inf", "1e3"):
            file, errors = self.read(f"auth_token: {value}")
            self.assertEqual(([], {"auth-token": [value]}), (errors, texts(file.options)))

    def test_empty(self) -> None:
        """A file without anything, or with comments alone, is an error: it may be one that is being written."""
        for text in ("", "# port: 1\n", "---\n"):
            self.assertIn("holds no settings", self.assertRaises(ConfigError, self.read, text).problem)

    def test_one_source(self) -> None:
        """Without sources the top level is the one source, which may have a name."""
        file, errors = self.read("name: x\npaths: /a\n")
        assert file.name is not None
        self.assertEqual(([], "x", {"paths": ["/a"]}), (errors, file.name.text, texts(file.options)))

    def test_byte_order_mark(self) -> None:
        """A byte order mark is no part of the first key."""
        self.assertEqual([], self.read("\ufeffack: queued")[1])

    def test_anchors_and_merge_keys(self) -> None:
        """Aliases stand for what they name, and a key of one's own wins over one that << brings."""
        file, errors = self.read(
            """
            sources:
              - &base
                paths: &paths [/a, /b]
                source: webhook-json
                prefix: a.
              - <<: *base
                prefix: b.
              - <<: [{port: 1}, *base, {port: 2}]
              - paths: *paths
            """
        )
        self.assertEqual([], errors)
        assert file.sources is not None
        _, second, third, fourth = (texts(source.options) for source in file.sources)
        self.assertEqual({"paths": ["/a", "/b"], "source": ["webhook-json"], "prefix": ["b."]}, second)
        self.assertEqual((["1"], ["a."]), (third["port"], third["prefix"]))
        self.assertEqual({"paths": ["/a", "/b"]}, fourth)

    def test_problems(self) -> None:
        """What is wrong inside of a file is noted with its line and key, and the nearest known key is named."""
        cases = {
            "pahts: /a": 'F:1: There is no key "pahts". Did you mean "paths"?',
            "ack: queued\npaths: /a\nzzz: 1": 'F:3: There is no key "zzz". Known are ack,',
            "ports: [1, 2]": 'Did you mean "port"?',
            "config: x.yaml": 'There is no key "config".',
            "check: yes": 'There is no key "check".',
            "threads: 2": 'There is no key "threads".',
            "regulations: x": 'There is no key "regulations".',
            "sources:\n - prot: 1": 'F:2: sources[0]: There is no key "prot". Did you mean "port"?',
            "sources:\n - port: 1\n   ack: queued": "F:3: sources[0].ack: It holds for the whole service",
            "sources: []": "F:1: sources: It takes a list with at least one source",
            "sources: {port: 1}": "sources: It takes a list",
            "sources:": "sources: It takes a list",
            "sources: [1]": "sources[0]: A source is written as keys and values",
            "name: a\nsources: [{port: 1}]": "F:1: name: A name belongs to one source",
            "sources: [{name: [a]}]": "sources[0].name: It takes one value",
            "paths: /a\npaths: /b": 'F:2: paths: The key "paths" is given twice, first in line 1.',
            "auth-token-file: a\nauth_token_file: b": "twice, first in line 1",
            "observer: stdout\nobservers: [stdout]": "F:2: observers: It is the same as observer, which is there",
            "limits: {body: 1, body: 2}": "twice, first in line 1",
            "paths: {a: 1}": "paths: It takes one value or a list of values.",
            "paths: []": "paths: The list is empty",
            "paths: [[/a]]": "paths[0]: It takes one value.",
            "paths: [/a, ]\nprefix: [a]": "F:2: prefix: It takes one value.",
            "paths:": "paths: It has no value",
            "paths: ~": "paths: It has no value",
            "paths: [~]": "paths[0]: It has no value",
            "limits: 5": "limits: It takes names and values",
            "limits: {body: [1]}": "limits.body: It takes one value",
            "- port: 1": "F:1: The file holds no keys",
            "port 8181": "F:1: The file holds no keys",
            "? [a]\n: b": "A key is plain text.",
            "port: !!python/object/apply:os.getcwd []": "YAML tags are not used",
            "port: !port 1": "YAML tags are not used",
            "!x port: 1": "YAML tags are not used",
            "sources: !x [{port: 1}]": "YAML tags are not used",
            "limits: !x {body: 1}": "YAML tags are not used",
            "port: !!binary MQ==": "YAML tags are not used",
            "<<: 5": "<< takes a mapping",
            "sources: [&a {<<: {port: 1}}, {<<: *a}]": "has a << of its own",
        }
        for text, fragment in cases.items():
            _, errors = self.read(text)
            self.assertIn(fragment, "\n".join(errors), text)

    def test_quoted_emptiness(self) -> None:
        """A text in quotes is a value, even when it is empty or says null."""
        file, errors = self.read("prefix: ''\nproxy_header: 'null'")
        self.assertEqual(([], {"prefix": [""], "proxy-header": ["null"]}), (errors, texts(file.options)))

    def fail_to_read(self, content: bytes) -> ConfigError:
        """Return why a file can't be read at all."""
        directory = self.mktemp()
        os.mkdir(directory)
        self.path = os.path.join(directory, "x.yaml")
        with open(self.path, "wb") as file:
            file.write(content)
        return self.assertRaises(ConfigError, read_config_file, self.path, Problems(), {}, NOWHERE)

    def test_not_yaml(self) -> None:
        """What is not YAML, or not UTF-8, is one line with the number of the line."""
        cases: dict[bytes, tuple[int, str]] = {
            b"port: 1\npaths: [/a\n": (3, "expected ',' or ']'"),
            b"port: 1\n\tpaths: /a\n": (2, "not YAML"),
            b"a: b: c\n": (1, "mapping values are not allowed"),
            b"port: 1\n---\nport: 2\n": (2, "more than one document"),
            b"port: 1\npaths: '\xff'\n": (2, "not UTF-8"),
            b"port: 1\npaths: a\x00b\n": (2, "control character U+0000"),
            b"paths: *nobody\n": (1, "begins with * is written in quotes"),
            b"sources: [&a {<<: *a, port: 1}]": (1, "stands inside of what it stands for"),
        }
        for content, (line, fragment) in cases.items():
            error = self.fail_to_read(content)
            self.assertEqual(f"{self.path}:{line}", error.where, content)
            self.assertIn(fragment, error.problem)
            self.assertTrue(error.problem.isprintable())

    def test_plain_tags(self) -> None:
        """Tags of YAML's own types change nothing: a value is a text whatever its type is."""
        file, errors = self.read("port: !!int 8181\nprefix: !!str 0x10\nsources: !!seq [{port: 1}]\n")
        self.assertEqual(([], {"port": ["8181"], "prefix": ["0x10"]}), (errors, texts(file.options)))

    def test_very_many_values(self) -> None:
        """Aliases can't make a small file a very large configuration."""
        paths = b"paths: &paths [" + b"/a, " * 3000 + b"]\n"
        error = self.fail_to_read(paths + b"sources:\n" + b"- {paths: *paths}\n" * 100)
        self.assertIn("more than 200,000 values", str(error))

    def test_very_many_mistakes(self) -> None:
        """Of a file with more than a thousand mistakes, the first thousand are told, and that there are more."""
        error = self.fail_to_read(b"".join(b"key%d: 1\n" % number for number in range(5000)))
        assert isinstance(error, ConfigProblems)
        self.assertEqual(MOST_MISTAKES + 1, len(error.errors))
        self.assertIn("More than 1,000 mistakes", error.errors[-1].text)

    def test_deep_nesting(self) -> None:
        """A file that is nested without end is refused, not a crash."""
        for depth in (65, 5000):
            self.assertIn("nested deeper than 64", self.fail_to_read(b"[" * depth).problem)

    def test_missing(self) -> None:
        """A file that is not there is an error that names it."""
        error = self.assertRaises(ConfigError, read_config_file, "/no/such.yaml", Problems(), {}, NOWHERE)
        self.assertIn('"/no/such.yaml" does not exist', error.problem)

    def test_no_secret_in_errors(self) -> None:
        """However a token is written wrongly, no error shows it."""
        for text in (
            f"auth_token: *{SECRET}",
            f"auth_token: !{SECRET} x",
            f"auth_token: !{SECRET}!x y",
            f"auth_token: &{SECRET}",
            f"auth_token: %{SECRET}",
            f"auth_token: '{SECRET}",
            f'auth_token: "{SECRET}\\q"',
            f"auth_token: {{{SECRET}: x}}",
            f"auth_token: [[{SECRET}]]",
            f"auth_token: a: {SECRET}",
            f"auth_token: |{SECRET}",
            f"auth_tokn: {SECRET}",
            f"auth_token {SECRET}: 1",
            f"auth_token{SECRET}: 1",
            f"{{auth_token={SECRET}}}",
            f"sources: [{{auth_token {SECRET}}}]",
            f"auth_token {SECRET}",
            f"auth_token: {SECRET}\nauth_token: {SECRET}",
            f"ack: queued\nport: &{SECRET} 1\npaths: *{SECRET}2",
            f"auth_token: &{SECRET} [*{SECRET}]",
            f"{{auth_token{SECRET}: 1, auth_token{SECRET}: 2}}",
        ):
            try:
                file, errors = self.read(text)
                said = [*errors, repr(file)]
            except ConfigError as error:
                said = [str(error), repr(error)]
            self.assertNotIn(SECRET, "\n".join(said), text)


BURIED = "c4nary"


class FilledTests(SynchronousTestCase):
    """
    Tests for L{References}.
    """

    def setUp(self) -> None:
        self.warnings: list[str] = []
        self.references = References({"A": "one", "B": "x:y=z\\", "EMPTY": "", "R": "${env:A}"}, self.warnings.append)
        self.directory = os.path.abspath(self.mktemp())

    def test_environment(self) -> None:
        """Variables are put in, several in one value; what they hold is not looked at again."""
        for text, filled in (
            ("${env:A}", "one"),
            ("a${env:A}b${env:A}", "aonebone"),
            ("${env:EMPTY}", ""),
            ("${env:B}", "x:y=z\\"),
            ("${env:R}", "${env:A}"),
        ):
            self.assertEqual(filled, self.references.filled(text, is_spec=False))

    def test_what_stays(self) -> None:
        """Templates and their escapes stay, and a second dollar sign takes the meaning of a reference."""
        for text in ("${HOST}", "$${", "$$", "$A", "${}", "${env}", "${ENV:A}", "${HOST:-x}", "$(env:A)"):
            self.assertEqual(text, self.references.filled(text, is_spec=False))
        self.assertEqual("${env:A}", self.references.filled("$${env:A}", is_spec=False))
        self.assertEqual("a${file:/x}one", self.references.filled("a$${file:/x}${env:A}", is_spec=True))
        self.assertEqual("${env:A", self.references.filled("$${env:A", is_spec=True))

    def test_files(self) -> None:
        """One line end at the end of a file goes, and only there; names may be relative."""
        for content, text in (
            ("x\n", "x"),
            ("x\r\n", "x"),
            ("x\n\n", "x\n"),
            ("a\nb", "a\nb"),
            ("x\r", "x\r"),
            ("", ""),
        ):
            path = os.path.join(self.directory, "f")
            os.makedirs(self.directory, exist_ok=True)
            with open(path, "w", newline="") as file:
                file.write(content)
            os.chmod(path, 0o600)
            for name in (path, os.path.relpath(path)):
                self.assertEqual(text, self.references.filled(f"${{file:{name}}}", is_spec=False))
        self.assertEqual([], self.warnings)

    def test_open_files(self) -> None:
        """A file that every user can read is worth a warning."""
        path = write_text(self.directory, "f", "x\n", mode=0o644)
        self.assertEqual("x", self.references.filled(f"${{file:{path}}}", is_spec=False))
        self.assertEqual(1, len(self.warnings))
        self.assertIn("chmod 640", self.warnings[0])

    def test_specs(self) -> None:
        """In an endpoint or observer string they are one part, whatever they hold; as all of it they are it."""
        self.assertEqual(r"file:x\:y\=z\\:a=b", self.references.filled("file:${env:B}:a=b", is_spec=True))
        self.assertEqual("x:y=z\\", self.references.filled("${env:B}", is_spec=True))

    def test_mistakes(self) -> None:
        """What is not there is an error that says so, and shows nothing of what is."""
        binary = os.path.join(self.directory, "b")
        os.makedirs(self.directory)
        with open(binary, "wb") as file:
            file.write(b"\xff")
        for text, fragment in (
            ("x${env:NO}", 'The environment variable "NO" is not set.'),
            ("${file:/no/such}", '"/no/such" does not exist.'),
            ("${file:/tmp}", "is a directory"),
            (f"${{file:{binary}}}", "is not UTF-8 text"),
            ("${env:}", "names nothing"),
            ("${file:}", "names nothing"),
            ("x${env:A", "has no } at its end"),
        ):
            error = self.assertRaises(ConfigError, self.references.filled, text, is_spec=False)
            self.assertIn(fragment, error.problem)


class BareReferenceTests(SynchronousTestCase):
    """
    Tests for L{bare_reference}.
    """

    def test_texts(self) -> None:
        """A name without env: is found, unless its dollar sign is doubled."""
        for text, name in (
            ("${TOKEN}", "TOKEN"),
            ("a${b_1}", "b_1"),
            ("$${TOKEN}", None),
            ("$TOKEN", None),
            ("${1}", None),
        ):
            self.assertEqual(name, bare_reference(text, is_spec=False), text)
        self.assertEqual(None, bare_reference("${env:TOKEN}${file:/x}", is_spec=False))

    def test_specs(self) -> None:
        """In observer strings it is where no template stands, behind a spool too; stores and plugins know their own."""
        for text, name in (
            ("file:/x/${DIR}", "DIR"),
            ("file:/x:template=${HOST}", None),
            ("syslog:udp:h:514:app_name=${SOURCE}:facility=${F}", "F"),
            ("http:https://h/?token=${TOKEN}", "TOKEN"),
            ("spool:${DIR}:observer=stdout", "DIR"),
            ("spool:d:observer=file:x:template=${HOST}", None),
            (r"spool:d:observer=file\:x\:template=${HOST}", None),
            (r"spool:d:observer=file\:${X}:max=1MiB", "X"),
            ("${OBSERVER}", "OBSERVER"),
            ("plugin:${ANYTHING}", None),
            ("kafka:kafka://b/t:key=${HOST}:labels=source=${SOURCE}", None),
            ("spool:d:size=1GiB:observer=kafka:kafka://b/t:key=${HOST}", None),
            (r"spool:d:observer=nats\:nats\://b/logs.${HOST}:size=1GiB", None),
            (r"spool:d:observer=nats\:nats\://b/logs.${HOST}:size=${SIZE}", "SIZE"),
            ("spool:d:observer=file:${X}:mode=0600", "X"),
            ("8181", None),
        ):
            self.assertEqual(name, bare_reference(text, is_spec=True), text)


class WholeFileTests(SynchronousTestCase):
    """Settings that come from elsewhere."""

    def settings(self, text: str, **environ: str) -> Resolved:
        """Return what a file comes to."""
        return start(environ, config=write_text(self.mktemp(), "x.yaml", text))

    def test_settings(self) -> None:
        """Values anywhere in the file are filled, a token among them; and it is masked as ever."""
        token = write_text(self.mktemp(), "token", f"{BURIED}\n")
        resolved = self.settings(
            f"""
            sources:
            - name: ${{env:NAME}}
              port: tcp:${{env:PORT}}:interface=127.0.0.1
              auth_token: ["${{file:{token}}}", "${{env:TOKEN}}"]
            limits: {{body: "${{env:BODY}}"}}
            observers: ["file:${{env:FILE}}:template=${{HOST}} ${{env:WORD}}"]
            """,
            NAME="one",
            PORT="8181",
            BODY="1KiB",
            TOKEN=f"{BURIED}2",
            FILE=os.path.abspath("a:b"),
            WORD="x:y",
        )
        (source,) = resolved.settings.sources
        (observer,) = resolved.settings.observers
        self.assertEqual(("one", (BURIED.encode(), f"{BURIED}2".encode())), (source.name, source.auth_tokens))
        self.assertEqual(1024, resolved.settings.limits.body)
        self.assertEqual((os.path.abspath("a:b"),), observer.args)
        self.assertEqual((("template", "${HOST} x:y"),), observer.options)
        shown = {row.name: row.value for row in resolved.effective}
        self.assertEqual("*** ***", shown["auth-token"])

    def test_mistakes(self) -> None:
        """Each is an error with its line, and what is meant."""
        for text, words in (
            ("auth_token: ${TOKEN}", "written as ${env:TOKEN}."),
            ("port: 8181\nauth_token: ${env:TOKEN}", 'The environment variable "TOKEN" is not set.'),
            ("observers:\n- stdout\n- file:/x/${NAME}", "written as ${env:NAME}."),
        ):
            problems = self.assertRaises(ConfigProblems, self.settings, text)
            (error,) = problems.errors
            self.assertTrue(error.where.endswith(f":{text.count(chr(10)) + 1}"), error.where)
            self.assertIn(words, error.sentence)

    def test_mapping(self) -> None:
        """A text that YAML takes for a mapping is explained; a mapping that was meant as one is not."""
        for text, explained in (
            ("observers:\n- http:https://a/:header=a: b", True),
            ("observers: {file: x}", False),
            ("port:\n  tcp: 8181", True),
        ):
            problems = self.assertRaises(ConfigProblems, self.settings, text)
            self.assertEqual(explained, "write the whole text in quotes" in problems.errors[0].sentence, text)

    def test_read_again(self) -> None:
        """Another reading takes what is there by then."""
        path = write_text(self.mktemp(), "token", "one")
        config = write_text(self.mktemp(), "x.yaml", f"port: tcp:1:interface=127.0.0.1\nauth_token: ${{file:{path}}}")
        for token in (b"one", b"two"):
            with open(path, "wb") as file:
                file.write(token)
            self.assertEqual((token,), start(config=config).settings.sources[0].auth_tokens)
