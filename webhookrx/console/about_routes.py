"""
The routes about the console itself: what runs, where its data is, and the keys by which routers know it.
"""

from __future__ import annotations

import os
import platform
import sqlite3
from datetime import UTC, datetime
from typing import Final

import msgspec
from cryptography.hazmat.primitives.hashes import SHA256

from webhookrx.console.api import callers
from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import BUSY, ApiProblem
from webhookrx.console.api.route import ApiCall, ApiRoute
from webhookrx.console.counts.console_counts import MOST_ROUTERS, MOST_SERIES
from webhookrx.console.people import accounts, login_limits, sessions
from webhookrx.console.routers.authority import RENEWABLE_DAYS, ROUTER_DAYS, Authority
from webhookrx.console.store.schema import VERSION
from webhookrx.management.alarm_rules import MOST_RULES, MOST_TARGETS
from webhookrx.management.bundle import key_id, public_key
from webhookrx.version import installed_version


class ConsoleLimit(msgspec.Struct, frozen=True):
    """
    A limit that is not set by anybody.

    @ivar about: of what.
    @ivar unit: C{seconds}, or empty for a number.
    """

    about: str
    value: int
    unit: str = ""


class ShownConsole(msgspec.Struct, frozen=True):
    """
    The console.

    @ivar revision: the newest of its store.
    @ivar read_only_rules: rules come from pushed files alone.
    """

    version: str
    python: str
    sqlite: str
    url: str
    revision: int
    read_only_rules: bool
    limits: tuple[ConsoleLimit, ...]


class ShownDatabase(msgspec.Struct, frozen=True):
    """
    The file of the console.

    @ivar schema: the version of its tables.
    @ivar bytes: of the file, with what SQLite has beside it.
    @ivar free_bytes: of its disk, for the console.
    @ivar oldest_change: when the first change of the history was made, seconds since the epoch; 0 before there is one.
    """

    path: str
    schema: int
    bytes: int
    free_bytes: int
    revisions: int
    oldest_change: float


class ShownCertificate(msgspec.Struct, frozen=True):
    """
    A CA certificate that counts.

    @ivar begins: seconds since the epoch, as C{ends}.
    @ivar fingerprint: its SHA-256, hexadecimal.
    @ivar in_use: it certifies routers now.
    """

    subject: str
    begins: float
    ends: float
    fingerprint: str
    in_use: bool
    pem: str


class ShownSigningKey(msgspec.Struct, frozen=True):
    """
    A public key of bundles.

    @ivar id: by which bundles name it.
    @ivar in_use: it signs bundles now.
    """

    id: str
    key: str
    in_use: bool


class ShownAuthority(msgspec.Struct, frozen=True):
    """
    By what routers know the console, and it them.

    @ivar router_days: for which a router's certificate is valid; C{renewable_days} after its end it may still be
        renewed.
    """

    certificates: tuple[ShownCertificate, ...]
    signing_keys: tuple[ShownSigningKey, ...]
    router_days: int
    renewable_days: int


_LIMITS: Final = (
    ConsoleLimit("people", accounts.MOST_PEOPLE),
    ConsoleLimit("API tokens of one person", accounts.MOST_TOKENS),
    ConsoleLimit("sessions of one person", sessions.MOST_SESSIONS),
    ConsoleLimit("a session without a request", sessions.IDLE, "seconds"),
    ConsoleLimit("a session in all", sessions.WHOLE, "seconds"),
    ConsoleLimit("failed log-ins of one name from one address, in 15 minutes", login_limits.PER_NAME_AND_ADDRESS),
    ConsoleLimit("failed log-ins from one address, in 15 minutes", login_limits.PER_ADDRESS),
    ConsoleLimit("requests under way", callers.MOST_CALLS),
    ConsoleLimit("requests under way of one person", callers.MOST_OF_PERSON),
    ConsoleLimit("streams of one person, such as taps and exports", callers.STREAMS_OF_PERSON),
    ConsoleLimit("routers", MOST_ROUTERS),
    ConsoleLimit("connectors that are counted by themselves", MOST_SERIES),
    ConsoleLimit("alarms", MOST_RULES),
    ConsoleLimit("targets of alarms", MOST_TARGETS),
)


async def show_console(call: ApiCall) -> ShownConsole:
    """Return what runs."""
    settings = call.console.settings
    revision = await call.console.store.look(
        lambda db: db.execute("SELECT coalesce(max(number), 0) FROM revision").fetchone()[0]
    )
    return ShownConsole(
        installed_version(),
        platform.python_version(),
        sqlite3.sqlite_version,
        settings.url,
        revision,
        settings.read_only_rules,
        _LIMITS,
    )


async def show_database(call: ApiCall) -> ShownDatabase:
    """Return what is known of the file."""
    path: str = call.console.settings.database

    def look(db: sqlite3.Connection) -> ShownDatabase:
        # In the thread of the store: a disk may be slow.
        revisions, oldest = db.execute("SELECT count(*), coalesce(min(at), 0) FROM revision").fetchone()
        size = sum(os.path.getsize(each) for each in (path, f"{path}-wal") if os.path.exists(each))
        disk = os.statvfs(os.path.dirname(path) or ".")
        return ShownDatabase(path, VERSION, size, disk.f_bavail * disk.f_frsize, revisions, oldest)

    shown: ShownDatabase = await call.console.store.read(look)
    return shown


async def show_authority(call: ApiCall) -> ShownAuthority:
    """Return the CA certificates and public keys."""
    fleet = call.console.fleet
    if fleet is None:
        raise ApiProblem(BUSY, "The console has not read its routers yet.", headers=(("Retry-After", "5"),))
    authority: Authority = fleet.authority
    certificates = tuple(
        ShownCertificate(
            each.subject.rfc4514_string(),
            _seconds(each.not_valid_before_utc),
            _seconds(each.not_valid_after_utc),
            each.fingerprint(SHA256()).hex(),
            index == 0,
            pem,
        )
        for index, (each, pem) in enumerate(zip(authority.certificates, authority.authorities, strict=True))
    )
    keys = tuple(
        ShownSigningKey(key_id(public_key(text)), text, index == 0) for index, text in enumerate(authority.signing_keys)
    )
    return ShownAuthority(certificates, keys, ROUTER_DAYS, RENEWABLE_DAYS)


def _seconds(moment: datetime) -> float:
    return moment.astimezone(UTC).timestamp()


ROUTES: Final = (
    ApiRoute("GET", "/about", Permission.VIEW, show_console, "What runs, and its limits.", answer=ShownConsole),
    ApiRoute(
        "GET",
        "/about/database",
        Permission.ADMINISTER,
        show_database,
        "Where the data of the console is, and how large it is.",
        answer=ShownDatabase,
    ),
    ApiRoute(
        "GET",
        "/about/authority",
        Permission.VIEW,
        show_authority,
        "The CA certificates and signing keys by which routers know the console.",
        answer=ShownAuthority,
    ),
)
