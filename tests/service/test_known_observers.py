"""
Tests for L{webhookrx.service.known_observers}.
"""

from __future__ import annotations

import os
import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

from tests.documents import ROOT
from tests.memory_store import MemoryStore
from tests.specs import parse_observer
from webhookrx.config.observers import Argument, ObserverSpec
from webhookrx.errors import ConfigError
from webhookrx.observers import registry
from webhookrx.observers.file import FileObserver
from webhookrx.service import known_observers
from webhookrx.settings import ALONE, Group
from webhookrx.spool.workers import WorkerSpool

#: Modules that cost memory, and the spec string that needs them.
COSTLY = {
    "treq": "http:https://127.0.0.1:1/",
    "webhookrx.observers.http_stores.elasticsearch": "opensearch:https://127.0.0.1:1/logs",
    "webhookrx.observers.http_stores.http": "http:https://127.0.0.1:1/",
    "webhookrx.observers.http_stores.loki": "loki:https://127.0.0.1:1",
    "webhookrx.observers.http_stores.otlp": "otlp:https://127.0.0.1:1",
    "webhookrx.observers.http_stores.otlp_protobuf": "otlp:https://127.0.0.1:2:encoding=protobuf",
    "webhookrx.observers.client_tls": "syslog:tls:127.0.0.1",
    "confluent_kafka": "kafka:kafka://127.0.0.1:1/logs",
    "obstore": "spool:SPOOL2:observer=s3:s3://logs/in",
    "psycopg": "postgresql:postgresql://127.0.0.1:1/logs/webhooks",
    "pyarrow": "spool:SPOOL3:observer=s3:s3://logs/rows:format=parquet",
    "webhookrx.observers.syslog": "syslog:udp:127.0.0.1",
    "sqlite3": "spool:SPOOL:observer=file:SPOOL.jsonl",
    "webhookrx.spool.observer": "spool:SPOOL:observer=file:SPOOL.jsonl",
    "webhookrx.observers.log_observer": "observer:logging.getLogger",
    "webhookrx.observers.stdout": "stdout",
}
#: No observer needs it.
METRICS = "prometheus_client"

PROGRAM = f"""
import sys
from webhookrx.tap import Options, makeService

options = Options()
options.parseOptions(sys.argv[1:])
makeService(options)
print(*({{*{[*COSTLY, METRICS]!r}}} & sys.modules.keys()))
"""


class BuildTests(SynchronousTestCase):
    """Names become observers."""

    def test_names(self) -> None:
        """The spool is one name beside those of the observers."""
        self.assertEqual(sorted(["spool", *registry.known_names()]), known_observers.known_names())

    def test_observer(self) -> None:
        """An observer is built as it is named."""
        path = os.path.abspath(self.mktemp())

        self.assertIsInstance(known_observers.build_observer(parse_observer(f"file:{path}"), "written"), FileObserver)

    def test_spool(self) -> None:
        """A spool stands in front of its observer, which says when messages are durable, whatever C{--ack} says."""
        path = os.path.abspath(self.mktemp())
        built: list[object] = []
        build = registry.build
        self.patch(
            registry, "build", lambda observer, *how: built.append((observer.name, *how)) or build(observer, *how)
        )
        spool = known_observers.build_observer(parse_observer(f"spool:{path}:observer=file:{path}.jsonl"), "queued")

        self.assertIsInstance(spool, WorkerSpool)
        self.assertEqual([("file", "durable", ALONE)], built)

    def test_group(self) -> None:
        """Workers share a file, and have a spool each, with an observer behind it that is made for the group, too."""
        path = os.path.abspath(self.mktemp())
        lock_fd = os.memfd_create("lock")
        self.addCleanup(os.close, lock_fd)
        groups = [Group(number, 2, lock_fd) for number in range(2)]
        for group in groups:
            observer = known_observers.build_observer(parse_observer(f"file:{path}"), "written", group)
            observer.open()
            self.addCleanup(observer.close)
        spools = [
            known_observers.build_observer(parse_observer(f"spool:{path}.d:observer=stdout"), "written", group)
            for group in groups
        ]

        self.assertEqual([WorkerSpool] * 2, list(map(type, spools)))

    def test_unknown_options(self) -> None:
        """All names are known, though only the named observer is imported."""
        for spec, known in (
            ("http:https://127.0.0.1/:bogus=1", "token_file"),
            ("syslog:udp:127.0.0.1:bogus=1", "facility"),
            ("stdout:bogus=1", "template"),
            ("spool:/x:bogus=1:observer=stdout", "min_free"),
        ):
            error = str(self.assertRaises(ConfigError, known_observers.build_observer, parse_observer(spec), "durable"))

            self.assertIn("bogus", error)
            self.assertIn(known, error)


class CheckTests(SynchronousTestCase):
    """What is checked beside what observers check themselves."""

    def register(self, promise: str = "written", *, needs_spool: bool = False) -> None:
        """Add an observer of a store by the name C{store}."""
        spec = ObserverSpec(("id",), Argument.URL, needs_spool=needs_spool)
        built_in = registry._BuiltIn(spec, lambda text, *_: MemoryStore(text, promise))
        self.patch(registry, "_BUILT_IN", {**registry._BUILT_IN, "store": lambda _: built_in})

    def check(self, text: str, *, with_promises: bool = True) -> list[str]:
        """Check a spec string."""
        return known_observers.check_observer(parse_observer(text), "durable", with_promises=with_promises)

    def test_needs_spool(self) -> None:
        """An observer that needs a spool is refused without one, with how to write it."""
        self.register("durable", needs_spool=True)
        error = self.assertRaises(ConfigError, self.check, "store:s3://bucket/logs")

        self.assertIn("works only behind one: write spool:DIR:observer=SPEC", str(error))
        self.assertIn("store:s3://bucket/logs", str(error))
        self.assertEqual([], self.check(f"spool:{os.path.abspath(self.mktemp())}:observer=store:s3://bucket/logs"))

    def test_promises(self) -> None:
        """C{--check} tells what is weaker; the start does so itself, once all is open."""
        self.register()
        behind = f"spool:{os.path.abspath(self.mktemp())}:observer=store:x://h/y"

        self.assertIn("its word means 'written' (it syncs later)", *self.check("store:x://h/y"))
        self.assertIn("leaves the spool on the word 'written'", *self.check(behind))
        self.assertEqual([], self.check(behind, with_promises=False))

    def test_ids(self) -> None:
        """A template of ids that may be equal is a warning, behind a spool, too; one that can't is none."""
        self.register("durable")
        spool = f"spool:{os.path.abspath(self.mktemp())}:observer="

        for text in ("store:x://h/y:id=${HOST}-$MSGID", f"{spool}store:x://h/y:id=${{HOST}}-$MSGID"):
            self.assertIn('id="${HOST}-$MSGID" may be equal for different messages', *self.check(text))
        for text in ("store:x://h/y", "store:x://h/y:id=${HOST}-$RCPTID", "store:x://h/y:id=off"):
            self.assertEqual([], self.check(text), text)


class MemoryTests(SynchronousTestCase):
    """What is not configured is not imported, in a process of its own: imports can't be undone in this one."""

    def imported(self, *arguments: str) -> set[str]:
        """Return which of the costly modules a receiver with these arguments has imported once it is made."""
        directory = os.path.abspath(self.mktemp())
        os.mkdir(directory)
        # Not under coverage, which has a use of its own for sqlite3.
        environ = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
        found = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            cwd=directory,
            env={**environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(0, found.returncode, found.stderr)
        return set(found.stdout.split())

    def test_default(self) -> None:
        """By default there is a file, and nothing else costs anything."""
        self.assertEqual(set(), self.imported())

    def test_configured(self) -> None:
        """Each of them comes with what needs it."""
        spool = os.path.abspath(self.mktemp())
        specs = sorted({spec.replace("SPOOL", spool) for spec in COSTLY.values()})

        self.assertEqual({*COSTLY}, self.imported(*(word for spec in specs for word in ("--observer", spec))))
