"""Tests for L{webhookrx.transport.tcp_info}: with real sockets, since what the kernel says is all there is to it."""

from __future__ import annotations

import socket
from unittest import mock

from twisted.trial.unittest import SynchronousTestCase

from tests.transport.stepped import World, wait_for
from webhookrx.transport import tcp_info as module
from webhookrx.transport.tcp_info import backlog_of, tcp_info, waiting_at


class TCPInfoTests(SynchronousTestCase):
    """What the kernel tells."""

    def setUp(self) -> None:
        self.world = World()
        self.addCleanup(self.world.close)

    def test_established(self) -> None:
        """Of a connection that has just been used its age is little, and its peer is there."""
        ours, theirs = self.world.pair(tcp=True)
        theirs.send(b"x")
        wait_for(ours)
        info = tcp_info(ours)
        assert info is not None
        self.assertFalse(info.ended)
        self.assertTrue(0 <= info.age < 20, info.age)

    def test_ended(self) -> None:
        """A peer that sends no more has ended, whether or not something of it is unread."""
        for words in (b"", b"last words"):
            ours, theirs = self.world.pair(tcp=True)
            theirs.sendall(words)
            theirs.shutdown(socket.SHUT_WR)
            wait_for(ours)
            while (info := tcp_info(ours)) is not None and not info.ended:
                pass  # the end may come a moment after the words
            self.assertIsNotNone(info)

    def test_layout(self) -> None:
        """Age and state are where the kernel has them."""
        raw = bytearray(56)
        raw[0] = 8
        raw[52:56] = (2_500).to_bytes(4, "little")
        sock = mock.Mock()
        sock.getsockopt.return_value = bytes(raw)
        with mock.patch("sys.byteorder", "little"):
            self.assertEqual((2.5, True), tcp_info(sock))
        raw[0] = 1
        sock.getsockopt.return_value = bytes(raw)
        self.assertEqual((2.5, False), tcp_info(sock))

    def test_unix_socket(self) -> None:
        """Of a UNIX socket nothing is known."""
        ours, _ = self.world.pair()
        self.assertIsNone(tcp_info(ours))

    def test_unknown(self) -> None:
        """Nor is where there is no such option, or it says less than expected."""
        ours, _ = self.world.pair(tcp=True)
        with mock.patch.object(module, "_OPTION", None):
            self.assertIsNone(tcp_info(ours))
        sock = mock.Mock()
        sock.getsockopt.return_value = bytes(16)
        self.assertIsNone(tcp_info(sock))

    def test_waiting(self) -> None:
        """A listening socket tells how many connections wait; one of another kind does not."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            clients = []
            for count in range(3):
                self.assertEqual(count, waiting_at(listening))
                clients.append(socket.create_connection(listening.getsockname()))
            for client in clients:
                client.close()
            with mock.patch.object(module, "_OPTION", None):
                self.assertIsNone(waiting_at(listening))
        ours, _ = self.world.pair()
        self.assertIsNone(waiting_at(ours))

    def test_backlog(self) -> None:
        """A listening socket tells how many may wait; where it does not, it is the usual most."""
        with socket.create_server(("127.0.0.1", 0), backlog=37) as listening:
            self.assertEqual(37, backlog_of(listening))
        sock = mock.Mock()
        sock.getsockopt.side_effect = OSError
        self.assertEqual(socket.SOMAXCONN, backlog_of(sock))
