"""
Tests for L{webhookrx.config.references}, and of it in whole files.
"""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import start, write_text
from webhookrx.config.problems import ConfigProblems
from webhookrx.config.references import References, bare_reference
from webhookrx.config.resolve import Resolved
from webhookrx.errors import ConfigError

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
        """In observer strings it is where no template stands, behind a spool too; plugins know their own."""
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
            self.assertIn(words, error.problem)

    def test_mapping(self) -> None:
        """A text that YAML takes for a mapping is explained; a mapping that was meant as one is not."""
        for text, explained in (
            ("observers:\n- http:https://a/:header=a: b", True),
            ("observers: {file: x}", False),
            ("port:\n  tcp: 8181", True),
        ):
            problems = self.assertRaises(ConfigProblems, self.settings, text)
            self.assertEqual(explained, "write the whole text in quotes" in problems.errors[0].problem, text)

    def test_read_again(self) -> None:
        """Another reading takes what is there by then."""
        path = write_text(self.mktemp(), "token", "one")
        config = write_text(self.mktemp(), "x.yaml", f"port: tcp:1:interface=127.0.0.1\nauth_token: ${{file:{path}}}")
        for token in (b"one", b"two"):
            with open(path, "wb") as file:
                file.write(token)
            self.assertEqual((token,), start(config=config).settings.sources[0].auth_tokens)
