"""
The compiled path in an install: built where there is a compiler, left out where there is none, turned off by hand.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from importlib.util import find_spec
from pathlib import Path

from tests.system.receiver import ROOT, ReceiverCase, post
from tests.system.workers import children
from webhookrx.speedups import PURE

#: What a checkout has, as far as the build of an sdist and of the module looks at it.
_TREE = ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.cfg", "setup.py", "speedups", "webhookrx")


class BuildTests(ReceiverCase):
    """
    An sdist, from a copy of the checkout without anything that was built, and the module that is built from it.
    """

    if find_spec("setuptools") is None:
        skip = "there is no setuptools"

    def sdist(self) -> Path:
        """Build an sdist and return the directory into which it is unpacked."""
        tree = Path(self.mktemp()).absolute()
        tree.mkdir()
        for name in _TREE:
            source = Path(ROOT, name)
            if source.is_dir():
                shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
            else:
                shutil.copy(source, tree / name)
        # The listed packages must be there; what they hold is of no matter here.
        (tree / "twisted" / "plugins").mkdir(parents=True)
        self.run_setup(tree, "sdist", "--formats=gztar", "--dist-dir=dist")
        (archive,) = (tree / "dist").iterdir()
        with tarfile.open(archive) as opened:
            opened.extractall(tree / "unpacked", filter="data")
        (unpacked,) = (tree / "unpacked").iterdir()
        return unpacked

    def run_setup(self, directory: Path, *arguments: str, **environment: str) -> str:
        """Run C{setup.py} as C{pip} does, which must succeed, and return all that it prints."""
        done = subprocess.run(
            [sys.executable, "setup.py", *arguments],
            cwd=directory,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.assertEqual(0, done.returncode, done.stdout)
        return done.stdout

    def in_use(self, directory: Path) -> str:
        """Return which path the package in a directory takes."""
        environment = {name: value for name, value in os.environ.items() if name != PURE}
        return subprocess.run(
            [sys.executable, "-c", "from webhookrx.speedups import in_use; print(in_use)"],
            cwd=directory,
            env={**environment, "PYTHONPATH": str(directory)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def test_sources(self) -> None:
        """All of C{speedups/} is in an sdist."""
        found = sorted(each.name for each in (self.sdist() / "speedups").iterdir())
        self.assertEqual(sorted(os.listdir(os.path.join(ROOT, "speedups"))), found)

    def test_without_compiler(self) -> None:
        """Where the compiler fails the build succeeds, and the package works in pure Python and says so."""
        unpacked = self.sdist()
        self.assertIn("failed", self.run_setup(unpacked, "build_ext", "--inplace", CC="/bin/false"))
        self.assertIn("pure Python: it was not built", self.in_use(unpacked))

    def test_with_compiler(self) -> None:
        """Where there is a compiler the module is built and used."""
        headers = os.path.join(sysconfig.get_path("include"), "Python.h")
        compiler = sysconfig.get_config_var("CC").split()[0]
        if shutil.which(compiler) is None or not os.path.exists(headers):
            self.skipTest("there is no C compiler, or no headers of Python")
        unpacked = self.sdist()
        self.run_setup(unpacked, "build_ext", "--inplace")
        self.assertEqual("compiled", self.in_use(unpacked))


class PureTests(ReceiverCase):
    """
    C{WEBHOOKRX_PURE=1} in the environment of a receiver.
    """

    def test_workers(self) -> None:
        """The parent says so, its workers take the same path as it does, and messages arrive."""
        self.patch(os, "environ", {**os.environ, PURE: "1"})
        receiver = self.start("--workers", "2")
        self.assertEqual(200, self.ask(receiver.port, post(b"hello")).status)
        self.assertEqual(["hello"], [message["MESSAGE"] for message in receiver.messages()])
        self.assertIn("(pure Python: WEBHOOKRX_PURE is set)", receiver.log())
        for pid in children(receiver.pid):
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            self.assertIn(b"WEBHOOKRX_PURE=1", environment.split(b"\0"))
        self.assertNotIn("the others are", receiver.log())
