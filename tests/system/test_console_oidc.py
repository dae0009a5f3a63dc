"""
Tests of single sign-on with a real provider: the npm package C{oidc-provider}, run by Node on loopback.

C{npm install --prefix .venv/oidc --no-save --ignore-scripts $(cat tests/system/oidc_packages.txt)} installs it. Without
Node or without it these tests are skipped.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import closing
from html.parser import HTMLParser
from typing import Any, Final
from unittest import SkipTest
from urllib.parse import urlencode, urljoin, urlsplit

from joserfc.jwk import ECKey, OKPKey, RSAKey
from twisted.trial.unittest import SynchronousTestCase

from tests.system.console_process import PASSWORD, ConsoleProcess
from tests.system.servers.process import free_port

PACKAGES: Final = os.path.join(sys.prefix, "oidc", "node_modules")
PROGRAM: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "oidc_provider.mjs")
KEYS: Final[dict[str, Any]] = {
    "RS256": RSAKey.generate_key(2048, {"use": "sig", "kid": "r"}),
    "ES256": ECKey.generate_key("P-256", {"use": "sig", "kid": "e"}),
    "Ed25519": OKPKey.generate_key("Ed25519", {"use": "sig", "kid": "o"}),
}


class OidcProgram:
    """The provider as a process."""

    def __init__(self, port: int, callback: str, secret: str, algorithm: str) -> None:
        node = shutil.which("node")
        if node is None:
            raise SkipTest("needs the command node")
        if not os.path.isdir(os.path.join(PACKAGES, "oidc-provider")):
            raise SkipTest(f"needs the package of tests/system/oidc_packages.txt in {PACKAGES}")
        self.directory = tempfile.mkdtemp(prefix="webhookrx-oidc-")
        os.symlink(PACKAGES, os.path.join(self.directory, "node_modules"))
        self._command = [node, shutil.copy(PROGRAM, self.directory)]
        self._settings = {"port": port, "callback": callback, "client_id": "console", "client_secret": secret}
        self._settings["algorithm"] = algorithm
        self.start(algorithm)

    def start(self, algorithm: str) -> None:
        """Start it with the key for an algorithm, and wait until it listens."""
        keys = [KEYS["RS256"].as_dict(private=True)]
        if algorithm != "RS256":
            keys.append(KEYS[algorithm].as_dict(private=True))
        settings = json.dumps({**self._settings, "algorithm": algorithm, "keys": keys})
        self.log = os.path.join(self.directory, "log")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*self._command, settings], stdout=subprocess.PIPE, stderr=log)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n", self.log_text()

    def log_text(self) -> str:
        """Return what it has complained about."""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


class Browser:
    """
    A browser without a screen: it keeps cookies of each server, follows redirects, and sends forms.

    @ivar url: where it is.
    """

    def __init__(self) -> None:
        self._cookies: dict[str, dict[str, str]] = {}
        self.url = ""
        self.status = 0
        self.text = ""

    def go(self, url: str, form: dict[str, str] | None = None) -> None:
        """Go to a URL, and on to wherever that leads."""
        for _ in range(12):
            place = self._ask(url, form)
            self.url = url
            if not place:
                return
            url, form = urljoin(url, place), None
        raise AssertionError(f"too many redirects: {url}")

    def _ask(self, url: str, form: dict[str, str] | None) -> str:
        parts = urlsplit(url)
        cookies = self._cookies.setdefault(parts.netloc, {})
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
        body = None
        if form is not None:
            body = urlencode(form)
            headers |= {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{parts.netloc}"}
        with closing(http.client.HTTPConnection(parts.netloc, timeout=60)) as connection:
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            connection.request("GET" if form is None else "POST", path, body, headers)
            answer = connection.getresponse()
            self.status, self.text = answer.status, answer.read().decode()
            for name, value in answer.getheaders():
                if name.lower() == "set-cookie":
                    key, _, kept = value.partition(";")[0].partition("=")
                    cookies[key] = kept
                    if not kept or "Max-Age=0" in value:
                        del cookies[key]
            return answer.getheader("Location") or ""

    def cookies(self, netloc: str) -> dict[str, str]:
        """Return the cookies of a server."""
        return self._cookies.get(netloc, {})

    def send(self, **fields: str) -> None:
        """Send the form of the page, with these fields beside its hidden ones."""
        found = _FormReader()
        found.feed(self.text)
        self.go(urljoin(self.url, found.action), {**found.hidden, **fields})


class _FormReader(HTMLParser):
    """The last form of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.action = ""
        self.hidden: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note it."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.action, self.hidden = given.get("action", ""), {}
        if tag == "input" and given.get("type") == "hidden":
            self.hidden[given["name"]] = given.get("value", "")


class OidcTests(SynchronousTestCase):
    """A console and a provider."""

    def setUp(self) -> None:
        """Start both."""
        port = free_port()
        directory = tempfile.mkdtemp(prefix="webhookrx-oidc-secret-")
        self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(directory, "secret")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("correct horse battery staple: 1%\n")
        self.issuer = f"http://127.0.0.1:{port}"
        options = ["--oidc-issuer", self.issuer, "--oidc-client-id", "console", "--oidc-secret-file", path]
        options += ["--oidc-role", "groups=ops:admin+tap", "--oidc-role", "groups=staff:viewer"]
        self.console = ConsoleProcess(*options)
        self.addCleanup(self.console.stop)
        self.url = f"http://127.0.0.1:{self.console.port}"
        self.provider = OidcProgram(
            port, f"{self.url}/sign-in/oidc/callback", "correct horse battery staple: 1%", "RS256"
        )
        self.addCleanup(shutil.rmtree, self.provider.directory)
        self.addCleanup(self.provider.stop)

    def sign_in(self, name: str, browser: Browser | None = None) -> Browser:
        """Return a browser after a log-in."""
        browser = browser or Browser()
        browser.go(f"{self.url}/sign-in/oidc?next=/settings/account")
        for _ in range(3):
            if browser.url.startswith(self.issuer):
                self.assertEqual(200, browser.status, browser.text + self.provider.log_text())
                login = {} if 'value="consent"' in browser.text else {"login": name, "password": "x"}
                browser.send(**login)
        return browser

    def me(self, browser: Browser) -> Any:
        """Return who is signed in."""
        browser.go(f"{self.url}/api/v1/session")
        return json.loads(browser.text)

    def test_sign_in(self) -> None:
        """Somebody of a group signs in by each kind of key, and out; the provider may change its keys."""
        browser = self.sign_in("ops-mara")
        self.assertEqual((200, f"{self.url}/settings/account"), (browser.status, browser.url), browser.text)
        self.assertNotIn("__Host-wrx-oidc", browser.cookies(urlsplit(self.url).netloc))
        me = self.me(browser)
        self.assertEqual(("ops-mara", "admin", True, True), (me["name"], me["role"], me["tap"], me["single_sign_on"]))
        again = self.sign_in("ops-mara")
        self.assertEqual("ops-mara", self.me(again)["name"])
        # A new process of the console: what it knew of the provider is forgotten, as are log-ins under way.
        for algorithm in ("ES256", "Ed25519"):
            self.provider.stop()
            self.console.end()
            self.provider.start(algorithm)
            self.console.start()
            self.assertEqual("ops-mara", self.me(self.sign_in("ops-mara"))["name"], algorithm)

    def test_no_role(self) -> None:
        """Somebody of no group is told so."""
        browser = self.sign_in("theo")
        self.assertEqual(403, browser.status, browser.text)
        self.assertIn("nothing that gives you a role", browser.text)
        self.assertEqual({}, browser.cookies(urlsplit(self.url).netloc))

    def test_no_provider(self) -> None:
        """Without its provider the console says so, and lets people in by passwords."""
        self.provider.stop()
        browser = Browser()
        browser.go(f"{self.url}/sign-in/oidc")
        self.assertEqual(502, browser.status)
        self.assertIn("can&#39;t be reached", browser.text)
        browser.send(name="mara", password=PASSWORD)
        self.assertEqual("mara", self.me(browser)["name"])
        self.assertNotIn("correct horse battery staple", self.console.log_text())
