"""The examples in docs/reference/rules-command.md and docs/reference/try.md."""

from __future__ import annotations

import os
import re
import shlex

from tests import documents
from tests.commands.running import CommandCase, run_command

PAGE = "docs/reference/rules-command.md"
TRY_PAGE = "docs/reference/try.md"
#: What breaks the sample of a rules file.
MISTAKES = (("fra AND", "fra ADN"), ("port: 8181", "port: 81810"))


class _PageCase(CommandCase):
    page: str

    def setUp(self) -> None:
        """Write the rules files that the examples are about."""
        super().setUp()
        text = documents.read("etc/connector-rules.yaml")
        with open("connector-rules.yaml", "w") as file:
            file.write(text)
        for right, wrong in MISTAKES:
            self.assertEqual(1, text.count(right), right)
            text = text.replace(right, wrong)
        with open("broken.yaml", "w") as file:
            file.write(text)

    def texts(self, language: str) -> list[str]:
        """Return the blocks in a language."""
        return [block.text for block in documents.blocks(self.page) if block.language == language]

    def write_requests(self, *names: str) -> None:
        """Write the requests of the page."""
        for name, request in zip(names, self.texts("http"), strict=True):
            with open(name, "w") as file:
                file.write(request)

    def run_examples(self) -> set[str]:
        """Run every command, which prints what is shown; return the subjects."""
        ran = []
        for block in documents.blocks(self.page):
            if block.language == "console":
                for example in re.split(r"^(?=\$ )", block.text, flags=re.MULTILINE)[1:]:
                    line, _, shown = example.removeprefix("$ ").partition("\n")
                    name, *words = shlex.split(line)
                    self.assertEqual("webhookrx", name)
                    _, out, err = run_command(*words)
                    self.assertEqual(shown, out + err, line)
                    ran.append(words[0] if words[0] in ("classify", "try") else " ".join(words[:2]))
        return set(ran)

    def assert_options(self, *subjects: tuple[str, ...]) -> None:
        """Every option that the page has is one of the commands', and all of them are there."""
        known = set()
        for words in subjects:
            known |= set(re.findall(r"--[a-z-]+", run_command(*words, "--help").out))
        self.assertEqual(known - {"--help"}, set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", self.page)))


class ExampleTests(_PageCase):
    """The page on rules, run."""

    def setUp(self) -> None:
        """Write the requests."""
        super().setUp()
        self.page = documents.read(PAGE)
        self.write_requests("okta.http", "unknown.http")

    def test_outputs(self) -> None:
        """Every command prints what is shown."""
        subjects = {"rules check", "rules preview", "rules explain", "query check", "classify"}
        self.assertEqual(subjects, self.run_examples())

    def test_options(self) -> None:
        """Every option that the page has is one of the commands', and all of them are there."""
        rules = (("rules", "check"), ("rules", "preview"), ("rules", "explain"))
        self.assert_options(*rules, ("query", "check"), ("classify",))


class TryExampleTests(_PageCase):
    """The page on C{try}, run."""

    def setUp(self) -> None:
        """Write configuration, secrets and requests."""
        super().setUp()
        self.page = documents.read(TRY_PAGE)
        (config,) = self.texts("yaml")
        self.write("webhookrx.yaml", config.replace("/etc/webhookrx/", ""))
        self.write("stripe", "main = made-up-secret\n")
        os.chmod("stripe", 0o600)
        self.write_requests("stripe.http", "disk.http")

    def test_outputs(self) -> None:
        """Every command prints what is shown."""
        self.assertEqual({"try"}, self.run_examples())

    def test_options(self) -> None:
        """Every option that the page has is one of the command's, and all of them are there."""
        self.assert_options(("try",))
