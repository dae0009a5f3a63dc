"""
Tests for L{webhookrx.console.routers.routes}.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.console.routers import test_port
from webhookrx.console.api.principal import Principal
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.api.route import ApiCall
from webhookrx.console.routers import routes
from webhookrx.console.routers.routes import NewEnrolment, RouterPatch, RouterQuery


class RouteTests(test_port.PortCase):
    def setUp(self) -> None:
        super().setUp()
        self.forgotten: list[str] = []

    def call(self, **parts: Any) -> ApiCall:
        return ApiCall(
            SimpleNamespace(reactor=self.clock, fleet=self.fleet, counts=SimpleNamespace(forget=self.forgotten.append)),
            Principal("mara", "admin"),
            **parts,
        )

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
        listed = self.done(routes.list_routers(self.call(query=RouterQuery("label.site = fra"))))
        self.assertEqual(
            [(each.name, each.labels, each.own_labels) for each in listed.routers],
            [("fra-1", {"site": "fra"}, {"site": "lab"})],
        )
        self.assertEqual(len(self.done(routes.list_routers(self.call(query=RouterQuery()))).routers), 2)
        self.assertEqual(self.fails(routes.list_routers(self.call(query=RouterQuery("= =")))), "invalid")

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
