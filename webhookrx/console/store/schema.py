"""
The schema of a console's store: every table, and the steps from older versions.

Times are seconds since the epoch. Columns named C{doc}, C{labels}, C{facts} and the like hold JSON. C{revision} and
C{change} are append-only: triggers refuse anything else, also for a program that opens the file.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 3
"""What C{PRAGMA user_version} says of a file of this schema."""

#: What targets of alarms have not been told yet. No id is used twice: who reads on goes by them.
_ALARM_POSTS: Final = """
CREATE TABLE alarm_post (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    target TEXT NOT NULL,
    at REAL NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX alarm_post_of ON alarm_post (target, id);
"""

#: The last day that a series has counted, by which it is deleted after its sums.
_COUNTED_DAY: Final = """
ALTER TABLE series ADD COLUMN counted_day INTEGER NOT NULL DEFAULT 0;
UPDATE series SET counted_day = strftime('%s', 'now');
CREATE INDEX series_counted ON series (counted_day);
"""

MIGRATIONS: Final[dict[int, str]] = {1: _ALARM_POSTS, 2: _COUNTED_DAY}
"""For each older version: the statements that lead to the next one."""

#: History. A rule that was deleted keeps its row, so that its generations only grow.
_RULES: Final = """
CREATE TABLE rule (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL,
    doc TEXT NOT NULL,
    yaml TEXT,
    manager TEXT NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0,
    changed_at REAL NOT NULL,
    changed_by TEXT NOT NULL
) STRICT;
CREATE TABLE revision (
    number INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    by TEXT NOT NULL,
    via TEXT NOT NULL,
    note TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE change (
    id INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL REFERENCES revision (number),
    kind TEXT NOT NULL CHECK (kind IN ('rule', 'router', 'enrolment', 'token', 'user', 'setting', 'alarm')),
    name TEXT NOT NULL,
    operation TEXT NOT NULL CHECK (operation IN ('create', 'update', 'delete')),
    generation INTEGER,
    before TEXT,
    after TEXT
) STRICT;
CREATE INDEX change_of ON change (kind, name, id);
CREATE INDEX change_in ON change (revision);
CREATE TRIGGER revision_is_not_updated BEFORE UPDATE ON revision
    BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END;
CREATE TRIGGER revision_is_not_deleted BEFORE DELETE ON revision
    BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END;
CREATE TRIGGER change_is_not_updated BEFORE UPDATE ON change
    BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END;
CREATE TRIGGER change_is_not_deleted BEFORE DELETE ON change
    BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END;
CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""

#: What happens and changes nothing here, such as log-ins and taps. The oldest rows are cut off.
_AUDIT: Final = """
CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    by TEXT NOT NULL,
    via TEXT NOT NULL,
    address TEXT NOT NULL DEFAULT '',
    event TEXT NOT NULL,
    name TEXT NOT NULL DEFAULT '',
    details TEXT NOT NULL DEFAULT '{}'
) STRICT;
"""

#: A name is taken by a router that was approved; those that wait may ask for the same one.
#: C{bundle_content} is a hash of all that its last bundle had, of which that revision was made.
_ROUTERS: Final = """
CREATE TABLE router (
    guid TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'disabled')),
    labels TEXT NOT NULL DEFAULT '{}',
    facts TEXT NOT NULL DEFAULT '{}',
    enrolled_at REAL NOT NULL,
    enrolment TEXT NOT NULL DEFAULT '',
    seen_at REAL,
    applied_revision INTEGER NOT NULL DEFAULT 0,
    applied_hash TEXT NOT NULL DEFAULT '',
    status TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    gate TEXT NOT NULL DEFAULT '{}',
    bundle_revision INTEGER NOT NULL DEFAULT 0,
    bundle_made_at INTEGER NOT NULL DEFAULT 0,
    bundle_content TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX router_name ON router (name) WHERE state != 'pending';
CREATE TABLE certificate (
    fingerprint TEXT PRIMARY KEY,
    guid TEXT NOT NULL REFERENCES router (guid) ON DELETE CASCADE,
    issued_at REAL NOT NULL,
    ends_at REAL NOT NULL,
    used_at REAL
) STRICT, WITHOUT ROWID;
CREATE INDEX certificate_of ON certificate (guid);
CREATE TABLE enrolment (
    id TEXT PRIMARY KEY,
    secret_hash BLOB NOT NULL,
    approve TEXT NOT NULL CHECK (approve IN ('auto', 'manual')),
    uses_left INTEGER NOT NULL,
    expires_at REAL NOT NULL,
    labels TEXT NOT NULL DEFAULT '{}',
    made_by TEXT NOT NULL,
    made_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
"""

#: Secrets are never here: argon2 hashes of passwords, SHA-256 of random tokens.
_PEOPLE: Final = """
CREATE TABLE person (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    password TEXT,
    subject TEXT UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'editor', 'admin')),
    tap INTEGER NOT NULL DEFAULT 0,
    enabled INTEGER NOT NULL DEFAULT 1,
    generation INTEGER NOT NULL DEFAULT 1,
    made_at REAL NOT NULL
) STRICT;
CREATE TABLE session (
    hash BLOB PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    person INTEGER NOT NULL REFERENCES person (id) ON DELETE CASCADE,
    csrf TEXT NOT NULL,
    address TEXT NOT NULL DEFAULT '',
    agent TEXT NOT NULL DEFAULT '',
    made_at REAL NOT NULL,
    used_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_of ON session (person);
CREATE TABLE api_token (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    person INTEGER NOT NULL REFERENCES person (id) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'editor', 'admin')),
    tap INTEGER NOT NULL DEFAULT 0,
    made_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    used_at REAL
) STRICT, WITHOUT ROWID;
CREATE TABLE failed_login (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    at REAL NOT NULL
) STRICT;
CREATE INDEX failed_login_at ON failed_login (at);
"""

_COUNTS: Final = """
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    router TEXT NOT NULL,
    connector TEXT NOT NULL,
    rule TEXT NOT NULL DEFAULT '',
    labels TEXT NOT NULL DEFAULT '{}',
    last_message REAL,
    UNIQUE (router, connector)
) STRICT;
CREATE TABLE counted_start (
    router TEXT NOT NULL,
    begun INTEGER NOT NULL,
    place INTEGER NOT NULL,
    number INTEGER NOT NULL,
    until INTEGER NOT NULL,
    series BLOB NOT NULL,
    PRIMARY KEY (router, begun)
) STRICT, WITHOUT ROWID;
CREATE TABLE alarm (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL,
    doc TEXT NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE alarm_state (
    alarm TEXT NOT NULL,
    about TEXT NOT NULL,
    state TEXT NOT NULL,
    since REAL NOT NULL,
    details TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (alarm, about)
) STRICT, WITHOUT ROWID;
"""

_ROLLUP: Final = """
CREATE TABLE {table}_{step} (
    at INTEGER NOT NULL,
    series INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    other BLOB,
    PRIMARY KEY (at, series)
) STRICT, WITHOUT ROWID;
"""

STEPS: Final = ("1m", "10m", "1h", "1d")
"""The rollups, each with two tables of its own: C{roll_STEP} by router and connector, and C{cube_STEP} by rule,
product, vendor and port, whose series have no router."""

_ROLLUPS: Final = tuple(_ROLLUP.format(table=table, step=step) for table in ("roll", "cube") for step in STEPS)

SCHEMA: Final = "".join(
    (
        _RULES,
        _AUDIT,
        _ROUTERS,
        _PEOPLE,
        _COUNTS,
        *_ROLLUPS,
        _ALARM_POSTS,
        _COUNTED_DAY,
    )
)
"""The statements that make an empty file one of L{VERSION}."""
