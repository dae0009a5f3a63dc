"""
Tests for L{webhookrx.console.routers.routes}.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec

from tests.console.routers import test_port
from webhookrx.console.api.principal import Principal
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.api.route import ApiCall
from webhookrx.console.routers import routes
from webhookrx.console.routers.routes import NewEnrolment, RouterListQuery, RouterPatch
from webhookrx.management.agent_protocol import CheckFilesCommand
from webhookrx.router.rules.rule import Rule


class RouteTests(test_port.PortCase):
    def setUp(self) -> None:
        super().setUp()
        self.forgotten: list[str] = []
        self.rules_saved: dict[str, Any] = {}
        self.last: dict[str, dict[str, float]] = {}

    def call(self, **parts: Any) -> ApiCall:
        counts = SimpleNamespace(
            forget=self.forgotten.append,
            rate=lambda guid: 2.5 if guid in self.last else None,
            last_messages=lambda guid: self.last.get(guid, {}),
        )
        console = SimpleNamespace(
            reactor=self.clock,
            fleet=self.fleet,
            counts=counts,
            settings=SimpleNamespace(routers_url="https://console.example:9443"),
            rulebook=SimpleNamespace(saved=SimpleNamespace(rules=self.rules_saved)),
        )
        return ApiCall(console, Principal("mara", "admin"), **parts)

    def listed(self, **fields: Any) -> routes.ShownRouters:
        found: routes.ShownRouters = self.done(routes.list_routers(self.call(query=RouterListQuery(**fields))))
        return found

    def fails(self, coroutine: Any) -> str:
        failed = self.failureResultOf(test_port.Deferred.fromCoroutine(coroutine), ApiProblem)
        kind: str = failed.value.kind.code
        return kind

    def test_routers_are_found_by_queries(self) -> None:
        """A query finds routers by what selectors see, with the labels of the console over their own."""
        self.router("fra-1", os="linux", labels={"site": "lab"})
        self.router("ber-1", os="freebsd")
        fra = self.known_by_name("fra-1")
        self.done(self.fleet.change(test_port.MARA, fra, labels={"site": "fra"}))
        listed = self.done(routes.list_routers(self.call(query=RouterListQuery("label.site = fra"))))
        self.assertEqual(
            [(each.name, each.labels, each.own_labels) for each in listed.routers],
            [("fra-1", {"site": "fra"}, {"site": "lab"})],
        )
        self.assertEqual(len(self.done(routes.list_routers(self.call(query=RouterListQuery()))).routers), 2)
        self.assertEqual(self.fails(routes.list_routers(self.call(query=RouterListQuery("= =")))), "invalid")

    def test_one_that_waits_is_approved_by_its_guid(self) -> None:
        """A router that waits has no name that counts; by its guid it is given another, and approved."""
        self.router("fra-1")
        second = self.router("fra-1")
        path = {"name": second.guid}
        body = RouterPatch(state="approved")
        self.assertEqual(self.fails(routes.change_router(self.call(path=path, body=body))), "conflict")
        body = RouterPatch(name="fra-2", state="approved")
        shown = self.done(routes.change_router(self.call(path=path, body=body)))
        self.assertEqual((shown.name, shown.state), ("fra-2", "approved"))
        self.assertEqual(self.done(routes.show_router(self.call(path={"name": "fra-2"}))).guid, second.guid)

    def test_bad_names_and_labels_are_refused(self) -> None:
        """What a router can't be called, or have as a label, changes nothing."""
        self.router("fra-1")
        for patch in (RouterPatch(name="a b"), RouterPatch(labels={"": "x"}), RouterPatch(labels={"x": "a b"})):
            self.assertEqual(self.fails(routes.change_router(self.call(path={"name": "fra-1"}, body=patch))), "invalid")

    def test_a_token_is_shown_once(self) -> None:
        """The answer to a new enrolment has its token; lists have not."""
        made = self.done(routes.make_enrolment(self.call(body=NewEnrolment(approve="auto", labels={"site": "fra"}))))
        self.assertEqual("https://console.example:9443", made.console)
        self.assertEqual(self.enrol(token=made.token).responseCode, 200)
        self.assertNotIn(made.token.split(".")[2], repr(made))
        self.done(routes.make_enrolment(self.call(body=NewEnrolment())))
        listed = self.done(routes.list_enrolments(self.call())).enrolments
        self.assertEqual([each.approve for each in listed], ["manual"])
        self.done(routes.delete_enrolment(self.call(path={"id": listed[0].id})))
        self.assertEqual(self.fails(routes.delete_enrolment(self.call(path={"id": listed[0].id}))), "not_found")

    def test_a_router_that_is_away_does_not_reload(self) -> None:
        """A reload that no router answers fails after its time, and unknown routers are not found."""
        self.router("fra-1")
        asked = test_port.Deferred.fromCoroutine(routes.reload_router(self.call(path={"name": "fra-1"})))
        self.clock.advance(30)
        self.assertEqual(self.failureResultOf(asked, ApiProblem).value.kind.code, "busy")
        self.assertEqual(self.fails(routes.show_connectors(self.call(path={"name": "nobody"}))), "not_found")

    def test_a_forgotten_router_is_gone(self) -> None:
        """A router that was deleted is found no more, and its name is free."""
        router = self.router("fra-1")
        self.done(routes.delete_router(self.call(path={"name": "fra-1"})))
        self.assertEqual(self.forgotten, [router.guid])
        self.assertEqual(test_port.code_of(router.sync()), (403, "disabled"))
        self.assertEqual(self.known(self.router("fra-1")).state, "approved")

    def test_a_page_of_a_list(self) -> None:
        """A list is cut after it was counted: how many do how, and when the last message came, is of all that match."""
        for name in ("c", "a", "b"):
            self.router(name)
        waiting = self.router("d", approve="manual")
        self.done(self.fleet.change(test_port.MARA, self.known_by_name("c"), state="disabled"))
        self.last = {self.known_by_name("b").guid: {"x": 5.0, "y": 7.0}}
        page = self.listed(offset=1, count=2)
        self.assertEqual(["b", "c"], [each.name for each in page.routers])
        self.assertEqual((4, 7.0), (page.matched, page.last_message))
        self.assertEqual({"pending": 1, "disabled": 1, "none": 2}, page.standings)
        self.assertEqual((2.5, 7.0), (page.routers[0].messages_per_second, page.routers[0].last_message))
        (only,) = self.listed(standing="pending").routers
        self.assertEqual((waiting.guid, "pending"), (only.guid, only.standing))
        self.assertEqual(2, self.listed(standing="disabled", query="name = c OR name = a").matched)

    def test_how_a_router_does(self) -> None:
        """In a word, what needs a person first: one that is away is not said to be well."""
        router = self.router("fra-1")
        router.report(applied=test_port.AppliedState(status="BLOCKED", error="k is missing"))

        def standing() -> str:
            return self.listed().routers[0].standing

        self.assertEqual("blocked", standing())
        for instance in ("two", "one"):
            router.report(instance, number=1)
        self.assertEqual("duplicate", standing())
        self.wall += 301
        self.assertEqual("away", standing())
        self.assertIsNone(self.listed().routers[0].messages_per_second)

    def test_approved_unheard(self) -> None:
        """One that was approved and has not come since has had no rules yet; it can't be away."""
        router = self.router("fra-1", approve="manual")
        self.assertEqual("pending", self.listed().routers[0].standing)
        self.done(self.fleet.change(test_port.MARA, self.known(router), state="approved"))
        self.wall += 301
        self.assertEqual("none", self.listed().routers[0].standing)

    def test_details(self) -> None:
        """One router has its rules, the bundle that it is to have beside the one that it runs, and its certificates."""
        router = self.router("fra-1", labels={"site": "lab"}, endpoints=("tcp:80",), os="linux")
        self.save(("hooks", "os = linux"), ("others", "os = plan9"))
        self.done(self.fleet.change(test_port.MARA, self.known(router), labels={"site": "fra"}))
        envelope = router.bundle()
        shown = self.done(routes.show_router(self.call(path={"name": "fra-1"})))
        self.assertEqual(({"site": "fra"}, {"site": "lab"}), (shown.console_labels, shown.own_labels))
        self.assertEqual((("hooks",), ("tcp:80",)), (shown.rules, shown.endpoints))
        self.assertEqual((test_port.digest(envelope), ""), (shown.newest_digest, shown.digest))
        self.assertGreater(shown.newest_revision, shown.revision)
        self.assertEqual(list(self.known(router).certificates), [each.fingerprint for each in shown.certificates])
        waiting = self.router("d", approve="manual")
        shown = self.done(routes.show_router(self.call(path={"name": waiting.guid})))
        self.assertEqual((0, "", ()), (shown.newest_revision, shown.newest_digest, shown.rules))

    def test_files(self) -> None:
        """A router is asked for the files of its rules, each certificate with its key; a container's volume is said."""
        router = self.router("fra-1")
        self.save(("a", ""), ("b", ""), ("gone", ""))
        for name, key, more in (("a", "/etc/webhookrx/tls/k", None), ("b", "/srv/my tls/k", "/srv/ca")):
            rule = Rule(name=name, protocol="HTTPS", port=443, key_file=key, cert_file=f"{key}.pem", ca_file=more)
            self.rules_saved[name] = SimpleNamespace(rule=rule)
        asked = test_port.Deferred.fromCoroutine(routes.ask_files(self.call(path={"name": "fra-1"})))
        commands = msgspec.json.decode(test_port.body_of(router.sync()), type=test_port.SyncAnswer).commands
        questions = [(each.paths, each.key) for each in commands if isinstance(each, CheckFilesCommand)]
        self.assertEqual(
            [
                (("/etc/webhookrx/tls/k.pem", "/etc/webhookrx/tls/k"), "/etc/webhookrx/tls/k"),
                (("/srv/my tls/k.pem", "/srv/my tls/k"), "/srv/my tls/k"),
                (("/srv/ca",), ""),
            ],
            questions,
        )
        answers = [
            test_port.CommandAnswer(id=commands[0].id, files=dict.fromkeys(commands[0].paths, "present")),
            test_port.CommandAnswer(id=commands[1].id, files={"/srv/my tls/k": "missing"}),
        ]
        router.report(answers=tuple(answers))
        self.assertNoResult(asked)
        self.clock.advance(5)
        files = {each.path: (each.state, each.rules, each.volume) for each in self.successResultOf(asked).files}
        volume = "--volume '/srv/my tls:/srv/my tls:ro'"
        self.assertEqual(
            {
                "/etc/webhookrx/tls/k": ("present", ("a",), ""),
                "/etc/webhookrx/tls/k.pem": ("present", ("a",), ""),
                "/srv/ca": ("unknown", ("b",), "--volume /srv:/srv:ro"),
                "/srv/my tls/k": ("missing", ("b",), volume),
                "/srv/my tls/k.pem": ("unknown", ("b",), volume),
            },
            files,
        )
        self.wall += 61
        away = self.done(routes.ask_files(self.call(path={"name": "fra-1"})))
        self.assertEqual({"unknown"}, {each.state for each in away.files})
