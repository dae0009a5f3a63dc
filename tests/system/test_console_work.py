"""
Tests of what people do in the pages of a console, in a real browser with real routers.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from tests.system.browser import PATIENCE, BrowserCase, sign_in
from tests.system.console_process import ConsoleProcess
from tests.system.receiver import Connection, post
from tests.system.servers.process import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Page

MARKUP = '<img src=x onerror="window.wrong=1"><script>window.wrong=1</script>'
RIGHT_TO_LEFT = "safe\u202egnp.exe"

#: Milliseconds until a router that is killed is away: a minute, and what polls take.
UNTIL_AWAY = 120_000


def sent(port: int, body: bytes, path: str = "/in") -> int:
    """Send a message, and return the status of the answer."""
    with Connection(port) as connection:
        answer = connection.send(post(body, path)).answer()
        assert answer is not None
        return answer.status


class RuleTests(BrowserCase):
    """Rules."""

    def rule(self, name: str) -> dict[str, Any]:
        """Return a rule as the API has it."""
        found: dict[str, Any] = self.fleet.call("GET", f"/rules/{name}")["document"]
        return found

    def delete(self, name: str) -> None:
        """Delete a rule."""
        _, headers, _ = self.fleet.console.call("GET", f"/rules/{name}", authorization=self.fleet.authorization)
        self.fleet.call("DELETE", f"/rules/{name}", if_match=headers["etag"])

    def test_new_rule(self) -> None:
        """Somebody writes a rule, sees what it would do while they write, saves it, and it runs."""
        port = free_port()
        page = self.signed_in()
        page.goto(f"{self.url}/rules")
        page.get_by_role("link", name="New rule").click()
        page.fill("#name", "made-by-hand")
        page.select_option("#protocol", "HTTP")
        page.fill("#port", "0")
        page.locator("#port[aria-invalid=true]").wait_for()
        page.fill("#port", str(port))
        page.locator("#port:not([aria-invalid=true])").wait_for()
        page.fill("#selector", "label.site = edge-0")
        page.get_by_text("1 of 2 routers match").first.wait_for()
        self.assertIn(f"port: {port}", page.locator("textarea[name=yaml]").input_value())
        page.locator("#save", has_text="1 router").click()
        page.wait_for_url(f"{self.url}/rules/made-by-hand*")
        self.assertEqual(port, self.rule("made-by-hand")["port"])
        page.goto(f"{self.url}/rules/made-by-hand/delete")
        page.get_by_role("button", name="Delete").click()
        page.wait_for_url(f"{self.url}/rules?*")
        self.assertEqual(0, page.get_by_role("link", name="made-by-hand", exact=True).count())
        self.check_no_errors()

    def test_yaml(self) -> None:
        """What is written as YAML is in the form, and is saved with its comments; a mistake has its line."""
        page = self.signed_in()
        page.goto(f"{self.url}/rules:new")
        text = f"# of the shop\nname: shop\nprotocol: HTTP\nport: {free_port()}\nselector: name = edge-1\n"
        page.fill("textarea[name=yaml]", text + "paths: [/shop, '(']\n")
        page.locator("main").get_by_text("line 6").first.wait_for()
        page.fill("textarea[name=yaml]", text + "paths: [/shop]\n")
        page.locator("#save", has_text="1 router").wait_for()
        self.assertEqual("shop", page.locator("#name").input_value())
        page.locator("#save").click()
        page.wait_for_url(f"{self.url}/rules/shop*")
        self.assertIn("# of the shop", page.locator("textarea[name=yaml]").input_value())
        self.delete("shop")
        self.check_no_errors()

    def test_two_people(self) -> None:
        """Of two who edit one rule the second sees both versions, and puts both changes together."""
        first, second = self.signed_in(), self.signed_in()
        path = f"{self.url}/rules/moving-edge-1"
        for page in (first, second):
            page.goto(path)
        first.fill("#description", "What the first has written")
        first.locator("#save", has_text="1 router").click()
        first.wait_for_url(f"{path}?*")
        second.fill("#suffix", "second")
        second.locator("#save", has_text="1 router").click()
        second.get_by_role("heading", name="Somebody else has saved this rule").wait_for()
        self.assertIn("What the first has written", second.locator("main").inner_text())
        self.assertNotIn("suffix", self.rule("moving-edge-1"))
        second.get_by_role("button", name="Put both changes together").click()
        second.locator("#description", has_text="What the first has written").wait_for()
        second.locator("#save", has_text="1 router").click()
        second.wait_for_url(f"{path}?*")
        rule = self.rule("moving-edge-1")
        self.assertEqual(("What the first has written", "second"), (rule["description"], rule["suffix"]))
        self.check_no_errors()

    def test_steps_by_keys(self) -> None:
        """Steps of a rule are added and moved by the keyboard, and are saved in their order."""
        page = self.signed_in()
        page.goto(f"{self.url}/rules:new")
        page.fill("#name", "stepped")
        page.fill("#port", str(free_port()))
        page.fill("#selector", "name = edge-1")
        for number, condition in enumerate(("log.body.a = 1", "log.body.b = 2")):
            page.get_by_role("button", name="+ Step").press("Enter")
            page.fill(f"#condition-{number}", condition)
        page.get_by_role("button", name="Move step 2 up").press("Enter")
        page.locator("#condition-0[value='log.body.b = 2']").wait_for()
        yaml = page.locator("textarea[name=yaml]").input_value()
        self.assertLess(yaml.index("log.body.b = 2"), yaml.index("log.body.a = 1"))
        self.check_no_errors()

    def test_focus_is_seen(self) -> None:
        """What the key Tab goes to is not behind the bar that saves."""
        page = self.signed_in()
        page.goto(f"{self.url}/rules:new")
        for number in range(2):
            page.get_by_role("button", name="+ Step").press("Enter")
            page.locator(f"#condition-{number}").wait_for()
        page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
        hidden = """() => {
            const [focused, bar] = [document.activeElement, document.querySelector(".save-bar")];
            if (!focused.closest("main") || bar.contains(focused)) return null;
            return focused.getBoundingClientRect().top > bar.getBoundingClientRect().top &&
                focused.getBoundingClientRect().top < bar.getBoundingClientRect().bottom ? focused.outerHTML : null;
        }"""
        for _ in range(50):
            page.keyboard.press("Tab")
            self.assertIsNone(page.evaluate(hidden))
        self.check_no_errors()


class TapTests(BrowserCase):
    """Taps."""

    def start(self, query: str = "name = edge-0", **fields: str) -> Page:
        """Return a page on which a tap runs."""
        page = self.signed_in()
        page.goto(f"{self.url}/tap")
        page.fill("#routers", query)
        for name, value in fields.items():
            page.fill(f"#{name}", value)
        page.click("#start")
        page.locator("#stop:not([disabled])").wait_for()
        return page

    def show(self, page: Page, body: bytes, text: str) -> None:
        """
        Send a message until the page shows it: the router may not tap yet, or may just have no time to look.

        @param text: what the page shows of it.
        """
        rows = page.locator("#rows article", has_text=text)
        deadline = time.monotonic() + PATIENCE / 1000
        while not rows.count():
            self.assertLess(time.monotonic(), deadline, f"{body[:100]!r} is not shown")
            self.assertEqual(200, sent(self.fleet.routers[0].hooks, body))
            page.wait_for_timeout(500)

    def test_hostile(self) -> None:
        """Whatever senders send is text on the page: markup, right-to-left, a line of a mebibyte."""
        page = self.start(rate="20")
        markup, long = json.dumps({"a": MARKUP, MARKUP: 1}), "x" * (1 << 20)
        for body, shown in ((markup, "onerror"), (RIGHT_TO_LEFT, "gnp.exe"), (long, "xxxx"), ("end", "end")):
            self.show(page, body.encode(), shown)
        # Not only what is in sight.
        text = page.locator("#rows").text_content() or ""
        self.assertEqual(0, page.locator("#rows img, #rows script").count())
        self.assertIsNone(page.evaluate("window.wrong ?? null"))
        self.assertNotIn("\u202e", text)
        self.assertLess(len(text), 300_000)
        beyond = page.evaluate("document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth")
        self.assertLessEqual(beyond, 0)
        page.click("#stop")
        page.locator("#tap-state", has_text="stop").wait_for()
        self.check_no_errors()

    def test_many(self) -> None:
        """Twenty messages a second are shown as they come; a page keeps the newest ones, and counts all."""
        page = self.start(rate="20")
        self.show(page, b"first", "first")
        for number in range(60):
            self.assertEqual(200, sent(self.fleet.routers[0].hooks, b"message %d" % number))
            page.wait_for_timeout(40)
        page.locator("#rows article", has_text="message 5").first.wait_for()
        self.assertRegex(page.locator("#tap-counts").inner_text(), r"seen [1-9]\d*")
        self.assertLessEqual(page.locator("#rows article").count(), 200)
        page.click("#pause")
        page.click("#clear")
        self.assertEqual(0, page.locator("#rows article").count())
        self.check_no_errors()

    def test_summary(self) -> None:
        """What is told of a body beside its differences is one line of text, and not longer than that."""
        page = self.signed_in()
        page.goto(f"{self.url}/tap")
        for body, line in (
            ("' a\\n  b '", "a b"),
            ("{a: ['x', 1]}", '{"a":["x",1]}'),
            ("'x'.repeat(300)", "x" * 200 + "…"),
            ("'a\\u202eb'", "a\\u202eb"),
            ("undefined", ""),
        ):
            self.assertEqual(line, page.evaluate(f"TapText.summary({body})"), body)
        self.check_no_errors()

    def test_not_allowed(self) -> None:
        """Who may not tap sees no link to it, and is told so at its address."""
        password = "correct horse battery"
        page = self.signed_in()
        page.goto(f"{self.url}/settings/people")
        page.fill("#name", "vera")
        page.fill("#password", password)
        page.get_by_role("button", name="Add").click()
        page.get_by_role("link", name="vera").first.wait_for()
        page = sign_in(self.context(), self.url, "vera", password)
        self.assertEqual(0, page.get_by_role("link", name="Tap", exact=True).count())
        answer = page.goto(f"{self.url}/tap")
        assert answer is not None
        self.assertEqual(403, answer.status)
        self.fleet.call("DELETE", "/people/vera")
        self.check_no_errors()


class RouterTests(BrowserCase):
    """Routers."""

    def test_killed(self) -> None:
        """A router that is killed while it is shown is away by itself, and what somebody types meanwhile stays."""
        router = self.fleet.routers[1]
        page = self.signed_in()
        page.goto(f"{self.url}/routers/{router.name}")
        page.get_by_text("messages/s").first.wait_for()
        field = page.locator("main form input[type=text], main form input:not([type])").first
        field.fill("typed")
        router.kill()
        try:
            page.get_by_text("Away since").wait_for(timeout=UNTIL_AWAY)
            self.assertEqual("typed", field.input_value())
        finally:
            router.spawn()
        page.get_by_text("Away since").wait_for(state="detached", timeout=UNTIL_AWAY)
        self.check_no_errors()


class UnreachedTests(BrowserCase):
    """A console that does not answer."""

    def test_unreached(self) -> None:
        """A page whose console is away says that it is old, until the console answers again."""
        context = self.context()
        page = sign_in(context, self.url)
        page.goto(f"{self.url}/routers/{self.fleet.routers[0].name}")
        page.get_by_text("messages/s").first.wait_for()
        context.set_offline(True)
        page.get_by_role("alert").get_by_text("can't be reached").wait_for()
        context.set_offline(False)
        page.locator("#unreached").wait_for(state="detached")
        self.assertTrue(all("fetch" in each or "net::" in each for each in self.chromium.errors), self.chromium.errors)


class FirstStepsTests(BrowserCase):
    """A new console."""

    def test_first_steps(self) -> None:
        """The first page of a new console leads from a token to a message, by commands that work as they are."""
        console = ConsoleProcess()
        self.addCleanup(console.stop)
        url = f"http://127.0.0.1:{console.port}"
        page = sign_in(self.context(), url)
        page.get_by_role("button", name="Make a token").click()
        command = page.locator("#try").first.inner_text()
        directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(rmtree, directory, ignore_errors=True)
        path = os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))
        router = subprocess.Popen(
            ["/bin/sh", "-c", command], cwd=directory, env={**os.environ, "PATH": path}, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.addCleanup(router.wait)
        self.addCleanup(os.killpg, router.pid, signal.SIGTERM)
        page.locator("#enrolled").wait_for()
        page.fill("#rule-port", str(free_port()))
        page.get_by_role("button", name="Make this rule").click()
        curl = page.locator("#curl").first
        curl.wait_for()
        done = subprocess.run(["/bin/sh", "-c", curl.inner_text()], capture_output=True, text=True, timeout=60)
        self.assertIn("received", done.stdout)
        page.locator("#arrived").wait_for()
        page.get_by_role("heading", name="It works").wait_for()
        self.assertEqual([], self.chromium.errors)
