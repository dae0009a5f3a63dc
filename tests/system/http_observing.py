"""The http observer on sockets, for tests of it."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import tempfile
from collections.abc import Callable, Sequence
from http.client import HTTPConnection

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from tests.system.http_server import PostServer, RudeServer
from tests.system.receiver import PATIENCE, Receiver
from webhookrx.observers.http_stores.http import HTTPObserver, build_http
from webhookrx.testing import make_message


class ObserverCase(TestCase):
    """Makes servers and observers that are gone after the test."""

    timeout = 60

    def setUp(self) -> None:
        """Make a place for observers and servers."""
        self.observers: list[HTTPObserver] = []
        self.directory = tempfile.mkdtemp(prefix="webhookrx-http-")
        self.addCleanup(shutil.rmtree, self.directory)

    async def tearDown(self) -> None:
        """Close every connection, and wait until that is done: an observer does not wait."""
        for observer in self.observers:
            client = observer._client
            observer.close()
            if client is not None:
                await client._pool.closeCachedConnections()

    def serve(self, context: ssl.SSLContext | None = None, port: int = 0) -> PostServer:
        """Start a server."""
        server = PostServer(context, port)
        self.addCleanup(server.stop)
        return server

    def serve_rudely(
        self, behave: Callable[[socket.socket], object], context: ssl.SSLContext | None = None
    ) -> RudeServer:
        """Start one that behaves badly."""
        server = RudeServer(behave, context)
        self.addCleanup(server.stop)
        return server

    def open(self, server: PostServer | RudeServer, scheme: str = "http", **options: str) -> HTTPObserver:
        """Open an observer that posts to a server."""
        url = f"{scheme}://127.0.0.1:{server.port}/in?x=1"
        observer = build_http(f"http:{url}", (url,), options, "durable")
        observer.open()
        self.observers.append(observer)
        return observer


def store(observer: HTTPObserver, *texts: str) -> Deferred[Sequence[Exception | None] | None]:
    """Store messages, in a thread, as a lane does."""
    return deferToThread(observer.store, [observer.prepare(make_message(text)) for text in texts])


def texts(server: PostServer) -> list[str]:
    """Return the texts of what is stored."""
    return [json.loads(line)["MESSAGE"] for line in server.lines()]


def send(receiver: Receiver, body: bytes, target: str = "/events") -> int:
    """Post a message and return the status."""
    connection = HTTPConnection("127.0.0.1", receiver.port, timeout=PATIENCE)
    try:
        connection.request("POST", target, body)
        return connection.getresponse().status
    finally:
        connection.close()
