"""
What the JavaScript libraries of senders sign, a running receiver takes; of what is changed on its way, it takes nothing
that the library refuses.

The program C{sender_sdks.mjs} signs, sends, and asks the libraries, which are those of C{javascript_sdks.txt}: C{npm
install --prefix .venv --no-save --ignore-scripts $(cat tests/system/javascript_sdks.txt)}. Without Node or without them
the tests are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from base64 import b64encode
from functools import cache
from typing import Any, Final

import yaml
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.senders.signatures.requests import head_of
from tests.system.receiver import ANY_PORT, Receiver
from webhookrx.intake.urlencoded import parse_query
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.senders.signatures.signing import sign
from webhookrx.senders.signatures.verifier import Verifier

PUBLIC_URL: Final = "https://logs.example"
PACKAGES: Final = os.path.join(sys.prefix, "node_modules")
PROGRAM: Final = os.path.join(os.path.dirname(__file__), "sender_sdks.mjs")
EVENT: Final = '{"id":"evt_1","type":"a.b","object":"event","text":"Zürich ☃"}'.encode()

Keys = dict[str, Any]
Results = dict[str, dict[str, dict[str, Any]]]

# Hexadecimal digits in the other case are the same signature.
_CASE: Final = frozenset(("upper case", "upper core", "upper prefix"))
# Blanks around the items of a list mean nothing, and one genuine signature in it is enough.
_ITEMS: Final = frozenset(("blank after ,", "blank after ;", "comma at start")) | {
    f'{what}, by "{between}"'
    for what in ("core again, wrong", "wrong first, then right", "right first, then wrong", "twice")
    for between in (",", " ", ", ", ";", " , ")
}
WIDER: Final = {
    "github": _CASE,
    "slack": _CASE,
    "linear": _CASE,
    "contentful": _CASE,
    "discord": _CASE,
    "stripe": _CASE | _ITEMS,
    "paddle": _CASE | _ITEMS,
    # What looks like a list of names in a list of values is an item more.
    "workos": _CASE | _ITEMS | {"prefix twice"},
    # A byte order mark before JSON means nothing, and what is signed is within.
    "adyen": {"body with mark"},
}
"""What the receiver takes and the library does not, by sender: the signature is genuine, and all as signed."""
UNTIMED: Final = {"github", "shopify", "twilio", "twilio-json", "square", "line", "adyen", "adyen-platform"}
ENTRIES: Final = {"svix": "standard-webhooks", "twilio-json": "twilio"}


def _ecdsa() -> Keys:
    key, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    pem, wrong = (
        each.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode() for each in (key, other)
    )
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return {"secret": b64encode(public).decode(), "private_key": pem, "by_wrong": {"private_key": wrong}}


def _ed25519() -> Keys:
    key = ed25519.Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    seed = key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return {"secret": public.hex(), "private_key": pem.decode(), "seed": seed.hex(), "by_wrong": {"seed": "11" * 32}}


def _whsec(secret: bytes) -> str:
    return f"whsec_{b64encode(secret).decode()}"


_TEXT: Final = {"secret": "made up, and in use nowhere", "wrong": "of somebody else"}
_HEX: Final = {"secret": "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056", "wrong": "00" * 32}
_WHSEC: Final = {"secret": _whsec(b"made up, and in use nowhere"), "wrong": _whsec(b"of somebody else")}
SENDERS: Final[dict[str, Keys]] = {
    **dict.fromkeys(("github", "slack", "stripe", "twilio", "twilio-json", "linear", "hubspot", "square"), _TEXT),
    **dict.fromkeys(("line", "paddle", "box", "workos", "shopify"), _TEXT),
    **dict.fromkeys(("standard-webhooks", "svix"), _WHSEC),
    **dict.fromkeys(("adyen", "adyen-platform"), _HEX),
    "contentful": {"secret": "k" * 64, "wrong": "w" * 64},
    "discord": _ed25519(),
    "sendgrid": _ecdsa(),
}


def _signed_here(name: str, keys: Keys) -> Keys | None:
    """Return a request that C{try --sign} would make; None of senders whose signature is in the body."""
    if name in ("adyen", "twilio-json"):
        return None
    entry = next(each for each in builtin_definitions() if each.id == ENTRIES.get(name, name))
    moment = int(time.time())
    body = EVENT.replace(b"}", b',"webhookTimestamp":%d}' % (moment * 1000))
    media = {"content-type": "application/json"}
    if name == "twilio":
        body, media = b"SmsSid=SM1&Body=Z%C3%BCrich", {"content-type": "application/x-www-form-urlencoded"}
    if name == "box":
        media |= {"box-signature-version": "1", "box-signature-algorithm": "HmacSHA256"}
    if name == "shopify":
        media |= {f"x-shopify-{each}": "1" for each in ("topic", "shop-domain", "webhook-id", "api-version")}
    secret = NamedSecret("sdk", keys["secret"].encode())
    verifier = Verifier(entry, [secret], public_url=PUBLIC_URL)
    head = head_of(media, url=f"/{name}")
    key = keys.get("private_key", "").encode()
    made = sign(verifier, secret, head, parse_query(b""), body, moment * 1_000_000_000, private_key=key)
    headers = media | {header.decode(): value.decode() for header, value in made.headers.items()}
    if name == "svix":
        headers = {header.replace("webhook-", "svix-"): value for header, value in headers.items()}
    if name == "workos":
        headers["workos-signature"] = headers["workos-signature"].replace(",", ", ")  # as WorkOS writes it
    written = b64encode(made.body).decode()
    return {"moment": moment, "target": f"/{name}", "headers": list(headers.items()), "body": written}


def _config(directory: str) -> str:
    """Write files of secrets, and return the configuration with a source for each sender."""
    sources = []
    for name, keys in SENDERS.items():
        path = os.path.join(directory, f"{name}.secrets")
        with open(path, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(f"sdk = {keys['secret']}\n")
        source = {"name": name, "source": "webhook-json", "paths": f"/{name}", "secrets_file": path}
        sources.append(source | {"sender": ENTRIES.get(name, name)})
    return yaml.safe_dump({"port": ANY_PORT, "public_url": PUBLIC_URL, "sources": sources})


@cache
def results() -> tuple[Results, list[dict[str, Any]]]:
    """
    Let the libraries sign, send and judge, once for all tests.

    @return: what became of each request, by its sender and by what was done to it; and the messages of the receiver.
    @raise SkipTest: Node or all libraries are missing.
    """
    node = shutil.which("node")
    if node is None:
        raise SkipTest("needs the command node")
    if not os.path.isdir(PACKAGES):
        raise SkipTest(f"needs the packages of tests/system/javascript_sdks.txt in {PACKAGES}")
    receiver = Receiver("--config", "config.yaml", port=None)
    try:
        with open(receiver.path("config.yaml"), "w") as file:
            file.write(_config(receiver.directory))
        os.symlink(PACKAGES, receiver.path("node_modules"))
        program = shutil.copy(PROGRAM, receiver.directory)
        receiver.start()
        given = {name: keys | {"ours": _signed_here(name, keys)} for name, keys in SENDERS.items()}
        command = [node, program, f"http://127.0.0.1:{receiver.port}"]
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        messages = receiver.messages()
    finally:
        receiver.clean_up()
    found: Results = {}
    for each in map(json.loads, done.stdout.splitlines()):
        if "missing" not in each:
            found.setdefault(each["sender"], {})[each["what"]] = each
    if not found:
        raise SkipTest("needs the packages of tests/system/javascript_sdks.txt")
    return found, messages


class JavaScriptTests(SynchronousTestCase):
    """Libraries of senders for JavaScript."""

    def test_there(self) -> None:
        """Each library is there and signs."""
        missing = SENDERS.keys() - results()[0].keys()
        if missing:
            raise SkipTest(f"needs the packages of npm for {', '.join(sorted(missing))}")

    def test_theirs(self) -> None:
        """What a library signs is taken as signed, also when it is large, if only a digest of it is signed."""
        found, messages = results()
        for sender, requests in found.items():
            for what in ("genuine", "large"):
                request = requests[what]
                expected = 413 if (sender, what) == ("discord", "large") else 204 if sender == "discord" else 200
                self.assertEqual((True, expected), (request["sdk"], request["status"]), (sender, what))
        for message in messages:
            self.assertEqual(("signature", "sdk"), (message["webhook.verified"], message["webhook.secret"]))
        self.assertEqual(found.keys(), {message["SOURCE"] for message in messages})

    def test_ours(self) -> None:
        """What we sign, the library takes at that very second."""
        for sender, requests in results()[0].items():
            if "ours" in requests:
                self.assertTrue(requests["ours"]["sdk"], sender)

    def test_refused(self) -> None:
        """By another secret, changed, or long before or after its time, a request is refused with its reason."""
        for sender, requests in results()[0].items():
            reasons = {"wrong secret": "bad_signature", "body changed": "bad_signature"}
            if sender not in UNTIMED:
                reasons |= dict.fromkeys(("signed -3600 s off", "signed 3600 s off"), "stale_signature")
            for what, reason in reasons.items():
                request = requests[what]
                self.assertEqual((401, reason), (request["status"], request["reason"]), (sender, what))

    def test_nothing_more(self) -> None:
        """Of a hundred changes to a request, none is taken that the library refuses, but for other ways of writing."""
        for sender, requests in results()[0].items():
            changed = {what: each for what, each in requests.items() if not what.startswith("signed")}
            if sender != "adyen":
                self.assertGreater(len(changed), 80)
            taken = {what for what, each in changed.items() if each["status"] < 300 and not each["sdk"]}
            self.assertEqual(set(), taken - WIDER.get(sender, set()), sender)
