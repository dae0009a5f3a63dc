"""
The router form: the real program, its connectors from a rules file, on real sockets.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from typing import Any

from tests.system.certificates import write, write_ca_file
from tests.system.hanging_up import hang_up
from tests.system.load import Load
from tests.system.receiver import PATIENCE, post, wait_until
from tests.system.routers import ROOT_CA, Router, RouterCase, free_ports, https, rule, rules_text, with_key
from tests.system.test_tls import tool
from tests.system.workers import ask_admin, metrics


class MessageTests(RouterCase):
    """
    What comes of requests.
    """

    def test_as_the_page_has_it(self) -> None:
        """HTTP and HTTPS give messages as docs/how-to/router.md has them; other paths get 404, other methods 405."""
        curl, openssl = tool("curl"), tool("openssl")
        router = self.router()
        plain, secure = free_ports(2)
        key, cert = with_key(router)
        ca = write_ca_file(router.directory, "ca", ROOT_CA)
        labels = {"team": "secops", "vendor": "acme"}
        router.write(rule("hooks", plain, labels=labels), https("tls", secure, key, cert, suffix="in"))
        router.start()

        def ask(*arguments: str) -> str:
            command = (curl, "-sS", "--max-time", "10", "-o", "/dev/null", "-w", "%{http_code}", *arguments)
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        http, tls = f"http://127.0.0.1:{plain}", f"https://localhost:{secure}"
        self.assertEqual("200", ask("-d", '{"disk":"full","at":1.10}', f"{http}/events/web-1?team=ops&n=1&n=2"))
        self.assertEqual("200", ask("--cacert", ca, "-4", "-d", "no json", f"{tls}/events"))
        self.assertEqual("404", ask("-d", "x", f"{http}/other"))
        self.assertEqual("405", ask(f"{http}/events"))
        self.assertEqual("404", ask("--cacert", ca, "-4", "-d", "x", f"{tls}/events2"))
        shown = subprocess.run(
            (openssl, "s_client", "-connect", f"127.0.0.1:{secure}", "-CAfile", ca, "-showcerts"),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
        ).stdout  # fmt: skip
        self.assertIn("Verify return code: 0 (ok)", shown)
        self.assertEqual(2, shown.count("BEGIN CERTIFICATE"))
        self.assertIn(b'"disk":"full","at":1.10}', router.lines()[0])
        first, second = router.messages()
        connection = first["meta"]["connection"]
        self.assertEqual({"disk": "full", "at": 1.1}, first["log"]["body"])
        self.assertEqual({"webhook.query.team": "ops", "webhook.query.n": ["1", "2"]}, first["log"]["attributes"])
        self.assertTrue(abs(first["log"]["observed_time_unix_nano"] / 1e9 - time.time()) < 60)
        self.assertEqual(
            {"type": "webhook", "name": "edge-1-hooks-hooks", "port": plain, "labels": {"product": "webhook"} | labels},
            first["meta"]["connector"],
        )
        self.assertEqual(
            ("127.0.0.1", "http", 25), (connection["src_ip"], connection["transport"], connection["bytes"])
        )
        self.assertEqual({"name": "edge-1", "labels": {"site": "fra"}}, first["meta"]["router"])
        self.assertEqual(({"name": "web-1"}, {"name": "127.0.0.1"}), (first["meta"]["host"], second["meta"]["host"]))
        self.assertEqual(("no json", "https"), (second["log"]["body"], second["meta"]["connection"]["transport"]))
        self.assertEqual("edge-1-tls-in", second["meta"]["connector"]["name"])
        self.assertNotEqual(first["meta"]["id"], second["meta"]["id"])

    def test_steps(self) -> None:
        """What a step drops gets 200 and is counted; what a step fails on is kept, and few lines are logged of it."""
        (port,) = free_ports(1)
        steps: list[dict[str, Any]] = [
            {"select": "NOT log.body.level = debug", "label": "no debug"},
            {"set": {"field": "meta.ratio", "value": [1.5, 10**30]}},
            {"expression": "log.body.n = int(log.body.text);", "condition": "log.body.text EXISTS", "label": "number"},
            {"probe": "end"},
        ]
        router = self.start_router(rule("hooks", port, "/in", preprocessing={"steps": steps}))
        connection = self.connect(port)
        for _ in range(30):
            self.assert_taken(connection, b'{"text":"none"}')
            self.assert_taken(connection, b'{"level":"debug"}')
        self.assert_taken(connection, b'{"text":"7"}')
        self.assertEqual([{"text": "none"}] * 30 + [{"text": "7", "n": 7}], router.bodies())
        self.assertIn(b'"ratio":[1.5,1000000000000000000000000000000]', router.lines()[0])
        source = 'source="edge-1-hooks-hooks"'
        found = metrics(router)
        for name, count in (
            (f'webhookrx_dropped_messages_total{{{source},step="no debug"}}', 30),
            (f'webhookrx_step_errors_total{{{source},step="number"}}', 30),
            (f'webhookrx_probe_messages_total{{probe="end",{source}}}', 31),
            (f"webhookrx_messages_total{{{source}}}", 31),
            (f'webhookrx_requests_total{{{source},status="200"}}', 61),
        ):
            self.assertEqual(count, found.get(name), name)
        self.assertLess(router.log().count("A step of edge-1-hooks-hooks failed"), 15)
        self.assertNotIn("none", router.log())


class ReloadTests(RouterCase):
    """
    Rules that change under a router that runs.
    """

    def test_texts_too_long_to_filter(self) -> None:
        """A filter that can't look at all of a text lets the message through, is counted and logged."""
        (port,) = free_ports(1)
        router = self.router()
        steps = [{"select": "log.body !~ '(a?){1000}b'", "label": "no bees"}]
        router.write(rule("filtered", port, "/in", preprocessing={"steps": steps}))
        router.start()
        bodies = [b"bee", b"a" * 300, *(b"%d" % number + b"a" * 100_000 for number in range(20))]
        for body in bodies:
            self.assertEqual(200, self.ask(port, post(body)).status)
        self.assertEqual([body.decode() for body in bodies[1:]], router.bodies())
        now = metrics(router)
        labels = '{source="edge-1-filtered-filtered",step="no bees"}'
        self.assertEqual(20.0, now[f"webhookrx_step_errors_total{labels}"])
        self.assertEqual(1.0, now[f"webhookrx_dropped_messages_total{labels}"])
        said = router.log().count("Step 'no bees' failed: The message holds too much for a query of that size.")
        self.assertTrue(1 <= said < 20, said)
        self.assertNotIn("aaa", router.log())

    def test_under_load(self) -> None:
        """Whatever becomes of other rules, by whatever way, nobody at a connector that stays notices."""
        stays, one, two, three = free_ports(4)
        router = self.start_router(rule("stays", stays, "/in"), rule("one", one, "/a"))
        load = Load(stays, senders=8).start()
        kept = rule("stays", stays, "/in", description="The same.")
        variants = (
            [kept],
            [rule("one", one, "/a"), kept, rule("two", two)],
            [kept, rule("two", one), rule("one", two)],
            [kept, rule("two", three, "/b", "/(?P<HOST>c.*)", preprocessing={"classify": True})],
            [kept, rule("two", three, "/c", labels={"a": "b"})],
            [kept],
        )
        for rules in variants:
            self.assertIn("Reloaded: ", router.take(*rules))
        was_slow = False
        for number, rules in enumerate(variants[1:4]):
            before = router.reloads()
            if number:
                router.write(*rules)
            else:
                was_slow = not self.write_in_halves(router, rules_text(rules))
            router.wait_for_reload(before, "the change is seen")
        reached = [len(texts) for texts in load.acknowledged]
        wait_until(
            lambda: all(len(texts) > was for texts, was in zip(load.acknowledged, reached, strict=True)),
            "every connection goes on",
        )
        acknowledged = load.stop()
        self.assertEqual(0, router.stop())
        self.assertEqual(([], []), (load.refused, load.broken))
        self.assertEqual(sorted(acknowledged), sorted(router.bodies()))
        self.assertNotIn("Traceback", router.log())
        self.assertLessEqual(9, router.reloads())
        if not was_slow:
            self.assertNotIn("Reload failed", router.log())

    def write_in_halves(self, router: Router, text: str) -> bool:
        """Write a file as an editor may do that is slow; return whether it was fast enough to be one change."""
        began = time.monotonic()
        with open(router.path("rules.yaml"), "w") as file:
            file.write(text[: len(text) // 2])
            file.flush()
            time.sleep(0.3)
            file.write(text[len(text) // 2 :])
        return time.monotonic() - began < 0.45

    def test_difference(self) -> None:
        """A changed path answers on connections that stay; a connector that goes answers its last, and is closed."""
        changes, goes, moves, new = free_ports(4)
        router = self.start_router(
            rule("changes", changes, "/old"), rule("goes", goes, "/in"), rule("moves", moves, "/in")
        )
        open_one, last, idle = self.connect(changes), self.connect(goes), self.connect(goes)
        self.assert_taken(open_one, target="/old")
        self.assert_taken(idle)
        request = post(b"last")
        last.send(request[:-2])
        log = router.take(
            rule("changes", changes, "/new", labels={"team": "a"}),
            rule("moves", new, "/in"),
            rule("added", goes, "/in"),
        )
        self.assertIn("3 sources (2 changed, 1 added, 1 removed)", log)
        # The port of the one that goes is that of one that comes: it was never closed.
        self.assert_taken(idle, b'"by the new one"')
        log = router.take(rule("changes", changes, "/new", labels={"team": "a"}))
        self.assertIn("1 sources (1 unchanged, 2 removed)", log)
        self.assertEqual(
            (404, 200), (self.said(open_one, b"{}", "/old").status, self.said(open_one, b"{}", "/new").status)
        )
        last.send(request[-2:])
        answer = last.answer()
        self.assertEqual((200, "close"), (answer and answer.status, answer and answer.headers.get("connection")))
        self.assertEqual([], idle.answers())
        wait_until(lambda: not any(map(self.is_open, (goes, moves, new))), "ports are closed")
        names = [message["meta"]["connector"]["name"] for message in router.messages()]
        self.assertEqual("edge-1-added-added", names[2])
        self.assertEqual(
            {"team": "a"}.items() & router.messages()[3]["meta"]["connector"]["labels"].items(), {("team", "a")}
        )
        found = [name for name in metrics(router) if name.startswith("webhookrx_connector{")]
        self.assertEqual(1, len(found))
        self.assertIn(f'port="{changes}"', found[0])

    def test_mistakes(self) -> None:
        """A file with a mistake changes nothing, and is said with its place and code; the next good one is taken."""
        one, two = free_ports(2)
        router = self.start_router(rule("one", one, "/in"))
        connection = self.connect(one)
        start = "connector_rules:\n- "
        mistakes = (
            (f"{start}{{name: one, protocol: HTTP, port: {two}}}\n- {{name: x", r"\d+:\d+: .*\[yaml-syntax\]"),
            (f"{start}{{name: one, protocol: HTTP, prot: {two}}}\n", r"2:\d+: .*\[unknown-key\]"),
            (
                f"{start}{{name: a, protocol: HTTP, port: {one}}}\n- {{name: b, protocol: HTTP, port: {one}}}\n",
                r"3:\d+: .*\"a\" and \"b\".*\[port-clash\]",
            ),
            ("", r" .*\[empty-file\]"),
        )
        for number, (text, problem) in enumerate(mistakes):
            before, log = router.reloads(), len(router.log())
            router.write_text(text)
            if number:
                hang_up(router)
            else:
                router.wait_for_reload(before, "the mistake is seen")
            said = re.compile(rf"Reload failed, the old settings stay: rules\.yaml:{problem}")
            wait_until(
                lambda said=said, log=log: said.search(router.log()[log:]), f"{problem}; its log: {router.log()}"
            )
            self.assert_taken(connection)
        before = router.reloads()
        os.remove(router.path("rules.yaml"))
        router.wait_for_reload(before, "it is seen that the file has gone")
        self.assertIn('rules.yaml" does not exist', router.log())
        state, why = router.health()
        self.assertEqual("degraded", state)
        self.assertRegex(why, r'^The rules file is not in use: .*rules\.yaml" does not exist\.$')
        self.assertEqual(1, metrics(router)["webhookrx_rules_not_taken"])
        self.assertFalse(self.is_open(two))
        before = router.reloads()
        router.write(rule("one", one, "/in"), rule("two", two, "/in"))
        router.wait_for_reload(before, "the good one is seen")
        self.assertTrue(self.is_open(two))
        self.assertEqual("ready", router.health()[0])
        self.assert_taken(connection)

    def test_names(self) -> None:
        """A rule is called as people like; messages, metrics and the log have its name as it is."""
        (port,) = free_ports(1)
        name = 'Edge "hooks" \\ 日本'
        router = self.start_router(rule(name, port, "/in", preprocessing={"steps": [{"select": "log.body.a EXISTS"}]}))
        self.assertEqual(200, self.ask(port, post(b'{"a":1}', "/in")).status)
        self.assertEqual(404, self.ask(port, post(b"{}", "/other")).status)
        (message,) = router.messages()
        full = f"edge-1-{name}-{name}"
        self.assertEqual(full, message["meta"]["connector"]["name"])
        self.assertIn(f"connector {full!r} at /in", router.log())
        shown = full.replace("\\", r"\\").replace('"', r"\"")
        text = ask_admin(router, "/metrics").body.decode()
        self.assertIn(f'webhookrx_messages_total{{source="{shown}"}} 1.0', text)
        self.assertIn(f'source="{shown}"', text[text.index("webhookrx_connector{") :].splitlines()[0])

    def test_config_map(self) -> None:
        """A link that is switched to another directory, as Kubernetes does, is a change."""
        one, two = free_ports(2)
        router = self.router()
        for name, port in (("first", one), ("second", two)):
            os.mkdir(router.path(name))
            write(router.path(f"{name}/rules.yaml"), rules_text([rule("hooks", port, "/in")]).encode())
        os.symlink("first", router.path("..data"))
        os.symlink("..data/rules.yaml", router.path("rules.yaml"))
        router.start()
        self.assertTrue(self.is_open(one))
        before = router.reloads()
        os.symlink("second", router.path("..new"))
        os.rename(router.path("..new"), router.path("..data"))
        router.wait_for_reload(before, "the switch is seen")
        self.assertEqual((False, True), (self.is_open(one), self.is_open(two)))

    def test_senders(self) -> None:
        """Data files about senders are taken when they come or change; one with a mistake can be mended in place."""
        (port,) = free_ports(1)
        router = self.router("--senders", "senders")
        os.mkdir(router.path("senders"))
        write(router.path("senders/acme.yaml"), sender("acme"))
        router.write(rule("hooks", port, "/in", preprocessing={"classify": True}))
        router.start()
        connection = self.connect(port)
        for name, text, outcome in (
            ("acme", sender("acme", "Gadget"), "Reloaded: "),
            ("other", b"id: other\n", "Reload failed"),
            ("other", sender("other"), "Reloaded: "),
        ):
            outcomes = router.log().count(outcome)
            write(router.path("new"), text)
            os.rename(router.path("new"), router.path(f"senders/{name}.yaml"))
            router.wait_for(outcome, outcomes + 1)
        self.assertRegex(
            router.log(), r"Reload failed, the old settings stay: .*senders/other\.yaml:1:1: .*\[missing-key\]"
        )
        for name in ("acme", "other"):
            connection.send(post(b'{"x":1}', headers=[f"X-{name}: 1"]))
            answer = connection.answer()
            self.assertEqual(200, answer and answer.status)
        self.assertEqual(
            [("acme", "Gadget"), ("other", "Widget")],
            [(message["meta"].get("vendor"), message["meta"].get("product")) for message in router.messages()],
        )


def sender(name: str, product: str = "Widget") -> bytes:
    """Return the data file of a kind of sender."""
    return f'id: {name}\nvendor: {name}\nproduct: {product}\nwhen: {{headers: {{x-{name}: "*"}}}}\n'.encode()
