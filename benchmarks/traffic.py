"""
What is sent: prepared requests, each with an id, signatures and a body that no other has.

Constant requests would flatter every cache, so none of the fourteen headers that a code host sends is left out, those
that differ from delivery to delivery differ here, and there are some thousand requests. The kind C{recorded} varies all
of it: senders, headers, bodies with and without escapes, queries.
"""

from __future__ import annotations

import hmac
import json
import os
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from benchmarks.recorded import recorded_body, recorded_headers, recorded_path

COUNT = 4096
"""Requests of most kinds: more than a cache may hold that only a benchmark fills."""

LARGE_COUNT = 1024
"""Requests with large bodies."""

PLAIN_SIZE = 311
"""Bytes of a body of the kind C{plain}."""

LARGE_SIZE = 8 * 1024
"""Bytes of the large bodies."""

TOKEN = "c2VjcmV0LWZvci1iZW5jaG1hcmtz"

SECRET = "a-secret-for-benchmarks"
"""What requests of the kind C{signed} are signed with."""

PATTERNS = tuple(f"/hooks/{number:04}/(?P<HOST>[^/]+)" for number in range(1000))
"""A thousand path patterns; requests of the kind C{hooks} match the last."""

GROUP_PATTERNS = tuple(f"/teams/team-{number:02}/(?P<app>[^/]+)/(?P<HOST>[^/]+)" for number in range(20))
"""Twenty with two groups each; requests of the kind C{forwarded} match each as often."""


@dataclass(frozen=True)
class Traffic:
    """
    Requests of one kind.

    @ivar requests: whole requests, head and body.
    @ivar bodies: their bodies as text.
    """

    kind: str
    requests: tuple[bytes, ...]
    bodies: frozenset[str]

    def write(self, directory: str) -> str:
        """Write the requests where C{replay.lua} can read them, and return the path."""
        path = os.path.join(directory, f"{self.kind}.requests")
        if not os.path.exists(path):
            with open(path, "wb") as file:
                for request in self.requests:
                    file.write(b"%d\n%b" % (len(request), request))
        return path


def plain_body(number: int, chance: random.Random) -> bytes:
    """Return what an application would log, in exactly L{PLAIN_SIZE} bytes."""
    fields = {
        "time": f"2026-11-20T10:{number % 60:02}:{number * 7 % 60:02}Z",
        "level": chance.choice(("info", "warn", "error")),
        "service": "checkout",
        "host": f"web-{number % 32:02}",
        "message": "",
        "user": f"u{chance.randrange(10**6)}",
        "amount": chance.randrange(10**5) / 100,
        "ok": chance.random() < 0.9,
        "tags": ["payments", "eu"],
        "trace": {"id": str(uuid.UUID(int=chance.getrandbits(128))), "span": number},
    }
    text = f"payment {number:06} was accepted, as it should be, by the bank of the customer, after "
    room = PLAIN_SIZE - len(json.dumps(fields, separators=(",", ":")))
    fields["message"] = (text + "a while " * 10)[:room]
    return json.dumps(fields, separators=(",", ":")).encode()


def nested_body(number: int, chance: random.Random) -> bytes:
    """Return what a code host posts for a push: objects in objects, and a list of objects, in L{LARGE_SIZE} bytes."""

    def person() -> dict[str, Any]:
        name = f"user-{chance.randrange(10**6)}"
        return {"name": name, "email": f"{name}@example.com", "id": chance.randrange(10**8), "site_admin": False}

    def commit() -> dict[str, Any]:
        sha = f"{chance.getrandbits(160):040x}"
        return {
            "id": sha,
            "tree_id": f"{chance.getrandbits(160):040x}",
            "distinct": True,
            "message": f"Repair the thing that broke in {sha[:8]}\n\nIt was broken. Now it isn't, says “{sha[8:20]}”.",
            "timestamp": "2026-11-20T10:00:00+01:00",
            "url": f"https://example.com/acme/shop/commit/{sha}",
            "author": person(),
            "committer": person(),
            "added": [],
            "removed": [],
            "modified": [f"src/module_{chance.randrange(100)}.py", "docs/changes.md"],
        }

    repository = {
        "id": 35129377,
        "full_name": "acme/shop",
        "private": False,
        "owner": person(),
        **{f"{what}_url": f"https://api.example.com/repos/acme/shop/{what}{{/sha}}" for what in _URLS},
        "permissions": {"admin": False, "push": True, "pull": True},
        "license": None,
        "watchers": number,
    }
    document: dict[str, Any] = {
        "ref": "refs/heads/main",
        "before": f"{chance.getrandbits(160):040x}",
        "after": f"{chance.getrandbits(160):040x}",
        "repository": repository,
        "pusher": person(),
        "sender": person(),
        "created": False,
        "forced": False,
        "compare": f"https://example.com/acme/shop/compare/{number}",
        "commits": [commit()],
    }
    while len(_compact(document)) < LARGE_SIZE - 1000:
        document["commits"].append(commit())
    return _filled(document, "description")


_URLS = (
    "keys", "teams", "hooks", "events", "branches", "tags", "blobs", "statuses", "languages", "contributors",
    "subscribers", "commits", "comments", "contents", "merges", "archive", "downloads", "issues", "pulls", "milestones",
)  # fmt: skip


def flat_body(number: int, chance: random.Random) -> bytes:
    """Return long texts and long lists right at the top, in L{LARGE_SIZE} bytes."""
    words = ("connection", "refused", "by", "peer", "after", "retry", "“later”", "on\tline", "C:\\temp", "ok")
    return _filled(
        {
            "id": str(uuid.UUID(int=chance.getrandbits(128))),
            "number": number,
            "text": " ".join(chance.choices(words, k=500)),
            "stack": [f"File /srv/app/module_{chance.randrange(1000)}.py, line {line}" for line in range(50)],
            "samples": [chance.randrange(10**6) for _ in range(230)],
            "ratios": [chance.randrange(10**6) / 10**4 for _ in range(80)],
        },
        "rest",
    )


def _filled(document: dict[str, Any], name: str) -> bytes:
    """Return a document as JSON, with a text added that brings it to L{LARGE_SIZE} bytes."""
    document[name] = ""
    document[name] = "x" * (LARGE_SIZE - len(_compact(document)))
    return _compact(document)


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def code_host_headers(number: int, chance: random.Random) -> tuple[str, ...]:
    """Return what a code host sends beside what every client sends, with the ids and signatures of one delivery."""
    return (
        "Accept: */*",
        "Accept-Encoding: gzip, deflate",
        "User-Agent: GitHub-Hookshot/044aadd",
        f"X-GitHub-Delivery: {uuid.UUID(int=chance.getrandbits(128))}",
        "X-GitHub-Event: push",
        "X-GitHub-Hook-ID: 292430182",
        "X-GitHub-Hook-Installation-Target-ID: 79929171",
        "X-GitHub-Hook-Installation-Target-Type: repository",
        f"X-Hub-Signature: sha1={chance.getrandbits(160):040x}",
        f"X-Hub-Signature-256: sha256={chance.getrandbits(256):064x}",
        "Content-Type: application/json",
    )


def forwarded_headers(number: int, chance: random.Random) -> tuple[str, ...]:
    """Return the same with a token, and what a proxy adds."""
    return (
        *code_host_headers(number, chance),
        f"Authorization: Bearer {TOKEN}",
        f"X-Forwarded-For: 198.51.100.7, 203.0.113.{number % 250 + 1}",
    )


def signature(body: bytes) -> str:
    """Return the header by which a code host signs a body."""
    return f"X-Hub-Signature-256: sha256={hmac.new(SECRET.encode(), body, 'sha256').hexdigest()}"


@dataclass(frozen=True)
class _Kind:
    body: Callable[[int, random.Random], bytes] = plain_body
    path: Callable[[int], str] = lambda number: "/events"
    headers: Callable[[int, random.Random], tuple[str, ...]] = code_host_headers
    connection: str = "keep-alive"
    count: int = COUNT
    signed: bool = False


KINDS = {
    "plain": _Kind(),
    "signed": _Kind(signed=True),
    "signed8k": _Kind(body=nested_body, count=LARGE_COUNT, signed=True),
    "closing": _Kind(connection="close"),
    "nested8k": _Kind(body=nested_body, count=LARGE_COUNT),
    "flat8k": _Kind(body=flat_body, count=LARGE_COUNT),
    "recorded": _Kind(body=recorded_body, path=recorded_path, headers=recorded_headers),
    "hooks": _Kind(path=lambda number: f"/hooks/0999/web-{number}"),
    "forwarded": _Kind(
        path=lambda number: f"/teams/team-{number % 20:02}/shop/web-{number}", headers=forwarded_headers
    ),
}
"""Every kind of traffic by name."""


@cache
def prepare(kind: str) -> Traffic:
    """Make the requests of one of L{KINDS}; the same ones in every run."""
    chance = random.Random(kind)
    recipe = KINDS[kind]
    requests, bodies = [], []
    for number in range(recipe.count):
        body = recipe.body(number, chance)
        bodies.append(body.decode())
        headers = recipe.headers(number, chance)
        if recipe.signed:
            headers = tuple(signature(body) if each.startswith("X-Hub-Signature-256") else each for each in headers)
        head = "\r\n".join(
            (
                f"POST {recipe.path(number)} HTTP/1.1",
                "Host: logs.example.com",
                f"Connection: {recipe.connection}",
                *headers,
                f"Content-Length: {len(body)}",
                "",
                "",
            )
        )
        requests.append(head.encode("latin-1") + body)
    return Traffic(kind, tuple(requests), frozenset(bodies))
