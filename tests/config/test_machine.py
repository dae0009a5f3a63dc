"""
Tests for L{webhookrx.config.machine}.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import NOW, check_observer, given
from webhookrx.config import machine as module
from webhookrx.config import machine as open_files
from webhookrx.config.check import check_report
from webhookrx.config.machine import (
    MOST,
    fit_connections,
    most_open_files,
    own_files,
    this_host,
    usable_cpus,
    worker_count,
)
from webhookrx.config.observers import KnownObservers
from webhookrx.config.option_reader import COMMAND_LINE, ConfigProblems, OptionReader, Origin, Problems, RawValue
from webhookrx.config.resolve import Environment, Resolved, resolve
from webhookrx.errors import ConfigError
from webhookrx.observers.registry import find_spec
from webhookrx.settings import Limits, Listener, Observer, Settings, Source
from webhookrx.version import installed_version


class ThisHostTests(SynchronousTestCase):
    """What a machine says of itself."""

    def _named(self, name: str, hosts: str = "") -> tuple[str, str]:
        path = Path(self.mktemp())
        path.write_text(hosts)
        real = os.uname()
        self.patch(module.os, "uname", lambda: os.uname_result((real[0], name, *real[2:])))
        facts = this_host(str(path))
        return facts.hostname, facts.fqdn

    def test_names(self) -> None:
        """The name is the kernel's; the domain is its, or that of /etc/hosts, and no name server is asked."""
        for name, hosts, expected in [
            ("edge-1.example.com", "", ("edge-1", "edge-1.example.com")),
            ("edge-1", "", ("edge-1", "")),
            ("edge-1", "127.0.1.1 edge-1.example.com edge-1\n", ("edge-1", "edge-1.example.com")),
            ("edge-1", "# 127.0.1.1 edge-1.example.com edge-1\n127.0.0.1\n\n", ("edge-1", "")),
            ("edge-1", "127.0.1.1 edge-11.example.com edge-1\n", ("edge-1", "")),
            ("edge-1", "192.0.2.9 edge-1.elsewhere.example other\n", ("edge-1", "")),
            ("edge-1", "127.0.0.1 localhost\n::1 x edge-1 edge-1.example.com\n", ("edge-1", "edge-1.example.com")),
        ]:
            with self.subTest(name=name, hosts=hosts):
                self.assertEqual(expected, self._named(name, hosts))

    def test_addresses(self) -> None:
        """Addresses are those that others may reach it by, each once."""
        addresses = this_host().ip
        self.assertEqual(len(set(addresses)), len(addresses))
        for address in map(ip_address, addresses):
            self.assertFalse(address.is_loopback or address.is_link_local)

    def test_ipv4(self) -> None:
        """IPv4 addresses are asked for by the name of each interface; one that has none is left out."""
        addresses = {"lo": "127.0.0.1", "eth0": "192.0.2.1", "eth1": "0.0.0.0", "a-very-long-nam": "192.0.2.2"}

        def ioctl(handle: object, request: int, interface: bytes) -> bytes:
            name = interface.rstrip(b"\0").decode()
            if name not in addresses:
                raise OSError(99, "Cannot assign requested address")
            return b"\0" * 20 + ip_address(addresses[name]).packed + b"\0" * 232

        self.patch(module.fcntl, "ioctl", ioctl)
        self.patch(module.socket, "if_nameindex", lambda: list(enumerate((*addresses, "bare"), 1)))
        self.assertEqual(["192.0.2.1", "192.0.2.2"], list(module._ipv4()))

    def test_ipv6(self) -> None:
        """IPv6 addresses are read from the kernel's table; what is no address there is left out."""
        lines = [
            "fd000000000000000000000000000002 02 40 00 80 eth0\n",
            "00000000000000000000000000000001 01 80 10 80 lo\n",
            "fe800000000000000000000000000001 02 40 20 80 eth0\n",
            "00000000000000000000000000000000 01 80 10 80 any\n",
            "nonsense\n",
        ]
        self.assertEqual(["fd00::2"], list(module._ipv6(lines)))

    def test_rest(self) -> None:
        """The rest is what Python says, and our version; a file that is not there is no error."""
        facts = this_host(self.mktemp())
        self.assertEqual((os.uname().machine, installed_version()), (facts.arch, facts.version))
        self.assertEqual("linux", facts.os)


FILE = Observer("file:x", "file", ("x",))
SPOOL = Observer("spool:y", "spool", ("y",), inner=FILE)


def settings_of(connections: int = 10_000, endpoints: int = 1, *observers: Observer, admin: bool = False) -> Settings:
    """Return settings that need so many files."""
    listeners = tuple(Listener(str(number), f"tcp:{number}") for number in range(endpoints))
    sources = (Source("a", listeners=listeners), Source("b", listeners=listeners[:1]))
    operators = Listener("unix:admin", "unix:admin") if admin else None
    return Settings(sources, observers, limits=Limits(connections=connections), admin=operators)


class MostTests(SynchronousTestCase):
    """
    The limit of the process, with a system that is made up.
    """

    def system(self, soft: int, hard: int, refuses: Exception | None = None) -> Callable[[], tuple[int, int]]:
        """Have these limits; return what tells them."""
        limits = [(soft, hard)]

        def change(which: int, wanted: tuple[int, int]) -> None:
            self.assertEqual(resource.RLIMIT_NOFILE, which)
            if refuses is not None:
                raise refuses
            limits.append(wanted)

        self.patch(open_files.resource, "getrlimit", lambda which: limits[-1])
        self.patch(open_files.resource, "setrlimit", change)
        return lambda: limits[-1]

    def test_raised(self) -> None:
        """The soft limit becomes the hard one."""
        now = self.system(1024, 20_000)
        self.assertEqual(20_000, most_open_files())
        self.assertEqual((20_000, 20_000), now())
        self.assertEqual(20_000, most_open_files())

    def test_refused(self) -> None:
        """Where it may not be raised, the soft limit is what counts."""
        for refuses in (PermissionError(), ValueError()):
            self.system(1024, 20_000, refuses)
            self.assertEqual(1024, most_open_files())

    def test_none(self) -> None:
        """Without a limit, or where it is a secret, there is none to go by."""
        self.system(resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        self.assertIsNone(most_open_files())

        def forbidden(which: int) -> tuple[int, int]:
            raise PermissionError

        self.patch(open_files.resource, "getrlimit", forbidden)
        self.assertIsNone(most_open_files())


class FitTests(SynchronousTestCase):
    """
    Connections and files.
    """

    def test_own(self) -> None:
        """Each endpoint, each observer, one behind a spool among them, and operators need some of their own."""
        least = own_files(settings_of())
        self.assertEqual(2, own_files(settings_of(1, 3)) - least)
        observer = own_files(settings_of(1, 1, FILE)) - least
        self.assertGreater(observer, 2)
        self.assertEqual(3 * observer, own_files(settings_of(1, 1, SPOOL, FILE)) - least)
        self.assertGreater(own_files(settings_of(1, admin=True)) - least, 10)

    def test_room(self) -> None:
        """With room for all nothing changes."""
        settings = settings_of(100)
        for files in (None, 100 + own_files(settings), 10**9):
            self.assertEqual((settings, ""), fit_connections(settings, files))

    def test_lowered(self) -> None:
        """With one file too few there is one connection less, and a sentence that says how to have more."""
        settings = settings_of(100)
        own = own_files(settings)
        fitted, said = fit_connections(settings, 99 + own)
        self.assertEqual(settings_of(99), fitted)
        self.assertEqual(
            f"The process may open {99 + own} files, and needs up to {own} itself: so there can be 99 connections and "
            "not 100. Raise the hard limit on open files (ulimit -Hn, LimitNOFILE=), or set connections=99.",
            said,
        )

    def test_too_few(self) -> None:
        """With room for hardly any there is no start."""
        settings = settings_of(100)
        own = own_files(settings)
        self.assertEqual(16, fit_connections(settings, own + 16)[0].limits.connections)
        for files in (own + 15, own, 3):
            error = self.assertRaises(ConfigError, fit_connections, settings, files)
            self.assertIn(f"may open {files} files", str(error))
        few = settings_of(5)
        self.assertEqual((few, ""), fit_connections(few, own + 5))


class ResolveTests(SynchronousTestCase):
    """
    What a start makes of it.
    """

    def start(self, open_files: int | None, **options: str) -> Resolved:
        """Resolve these options."""
        environment = Environment(
            {}, NOW, KnownObservers(("stdout",), check_observer, find_spec), open_files=open_files
        )
        return resolve(given(port="8181", observer="stdout", **options), environment)

    def test_said(self) -> None:
        """The settings have what there can be, and it is said once at start and in C{--check}."""
        resolved = self.start(300)
        connections = resolved.settings.limits.connections
        self.assertTrue(200 < connections < 300, connections)
        (warning,) = resolved.settings.warnings
        self.assertTrue(warning.startswith("The process may open 300 files"), warning)
        report = check_report(resolved)
        self.assertEqual(1, report.count(warning))
        self.assertRegex(report, rf"\n  limit connections +{connections} +\(the limit on open files\)\n")
        self.assertNotIn("limit connections  10000", report)

    def test_silent(self) -> None:
        """Where there is room nothing is said, whoever has chosen the limit."""
        for files, options in ((None, {}), (20_000, {}), (300, {"limit": "connections=150"})):
            self.assertEqual((), self.start(files, **options).settings.warnings)

    def test_error(self) -> None:
        """Too few files are an error among the others."""
        problems = self.assertRaises(ConfigProblems, self.start, 64)
        self.assertIn("The process may open 64 files", str(problems))


class WorkerCountTests(SynchronousTestCase):
    """
    From the option to a number, where six CPUs may be used.
    """

    def values(self, *texts: str) -> OptionReader:
        """Return options with this one, or none."""
        origin = Origin(("--workers",), COMMAND_LINE)
        layer = {"workers": tuple(RawValue(text, origin) for text in texts)} if texts else {}
        return OptionReader((layer,), Problems())

    def test_good(self) -> None:
        """Numbers are taken as they are, and auto is a number too; C{--check} shows what came of it."""
        for texts, count, shown in (
            ((), 1, "1"),
            (("1",), 1, "1"),
            (("12",), 12, "12"),
            ((str(MOST),), MOST, str(MOST)),
            (("auto",), 6, "6, for as many CPUs"),
        ):
            values = self.values(*texts)
            self.assertEqual(count, worker_count(values, 6))
            self.assertEqual(([shown], []), ([row.value for row in values.effective], values.problems.errors))
        self.assertEqual(MOST, worker_count(self.values("auto"), 10_000))

    def test_bad(self) -> None:
        """All else is an error that says what is allowed."""
        for text in ("0", "-1", "two", "", "1.5", str(MOST + 1), "9" * 5000, "١"):
            values = self.values(text)
            self.assertEqual(1, worker_count(values, 6))
            (error,) = values.problems.errors
            self.assertIn(f"is neither a number from 1 to {MOST} nor auto", error.text)


class UsableCPUsTests(SynchronousTestCase):
    """
    CPUs, and the time of them that control groups leave; each machine has at least one.
    """

    def setUp(self) -> None:
        self.patch(os, "sched_getaffinity", lambda pid: set(range(8)))
        self.groups = self.mktemp()
        self.own = self.mktemp()

    def count(self, own: str = "0::/a/b\n", **limits: str) -> int:
        """Count them with these limits, by the names of groups with C{_} for C{/}; root has the empty name."""
        for name, limit in limits.items():
            directory = os.path.join(self.groups, *filter(None, name.split("_")))
            os.makedirs(directory, exist_ok=True)
            with open(os.path.join(directory, "cpu.max"), "w") as file:
                file.write(limit)
        with open(self.own, "w") as file:
            file.write(own)
        return usable_cpus(self.groups, self.own)

    def test_affinity(self) -> None:
        """Without limits, those that this process may run on count."""
        self.assertEqual(8, self.count())
        self.assertEqual(8, usable_cpus(self.mktemp(), self.mktemp()))
        self.assertEqual(8, self.count(a_b="max 100000\n", a="nonsense\n"))

    def test_own_limit(self) -> None:
        """A limit counts, with a part of a CPU as one; so does that of a group around our own."""
        self.assertEqual(2, self.count(a_b="200000 100000\n"))
        self.assertEqual(2, self.count(a_b="150000 100000\n"))
        self.assertEqual(1, self.count(a_b="150000 100000\n", a="1000 100000\n"))

    def test_container(self) -> None:
        """In a container our own group is the root."""
        self.assertEqual(3, self.count("0::/\n", _="300000 100000\n"))

    def test_older_groups(self) -> None:
        """Where there is no unified hierarchy nothing is known of limits."""
        self.assertEqual(8, self.count("4:cpu:/a\n", a="100000 100000\n"))

    def test_sandbox(self) -> None:
        """Where a sandbox does not let us know, the machine's own count."""

        def refuse(pid: int) -> set[int]:
            raise PermissionError

        self.patch(os, "sched_getaffinity", refuse)
        self.patch(os, "cpu_count", lambda: 5)
        self.assertEqual(5, self.count())
        self.patch(os, "cpu_count", lambda: None)
        self.assertEqual(1, self.count())
