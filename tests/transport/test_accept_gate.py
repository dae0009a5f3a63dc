"""Tests for L{webhookrx.transport.accept_gate}."""

from __future__ import annotations

import errno
import socket
from typing import Any
from unittest import mock

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.transport import accept_gate
from webhookrx.transport.accept_gate import BACKLOG, CLOSED, AcceptGate
from webhookrx.transport.overload import OLD, Overload
from webhookrx.transport.tcp_info import TCPInfo


class Waiting:
    """A connection that waits to be let in."""

    def __init__(self, info: TCPInfo | None) -> None:
        self.info = info
        self.closed = False

    def close(self) -> None:
        self.closed = True


HERE = TCPInfo(9.0, False)
LEFT = TCPInfo(OLD + 0.1, True)
JUST_LEFT = TCPInfo(OLD - 0.1, True)


class Listening:
    """
    A listening socket.

    @ivar backlogs: what it was told.
    """

    def __init__(self) -> None:
        self.waiting: list[Waiting] = []
        self.backlogs: list[int] = []

    def accept(self) -> tuple[Any, str]:
        if not self.waiting:
            raise BlockingIOError(errno.EAGAIN, "nobody")
        return self.waiting.pop(0), "address"

    def listen(self, backlog: int) -> None:
        self.backlogs.append(backlog)

    def getsockname(self) -> str:
        return "name"


class AcceptGateTests(SynchronousTestCase):
    """Who is let in."""

    def setUp(self) -> None:
        self.patch(accept_gate, "tcp_info", lambda waiting: waiting.info)
        self.patch(accept_gate, "backlog_of", lambda sock: 4096)
        self.rule = mock.Mock(stands=False)
        self.overload = Overload(self.rule, lambda: None)
        self.socket = Listening()
        self.gate = AcceptGate(self.socket, self.overload)  # type: ignore[arg-type]

    def come(self, *infos: TCPInfo | None) -> list[Waiting]:
        """Have connections wait."""
        come = [Waiting(info) for info in infos]
        self.socket.waiting += come
        return come

    def let_in(self) -> list[Any]:
        """Return who comes in before there is nobody more who may."""
        came = []
        while True:
            try:
                came.append(self.gate.accept()[0])
            except OSError as error:
                self.assertIn(error.args[0], (errno.EAGAIN, errno.EWOULDBLOCK))  # as Twisted looks at it
                return came

    def test_no_overload(self) -> None:
        """With no overload all are let in, and nobody is asked anything; the rest is the socket's own."""
        self.patch(accept_gate, "tcp_info", lambda waiting: self.fail())
        come = self.come(HERE, LEFT, None)
        self.assertEqual((come, []), (self.let_in(), self.socket.backlogs))
        self.assertEqual("name", self.gate.getsockname())

    def test_few(self) -> None:
        """While the queue stands as many are let in as that says, and few may wait."""
        self.rule.stands = True
        come = self.come(HERE, HERE, None, HERE)
        self.assertEqual([], self.let_in())
        self.overload.new = 3
        self.assertEqual(come[:3], self.let_in())
        self.assertEqual([], self.let_in())
        self.assertEqual([BACKLOG], self.socket.backlogs)

    def test_left(self) -> None:
        """Those that have left long ago are closed instead, and do not count."""
        self.rule.stands = True
        self.overload.new = 2
        come = self.come(LEFT, JUST_LEFT, LEFT, LEFT, HERE, LEFT)
        self.assertEqual([come[1], come[4]], self.let_in())
        self.assertEqual([True, False, True, True, False, False], [each.closed for each in come])

    def test_many_left(self) -> None:
        """Others have their turn before all of them are."""
        self.rule.stands = True
        self.overload.new = 1
        come = self.come(*[LEFT] * (CLOSED + 1), HERE)
        self.assertEqual([], self.let_in())
        self.assertEqual(CLOSED, sum(each.closed for each in come))
        self.assertEqual(come[-1:], self.let_in())

    def test_afterwards(self) -> None:
        """Those that have left are closed until nobody waits any more; then as many may wait as before."""
        self.rule.stands = True
        self.assertEqual([], self.let_in())
        self.rule.stands = False
        come = self.come(LEFT, HERE, HERE, LEFT)
        self.assertEqual(come[1:3], self.let_in())
        self.assertTrue(come[3].closed)
        self.assertEqual([BACKLOG, 4096], self.socket.backlogs)
        self.assertEqual(self.come(LEFT), self.let_in())

    def test_small_backlog(self) -> None:
        """It never lets more wait than else."""
        self.patch(accept_gate, "backlog_of", lambda sock: 5)
        self.rule.stands = True
        self.let_in()
        self.assertEqual([5], self.socket.backlogs)

    def test_real_socket(self) -> None:
        """A socket that listens can be told so again and again, and loses nobody who waits by it."""
        self.patch(accept_gate, "tcp_info", lambda waiting: HERE)
        listening = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.addCleanup(listening.close)
        listening.setblocking(False)
        gate = AcceptGate(listening, self.overload)
        self.rule.stands = True
        self.overload.new = 1
        with socket.create_connection(listening.getsockname()):
            accepted, _ = gate.accept()
            accepted.close()
