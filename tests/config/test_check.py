"""
Tests for L{webhookrx.config.check}.
"""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.config.starting import LOOPBACK, start, write_text
from tests.specs import parse_observer
from tests.system.certificates import Authority, write_ca_file
from webhookrx.config.check import User, check_report, error_report, run_as, unwritable
from webhookrx.config.observers import written_paths
from webhookrx.config.option_reader import ConfigProblems
from webhookrx.observers.registry import find_spec
from webhookrx.version import version_line

AUTHORITY = Authority("root")
SERVER = AUTHORITY.issue("server")


def written(*specs: str) -> list[str]:
    """Return the paths that observers write."""
    return [path for spec in specs for path in written_paths(parse_observer(spec), find_spec)]


class CheckReportTests(SynchronousTestCase):
    """
    Tests for L{check_report} and L{error_report}.
    """

    def test_report(self) -> None:
        """It shows each setting with its origin, the endpoints as they will be, and the warnings, secrets masked."""
        directory = self.mktemp()
        path = write_text(directory, "x.yaml", f"sources:\n - name: a\n   port: {LOOPBACK}\n   auth_token: c4nary\n")
        lines = check_report(start(config=path, ack="queued")).splitlines()
        self.assertEqual("service", lines[0])
        words = [line.split() for line in lines]
        self.assertIn(["ack", "queued", "(--ack,", "command", "line)"], words)
        self.assertIn(["limit", "body", "10MiB", "(default)"], words)
        self.assertIn("source a", lines)
        self.assertIn(["port", LOOPBACK, f"({path}:3)"], words)
        self.assertIn(["auth-token", "***", f"({path}:4)"], words)
        self.assertIn(f"  listens on {LOOPBACK}:backlog=4096, plain HTTP", lines)
        self.assertIn(version_line(), lines)
        self.assertTrue(lines[-2].startswith(f"warning: {path}:3: sources[0].port: Tokens travel"), lines[-2])
        self.assertEqual("The configuration is good.", lines[-1])
        self.assertNotIn("c4nary", "\n".join(lines))

    def test_notes(self) -> None:
        """What observers have to say besides comes before the version."""
        lines = check_report(start(port=LOOPBACK), ["one\ntwo", "three"]).splitlines()
        place = lines.index("one")

        self.assertEqual(["one", "two", "", "three", "", version_line()], lines[place : place + 6])

    def test_tls(self) -> None:
        """The line of an endpoint says what its TLS asks of clients."""
        directory = os.path.abspath(self.mktemp())
        os.mkdir(directory)
        key, cert = SERVER.write(directory, "server")
        ca = write_ca_file(directory, "ca", AUTHORITY)
        report = check_report(
            start(
                port=[
                    "ssl:443",
                    f"haproxy:ssl:444:peerVerify=yes:caFile={ca}:systemStore=yes:extraCertChain={ca}",
                ],
                tls_key_file=key,
                tls_cert_file=cert,
            )
        )
        self.assertIn(
            f"listens on tcp:443:backlog=4096, TLS with key {key}, certificate {cert}; "
            "no client certificate is requested",
            report,
        )
        self.assertIn(
            f"listens on tcp:444:backlog=4096, behind a PROXY header, TLS with key {key}, certificate {cert}, "
            f"chain {ca}; clients need a certificate signed by a CA in {ca} or the system's store",
            report,
        )

    def test_delay(self) -> None:
        """It says up to which size bodies hold up nobody for long."""
        for body, line in (
            ("1MiB", "No body of up to 1MiB delays other senders by more than 50 ms."),
            ("10MiB", "No body of up to 10MiB delays other senders by more than 50 ms."),
            ("25MiB", "No body of up to 10MiB delays other senders by more than 50 ms; larger ones may."),
        ):
            self.assertIn(line, check_report(start(port=LOOPBACK, limit=[f"body={body}"])).splitlines())

    def test_errors(self) -> None:
        """All errors are shown, one line each."""
        problems = self.assertRaises(ConfigProblems, start, port="abc", ack="disk")
        lines = error_report(str(problems)).splitlines()
        self.assertEqual(3, len(lines))
        self.assertTrue(lines[0].startswith('error: command line: --ack: "disk" is not one of'), lines[0])
        self.assertTrue(lines[1].startswith('error: command line: --port: "abc" is of no known kind'), lines[1])
        self.assertEqual("The configuration can't be used.", lines[2])


NOBODY = 65534


class RunAsTests(SynchronousTestCase):
    """Who twistd will be."""

    def test_itself(self) -> None:
        """Without options it stays who it is."""
        self.assertEqual((os.geteuid(), os.getegid()), run_as())

    def test_options(self) -> None:
        """A user comes with its group, unless another is named; one that nobody knows has none."""
        root = pwd.getpwuid(0)
        self.assertEqual((0, root.pw_gid), run_as(0))
        self.assertEqual((0, 7), run_as(0, 7))
        self.assertEqual((os.geteuid(), 7), run_as(None, 7))
        self.assertEqual((4_000_000, os.getegid()), run_as(4_000_000))

    def test_names(self) -> None:
        """People are told the name, if there is one."""
        self.assertEqual(f"{pwd.getpwuid(0).pw_name} (uid 0)", User(0, 0).name)
        self.assertEqual("uid 4000000", User(4_000_000, 0).name)


class UnwritableTests(SynchronousTestCase):
    """Files and directories of observers, looked at as root and as another user."""

    def setUp(self) -> None:
        # Not below the directory of the tests: others may not get as far.
        self.directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(shutil.rmtree, self.directory)
        os.chmod(self.directory, 0o755)

    def path(self, name: str, mode: int, *, directory: bool = False) -> str:
        """Make a file, or a directory."""
        path = os.path.join(self.directory, name)
        os.mkdir(path) if directory else open(path, "w").close()
        os.chmod(path, mode)
        return path

    def of(self, user: User, *specs: str) -> list[str]:
        """Return the paths that are told."""
        return [text.split('"')[1] for text in unwritable(written(*specs), user)]

    def test_as_it_is(self) -> None:
        """What this process may write is no finding, whatever becomes of it later."""
        specs = (f"file:{self.directory}/new", "stdout", "http:http://a/", f"spool:{self.directory}/s:observer=stdout")
        self.assertEqual([], unwritable(written(*specs), run_as()))
        self.assertEqual([], os.listdir(self.directory))

    def test_as_another(self) -> None:
        """Modes decide, on files and on the directories of those that are yet to be made; behind a spool as well."""
        if os.geteuid() != 0:
            raise SkipTest("only root can ask for another user")
        theirs, open_to_all = self.path("theirs", 0o600), self.path("all", 0o666)
        closed, free = self.path("closed", 0o755, directory=True), self.path("free", 0o777, directory=True)
        user = User(NOBODY, NOBODY)
        self.assertEqual([theirs], self.of(user, f"file:{theirs}", f"file:{open_to_all}"))
        self.assertEqual([f"{closed}/new"], self.of(user, f"file:{closed}/new", f"file:{free}/new"))
        self.assertEqual([closed, theirs], self.of(user, f"spool:{closed}:observer=file:{theirs}"))
        self.assertEqual([], self.of(user, f"spool:{free}:observer=file:{open_to_all}"))
        (text,) = unwritable(written(f"file:{theirs}"), user)
        self.assertIn("may not be written by nobody (uid 65534)", text)

    def test_not_root(self) -> None:
        """Who can't become another user looks with its own eyes."""
        self.patch(os, "geteuid", lambda: 1000)
        self.assertEqual([], self.of(User(NOBODY, NOBODY), f"file:{self.directory}/new"))

    def test_no_such_user(self) -> None:
        """A user without a name has no groups besides its own."""
        if os.geteuid() != 0:
            raise SkipTest("only root can ask for another user")
        theirs = self.path("theirs", 0o620)
        os.chown(theirs, 0, 4_000_001)
        self.assertEqual([theirs], self.of(User(4_000_000, 4_000_000), f"file:{theirs}"))
        self.assertEqual([], self.of(User(4_000_000, 4_000_001), f"file:{theirs}"))
