"""The examples in docs/reference/rules-command.md."""

from __future__ import annotations

import re
import shlex

from tests import documents
from tests.commands.running import CommandCase, run_command

PAGE = "docs/reference/rules-command.md"
#: What breaks the sample of a rules file.
MISTAKES = (("fra AND", "fra ADN"), ("port: 8181", "port: 81810"))


class ExampleTests(CommandCase):
    """The page, run."""

    def setUp(self) -> None:
        """Write the files that the examples are about."""
        super().setUp()
        text = documents.read("etc/connector-rules.yaml")
        with open("connector-rules.yaml", "w") as file:
            file.write(text)
        for right, wrong in MISTAKES:
            self.assertEqual(1, text.count(right), right)
            text = text.replace(right, wrong)
        with open("broken.yaml", "w") as file:
            file.write(text)
        self.page = documents.read(PAGE)
        requests = [block.text for block in documents.blocks(self.page) if block.language == "http"]
        for name, request in zip(("okta.http", "unknown.http", "disk.http"), requests, strict=True):
            with open(name, "w") as file:
                file.write(request)

    def test_outputs(self) -> None:
        """Every command prints what is shown."""
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
        self.assertEqual({"rules check", "rules preview", "rules explain", "query check", "classify", "try"}, set(ran))

    def test_options(self) -> None:
        """Every option that the page has is one of the command's, and all of them are there."""
        known = set()
        for words in (
            ("rules", "check"),
            ("rules", "preview"),
            ("rules", "explain"),
            ("query", "check"),
            ("classify",),
            ("try",),
        ):
            known |= set(re.findall(r"--[a-z-]+", run_command(*words, "--help").out))
        self.assertEqual(known - {"--help"}, set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", self.page)))
