"""The spec string of the postgresql observer."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import ConfigError
from webhookrx.observers.postgresql.options import PostgreSQLTarget, read_postgresql, table_note

LOCAL = "postgresql://127.0.0.1/logs/webhooks"
AWAY = "postgresql://db.example.com/logs/webhooks"


def read(url: str = LOCAL, **options: str) -> PostgreSQLTarget:
    """Read a spec string."""
    return read_postgresql([url], options)


class OptionTests(SynchronousTestCase):
    """What it takes, and what not."""

    def problem(self, url: str = LOCAL, **options: str) -> str:
        """Read a spec string that is wrong; return what is said."""
        return str(self.assertRaises(ConfigError, read, url, **options))

    def test_defaults(self) -> None:
        """Without options: the standard columns, known by the id, synced, with TLS to another machine only."""
        here, away = read(), read(AWAY)

        self.assertEqual(("logs", None, "webhooks"), (here.database, here.table.schema, here.table.name))
        self.assertEqual(
            ["id", "received", "source", "host", "message"], [column.name for column in here.table.columns]
        )
        self.assertEqual(("id",), here.table.unique)
        self.assertEqual(("webhookrx", "on", False, 10.0, 10.0), tuple(map(here.__getattribute__, _PLAIN)))
        self.assertIsNone(here.tls)
        self.assertIsNotNone(away.tls)
        self.assertEqual([5432], [server.port for server in away.addresses.servers])

    def test_url(self) -> None:
        """Several servers, a schema, and any character in a name by its percent code."""
        target = read("postgresql://a,b:5433/my%2Fdb/of%2Elogs.web%22s")

        self.assertEqual("a:5432,b:5433", str(target.addresses))
        self.assertEqual(("my/db", "of.logs", 'web"s'), (target.database, target.table.schema, target.table.name))
        self.assertEqual('"of.logs"."web""s"', target.table.identifier)

    def test_wrong_url(self) -> None:
        """A URL without database or table, or with a password, is a mistake."""
        for url in ("postgresql://h", "postgresql://h/db", "postgresql://h/db/", "postgresql://h//t"):
            self.assertIn("the URL takes a database and a table", self.problem(url))
        self.assertIn("the URL takes", self.problem("postgresql://h/db/a.b.c"))
        self.assertIn("the URL takes", self.problem("postgresql://h/db/t/x"))
        self.assertIn("is no name", self.problem("postgresql://h/db/%00"))
        self.assertIn("is no name", self.problem("postgresql://h/db/" + "x" * 64))
        said = self.problem("postgresql://me:hunter2@h/db/t")
        self.assertIn("no user or password in the URL", said)
        self.assertNotIn("hunter2", said)

    def test_plaintext(self) -> None:
        """A password goes to another machine with TLS only, unless that is allowed."""
        self.assertIn(
            "leave out tls=no, or write allow_plaintext=yes when", self.problem(AWAY, tls="no", password_file="/x")
        )
        for url, options in (
            (AWAY, {}),
            (LOCAL, {"tls": "no"}),
            (AWAY, {"tls": "no", "allow_plaintext": "yes"}),
        ):
            self.assertEqual("/x", read(url, password_file="/x", **options).password_file)
        self.assertIsNone(read(AWAY, tls="no").tls)

    def test_tls(self) -> None:
        """Files of TLS turn it on, also to this machine, and do not go with tls=no."""
        target = read(ca_file="/ca")
        assert target.tls is not None
        self.assertEqual("/ca", target.tls.ca_file)
        self.assertIn("ca_file= goes with tls=yes", self.problem(tls="no", ca_file="/ca"))
        self.assertIn("cert_file= and key_file= go together", self.problem(cert_file="/cert"))

    def test_columns(self) -> None:
        """A column is one that is known, by its name or another, or a template."""
        target = read(columns="key=id, at=received,program=${PROGRAM},message", dedup="key,at")

        self.assertEqual(["key", "at", "program", "message"], [column.name for column in target.table.columns])
        self.assertEqual(("key", "at"), target.table.unique)
        for columns, said in {
            "id,colour": "'colour' is neither one of id, received, source, host, message nor a template",
            "id,id": "column 'id' is there twice",
            "id,": "begins with no column name",
            "=id": "begins with no column name",
            "id," + "x" * 64 + "=host": "begins with no column name",
            "id,x=$": "column 1: after $ comes a name",
        }.items():
            self.assertIn(said, self.problem(columns=columns))

    def test_dedup(self) -> None:
        """A row is known by columns that hold the id, or not at all."""
        self.assertIsNone(read(dedup="no").table.unique)
        self.assertIsNone(read(columns="message", dedup="no").table.unique)
        self.assertIn("no column holds the id", self.problem(columns="message"))
        for dedup in ("host", "id,id", "id,colour", ""):
            self.assertIn("it takes yes, no, or with commas id and others", self.problem(dedup=dedup))

    def test_choices(self) -> None:
        """Other options are checked as everywhere."""
        self.assertEqual("remote_apply", read(sync="remote_apply").sync)
        self.assertIn("sync", self.problem(sync="off"))
        self.assertIn("timeout", self.problem(timeout="1ms"))
        self.assertIn("user", self.problem(user=""))

    def test_note(self) -> None:
        """C{--check} shows the statement that makes the table."""
        self.assertEqual(
            "the table of observer 'postgresql' can be made, and is with create=yes, as\n"
            'CREATE TABLE IF NOT EXISTS "webhooks" (\n'
            '    "id"       text,\n'
            '    "received" timestamptz,\n'
            '    "source"   text,\n'
            '    "host"     text,\n'
            '    "message"  json,\n'
            '    PRIMARY KEY ("id")\n'
            ");",
            table_note([LOCAL], {}),
        )
        self.assertIn("is made, if there is none", table_note([LOCAL], {"create": "yes"}))
        self.assertNotIn("PRIMARY KEY", table_note([LOCAL], {"dedup": "no"}))


_PLAIN = ("user", "sync", "create", "timeout", "retry_for")
