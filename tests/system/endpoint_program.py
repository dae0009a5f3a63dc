"""
A process that answers on one endpoint, for tests that must stand outside it: C{systemd:} reads its sockets only once.

Arguments: the endpoint string, then key file and certificate file for TLS. It says C{ready} when it listens.
"""

from __future__ import annotations

import sys

from twisted.internet import reactor

from tests.system.responder import ResponderFactory
from webhookrx.settings import TLS, Listener
from webhookrx.transport.endpoints import build_endpoint
from webhookrx.transport.listener_service import ListenerService
from webhookrx.transport.server_context import ServerConnectionCreator


def main(inner: str, *pair: str) -> None:
    tls = TLS(*pair) if pair else None
    creator = ServerConnectionCreator(tls) if tls else None
    endpoint = build_endpoint(reactor, Listener(inner, inner, tls=tls), creator)
    ListenerService(endpoint, ResponderFactory(), inner).startService()
    print("ready", flush=True)
    reactor.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
