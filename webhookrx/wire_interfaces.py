"""
The interfaces around the wire: what counts and logs it, what tells whether more comes than can be read, and TLS.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from zope.interface import Attribute, Interface

if TYPE_CHECKING:
    from socket import socket

    from OpenSSL.SSL import Connection
    from twisted.python.failure import Failure

    from webhookrx.errors import Reason
    from webhookrx.guard.bundle_judge import JudgedBundle


class ITraffic(Interface):
    """Counts and logs what happens on the wire."""

    def refused(reason: Reason, detail: str, peer: str, method: bytes, path: bytes, source: str = "") -> None:
        """
        A request was refused.

        @param path: raw, without the query; both it and C{method} may be empty.
        @param source: the name of the source whose pattern matched; empty when none has, or not yet.
        """

    def answered(source: str, seconds: float) -> None:
        """A message was answered with 200, so many seconds after its request was complete."""

    def accepted(source: str, notes: Sequence[str], left_out: int, size: int) -> None:
        """
        A message was made.

        @param notes: names of further counters that it increments.
        @param left_out: how many names of its payload were dropped because the receiver sets them itself.
        @param size: bytes of its body on the wire.
        """

    def took_apart(source: str, judged: JudgedBundle, size: int) -> None:
        """
        The messages of a body with several events, or with none, were made.

        @param size: bytes of the body on the wire.
        """

    def expects(source: str, events: Sequence[tuple[str, str]]) -> None:
        """Create the counters of a connector's steps, at 0, so that they show before the first message."""

    def processed(source: str, events: Sequence[tuple[str, str]], problem: str) -> None:
        """
        The steps of a connector have processed a message, whether they kept or dropped it.

        @param events: what they have counted: a word and a label.
        @param problem: how a step failed, in one sentence; empty when none has.
        """

    def guards(
        source: str,
        secrets: Sequence[str],
        tokens: Sequence[str],
        kinds: Sequence[str],
        *,
        says_when: bool,
        sender: str = "",
    ) -> None:
        """
        Create the counters of a guarded source, at 0.

        @param secrets: the names of its secrets.
        @param tokens: the names of its tokens.
        @param kinds: what the questions of its sender are called.
        @param says_when: its sender signs moments.
        @param sender: the id of the one sender that it hears; empty: any.
        """

    def verified(source: str, secret: str) -> None:
        """A secret of that name has proved a request."""

    def token_shown(source: str, token: str) -> None:
        """A request has shown the token of that name."""

    def skewed(source: str, seconds: float) -> None:
        """A genuine request was signed so long ago; negative for a moment to come."""

    def asked(source: str, kind: str) -> None:
        """A question of a sender was answered, so that no message was made of it; C{kind} is what it is called."""

    def duplicate(source: str) -> None:
        """A delivery came again, and was answered as stored."""

    def accept_failed(error: str) -> None:
        """
        The system refused to accept a connection, for now.

        @param error: the name of the error, such as C{EMFILE}.
        """

    def handshake_failed(peer: str, failure: Failure) -> None:
        """A connection ended before its TLS handshake did."""

    def dropped_unread() -> None:
        """A request was dropped unread under overload: its sender has left."""

    def failed(what: str, failure: Failure) -> None:
        """Our own code raised an unexpected exception."""


class IStandingQueue(Interface):
    """Tells by the age of its entries whether a queue stands: stays full, instead of absorbing a burst."""

    stands: bool = Attribute("Whether the queue stands.")

    def observe(now: float, age: float, length: float) -> bool:
        """
        Learn the present age and length of the queue; call this whenever they are known anew.

        @param now: seconds on the monotonic clock.
        @param age: seconds that its oldest entry has waited.
        @param length: how much is in it, in any unit; its age, where only that is known.
        @return: whether it stands.
        """


class IOverload(Interface):
    """The state of the wire while senders send more than can be read."""

    refusing: bool = Attribute("The requests that are read now have waited for too long; refuse them.")

    behind: bool = Attribute("More is ready to be read than fits into one turn of the reactor, so that some waits.")

    def has_unread(fd: int) -> bool:
        """Tell whether the connection of this descriptor has received bytes that are not read yet."""


class ITLSCreator(IOpenSSLServerConnectionCreator):
    """Makes the server side of TLS connections, in memory for Twisted's TLS or on a socket."""

    def connection_on(sock: socket) -> Connection:
        """Return the TLS connection on an accepted socket, in accept state; nothing is read yet."""
