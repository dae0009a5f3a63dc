"""
Enrolment over real TLS, with a console of its own in this process.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from OpenSSL import SSL
from OpenSSL.crypto import X509, PKey
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, ensureDeferred
from twisted.internet.ssl import CertificateOptions
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site

from tests.system.certificates import FAR_AWAY, LONG_AGO, Authority, certificates_pem
from webhookrx.agent.enrolment import ConsoleAway, NotEnrolled, enrol, renew
from webhookrx.agent.joining import join_console
from webhookrx.agent.link import ConsoleLink, LinkFailed
from webhookrx.agent.router_keys import new_key
from webhookrx.agent.sync_loop import ask_by
from webhookrx.config.console_files import IDENTITY, RouterIdentity, read_console_files
from webhookrx.management.agent_body import read_body, write_body
from webhookrx.management.agent_protocol import (
    ENROL,
    EnrolAnswer,
    EnrolRequest,
    IssuedCertificate,
    RenewRequest,
    RouterFacts,
)
from webhookrx.management.bundle import public_text
from webhookrx.management.enrolment_token import EnrolmentToken

GUID = "0b0e4c9e-8a4f-4c57-9d5e-3d2f5b6a7c80"
SECRET = "s3cret-of-32-characters_abcdefgh"
SIGNING_KEY = public_text(Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key())


class AnyCertificate(CertificateOptions):
    """Asks for a client certificate, and takes none, too."""

    def __init__(self, authority: Authority, shown: Authority, names: Any = None) -> None:
        server = authority.issue("console", **({} if names is None else {"names": names}))
        super().__init__(
            privateKey=PKey.from_cryptography_key(server.key),
            certificate=X509.from_cryptography(server.certificate),
            extraCertChain=[X509.from_cryptography(shown.certificate)],
        )
        self.getContext().set_verify(SSL.VERIFY_PEER, lambda *_: True)


class Console(Resource):
    """
    Certifies whoever asks.

    @ivar requests: paths and bodies that came; C{shown} are the certificates of their clients.
    @ivar answer: status and body in place of a certificate.
    """

    isLeaf = True

    def __init__(self, authority: Authority) -> None:
        super().__init__()
        self.authority = authority
        self.requests: list[tuple[bytes, bytes]] = []
        self.shown: list[str] = []
        self.answer: tuple[int, bytes] | None = None
        self.waits = False

    def render(self, request: Any) -> Any:
        """Answer."""
        body = request.content.read()
        self.requests.append((request.path, body))
        peer = request.transport.getPeerCertificate()
        if peer is not None:
            self.shown.append(certificates_pem(peer.to_cryptography()).decode())
        if self.waits:
            return NOT_DONE_YET
        if request.method == b"GET":
            return b""
        if self.answer is not None:
            request.setResponseCode(self.answer[0])
            return self.answer[1]
        if request.path.endswith(b"/renew"):
            csr = read_body(body, RenewRequest).csr
            return write_body(IssuedCertificate(certificate=self.certify(csr), authorities=(self.pem,)))
        csr = read_body(body, EnrolRequest).csr
        return write_body(
            EnrolAnswer(
                certificate=self.certify(csr),
                authorities=(self.pem,),
                guid=GUID,
                name="fra-1",
                state="approved",
                signing_keys=(SIGNING_KEY,),
            )
        )

    @property
    def pem(self) -> str:
        """The CA certificate."""
        return certificates_pem(self.authority.certificate).decode()

    def certify(self, csr: str) -> str:
        """Return a certificate for the key of a request."""
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, GUID)]))
            .issuer_name(self.authority.certificate.subject)
            .public_key(x509.load_pem_x509_csr(csr.encode()).public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(LONG_AGO)
            .not_valid_after(FAR_AWAY)
        )
        return certificates_pem(builder.sign(self.authority.key, SHA256())).decode()


class EnrolmentTests(TestCase):
    """Tests for L{enrol} and L{renew}."""

    timeout = 60

    def setUp(self) -> None:
        """Start a console."""
        self.authority = Authority("console")
        self.console = Console(self.authority)
        self.listen(AnyCertificate(self.authority, self.authority))

    def listen(self, options: CertificateOptions) -> None:
        """Listen with other TLS."""
        port: Any = reactor.listenSSL(0, Site(self.console), options, interface="127.0.0.1")  # type: ignore[attr-defined]
        self.addCleanup(port.stopListening)
        self.url = f"https://127.0.0.1:{port.getHost().port}"

    def enrol(self, authority: Authority | None = None) -> Any:
        """Enrol, with a token that names that CA."""
        named = (authority or self.authority).certificate.public_bytes(Encoding.DER)
        token = EnrolmentToken("e1", SECRET, hashlib.sha256(named).hexdigest())
        facts = RouterFacts(hostname="fra-1")
        return ensureDeferred(enrol(reactor, self.url, token, "fra-1", facts, new_key()))

    async def refused(self, authority: Authority | None = None) -> str:
        """Enrol, and return why that was refused."""
        error = await self.assertFailure(self.enrol(authority), NotEnrolled)
        self.assertNotIn(SECRET, str(error))
        return str(error)

    async def test_enrolled(self) -> None:
        """A router has guid, name and keys of the console, and shows its certificate; so does a renewed one."""
        identity: RouterIdentity = (await self.enrol()).identity
        self.assertEqual((identity.guid, identity.name), (GUID, "fra-1"))
        self.assertEqual((identity.authorities, identity.signing_keys), ((self.console.pem,), (SIGNING_KEY,)))
        self.assertEqual(self.console.shown, [])
        link = ConsoleLink(reactor, self.url, identity.authorities, identity.certificate, identity.key)
        renewed = await renew(link, identity)
        await link.close()
        self.assertEqual(self.console.shown, [identity.certificate])
        self.assertNotEqual(renewed.key, identity.key)
        link = ConsoleLink(reactor, self.url, renewed.authorities, renewed.certificate, renewed.key)
        answer = await ask_by(link)(b"/agent/v1/sync")
        self.assertEqual(answer.status, 200)
        await link.close()
        self.assertEqual(self.console.shown[1], renewed.certificate)

    def keys(self) -> set[bytes]:
        """Return the public keys that were to be certified."""
        read = [read_body(body, EnrolRequest).csr for path, body in self.console.requests if path == ENROL]
        public = [x509.load_pem_x509_csr(csr.encode()).public_key() for csr in read]
        return {key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for key in public}

    def join(self, directory: str, at: int = -1) -> Any:
        """Join the console; the program ends before a call of the disk, or after all of them."""
        calls = iter(range(100))

        async def on_disk(call: Any, *args: Any) -> Any:
            if next(calls) == at:
                raise OSError("killed")
            return call(*args)

        digest = hashlib.sha256(self.authority.certificate.public_bytes(Encoding.DER)).hexdigest()
        token = EnrolmentToken("one", SECRET, digest)
        joining = join_console(reactor, on_disk, directory, self.url, token, RouterFacts(hostname="fra-1"))
        return ensureDeferred(joining)

    async def test_killed(self) -> None:
        """Wherever it ends, the token is sent after the key is kept; the next time it is the same key."""
        for at in range(4):
            self.console.requests.clear()
            directory = os.path.join(self.mktemp(), "console")
            os.makedirs(os.path.dirname(directory))
            await self.assertFailure(self.join(directory, at), OSError)
            self.assertEqual(len(self.console.requests), 0 if at < 2 else 1)
            identity = (await self.join(directory)).identity
            self.assertEqual(read_console_files(directory).identity, identity)
            self.assertEqual(len(self.keys()), 1)
            # One that was killed after the identity was kept is enrolled; the file of its key goes with the next.
            self.assertEqual(os.listdir(directory), [IDENTITY])

    async def test_lost_answer(self) -> None:
        """An answer that is lost is asked for again with the same key, and can be told from a refusal."""
        directory = self.mktemp()
        self.console.answer = (503, b"")
        await self.assertFailure(self.join(directory), ConsoleAway)
        self.console.answer = None
        await self.join(directory)
        self.assertEqual((len(self.keys()), len(self.console.requests)), (1, 2))

    async def test_token_refused(self) -> None:
        """A token that is of no use any more is told with what to do."""
        self.console.answer = (403, b'{"code": "token_refused", "detail": "It is used."}')
        error = await self.assertFailure(self.join(self.mktemp()), NotEnrolled)
        self.assertIn("Make another enrolment", str(error))

    async def test_other_console(self) -> None:
        """A console of another CA gets no token."""
        self.assertIn("another one", await self.refused(Authority("console")))
        self.assertEqual(self.console.requests, [])

    async def test_chain_that_contains_it(self) -> None:
        """Who only shows the console's CA certificate, beside a certificate of its own, gets no token."""
        self.listen(AnyCertificate(Authority("thief"), self.authority))
        self.assertIn("TLS", await self.refused())
        self.assertEqual(self.console.requests, [])

    async def test_other_host(self) -> None:
        """A certificate of that CA for another host gets no token."""
        self.listen(AnyCertificate(self.authority, self.authority, names=[x509.DNSName("other.example")]))
        await self.refused()
        self.assertEqual(self.console.requests, [])

    async def test_refused(self) -> None:
        """What the console says against it is told."""
        self.console.answer = (403, b'{"code": "token_used", "detail": "The token is used up."}')
        self.assertIn("The token is used up.", await self.refused())

    async def test_nonsense(self) -> None:
        """An answer that is none is refused; so is a redirect, which nobody follows."""
        for answer in ((200, b"s"), (200, b"x" * 100_000), (307, b""), (200, b'{"guid": "g"}')):
            self.console.answer = answer
            await self.refused()
        self.assertEqual(len(self.console.requests), 4)

    async def test_foreign_certificate(self) -> None:
        """A certificate for another key than that of the router is refused."""
        other = certificates_pem(self.authority.issue("other").certificate).decode()
        self.console.certify = lambda csr: other  # type: ignore[method-assign]
        self.assertIn("certified another key", await self.refused())

    async def test_silent(self) -> None:
        """A console that never answers is left after the time for it."""
        self.console.waits = True
        link = ConsoleLink(reactor, self.url, [self.console.pem])
        error = await self.assertFailure(ensureDeferred(link.ask(b"GET", b"/agent/v1/sync", time=0.2)), LinkFailed)
        self.assertIn("within 0.2 seconds", str(error))
        await link.close()

    async def test_cancelled(self) -> None:
        """A question that is given up, on the way or while it waits, ends as that, and says nothing of the console."""
        self.console.waits = True
        link = ConsoleLink(reactor, self.url, [self.console.pem])
        for requests in (0, 1):
            asking = ensureDeferred(link.ask(b"GET", b"/agent/v1/sync"))
            while len(self.console.requests) < requests:
                await deferLater(reactor, 0.01)
            asking.cancel()
            await self.assertFailure(asking, CancelledError)
        await link.close()

    async def test_away(self) -> None:
        """A console that is away is told as that."""
        self.url = "https://127.0.0.1:1"
        self.assertIn("can't be reached", await self.refused())
