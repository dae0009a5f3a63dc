"""
Appends messages to a stream of Redis, a transaction for each batch, and reads what became of each.

A transaction is all or nothing where Redis refuses it before it runs: without memory, as a replica, while it can't
write to its disk. So the messages of a batch keep their order.
"""

from __future__ import annotations

import hashlib
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import redis.exceptions

from webhookrx.errors import Unavailable
from webhookrx.observers.item_outcomes import Ack, Outcome
from webhookrx.observers.redis.client import LONGEST_ANSWER, Command, connect, read_info, reason_of
from webhookrx.observers.redis.options import ID_FIELD, MESSAGE_FIELD

if TYPE_CHECKING:
    from webhookrx.observers.addresses import Server
    from webhookrx.observers.keyed_record import KeyedRecord
    from webhookrx.observers.redis.client import RedisConnection
    from webhookrx.observers.redis.options import Confirmation, RedisAccess, RedisServers, RedisTarget
    from webhookrx.observers.retrying import Retries

#: As L{webhookrx.observers.redis.client.connect}.
Connect = Callable[
    ["RedisServers", "str | None", "ssl.SSLContext | None", Iterator[float]],
    "tuple[RedisConnection, Server]",
]

SCRIPT: Final = b"""\
if redis.call('EXISTS', KEYS[2]) == 1 then
  redis.call('EXPIRE', KEYS[2], ARGV[1])
  return 0
end
local entry
if ARGV[2] == '' then
  entry = redis.call('XADD', KEYS[1], '*', 'id', ARGV[3], 'message', ARGV[4])
else
  entry = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'id', ARGV[3], 'message', ARGV[4])
end
redis.call('SET', KEYS[2], entry, 'EX', ARGV[1])
return entry
"""
"""
Appends a message unless its id is known: the keys are the stream and that of the id, the arguments the seconds for
which it is known, MAXLEN or nothing, the id and the message.

XADD comes before SET: an error ends a script, and nothing undoes what it has done, so an id that is known before its
message is there would lose that. What is known is written again by EXPIRE: WAIT and WAITAOF look at the last write of
their own connection (U{https://redis.io/docs/latest/commands/wait/}), and would confirm at once if there was none.
"""
_SHA: Final = hashlib.sha1(SCRIPT, usedforsecurity=False).hexdigest()

#: Bytes of all answers about a message, at most; an error repeats names that were sent.
_ANSWER: Final = 1024

_ENTRY: Final = re.compile(rb"[0-9]+-[0-9]+")


def id_key(stream: str, own: str) -> str:
    """Return the key that stands for an id. In a cluster it is on the node of the stream, by its hash tag."""
    return f"{stream if '{' in stream else f'{{{stream}}}'}:id:{own}"


def append_command(target: RedisTarget, record: KeyedRecord) -> Command:
    """Return the command that appends a message; without the script where it has no id, or nobody asks for it."""
    if target.dedup_window is not None and record.id:
        window, maxlen = int(target.dedup_window), "" if target.maxlen is None else target.maxlen
        key = id_key(target.stream, record.id)
        return ("EVALSHA", _SHA, 2, target.stream, key, window, maxlen, record.id, record.value)
    limit: Command = () if target.maxlen is None else ("MAXLEN", "~", target.maxlen)
    return ("XADD", target.stream, *limit, "*", ID_FIELD, record.id, MESSAGE_FIELD, record.value)


def confirm_command(confirmation: Confirmation, seconds: float) -> Command:
    """Return the command that waits for replicas and disks."""
    # It answers before we give up. 0 would mean for ever.
    milliseconds = max(int(seconds * 800), 1)
    if confirmation.local is None:
        return ("WAIT", confirmation.replicas, milliseconds)
    return ("WAITAOF", confirmation.local, confirmation.replicas, milliseconds)


def read_appended(answer: Any, *, knows: bool, excerpt: bool) -> Outcome:
    """
    Return what the answer to L{append_command} says. Whatever is neither is not believed.

    @param knows: the script was asked, which answers 0 for an id that it knows.
    """
    if isinstance(answer, bytes) and _ENTRY.fullmatch(answer):
        return Ack.STORED
    if knows and type(answer) is int and answer == 0:
        return Ack.KNOWN
    if isinstance(answer, redis.exceptions.RedisError):
        return Unavailable(reason_of(answer, excerpt=excerpt))
    return Unavailable("the answer is no id of an entry")


def read_confirmed(answer: Any, confirmation: Confirmation, *, excerpt: bool) -> Unavailable | None:
    """Return why a batch is not as safe as was asked; None when it is."""
    if isinstance(answer, redis.exceptions.RedisError):
        if confirmation.local is not None and "unknown command" in str(answer):
            return Unavailable("it does not know WAITAOF, which needs Redis 7.2")
        return Unavailable(reason_of(answer, excerpt=excerpt))
    if confirmation.local is None and type(answer) is int:
        local, replicas = 0, answer
    elif confirmation.local is not None and isinstance(answer, list) and [*map(type, answer)] == [int, int]:
        local, replicas = answer
    else:
        return Unavailable("the answer is none to WAIT or WAITAOF")
    if local < (confirmation.local or 0):
        return Unavailable("it has not synced its file in time")
    if replicas < confirmation.replicas:
        return Unavailable(f"{replicas} of {confirmation.replicas} replicas have confirmed in time")
    return None


def check_server(info: Mapping[str, str], confirmation: Confirmation | None) -> None:
    """
    Check that a server can confirm at all. It would append the same messages at every try, and confirm none.

    @param info: what INFO says, as far as the user may ask.
    @raise Unavailable: it can't.
    """
    if confirmation is None:
        return
    if confirmation.local is not None:
        version = info.get("redis_version", "")
        numbers = [int(part) for part in version.split(".")[:2] if part.isdecimal()]
        if numbers and numbers < [7, 2]:
            raise Unavailable(f"Redis {version} does not know WAITAOF, which needs 7.2")
        if confirmation.local and info.get("aof_enabled") == "0":
            raise Unavailable("waitaof= waits for its append-only file, and it has appendonly no")
    replicas = info.get("connected_slaves", "")
    if replicas.isdecimal() and int(replicas) < confirmation.replicas:
        raise Unavailable(f"it has {replicas} of {confirmation.replicas} replicas")


class RedisLink:
    """
    Appends batches over a connection that stays open between them.

    @param retries: how long a transaction may take, and whether the receiver stops.
    @param on_connected: called with each new server and what INFO says of it.
    @param on_confirmed: called with the seconds that each WAIT or WAITAOF took.
    @param connect: as L{webhookrx.observers.redis.client.connect}.
    """

    def __init__(
        self,
        target: RedisTarget,
        retries: Retries,
        on_connected: Callable[[Server, Mapping[str, str]], None],
        on_confirmed: Callable[[float], None],
        connect: Connect = connect,
    ) -> None:
        self._target = target
        self._retries = retries
        self._on_connected = on_connected
        self._on_confirmed = on_confirmed
        self._connect = connect
        self._access: RedisAccess | None = None
        self._connection: RedisConnection | None = None
        self._excerpt = not target.servers.sends_secret

    def use(self, password: str | None, context: ssl.SSLContext | None) -> None:
        """Use these for the next connection, and end the present one."""
        self.close()
        self._access = password, context

    def append(self, records: Sequence[KeyedRecord]) -> Sequence[Outcome]:
        """Append messages in order, up to the first transaction that fails, and return an outcome for each."""
        outcomes: list[Outcome] = []
        for begin, end in self._target.limits.cut([len(record.value) for record in records]):
            part_outcomes = self._append_part(records[begin:end])
            outcomes += part_outcomes
            problem = next((each for each in part_outcomes if isinstance(each, Unavailable)), None)
            if problem is not None:
                outcomes += [problem] * (len(records) - len(outcomes))
                break
        return outcomes

    def close(self) -> None:
        """End the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()

    def _append_part(self, records: Sequence[KeyedRecord]) -> list[Outcome]:
        """Append the messages of one transaction."""
        try:
            # A batch may be many transactions.
            left = self._retries.time_left()
            seconds = self._target.timeout if left is None else min(left, self._target.timeout)
            steps = self._retries.steps(seconds)
            connection = self._connected(steps)
            outcomes = self._transact(connection, records, steps)
        except Unavailable as error:
            self.close()
            return [error] * len(records)
        except (redis.exceptions.RedisError, OSError) as error:
            self.close()
            return [Unavailable(reason_of(error, excerpt=self._excerpt))] * len(records)
        if any(isinstance(outcome, Unavailable) for outcome in outcomes):
            # It may be a replica now, or have forgotten the script: the next connection asks for the master, and brings
            # the script.
            self.close()
        return outcomes

    def _transact(
        self, connection: RedisConnection, records: Sequence[KeyedRecord], steps: Iterator[float]
    ) -> list[Outcome]:
        commands: list[Command] = [("MULTI",), *(append_command(self._target, record) for record in records), ("EXEC",)]
        confirmation = self._target.confirmation
        *begun, done = connection.exchange(commands, len(commands), steps, LONGEST_ANSWER + _ANSWER * len(records))
        refused = next((each for each in begun if isinstance(each, redis.exceptions.RedisError)), None)
        if not isinstance(done, list) or len(done) != len(records):
            # EXECABORT: the first command that was refused says why.
            problem = refused or done
            if not isinstance(problem, redis.exceptions.RedisError):
                raise Unavailable("the answer is none to a transaction")
            raise Unavailable(reason_of(problem, excerpt=self._excerpt))
        if begun != [b"OK", *[b"QUEUED"] * len(records)]:
            # Whatever has run, it was not this transaction.
            said = "it has not begun the transaction" if refused is None else reason_of(refused, excerpt=self._excerpt)
            raise Unavailable(said)
        outcomes = [
            read_appended(
                answer, knows=self._target.dedup_window is not None and bool(record.id), excerpt=self._excerpt
            )
            for answer, record in zip(done, records, strict=True)
        ]
        if confirmation is not None and any(isinstance(outcome, Ack) for outcome in outcomes):
            unsafe = self._confirm(connection, confirmation, steps)
            if unsafe is not None:
                return [unsafe if isinstance(outcome, Ack) else outcome for outcome in outcomes]
        return outcomes

    def _confirm(
        self, connection: RedisConnection, confirmation: Confirmation, steps: Iterator[float]
    ) -> Unavailable | None:
        began = time.monotonic()
        (answer,) = connection.exchange([confirm_command(confirmation, self._target.timeout)], 1, steps)
        self._on_confirmed(time.monotonic() - began)
        return read_confirmed(answer, confirmation, excerpt=self._excerpt)

    def _connected(self, steps: Iterator[float]) -> RedisConnection:
        if self._connection is not None:
            return self._connection
        if self._access is None:
            raise Unavailable("it is closed")
        connection, server = self._connect(self._target.servers, *self._access, steps)
        try:
            if self._target.dedup_window is not None:
                connection.ask("SCRIPT", "LOAD", SCRIPT, steps=steps)
            info = self._ask_info(connection, steps)
            check_server(info, self._target.confirmation)
        except BaseException:
            connection.disconnect()
            raise
        self._connection = connection
        self._on_connected(server, info)
        return connection

    def _ask_info(self, connection: RedisConnection, steps: Iterator[float]) -> Mapping[str, str]:
        try:
            return read_info(connection.ask("INFO", steps=steps))
        except redis.exceptions.ResponseError:
            # The user has no right to ask.
            return {}
