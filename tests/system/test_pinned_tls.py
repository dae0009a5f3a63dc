"""
Fetching keys over TLS: a server that is the host is heard, and nobody else.
"""

from __future__ import annotations

import os
from typing import Any

import trustme
from twisted.internet import reactor
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import SSL4ServerEndpoint, TCP4ClientEndpoint, wrapClientTLS
from twisted.internet.ssl import PrivateCertificate
from twisted.trial.unittest import TestCase
from twisted.web.resource import Resource
from twisted.web.server import Site

from webhookrx.observers.client_tls import ClientTLS, make_creator
from webhookrx.service.pinned_client import NotFetched, PinnedClient

_HOST = "sns.us-east-1.amazonaws.com"
_OUTSIDE = "93.184.216.34"


class _Certificates(Resource):
    """Has one certificate, at any path, and redirects to another host."""

    isLeaf = True

    def render_GET(self, request: Any) -> bytes:
        """Answer."""
        if request.path == b"/moved.pem":
            request.redirect(b"https://127.0.0.1/")
            return b""
        self.host = request.getHeader("host")
        return b"-----BEGIN CERTIFICATE-----"


class _Reactor:
    """The reactor, with another resolver: every host has one address outside."""

    def __init__(self) -> None:
        self.nameResolver = self

    def __getattr__(self, name: str) -> Any:
        return getattr(reactor, name)

    def resolveHostName(self, receiver: Any, hostName: str, portNumber: int = 0, *_: Any) -> Any:
        """Find the address."""
        receiver.resolutionBegan(self)
        receiver.addressResolved(IPv4Address("TCP", _OUTSIDE, portNumber))
        receiver.resolutionComplete()
        return self


class PinnedTlsTests(TestCase):
    """A server on loopback, in place of the host's address."""

    async def _serve(self, authority: trustme.CA, host: str) -> int:
        issued = authority.issue_cert(host)
        pem = issued.private_key_pem.bytes() + issued.cert_chain_pems[0].bytes()
        certificate = PrivateCertificate.loadPEM(pem)
        self.resource = _Certificates()
        endpoint = SSL4ServerEndpoint(reactor, 0, certificate.options(), interface="127.0.0.1")
        port = await endpoint.listen(Site(self.resource))
        self.addCleanup(port.stopListening)
        return int(port.getHost().port)

    def _get(self, authority: trustme.CA, port: int, path: str = "/a.pem") -> Deferred[bytes]:
        ca_file = os.path.abspath(self.mktemp())
        authority.cert_pem.write_to_path(ca_file)

        def endpoint(host: str, address: str) -> Any:
            self.assertEqual(_OUTSIDE, address)
            return wrapClientTLS(make_creator(host, ClientTLS(ca_file)), TCP4ClientEndpoint(reactor, "127.0.0.1", port))

        return PinnedClient(_Reactor(), endpoint).get(f"https://{_HOST}{path}")

    async def test_fetched(self) -> None:
        """The host's own server is heard, under its name."""
        authority = trustme.CA()
        port = await self._serve(authority, _HOST)
        self.assertEqual(b"-----BEGIN CERTIFICATE-----", await self._get(authority, port))
        self.assertEqual(_HOST, self.resource.host)

    async def test_others(self) -> None:
        """A server with another name, or by another authority, and a redirect are not."""
        authority = trustme.CA()
        port = await self._serve(authority, _HOST)
        await self.assertFailure(self._get(trustme.CA(), port), NotFetched)
        await self.assertFailure(self._get(authority, port, "/moved.pem"), NotFetched)
        other = await self._serve(authority, "sns.us-east-1.amazonaws.com.evil.example")
        await self.assertFailure(self._get(authority, other), NotFetched)
