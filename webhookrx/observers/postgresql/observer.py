"""
C{postgresql:URL}: stores messages in a table of PostgreSQL, each once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeAlias, cast

from twisted.logger import Logger
from zope.interface import implementer

from webhookrx.config.specs import SpecOptions
from webhookrx.errors import ConfigError, Unavailable
from webhookrx.interfaces import IStoreObserver, Prepared
from webhookrx.observers.item_outcomes import RefusedTogether, store_by_halves
from webhookrx.observers.postgresql.answers import ConnectionFailed, ServerError
from webhookrx.observers.postgresql.connection import SteppedConnection, check_libpq, connect, system_authorities
from webhookrx.observers.postgresql.options import PostgreSQLTarget, read_postgresql
from webhookrx.observers.postgresql.session import PsycopgSession
from webhookrx.observers.retrying import Retries
from webhookrx.observers.secret_files import read_secret
from webhookrx.store_counts import StoreCounts

_log = Logger()


class Session(Protocol):
    """See L{PsycopgSession}."""

    @property
    def warnings(self) -> Sequence[str]: ...

    def store(self, rows: Sequence[bytes], steps: Iterator[float]) -> int: ...

    def has_changed(self, steps: Iterator[float]) -> bool: ...

    def close(self) -> None: ...


#: Begins a session, with the password if there is any, in steps; raises L{ConnectionFailed} or L{ServerError}.
BeginSession: TypeAlias = Callable[[PostgreSQLTarget, "str | None", Iterator[float]], Session]


@implementer(IStoreObserver)
class PostgreSQLObserver:
    """
    Stores each batch in one transaction. Its promise is that of C{COMMIT}, with C{synchronous_commit} set for the
    session. A transaction that a row has failed is bisected until that row is alone; the others are stored.

    A commit whose answer was lost is made again: the rows that are there already are known by the message's own id.

    @param begin_session: in the thread of C{store}.
    """

    promise = "durable"
    promise_reason = ""
    wants = None

    def __init__(
        self, spec: str, target: PostgreSQLTarget, begin_session: BeginSession, retries: Retries | None = None
    ) -> None:
        self.spec = spec
        self.prepare = target.table.encode
        self.takes_lines = any(column.holds == "message" for column in target.table.columns)
        self.counts = StoreCounts()
        self._target = target
        self._columns = frozenset(column.name for column in target.table.columns)
        self._begin_session = begin_session
        self._retries = Retries(target.retry_for) if retries is None else retries
        self._password = _Password()
        self._session: Session | None = None
        self._is_open = False
        self._warned: set[str] = set()

    def check(self) -> None:
        """
        Read the files, without opening a connection.

        @raise ConfigError: a file is missing or wrong.
        """
        self._read_files()

    def open(self) -> None:
        """
        Read the files. The first batch connects: the server may be away at the start.

        @raise ConfigError: a file is missing or wrong.
        """
        self._read_files()
        self._retries.resume()
        self._is_open = True

    def store(self, batch: Sequence[Prepared]) -> list[Exception | None] | None:
        """
        Commit a batch, in one transaction unless rows of it are refused.

        @return: None, or for each message None, L{Rejected}, or L{Unavailable} from the first that is not stored on.
        @raise Unavailable: no message was stored.
        """
        rows = cast("Sequence[bytes]", batch)
        give_up_at = self._retries.begin()
        bisect_until = give_up_at + self._target.timeout
        tried = False

        def send(begin: int, end: int) -> None:
            nonlocal tried
            # Bisecting goes on for as long as it takes to be done with one message at least.
            if tried and self._retries.is_over(bisect_until if begin else math.inf):
                raise Unavailable("there was no time to find all messages that are refused")
            tried = True
            new = self._retries.call(partial(self._try, rows[begin:end]), give_up_at)
            self.counts.known(end - begin - new)

        return store_by_halves([(0, len(rows))] if rows else [], len(rows), send)

    def hurry(self) -> None:
        """End a pause between two tries, and shorten this transaction and the next ones."""
        self._retries.hurry()

    def reopen(self) -> None:
        """
        Read the files again, and connect anew.

        @raise ConfigError: a file is wrong; the password read before stays in use.
        """
        self._read_files()
        self._retries.forget_pause()
        self._drop()

    def close(self) -> None:
        """Close the connection."""
        self._is_open = False
        self._drop()

    def _try(self, rows: Sequence[bytes]) -> int:
        """
        Commit rows, and return how many are new.

        @raise Unavailable: they may be tried again.
        @raise RefusedTogether: at least one of them is refused for good.
        """
        if not self._is_open:
            raise Unavailable("it is closed")
        steps = self._retries.steps(self._target.timeout)
        try:
            return self._store(self._begun_session(steps), rows, steps)
        except ServerError as error:
            problem = error.describe(self._columns)
        except (ConnectionFailed, ConfigError) as error:
            problem = str(error)
        except RefusedTogether:
            raise
        except BaseException:
            self._drop()
            raise
        # The next session looks at the table anew.
        self._drop()
        raise Unavailable(problem)

    def _begun_session(self, steps: Iterator[float]) -> Session:
        session = self._session
        if session is None:
            session = self._session = self._begin_session(self._target, self._password.text, steps)
            for warning in {*session.warnings} - self._warned:
                self._warned.add(warning)
                _log.warn("Observer {spec}: {problem}", spec=self.spec, problem=warning)
        return session

    def _store(self, session: Session, rows: Sequence[bytes], steps: Iterator[float]) -> int:
        try:
            new = session.store(rows, steps)
            if not 0 <= new <= len(rows):
                raise ConnectionFailed(f"it says that {new} of {len(rows)} rows are new")
            return new
        except ServerError as error:
            if not error.is_of_row(self._columns):
                raise
            refusal = RefusedTogether(error.describe(self._columns))
        if len(rows) == 1 and session.has_changed(steps):
            # Refused by what the table was when the session began: an operator may have made a column wider.
            raise ConnectionFailed("the table has changed")
        raise refusal

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _read_files(self) -> None:
        target = self._target
        if target.tls is not None:
            try:
                target.tls.check()
            except ConfigError as error:
                raise ConfigError(f"observer 'postgresql': {error.problem}") from None
            if target.tls.ca_file is None:
                system_authorities()
        if target.password_file is not None:
            self._password = _Password(
                read_secret(target.password_file, SpecOptions("postgresql", {}), "password_file")
            )


class _Password:
    """A password, which no C{repr} shows."""

    def __init__(self, text: str | None = None) -> None:
        self.text = text


#: Yields connections to the addresses of all servers, see L{connect}.
Connect: TypeAlias = Callable[[PostgreSQLTarget, "str | None", Iterator[float]], Iterator[SteppedConnection]]


def begin_session(
    target: PostgreSQLTarget, password: str | None, steps: Iterator[float], connect: Connect = connect
) -> PsycopgSession:
    """
    Connect to the first of the servers that takes rows.

    @raise ConnectionFailed: none does; the text is that of the last one.
    @raise ServerError: the same.
    """
    problem: ServerError | ConnectionFailed | None = None
    connections = connect(target, password, steps)
    while True:
        try:
            connection = next(connections)
        except ConnectionFailed:
            if problem is not None:
                raise problem from None
            raise
        session = PsycopgSession(connection, target)
        try:
            session.begin(steps)
        except (ServerError, ConnectionFailed) as error:
            session.close()
            problem = error
        except BaseException:
            session.close()
            raise
        else:
            return session


def build_postgresql(spec: str, args: Sequence[str], options: Mapping[str, str], ack: str) -> PostgreSQLObserver:
    """
    Make the observer of C{postgresql:postgresql://HOST/DB/TABLE[:key=value…]}; see
    L{webhookrx.observers.postgresql.options}.

    @raise ConfigError: an argument, an option or a file is wrong, or the library below psycopg too old.
    """
    check_libpq()
    observer = PostgreSQLObserver(spec, read_postgresql(args, options), begin_session)
    observer.check()
    return observer
