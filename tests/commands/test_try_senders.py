"""
Tests for C{webhookrx try --config} with the samples of all senders, and with what a recording does not tell.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shutil
from importlib.resources import files
from typing import Any

import yaml

from tests.commands.running import CommandCase, run_command
from webhookrx.senders.definition import SenderDefinition, SignedWith
from webhookrx.senders.definitions import builtin_definitions

DATA = files("webhookrx.senders") / "data"
#: Definitions of an operator whose signatures a recording may not be enough for.
OWN = """\
    id: {0}
    vendor: acme
    product: {0}
    when: {{headers: {{x-acme-{0}: "*"}}}}
    verify: {{at: "{1}", signed: "{2}"}}
    """


class _SenderCase(CommandCase):
    def facts(self, request: str | bytes, config: dict[str, Any], *arguments: str) -> tuple[int, dict[str, Any]]:
        """Return the exit status and what is printed."""
        self.write("config.yaml", yaml.safe_dump({"port": 8181, **config}))
        self.write("request.http", request)
        status, out, err = run_command("try", "request.http", "--config", "config.yaml", "--json", *arguments)
        self.assertEqual("", err)
        return status, json.loads(out)

    def verdict(self, facts: dict[str, Any], decision: str) -> tuple[str, str]:
        """Return a verdict and why."""
        return next((each["verdict"], each["why"]) for each in facts["decisions"] if each["decision"] == decision)

    def secrets(self, *lines: str) -> str:
        """Write a file of secrets, and return its name."""
        self.write("secrets", "".join(line + "\n" for line in lines))
        os.chmod("secrets", 0o600)
        return "secrets"


class SampleTests(_SenderCase):
    """The samples that the package has."""

    def config(self, definition: SenderDefinition, signed_with: SignedWith) -> dict[str, Any]:
        config: dict[str, Any] = {"sender": definition.id, "allow_plaintext_token": True, "source": "webhook-json"}
        if signed_with.secrets:
            config["secrets_file"] = self.secrets(*(self.here(line) for line in signed_with.secrets))
        if signed_with.public_url:
            config["public_url"] = signed_with.public_url
        if signed_with.keys:
            config["signing_certs"] = [str(DATA / key) for key in signed_with.keys]
        if signed_with.settings:
            config["sender_settings"] = {
                name: value if isinstance(value, str) else list(value) for name, value in signed_with.settings.items()
            }
        return config

    def here(self, line: str) -> str:
        """Return a line of a file of secrets with the key file that it names put here."""
        before, at, name = line.partition("@")
        if not at or not before.rstrip().endswith("="):
            return line
        path = os.path.abspath(os.path.basename(name))
        shutil.copy(str(DATA / name), path)
        return f"{before}@{path}"

    def test_all(self) -> None:
        """Of each sender that signs, a sample is verified, at the time when it was signed, and no secret is printed."""
        verified = set()
        senders = [each for each in builtin_definitions() if each.schemes]
        for definition in senders:
            for signed_with in definition.signing:
                config = self.config(definition, signed_with)
                for name in definition.samples:
                    sample = (DATA / name).read_bytes()
                    status, facts = self.facts(sample, config)
                    if status in (0, 3) and any(each["decision"] == "signature" for each in facts["decisions"]):
                        verified.add(definition.id)
                        self.assertEqual("passes", self.verdict(facts, "signature")[0], name)
        self.assertEqual(set(), {each.id for each in senders} - verified)


class LackTests(_SenderCase):
    """What a recording does not tell, or a trial does not look up."""

    def own(self, name: str, at: str, signed: str) -> dict[str, Any]:
        """Return the options of a source for a sender of one's own."""
        os.makedirs("own", exist_ok=True)
        self.write(os.path.join("own", f"{name}.yaml"), OWN.format(name, at, signed))
        return {"senders": "own", "sender": name, "secrets_file": self.secrets("main = made-up")}

    def test_wire(self) -> None:
        """A signature over the packed body can't be judged if it does not fit the unpacked one."""
        config = self.own("wire", "header:x-acme-signature", "{wire}")
        request = f"POST / HTTP/1.1\nX-Acme-Signature: {'0' * 64}\n\nx"
        status, facts = self.facts(request, config)
        self.assertEqual((2, "not judged", "bad_signature"), (status, facts["outcome"], facts["reason"]))
        self.assertIn("before its Content-Encoding is undone", self.verdict(facts, "signature")[1])
        self.assertEqual(0, self.facts(request, config, "--sign", "main")[0])

    def test_masked_url(self) -> None:
        """Nor can a signature over a URL in which a recording masks something."""
        config = self.own("url", "header:x-acme-signature", "{target}{body}")
        for target, expected in (("/?token=***", 2), ("/?token=x", 1)):
            request = f"POST {target} HTTP/1.1\nX-Acme-Signature: {'0' * 64}\n\nx"
            self.assertEqual(expected, self.facts(request, config)[0])

    def test_key(self) -> None:
        """Nor can one whose public key is not there; nothing is fetched for it."""
        sample = (DATA / "samples/paypal-capture.http").read_bytes()
        config = {"sender": "paypal", "sender_settings": {"webhook_id": "1JE4291016473214C"}, "fetch_keys": True}
        status, facts = self.facts(sample, config)
        self.assertEqual((2, "key_unavailable", 503), (status, facts["reason"], facts["answer"]["status"]))
        self.assertIn("nothing is fetched here", self.verdict(facts, "signature")[1])

    def test_signed_in_query(self) -> None:
        """A signature may belong into the query: it takes the place of the one that is there."""
        config = self.own("query", "query:proof", "{body}")
        status, facts = self.facts("POST /?proof=old&a=b HTTP/1.1\n\nx", config, "--sign", "main")
        self.assertEqual(0, status)
        self.assertRegex(facts["request"]["target"], r"^/\?a=b&proof=")

    def test_secret(self) -> None:
        """A secret that is sent itself is told by its name, and none that is wrong is shown."""
        config = {"sender": "gitlab", "allow_plaintext_token": True, "secrets_file": self.secrets("main = made-up")}
        request = "POST / HTTP/1.1\nX-Gitlab-Event: Push Hook\nX-Gitlab-Token: {}\n\n{{}}"
        status, facts = self.facts(request.format("made-up"), config)
        self.assertEqual((0, "token"), (status, facts["messages"][0]["webhook.verified"]))
        self.assertEqual("passes", self.verdict(facts, "secret")[0])
        self.assertIn('shows the secret "main"', self.verdict(facts, "signature")[1])
        status, facts = self.facts(request.format("wrong-one"), config)
        self.assertEqual((1, "refuses"), (status, self.verdict(facts, "secret")[0]))
        self.assertNotIn("wrong-one", json.dumps(facts))

    def test_quota(self) -> None:
        """A quota has room for a request that is alone."""
        _, facts = self.facts("POST / HTTP/1.1\n\nx", {"quota": {"messages": "1/h", "burst": "1h"}})
        self.assertEqual("passes", self.verdict(facts, "quota")[0])

    def test_line_break(self) -> None:
        """A line break that an editor has put behind the body is named as the cause."""
        config = {"sender": "github", "secrets_file": self.secrets("main = s3cr3t")}
        signature = f"sha256={'0' * 64}"
        request = "POST / HTTP/1.1\nX-Hub-Signature-256: {}\n\n{{}}{}"
        right = "sha256=" + hmac.new(b"s3cr3t", b"{}", hashlib.sha256).hexdigest()
        for end in ("\n", "\r\n"):
            status, facts = self.facts(request.format(right, end), config)
            self.assertEqual((1, "bad_signature"), (status, facts["reason"]))
            self.assertIn("without the line break at its end", self.verdict(facts, "signature")[1])
        for shown, end in ((right, "\n\n"), (right, " "), (signature, "\n")):
            _, facts = self.facts(request.format(shown, end), config)
            self.assertNotIn("line break", self.verdict(facts, "signature")[1])
        self.assertEqual(0, self.facts(request.format(right, ""), config)[0])
