"""
A source for each sender that comes with the package: with what its signed samples are signed with.
"""

from __future__ import annotations

import os
from importlib.resources import files

from tests.config.guards.cases import GuardCase
from webhookrx.config.check import check_report
from webhookrx.guard.sender_fit import may_sign_url
from webhookrx.senders.definition import SenderDefinition, SignedWith
from webhookrx.senders.definitions import builtin_definition, builtin_definitions


class BuiltInGuardTests(GuardCase):
    """Sources of all senders that are known."""

    def lines(self, definition: SenderDefinition, given: SignedWith) -> str:
        """Return the lines of a configuration with the sender, and what it is given."""
        lines = [f"sender: {definition.id}"]
        data = files("webhookrx.senders").joinpath("data")
        if given.secrets:
            text = "\n".join(given.secrets).replace("= @", f"= @{data}/")
            lines.append(f"secrets_file: {self.write('given', text)}")
        proves_url = any(each.proof and "{url}" in each.proof.of for each in definition.handshake)
        if given.public_url or proves_url:
            lines.append(f"public_url: {given.public_url or 'https://logs.example/in'}")
        if given.keys:
            lines.append(f"signing_certs: [{', '.join(str(data.joinpath(key)) for key in given.keys)}]")
        settings = {name: "x" for name, setting in definition.settings.items() if setting.needed} | given.settings
        if settings:
            words = (
                f"{name}: {list(text) if isinstance(text, tuple) else repr(text)}" for name, text in settings.items()
            )
            lines.append(f"sender_settings: {{{', '.join(words)}}}")
        return "\n".join(lines)

    def test_all(self) -> None:
        """Each can be configured as its entry says; the report shows no secret."""
        for definition in builtin_definitions():
            for given in definition.signing or (SignedWith(),):
                lines = self.lines(definition, given)
                self.assertEqual([], self.errors(lines), definition.id)
                resolved = self.start(lines)
                (source,) = resolved.settings.sources
                assert source.guard is not None
                self.assertEqual("required" if definition.verify else "off", source.guard.verify, definition.id)
                report = check_report(resolved)
                for secret in source.guard.secrets:
                    self.assertNotIn(secret.value.decode("utf-8", "surrogateescape"), report, definition.id)

    def test_without_secrets(self) -> None:
        """No sender that signs can be configured without anything to verify it with."""
        for definition in builtin_definitions():
            if definition.verify:
                self.assertNotEqual([], self.errors(f"sender: {definition.id}"), definition.id)
                self.assertEqual(
                    [], [each for each in self.errors(f"sender: {definition.id}\nverify: off") if "verified" in each]
                )

    def test_hostile_files(self) -> None:
        """A file of anything is usable or one error with a sentence, and none shows what is in it."""
        path = os.path.join(self.directory, "hostile")
        for content in (
            b"", b"\n\n", b"\0" * 100, b"\xff\xfe\0a", os.urandom(5000), b"one = \n", b"= x\n", b"one =x\n", b" = \n",
            b"\xef\xbb\xbfone = c4nary\n", b"one = c4nary\r\ntwo = c4nary2\r\n", b"c4nary" * 100_000,
            b"one = c4nary\n" * 2,
            b"".join(b"k%d = c4nary\n" % number for number in range(17)), b"-----BEGIN PRIVATE KEY-----\nc4nary\n",
        ):  # fmt: skip
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, 0o600)
            for sender in (
                "github",
                "stripe",
                "standard-webhooks",
                "discord",
                "wise",
                "gitlab",
                "meta",
                "aws-firehose",
            ):
                url = "public_url: https://a" if may_sign_url(builtin_definition(sender)) else ""
                for line in self.errors(f"sender: {sender}\nsecrets_file: {path}\n{url}"):
                    self.assertNotIn("c4nary", line)
                    self.assertRegex(line, r"^\d+: (secrets_file|sender): .*hostile|^\d+: (secrets_file|sender): [A-Z]")
