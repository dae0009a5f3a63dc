"""
The real program as a router with two workers whose connectors have guards: questions, signed deliveries, those that
come again, and bodies of several events.
"""

from __future__ import annotations

import json

from tests.system.receiver import Answer, post, wait_until
from tests.system.routers import Router, RouterCase, free_ports, put, rule
from tests.system.test_secrets import Sender
from tests.system.workers import ask_admin, serves, workers

SECRET = "number-0"
RECEIVED, DUPLICATE = b'{"status":"received"}', b'{"status":"received","duplicate":true}'
NOTIFICATIONS = {
    "value": [{"subscriptionId": str(number), "clientState": SECRET, "changeType": "created"} for number in range(3)],
    "validationTokens": [],
}


class RouterGuardTests(RouterCase):
    """
    A connector for GitHub, and one for Microsoft Graph.
    """

    def setUp(self) -> None:
        super().setUp()
        self.github, self.graph = free_ports(2)

    def running(self) -> Router:
        """Return the router, started."""
        router = self.router("--workers", "2", "--allow-plaintext-token")
        secrets = router.path("secrets")
        put(secrets, f"one = {SECRET}\n".encode())
        router.write(
            rule("github", self.github, "/in", sender="github", secrets_file=secrets, idempotency="1h"),
            rule("graph", self.graph, "/in", sender="microsoft-graph", secrets_file=secrets, split="yes"),
        )
        return router.start()

    def answers(self, router: Router, port: int, request: bytes) -> list[Answer]:
        """Send a request on connections to both workers, and return the answers."""
        both = set(workers(router))
        found, served = [], set[int]()
        # Which worker a connection comes to is for the kernel to choose.
        for _ in range(100):
            connection = self.connect(port)
            answer = connection.send(request).answer()
            assert answer is not None, "closed without an answer"
            found.append(answer)
            served |= {pid for pid in both if serves(pid, connection)}
            if served == both:
                break
        self.assertEqual(both, served)
        return found

    def counts(self, router: Router, line: str) -> None:
        """Wait until the metrics, in which all workers count, have a line."""
        wait_until(lambda: line in ask_admin(router, "/metrics").body.decode(), line)

    def test_deliveries(self) -> None:
        """A signed delivery is a message with who has sent it; at any worker it is known when it comes again."""
        router = self.running()
        signed = Sender(SECRET).request(b'{"a":1}').replace(b"\r\n\r\n", b"\r\nX-GitHub-Delivery: d-1\r\n\r\n", 1)
        answers = self.answers(router, self.github, signed)
        self.assertEqual({200}, {answer.status for answer in answers})
        self.assertEqual([RECEIVED] + [DUPLICATE] * (len(answers) - 1), [answer.body for answer in answers])
        forged = self.answers(router, self.github, signed.replace(b'"a":1', b'"a":2'))
        self.assertEqual({(401, "bad_signature")}, {(answer.status, answer.reason) for answer in forged})
        self.counts(router, f'webhookrx_duplicates_total{{source="edge-1-github-github"}} {len(answers) - 1}.0')
        (message,) = router.messages()
        sender = message["meta"]["sender"]
        self.assertEqual(
            ("github", "signature", "one", "d-1", {"a": 1}),
            (*(sender[name] for name in ("id", "verified", "secret", "delivery_id")), message["log"]["body"]),
        )

    def test_question(self) -> None:
        """A question gets its answer from any worker, and is no message."""
        router = self.running()
        answers = self.answers(
            router, self.graph, post(b"", "/in?validationToken=a%20b", headers=["Content-Type: text/plain"])
        )
        self.assertEqual({(200, b"a b")}, {(answer.status, answer.body) for answer in answers})
        self.assertEqual({"text/plain"}, {answer.headers["content-type"].partition(";")[0] for answer in answers})
        self.counts(
            router, f'webhookrx_handshakes_total{{kind="validation",source="edge-1-graph-graph"}} {len(answers)}.0'
        )
        self.assertEqual([], router.messages())

    def test_events(self) -> None:
        """Each event of a body is a message with its place in it; one answer is for all, and no secret is shown."""
        router = self.running()
        answers = self.answers(router, self.graph, post(json.dumps(NOTIFICATIONS).encode()))
        self.assertEqual({(200, RECEIVED)}, {(answer.status, answer.body) for answer in answers})
        wrong = json.dumps(NOTIFICATIONS).replace(SECRET, "number-1", 1).encode()
        self.assertEqual(401, self.ask(self.graph, post(wrong)).status)
        messages = router.messages()
        self.assertEqual(3 * len(answers), len(messages))
        found = [
            (each["meta"]["batch"]["index"], each["meta"]["batch"]["count"], each["log"]["body"]) for each in messages
        ]
        for number in range(3):
            event = {"subscriptionId": str(number), "clientState": "***", "changeType": "created"}
            self.assertEqual(len(answers), found.count((number + 1, 3, event)))
        self.assertEqual({("microsoft-graph", "token", "one")}, {_sender(each) for each in messages})
        self.assertNotIn(SECRET, json.dumps(messages) + router.log())


def _sender(message: dict[str, dict[str, dict[str, str]]]) -> tuple[str, ...]:
    sender = message["meta"]["sender"]
    return sender["id"], sender["verified"], sender["secret"]
