"""Tests for what comes from elsewhere: packages, and what wrk, strace, proc(5) and servers say."""

from __future__ import annotations

import os
from configparser import ConfigParser
from types import SimpleNamespace
from typing import cast

from twisted.trial.unittest import SynchronousTestCase

from benchmarks import clients
from benchmarks.callgrind import Count, read_summary
from benchmarks.lab import Running, says_compiled
from benchmarks.load import Answers, read_answers
from benchmarks.measure import (
    connections_of,
    cpu_seconds,
    established,
    machine_cpu_seconds,
    own_cpu_seconds,
    resident_kib,
    tree,
)
from benchmarks.provision import REQUIREMENTS
from benchmarks.system_calls import read_total
from benchmarks.tools import ROOT, Broken, Unavailable, program
from webhookrx.speedups import compiled
from webhookrx.version import version_line

WRK = """\
Running 10m test @ http://127.0.0.1:8181/
  1 threads and 64 connections

{"answered": 200, "microseconds": 500000, "refused": %d, "broken": %d, "p50": 1000.0, "p99": 2000.0, "p99.9": 3000.5}
"""

STRACE = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.300000          10     10000       100 recvfrom
 40.00    0.200000          10     10000           sendto
------ ----------- ----------- --------- --------- ----------------
100.00    0.500000          25     20000       100 total
"""

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 16 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:AB65 01 00000000:00000000 00:00000000 00000000     0        0 17 1 0 20 4 30 10 -1
   2: 0100007F:AB65 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 18 1 0 20 4 30 10 -1
   3: 0100007F:1F90 0100007F:AB66 01 00000000:00000000 00:00000000 00000000     0        0 19 1 0 20 4 30 10 -1
   4: 0100007F:1F90 0100007F:AB67 06 00000000:00000000 03:000016AF 00000000     0        0 0 3 0
"""


class WrkTests(SynchronousTestCase):
    """What C{replay.lua} prints."""

    def test_good(self) -> None:
        """Times come in ms and seconds."""
        self.assertEqual(Answers(200, 0.5, 1.0, 2.0, 3.0005), read_answers(WRK % (0, 0), "x"))

    def test_not_good(self) -> None:
        """A refusal or a broken connection makes all of it worthless."""
        for refused, broken in ((1, 0), (0, 1)):
            self.assertRaises(Broken, read_answers, WRK % (refused, broken), "x")


class StraceTests(SynchronousTestCase):
    """The summary."""

    def test_total(self) -> None:
        """The number of calls, with and without errors."""
        self.assertEqual(20000, read_total(STRACE))
        self.assertEqual(20000, read_total(STRACE.replace("       100 total", "           total")))

    def test_no_summary(self) -> None:
        """Anything else is an error."""
        self.assertRaises(ValueError, read_total, "")


class CallgrindTests(SynchronousTestCase):
    """Reports."""

    def test_summary(self) -> None:
        """The number of instructions is that of the summary, not of the totals, which later ones are in."""
        self.assertEqual(468255511, read_summary("events: Ir\nsummary: 468255511\n\ntotals: 469332488\n"))

    def test_no_summary(self) -> None:
        """Anything else counts as not measured."""
        self.assertRaises(Unavailable, read_summary, "events: Ir\n")

    def test_not_obeyed(self) -> None:
        """So does a process that callgrind does not run."""
        running = SimpleNamespace(pid=0, output="/nowhere/messages.jsonl")
        self.assertRaises(Unavailable, Count(cast(Running, running)).tell, "zero")


class StartTests(SynchronousTestCase):
    """What webhookrx says when it starts."""

    def test_compiled(self) -> None:
        """Its version has the path that is in use behind it; earlier versions say nothing."""
        log = "2026-11-23T04:05:52+0000 [webhookrx.service.service#info] webhookrx 26.11.7 (%s)\n"
        self.assertTrue(says_compiled(log % "compiled"))
        self.assertFalse(says_compiled(log % "pure Python: WEBHOOKRX_PURE is set"))
        self.assertFalse(says_compiled("2026-11-20 [webhookrx.service#info] Listening on (compiled)\n"))

    def test_said(self) -> None:
        """It is said as the program says it of itself."""
        self.assertEqual(compiled is not None, says_compiled(f"[webhookrx.service.service#info] {version_line()}"))


class SocketTests(SynchronousTestCase):
    """The kernel's table of TCP sockets."""

    def test_established(self) -> None:
        """Established connections to the port count, those that listen, or are to another one, do not."""
        self.assertEqual({"socket:[17]", "socket:[19]"}, established(TABLE, 8080))


class AnswerTests(SynchronousTestCase):
    """Answers on the wire."""

    def test_whole(self) -> None:
        """An answer ends by its length or its last chunk, and not before."""
        for head, body in (
            (b"Content-Length: 5\r\n", b"hello"),
            (b"content-length:5\r\n", b"hello"),
            (b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
        ):
            answer = b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + body
            self.assertTrue(clients._is_whole(answer), answer)
            for end in range(len(answer)):
                self.assertFalse(clients._is_whole(answer[:end]), answer[:end])


class ProcessTests(SynchronousTestCase):
    """Of this very process."""

    def test_figures(self) -> None:
        """It is in its own tree, has taken time and memory, and the machine has taken more."""
        self.assertIn(os.getpid(), tree(os.getpid()))
        self.assertGreater(resident_kib(os.getpid()), 1000)
        self.assertGreater(cpu_seconds(os.getpid()), 0)
        self.assertGreater(machine_cpu_seconds(), own_cpu_seconds())

    def test_no_connections(self) -> None:
        """It has no connections to port 0."""
        self.assertEqual(0, sum(connections_of(os.getpid(), 0)))

    def test_missing_program(self) -> None:
        """The package that has it is named."""
        error = self.assertRaises(Unavailable, program, "no-such-program")
        self.assertIn("Debian package no-such-program", str(error))


class RequirementTests(SynchronousTestCase):
    """What is installed."""

    def test_extra(self) -> None:
        """The peer of the guard is that of the benchmarks: what C{.[bench]} installs, these install too."""
        setup = ConfigParser()
        setup.read(os.path.join(ROOT, "setup.cfg"), encoding="utf-8")
        extra = setup["options.extras_require"]["bench"].split()
        self.assertIn("uvicorn", " ".join(extra))
        self.assertEqual(set(), set(extra) - set(REQUIREMENTS))
