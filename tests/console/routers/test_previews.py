"""
Tests for L{webhookrx.console.routers.previews} and its routes.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
from twisted.internet.defer import Deferred, succeed

from tests.console.routers.test_port import MARA, PortCase, body_of
from webhookrx.console.api.principal import Principal
from webhookrx.console.api.problems import ApiProblem
from webhookrx.console.api.route import ApiCall
from webhookrx.console.routers.preview_routes import PreviewRequest, files, preview
from webhookrx.console.routers.previews import MOST_WAITING, Previews, port_of
from webhookrx.console.rules.rulebook import Rulebook
from webhookrx.management.agent_protocol import CommandAnswer, GateState, SyncAnswer

RULE = "name: hooks\nselector: os = linux\nprotocol: HTTP\nport: 8080\n"
TLS = "key_file: /etc/webhookrx/tls/k.pem\ncert_file: /etc/webhookrx/tls/c.pem\n"


class PreviewsTests(PortCase):
    def setUp(self) -> None:
        super().setUp()
        self.rulebook = Rulebook(self.store)
        self.done(self.rulebook.start())
        self.console: Any = SimpleNamespace(fleet=self.fleet, rulebook=self.rulebook, reactor=self.clock)
        self.console.previews = Previews(self.console, lambda work: succeed(work()))

    def save(self, text: str = RULE, **named: Any) -> None:  # type: ignore[override]
        self.done(self.rulebook.save(text, MARA, **({"name": None, "generation": None, "as_written": True} | named)))

    def call(self, **request: Any) -> ApiCall:
        return ApiCall(self.console, Principal("mara", "editor"), body=PreviewRequest(**request))

    def preview(self, **request: Any) -> Any:
        return self.done(preview(self.call(**request)))

    def code(self, **request: Any) -> str:
        failed = self.failureResultOf(Deferred.fromCoroutine(preview(self.call(**request))), ApiProblem)
        code: str = failed.value.kind.code
        return code

    def test_paths_that_take_long(self) -> None:
        """Paths that would take seconds to compile are refused at the one that is too much."""
        paths = [f"/{number}/[a-z]{{1,900}}" for number in range(1_900)]
        found = self.preview(rule={"name": "hooks", "protocol": "HTTP", "port": 8080, "paths": paths})
        (finding,) = found.findings
        self.assertEqual(("paths-too-large", ("paths", 276)), (finding.code, finding.path))

    def test_what_saving_would_do(self) -> None:
        """It says which routers match under which name, why others do not, and what changes; nothing is saved."""
        self.router("fra-1", os="linux")
        self.router("ber-1", os="freebsd")
        found = self.preview(rule={"name": "hooks", "selector": "os = linux", "protocol": "HTTP", "port": 8080})
        self.assertEqual(
            [(each.router, each.connector, each.port) for each in found.matching],
            [("fra-1", "fra-1-hooks-hooks", 8080)],
        )
        self.assertEqual([each.router for each in found.why_not], ["ber-1"])
        self.assertEqual((found.routers, found.matched, found.added, found.removed), (2, 1, 1, 0))
        self.assertEqual(self.rulebook.saved.rules, {})

    def test_it_takes_the_place_of_a_saved_rule(self) -> None:
        """Beside the rule that it replaces it has no clash; a new one of that name and port has."""
        self.router("fra-1", os="linux")
        self.save()
        text = RULE.replace("os = linux", "os = freebsd")
        self.assertEqual(self.preview(yaml=text, replaces="hooks").removed, 1)
        self.assertEqual(self.preview(yaml=RULE, replaces="hooks").clashing, 0)
        again = self.preview(yaml=RULE)
        self.assertGreater(again.clashing, 0)
        self.assertIn("duplicate-name", [each.code for each in again.findings])
        self.assertEqual(self.code(yaml=RULE, replaces="nothing"), "not_found")

    def test_findings_have_places(self) -> None:
        """What is wrong is found at its line, also what only routers can tell."""
        self.router("ber-1", os="freebsd")
        (found,) = self.preview(yaml=RULE).findings
        self.assertEqual((found.code, found.line, found.path), ("selector-matches-none", 2, ("selector",)))
        (found,) = self.preview(yaml=RULE.replace("8080", "no")).findings
        self.assertEqual((found.line, found.path), (4, ("port",)))

    def test_either_or(self) -> None:
        """A request has the rule once."""
        self.assertEqual(self.code(), "bad_call")
        self.assertEqual(self.code(rule={}, yaml=""), "bad_call")

    def test_it_follows_rules_and_routers(self) -> None:
        """What is remembered of one preview is not used for the next once rules or routers are others."""
        fra = self.router("fra-1", os="linux")
        self.assertEqual(self.preview(yaml=RULE).clashing, 0)
        self.save(RULE.replace("hooks", "other"))
        self.assertEqual(self.preview(yaml=RULE).clashing, 1)
        fra.report(gate=GateState(reasons=("missing",), paths=("/etc/webhookrx/tls/k.pem",)))
        self.assertEqual([each.paths for each in self.preview(yaml=RULE).gates], [("/etc/webhookrx/tls/k.pem",)])
        self.router("fra-2", os="linux")
        self.assertEqual(self.preview(yaml=RULE).matched, 2)

    def test_a_port_of_a_source_is_taken(self) -> None:
        """A port that a source of the router itself has clashes."""
        self.router("fra-1", os="linux", endpoints=("tcp:8080:interface=127.0.0.1", "unix:/run/x"))
        found = self.preview(yaml=RULE)
        self.assertEqual([(each.router, each.kind) for each in found.clashes], [("fra-1", "port")])

    def test_ports_of_endpoints(self) -> None:
        """Only endpoints of TCP have a port."""
        for text, port in (("tcp:80", 80), ("tcp6:port=81", 81), ("unix:90", 0), ("tcp:x", 0), ("tcp:8\\", 0), ("", 0)):
            self.assertEqual(port_of(text), port, text)

    def files(self) -> Deferred[Any]:
        text = RULE.replace("HTTP", "HTTPS") + TLS
        return Deferred.fromCoroutine(files(self.call(yaml=text)))

    def test_routers_are_asked_about_files(self) -> None:
        """Routers that match say how the files are, with the certificate judged beside its key; none else is asked."""
        fra, ber = self.router("fra-1", os="linux"), self.router("ber-1", os="freebsd")
        for each in (fra, ber):
            each.report()
        asked = self.files()
        self.assertEqual(msgspec.json.decode(body_of(ber.sync()), type=SyncAnswer).commands, ())
        (command,) = msgspec.json.decode(body_of(fra.sync()), type=SyncAnswer).commands
        self.assertEqual(command.paths[0], "/etc/webhookrx/tls/c.pem")
        self.assertEqual(command.key, "/etc/webhookrx/tls/k.pem")
        self.assertNoResult(asked)
        states = {"/etc/webhookrx/tls/c.pem": "missing", "/etc/webhookrx/tls/k.pem": "present"}
        fra.report(base=1, answers=(CommandAnswer(id=command.id, files=states),))  # type: ignore[arg-type]
        found = self.successResultOf(asked)
        self.assertEqual(
            [(each.router, each.path, each.state) for each in found.files],
            [("fra-1", "/etc/webhookrx/tls/c.pem", "missing")],
        )
        self.assertEqual(
            [(each.router, each.paths) for each in found.gates], [("fra-1", ("/etc/webhookrx/tls/c.pem",))]
        )

    def test_what_is_not_answered_is_unknown(self) -> None:
        """After five seconds the files of routers that have not answered are unknown, and of those away at once."""
        self.router("fra-1", os="linux").report()
        asked = self.files()
        self.clock.advance(4.9)
        self.assertNoResult(asked)
        self.clock.advance(0.1)
        self.assertEqual({each.state for each in self.successResultOf(asked).files}, {"unknown"})
        self.wall += 3_600
        self.assertEqual({each.state for each in self.successResultOf(self.files()).files}, {"unknown"})

    def test_few_ask_at_once(self) -> None:
        """Above a number of calls that wait for routers, one more is refused, until one of them has ended."""
        self.router("fra-1", os="linux").report()
        waiting = [self.files() for _ in range(MOST_WAITING)]
        refused = self.failureResultOf(self.files(), ApiProblem).value
        self.assertEqual((refused.kind.code, refused.headers), ("busy", (("Retry-After", "5"),)))
        self.clock.advance(5)
        for each in waiting:
            self.successResultOf(each)
        self.assertNoResult(self.files())

    def test_few_previews_wait(self) -> None:
        """One preview is made at a time; above a number that wait, one more is refused."""
        threads: list[tuple[Deferred[Any], Any]] = []

        def in_thread(work: Any) -> Deferred[Any]:
            threads.append((Deferred(), work))
            return threads[-1][0]

        self.console.previews = Previews(self.console, in_thread)
        waiting = [Deferred.fromCoroutine(preview(self.call(yaml=RULE))) for _ in range(MOST_WAITING + 1)]
        self.assertEqual(len(threads), 1)
        self.assertEqual(self.code(yaml=RULE), "busy")
        for each in waiting:
            done, work = threads.pop()
            done.callback(work())
            self.successResultOf(each)
