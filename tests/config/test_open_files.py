"""
Tests for L{webhookrx.config.open_files}.
"""

from __future__ import annotations

import resource
from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import NOW, check_observer, given
from webhookrx.config import open_files
from webhookrx.config.check import check_report
from webhookrx.config.open_files import fit_connections, most_open_files, own_files
from webhookrx.config.problems import ConfigProblems
from webhookrx.config.resolve import Resolved, Surroundings, resolve
from webhookrx.errors import ConfigError
from webhookrx.settings import Limits, Listener, Observer, Settings, Source

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
        surroundings = Surroundings({}, NOW, ("stdout",), check_observer, open_files=open_files)
        return resolve(given(port="8181", observer="stdout", **options), surroundings)

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
