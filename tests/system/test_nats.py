"""The nats observer and a real nats-server, which is killed, frozen, cut off and set up wrongly."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import nats
import nkeys  # type: ignore[import-untyped]
from nats.js.api import DiscardPolicy, StreamConfig

from tests.contracts.secret_contract import all_texts
from tests.system.certificates import LOCAL_NAMES, Authority, write_ca_file
from tests.system.receiver import wait_until
from tests.system.servers.nats_server import NatsServer
from tests.system.servers.process import ServerCase
from tests.system.servers.proxy import Proxy
from webhookrx.config.observers import parse_observer
from webhookrx.errors import Rejected, Unavailable
from webhookrx.observers import registry
from webhookrx.testing import make_message

T = TypeVar("T")

HURRY_TIME = 3.0
PASSWORD = "s3cret-of-nats"
#: A hash of it in the file, so that the server has nothing to quote but what was sent.
USERS = f"""authorization {{ users: [
  {{ user: "me", password: "{PASSWORD}" }},
  {{ user: "limited", password: "{PASSWORD}", permissions: {{ publish: ["logs.open"], subscribe: ["_INBOX.>"] }} }}
] }}"""


class NatsTests(ServerCase):
    """Observers, and what the stream holds."""

    def start(self, *options: str, stream: bool = True) -> None:
        """Start a server, and make a stream."""
        self.server = self.serve(NatsServer, *options)
        self.login: dict[str, Any] = {}
        if stream:
            self.make_stream()

    def ask(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Do something with JetStream over a connection of its own."""

        async def run() -> T:
            client = await nats.connect(f"nats://{self.server.address}", allow_reconnect=False, **self.login)
            try:
                return await work(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(run())

    def make_stream(self, **more: Any) -> None:
        """Make a stream, or change it."""
        config = StreamConfig(name="LOGS", subjects=["logs.>"], duplicate_window=3600, **more)

        async def make(stream: Any) -> None:
            try:
                await stream.add_stream(config)
            except nats.js.errors.BadRequestError:
                await stream.update_stream(config)

        self.ask(make)

    def stored(self) -> list[tuple[str, str]]:
        """Return id and subject of each message in the stream."""

        async def read(stream: Any) -> list[tuple[str, str]]:
            state = (await stream.stream_info("LOGS")).state
            found = []
            for sequence in range(state.first_seq, state.last_seq + 1) if state.messages else ():
                message = await stream.get_msg("LOGS", sequence)
                found.append((message.headers["Nats-Msg-Id"], message.subject))
            return found

        return self.ask(read)

    def ids(self) -> list[int]:
        """Return the numbers in the stream, in its order."""
        return [int(own.removeprefix("id-")) for own, _ in self.stored()]

    def observer(
        self, *, place: str = "", subject: str = "logs.${HOST:-none}", scheme: str = "nats", **more: str
    ) -> Any:
        """Make an observer and open it."""
        given = {"timeout": "5s", "retry_for": "0s", **more}
        spec = f"nats:{scheme}://{place or self.server.address}/{subject}:"
        spec += ":".join(f"{key}={value}" for key, value in given.items())
        observer: Any = registry.build(parse_observer(spec, registry.find_spec), "durable")
        observer.open()
        self.addCleanup(observer.close)
        return observer

    def password_file(self, password: str = PASSWORD) -> str:
        """Write a file with a password."""
        path = self.server.write("password", f"{password}\n")
        os.chmod(path, 0o600)
        return path

    def reason(self, observer: Any, batch: Sequence[bytes]) -> str:
        """Store a batch that can't be stored now; return why."""
        return str(self.assertRaises(Unavailable, observer.store, batch))

    # -- what comes to the stream ------------------------------------------------------------------------------------

    def test_stored_once(self) -> None:
        """
        Messages are stored in order under their subjects and ids, each acknowledged by the stream and not only sent
        (U{https://github.com/vectordotdev/vector/pull/20834}); a batch that comes again changes nothing.
        """
        self.start()
        observer = self.observer()
        batch = prepared(observer, range(1000), HOST="a.b")

        self.assertIsNone(observer.store(batch))
        self.assertIsNone(observer.store(batch))

        stored = self.stored()
        self.assertEqual([(f"id-{number}", "logs.a_b") for number in range(1000)], stored)
        self.assertEqual(1000, observer.counts.take().known)

    def test_size_limits(self) -> None:
        """
        A message is refused for good from the first byte over max_payload on, its header included, and that ends no
        connection; so is one over the size of the stream. Those beside it are stored.
        """
        self.start("max_payload: 10000")
        proxy = self.proxy()
        observer = self.observer(place=f"127.0.0.1:{proxy.port}", stream="LOGS")
        overhead = len(prepared(observer, [0], text="")[0])
        sizes = range(9_700 - overhead, 10_050 - overhead)
        batch = [prepared(observer, [number], text="x" * size)[0] for number, size in enumerate(sizes)]

        outcomes = observer.store(batch)

        refused = [number for number, outcome in enumerate(outcomes) if outcome is not None]
        self.assertTrue(all(isinstance(outcomes[number], Rejected) for number in refused))
        self.assertEqual(list(range(refused[0], len(batch))), refused)
        self.assertEqual(list(range(refused[0])), self.ids())
        self.assertGreater(refused[0], 0)
        self.assertEqual(1, proxy.accepted)
        found = outcomes[refused[0]]
        self.assertIn("10001 bytes with its header are more than max_payload, 10000", str(found))
        self.make_stream(max_msg_size=1000)
        mixed = [*prepared(observer, [1000]), *prepared(observer, [1001], text="x" * 2000), *prepared(observer, [1002])]
        outcomes = observer.store(mixed)
        self.assertEqual([None, Rejected, None], [outcome and type(outcome) for outcome in outcomes])
        self.assertIn("10054", str(outcomes[1]))

    def proxy(self) -> Proxy:
        """Put a proxy before the server."""
        proxy = Proxy(self.server.port)
        self.addCleanup(proxy.stop)
        return proxy

    # -- a server that fails -----------------------------------------------------------------------------------------

    def test_killed_during_batches(self) -> None:
        """Killed again and again while batches come: nothing is missing, nothing is there twice, all is in order."""
        self.start()
        observer = self.observer(retry_for="1s")
        ended = threading.Event()

        def kill() -> None:
            for pause in (0.3, 0.5, 0.7):
                time.sleep(pause)
                self.server.kill()
                self.server.start()
            ended.set()

        killer = threading.Thread(target=kill)
        killer.start()
        number = 0
        while not ended.is_set():
            deliver(observer, prepared(observer, range(number, number + 300)))
            number += 300
        killer.join()
        deliver(observer, prepared(observer, range(number, number + 300)))

        self.assertEqual(list(range(number + 300)), self.ids())

    def test_frozen(self) -> None:
        """A server that hangs is given up in time; what it had in its sockets comes once."""
        self.start()
        observer = self.observer(timeout="1s")
        self.assertIsNone(observer.store(prepared(observer, range(10))))
        self.server.freeze()
        began = time.monotonic()
        self.reason(observer, prepared(observer, range(10, 500)))
        self.assertLess(time.monotonic() - began, 10.0)
        self.reason(observer, prepared(observer, range(10, 500)))
        self.server.thaw()

        deliver(observer, prepared(observer, range(10, 500)))

        self.assertEqual(list(range(500)), self.ids())

    def test_hurry(self) -> None:
        """Told to hurry while the server hangs, it ends within three seconds, and each later batch does."""
        self.start()
        observer = self.observer(timeout="30s", retry_for="30s")
        self.assertIsNone(observer.store(prepared(observer, range(10))))
        self.server.freeze()
        told: list[float] = []

        def hurry() -> None:
            time.sleep(0.5)
            told.append(time.monotonic())
            observer.hurry()

        thread = threading.Thread(target=hurry)
        thread.start()
        self.reason(observer, prepared(observer, range(10, 20)))
        self.assertLess(time.monotonic() - told[0], HURRY_TIME + 1.0)
        thread.join()
        began = time.monotonic()
        self.reason(observer, prepared(observer, range(10, 20)))
        self.assertLess(time.monotonic() - began, HURRY_TIME + 1.0)

    def test_large_batch_to_a_frozen_server(self) -> None:
        """A batch that fills all sockets between here and a server that hangs ends in time, too."""
        self.start("max_payload: 2000000")
        observer = self.observer(timeout="1s", batch="1000", batch_size="64MiB")
        self.assertIsNone(observer.store(prepared(observer, range(10))))
        self.server.freeze()
        began = time.monotonic()

        self.reason(observer, prepared(observer, range(10, 30), text="x" * 1_000_000))
        observer.close()

        self.assertLess(time.monotonic() - began, 15.0)
        self.server.thaw()

    def test_answers_lost(self) -> None:
        """When the answers are lost after storing, the same batch is known at the next try."""
        self.start()
        proxy = self.proxy()
        observer = self.observer(place=f"127.0.0.1:{proxy.port}", retry_for="20s")
        self.assertIsNone(observer.store(prepared(observer, [0])))
        proxy.swallow_answers()

        self.assertIsNone(observer.store(prepared(observer, range(1, 200))))

        self.assertEqual(list(range(200)), self.ids())
        self.assertEqual(2, proxy.accepted)

    def test_cut_in_the_middle(self) -> None:
        """A connection that breaks inside a message leaves the others in order, each once."""
        self.start()
        proxy = self.proxy()
        observer = self.observer(place=f"127.0.0.1:{proxy.port}", retry_for="20s")
        self.assertIsNone(observer.store(prepared(observer, [0])))
        proxy.cut_after(5000)

        self.assertIsNone(observer.store(prepared(observer, range(1, 200))))

        self.assertEqual(list(range(200)), self.ids())

    def test_next_server(self) -> None:
        """When the first server of several is away the next one is asked."""
        self.start()
        other = self.proxy()
        other.refuse()
        observer = self.observer(place=f"127.0.0.1:{other.port},{self.server.address}")

        self.assertIsNone(observer.store(prepared(observer, range(3))))

        self.assertEqual([0, 1, 2], self.ids())

    # -- a server that is set up wrongly -------------------------------------------------------------------------------

    def test_no_stream(self) -> None:
        """
        Without a stream, or after it was deleted, messages wait until there is one. A plain publish would have been
        taken by the server and dropped (U{https://github.com/vectordotdev/vector/issues/10534}).
        """
        self.start(stream=False)
        observer = self.observer()
        batch = prepared(observer, range(5))
        self.assertIn("no stream takes the subject (no responders)", self.reason(observer, batch))
        self.make_stream()
        self.assertIsNone(observer.store(batch))
        self.ask(lambda stream: stream.delete_stream("LOGS"))
        self.assertIn("no stream takes the subject (no responders)", self.reason(observer, prepared(observer, [5])))
        self.make_stream()

        self.assertIsNone(observer.store(prepared(observer, [5])))

        self.assertEqual([5], self.ids())

    def test_wrong_subject_and_stream(self) -> None:
        """A subject that no stream takes, and a stream that is not the expected one, are a person's to mend."""
        self.start()
        elsewhere, expecting = self.observer(subject="other.x"), self.observer(stream="OTHERS")

        self.assertIn("no responders", self.reason(elsewhere, prepared(elsewhere, [0])))
        self.assertIn("10060 (stream= names another stream", self.reason(expecting, prepared(expecting, [0])))
        self.assertEqual([], self.ids())

    def test_answer_of_somebody_else(self) -> None:
        """What a program without a stream answers on the subject is not believed."""
        self.start(stream=False)
        started, ended = threading.Event(), threading.Event()

        async def answer() -> None:
            client = await nats.connect(f"nats://{self.server.address}")

            async def reply(message: Any) -> None:
                await message.respond(b'{"status":"ok"}')

            await client.subscribe("logs.>", cb=reply)
            await client.flush()
            started.set()
            await asyncio.to_thread(ended.wait, 60)
            await client.close()

        thread = threading.Thread(target=asyncio.run, args=(answer(),))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(ended.set)
        self.assertTrue(started.wait(60))
        observer = self.observer()

        self.assertIn("the answer is no PubAck", self.reason(observer, prepared(observer, range(3))))

    def test_stream_is_full(self) -> None:
        """A full stream that discards new messages takes the rest once there is room; order and number are kept."""
        self.start()
        self.make_stream(max_msgs=10, discard=DiscardPolicy.NEW)
        observer = self.observer()
        batch = prepared(observer, range(25))
        outcomes = observer.store(batch)
        self.assertEqual([None] * 10, outcomes[:10])
        self.assertIn("10077 (the stream is full, or can't write)", str(outcomes[10]))
        self.assertEqual(list(range(10)), self.ids())
        self.make_stream(max_msgs=100, discard=DiscardPolicy.NEW)

        self.assertIsNone(observer.store(batch[10:]))

        self.assertEqual(list(range(25)), self.ids())

    def test_login(self) -> None:
        """A wrong password is a person's to mend, read again on reopen, and in no text."""
        self.start(USERS, stream=False)
        self.login = {"user": "me", "password": PASSWORD}
        self.make_stream()
        wrong = "wr0ng-of-nats"
        path = self.password_file(wrong)
        with all_texts() as texts:
            observer = self.observer(user="me", password_file=path)
            reason = self.reason(observer, prepared(observer, [0]))
            self.password_file()
            observer.reopen()
            self.assertIsNone(observer.store(prepared(observer, [0])))
            # A revoked user is told so, too.
            self.password_file(wrong)
            observer.reopen()
            texts.append(self.reason(observer, prepared(observer, [1])))

        self.assertIn("user, password, creds or nkey are wrong", reason)
        for text in [*texts, reason]:
            self.assertNotIn(wrong, text)
            self.assertNotIn(PASSWORD, text)

    def test_missing_right(self) -> None:
        """A subject that the user may not publish to is told at once, and holds no other one up."""
        self.start(USERS, stream=False)
        self.login = {"user": "me", "password": PASSWORD}
        self.make_stream()
        observer = self.observer(user="limited", password_file=self.password_file(), timeout="30s")
        batch = [*prepared(observer, [0], HOST="Secret"), *prepared(observer, [1], HOST="open")]
        began = time.monotonic()

        outcomes = observer.store(batch)

        self.assertLess(time.monotonic() - began, 15.0)
        self.assertIn("Permissions Violation", str(outcomes[0]))
        self.assertIsNone(outcomes[1])
        self.assertEqual([1], self.ids())

    def test_nkey(self) -> None:
        """A key logs in without its seed ever leaving this machine."""
        pair = nkeys.from_seed(nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER))
        seed, public = pair.seed.decode(), pair.public_key.decode()
        self.start(f'authorization {{ users: [ {{ nkey: "{public}" }} ] }}', stream=False)
        path = self.server.write("nkey", f"{seed}\n")
        self.login = {"nkeys_seed": path}
        self.make_stream()
        observer = self.observer(nkey_file=path)

        self.assertIsNone(observer.store(prepared(observer, [0])))

    def test_creds(self) -> None:
        """
        With a creds file of an account: a message over the limit of the user, which its JWT has, is refused for good.
        One over that of the account, for which the server ends the connection, waits alone, and holds no other up.
        """
        for user_limit, account_limit, fate in ((2000, -1, Rejected), (-1, 2000, Unavailable)):
            with self.subTest(f"user {user_limit}, account {account_limit}"):
                options, creds = accounts(user_limit, account_limit)
                self.start(*options, stream=False)
                path = self.server.write("creds", creds)
                self.login = {"user_credentials": path}
                self.make_stream()
                observer = self.observer(creds_file=path, timeout="10s")
                batch = prepared(observer, range(20))
                batch[7] = prepared(observer, [7], text="x" * 3000)[0]

                outcomes = observer.store(batch)

                self.assertIsInstance(outcomes[7], fate)
                self.assertEqual([7], [number for number, outcome in enumerate(outcomes) if outcome is not None])
                self.assertEqual([number for number in range(20) if number != 7], self.ids())
                self.assertIsNone(observer.store(prepared(observer, range(20, 500))))

    def test_old_server(self) -> None:
        """A release that may lose streams is one warning, however often it is connected to."""
        self.start()
        with all_texts() as texts:
            observer = self.observer()
            for number in range(3):
                observer.store(prepared(observer, [number]))
                observer.reopen()

        warnings = [text for text in texts if "may lose what they have acknowledged" in text and "[" in text[:40]]
        self.assertEqual(1, len(warnings), warnings)

    # -- TLS -----------------------------------------------------------------------------------------------------------

    def tls(self, names: Any = LOCAL_NAMES) -> str:
        """Start a server with TLS, and return the file of its authority."""
        directory = os.path.abspath(self.mktemp())
        os.mkdir(directory)
        authority = Authority("nats")
        key_file, cert_file = authority.issue("nats", names=names).write(directory, "server")
        self.start(f'tls {{ cert_file: "{cert_file}", key_file: "{key_file}" }}', stream=False)
        return write_ca_file(directory, "ca.pem", authority)

    def test_tls(self) -> None:
        """With tls:// and the right authority all goes encrypted."""
        ca_file = self.tls()
        observer = self.observer(scheme="tls", ca_file=ca_file)

        self.assertIn("no responders", self.reason(observer, prepared(observer, [0])))

    def test_wrong_certificates(self) -> None:
        """A certificate of another name, or of an unknown authority, is not accepted."""
        ca_file = self.tls(names=(LOCAL_NAMES[0],))
        observer = self.observer(scheme="tls", ca_file=ca_file)
        self.assertIn("certificate was not accepted", self.reason(observer, prepared(observer, [0])))
        self.assertIn(
            "no responders",
            self.reason(
                named := self.observer(scheme="tls", place=f"localhost:{self.server.port}", ca_file=ca_file),
                prepared(named, [0]),
            ),
        )

        stranger = self.observer(scheme="tls")

        self.assertIn("certificate was not accepted", self.reason(stranger, prepared(stranger, [0])))

    def test_server_without_tls(self) -> None:
        """With tls:// no password and no message goes to a server that does not offer TLS."""
        self.start()
        proxy = self.proxy()
        observer = self.observer(
            place=f"127.0.0.1:{proxy.port}", scheme="tls", user="me", password_file=self.password_file()
        )

        self.assertIn("it offers no TLS", self.reason(observer, prepared(observer, [0])))

        self.assertEqual(0, proxy.passed)

    def test_away_at_start(self) -> None:
        """It opens while no server is there, and stores once there is one."""
        self.start()
        self.server.kill()
        observer = self.observer()
        self.reason(observer, prepared(observer, [0]))
        self.server.start()

        deliver(observer, prepared(observer, [0]))

        wait_until(lambda: self.ids() == [0], "it is stored")


def accounts(user_limit: int, account_limit: int) -> tuple[list[str], str]:
    """Return the options of a server with an account whose payloads are limited, and the creds of a user of it."""
    operator, system, account, user = (
        nkeys.from_seed(nkeys.encode_seed(os.urandom(32), prefix))
        for prefix in (
            nkeys.PREFIX_BYTE_OPERATOR,
            nkeys.PREFIX_BYTE_ACCOUNT,
            nkeys.PREFIX_BYTE_ACCOUNT,
            nkeys.PREFIX_BYTE_USER,
        )
    )
    names = ("subs", "data", "imports", "exports", "conn", "leaf")
    limits = {**dict.fromkeys(names, -1), "wildcards": True, "payload": account_limit}
    storage = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)
    claims = {"type": "user", "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": user_limit}
    system_key, account_key = system.public_key.decode(), account.public_key.decode()
    tokens = {
        system_key: signed(operator, system, {"type": "account", "limits": limits}),
        account_key: signed(operator, account, {"type": "account", "limits": {**limits, **storage}}),
    }
    options = [
        f"operator: {signed(operator, operator, {'type': 'operator', 'system_account': system_key})}",
        f"system_account: {system_key}",
        "resolver: MEMORY",
        "resolver_preload: {" + ", ".join(f"{key}: {token}" for key, token in tokens.items()) + "}",
    ]
    creds = (
        f"-----BEGIN NATS USER JWT-----\n{signed(account, user, claims)}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n------END USER NKEY SEED------\n"
    )
    return options, creds


def signed(signer: Any, subject: Any, claims: dict[str, Any]) -> str:
    """Return a JWT of NATS."""
    body = {
        "jti": os.urandom(10).hex(),
        "iat": 1_790_000_000,
        "iss": signer.public_key.decode(),
        "name": "test",
        "sub": subject.public_key.decode(),
        "nats": {**claims, "version": 2},
    }
    parts = ({"typ": "JWT", "alg": "ed25519-nkey"}, body)
    text = ".".join(urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return f"{text}.{urlsafe_b64encode(signer.sign(text.encode())).rstrip(b'=').decode()}"


def prepared(observer: Any, numbers: Sequence[int] | range, text: str = "hello", **values: str) -> list[bytes]:
    """Prepare messages, whose ids have these numbers."""
    return [observer.prepare(make_message(text, {"RCPTID": f"id-{number}", **values})) for number in numbers]


def deliver(observer: Any, batch: Sequence[bytes], seconds: float = 60.0) -> None:
    """Offer a batch as a spool does, until all of it is stored."""
    left = list(batch)
    deadline = time.monotonic() + seconds
    while left:
        try:
            outcomes = observer.store(left) or [None] * len(left)
        except Unavailable as error:
            outcomes = [error] * len(left)
        assert not any(isinstance(outcome, Rejected) for outcome in outcomes), outcomes
        left = [item for item, outcome in zip(left, outcomes, strict=True) if outcome is not None]
        assert not left or time.monotonic() < deadline, outcomes
        if left:
            time.sleep(0.05)
