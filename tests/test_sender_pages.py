"""
Tests for L{tests.sender_pages}: each sender that proves or asks something is on one page, and the source that is shown
for it works.
"""

from __future__ import annotations

import os

import yaml
from twisted.trial.unittest import SynchronousTestCase

from tests.commands.running import CommandCase, run_command
from tests.documents import blocks, read
from tests.sender_pages import PAGES, needs_keys, source_lines, takes_secrets
from tests.senders.test_samples import DATA
from tests.test_documents import settings_of
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.definitions import builtin_definitions

LISTED = " ".join(PAGES.values()).split()
ENTRIES = {entry.id: entry for entry in builtin_definitions()}


class PageTests(SynchronousTestCase):
    """What is on the pages."""

    def test_each_once(self) -> None:
        """A sender that signs or asks questions is on one page, as is any other that says what to do at it."""
        wanted = [entry.id for entry in ENTRIES.values() if entry.schemes or entry.handshake or entry.setup]
        self.assertEqual(sorted(wanted), sorted(LISTED))

    def test_setup(self) -> None:
        """Each says what to do at the sender, in sentences."""
        for each in LISTED:
            self.assertTrue(ENTRIES[each].setup, each)
            for sentence in ENTRIES[each].setup:
                self.assertTrue(sentence.endswith("."), each)
                self.assertEqual(0, sentence.count("`") % 2, each)

    def test_size(self) -> None:
        """A page has about ten senders, by id."""
        for name, ids in PAGES.items():
            self.assertLessEqual(8, len(ids.split()), name)
            self.assertGreaterEqual(12, len(ids.split()), name)
            self.assertEqual(sorted(ids.split()), ids.split(), name)


class SourceTests(SynchronousTestCase):
    """The source that is shown for a sender."""

    def test_loads(self) -> None:
        """It is one that can start, once its files are there, with a secret as the sender has them."""
        for each in LISTED:
            entry = ENTRIES[each]
            directory = os.path.abspath(self.mktemp())
            os.mkdir(directory)
            if takes_secrets(entry):
                write(os.path.join(directory, each), secrets_of(entry))
            write(os.path.join(directory, f"{each}-token"), "TOKEN\n")
            text = "\n".join(source_lines(entry)).replace("/run/credentials/webhookrx.service", directory)
            (source,) = yaml.safe_load(text)
            certificates = [str(DATA / name) for signed_with in entry.signing for name in signed_with.keys]
            keys = {"signing_certs": certificates} if any(map(needs_keys, entry.schemes)) else {}
            sources = [{**source, "source": "webhook", "port": "tcp:8181:interface=127.0.0.1"}]
            config = yaml.safe_dump({"sources": sources, **keys})
            resolved = settings_of(config, os.path.join(directory, "webhookrx.yaml"))
            (made,) = resolved.settings.sources
            assert made.guard is not None and made.guard.sender is not None
            self.assertEqual(each, made.guard.sender.id)


class FailingSignatureTests(CommandCase):
    """docs/how-to/failing-signatures.md."""

    def test_shown(self) -> None:
        """C{webhookrx try} says of the request what the page shows."""
        found = blocks(read("docs/how-to/failing-signatures.md"))
        (request,) = (block.text for block in found if block.language == "http")
        (config,) = (
            block.text for block in blocks(read("docs/how-to/verified-senders.md")) if block.language == "yaml"
        )
        (source,) = yaml.safe_load(config)["sources"]
        source |= {"port": "tcp:8181:interface=127.0.0.1", "secrets_file": os.path.abspath("secrets")}
        self.write("webhookrx.yaml", yaml.safe_dump({"sources": [source]}))
        self.write("request.http", request)
        write("secrets", "2026-11 = made-up\n")
        shown = [block.text.splitlines() for block in found if block.language == "console"]
        self.assertEqual(2, len(shown))
        for command, *lines in shown:
            _, out, err = run_command(*command.removeprefix("$ webhookrx ").split())
            self.assertEqual("", err)
            for line in lines:
                self.assertIn(" ".join(line.split()), [" ".join(each.split()) for each in out.splitlines()])


def secrets_of(entry: SenderDefinition) -> str:
    """Return what a secrets file for a sender may hold."""
    lines = list(entry.signing[0].secrets) if entry.signing else ["made-up = 0123456789abcdef0123456789abcdef"]
    if any(each.equal for each in entry.handshake):
        lines.append("verify-token = made-up")
    return "\n".join(lines).replace("@samples/", f"@{DATA}/samples/")


def write(path: str, text: str) -> None:
    """Write a file that only its owner can read."""
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o600)
