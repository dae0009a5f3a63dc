"""The redis observer and a real Redis, which is killed, frozen, cut off and set up wrongly."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

import redis

from tests.contracts.secret_contract import all_texts
from tests.system.certificates import LOCAL_NAMES, Authority, write_ca_file
from tests.system.receiver import wait_until
from tests.system.servers.process import Server, ServerCase, ask, free_port, program
from tests.system.servers.proxy import Proxy
from tests.system.servers.redis_server import RedisServer
from tests.system.test_nats import HURRY_TIME, deliver, prepared
from webhookrx.config.observers import parse_observer
from webhookrx.errors import Unavailable
from webhookrx.observers import registry

PASSWORD = "s3cret-of-redis"


class RedisSentinel(Server):
    """
    C{redis-server --sentinel}, which watches one master and names another soon.

    @param master: the port of the master.
    """

    name = "sentinel"

    def __init__(self, master: int) -> None:
        super().__init__()
        self.master = master

    @classmethod
    def missing(cls) -> str:
        """Say that it is not installed."""
        return RedisServer.missing()

    def prepare(self) -> None:
        """Write the configuration, which it changes itself."""
        lines = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f"dir {self.directory}",
            f"sentinel monitor main 127.0.0.1 {self.master} 1",
            "sentinel down-after-milliseconds main 500",
            "sentinel failover-timeout main 3000",
        ]
        self.write("sentinel.conf", "\n".join(lines) + "\n")

    def command(self) -> list[str]:
        """Run it."""
        return [program("redis-server"), self.path("sentinel.conf"), "--sentinel"]

    def is_ready(self) -> bool:
        """Tell whether it answers."""
        return ask(self.port, b"PING\r\n", b"\r\n").startswith(b"+PONG")


class RedisTests(ServerCase):
    """Observers, and what the stream holds."""

    def start(self, *options: str) -> None:
        """Start a server."""
        self.server = self.serve(RedisServer, *options)
        self.client = self.connect(self.server)

    def connect(self, server: RedisServer) -> Any:
        """Connect to a server."""
        client = redis.Redis(port=server.port)
        self.addCleanup(client.close)
        return client

    def ids(self, client: Any = None) -> list[int]:
        """Return the numbers in the stream, in its order."""
        entries = (client or self.client).xrange("logs")
        return [int(fields[b"id"].removeprefix(b"id-")) for _, fields in entries]

    def observer(self, *, place: str = "", scheme: str = "redis", stream: str = "logs", **more: str) -> Any:
        """Make an observer and open it."""
        given = {"timeout": "5s", "retry_for": "0s", **more}
        spec = f"redis:{scheme}://{place or self.server.address}/0/{stream}:"
        spec += ":".join(f"{key}={value}" for key, value in given.items())
        observer: Any = registry.build(parse_observer(spec, registry.find_spec), "durable")
        observer.open()
        self.addCleanup(observer.close)
        return observer

    def proxy(self) -> Proxy:
        """Put a proxy before the server."""
        proxy = Proxy(self.server.port)
        self.addCleanup(proxy.stop)
        return proxy

    def reason(self, observer: Any, batch: Sequence[bytes]) -> str:
        """Store a batch that can't be stored now; return why."""
        return str(self.assertRaises(Unavailable, observer.store, batch))

    def password_file(self, password: str = PASSWORD) -> str:
        """Write a file with a password."""
        path = self.server.write("password", f"{password}\n")
        os.chmod(path, 0o600)
        return path

    # -- what comes to the stream ------------------------------------------------------------------------------------

    def test_stored_once(self) -> None:
        """
        Messages are entries of a stream, in order under their ids, and a batch that comes again changes nothing. A list
        or a channel knows no ids (U{https://github.com/vectordotdev/vector/pull/23440}).
        """
        self.start()
        observer = self.observer()
        batch = prepared(observer, range(1200))

        self.assertIsNone(observer.store(batch))
        self.assertIsNone(observer.store(batch))

        self.assertEqual(list(range(1200)), self.ids())
        self.assertEqual(1200, observer.counts.take().known)

    def test_without_dedup(self) -> None:
        """Without it a batch that comes again is there twice, under the same ids, and no other key is made."""
        self.start()
        observer = self.observer(dedup="off")
        batch = prepared(observer, range(3))

        self.assertIsNone(observer.store(batch))
        self.assertIsNone(observer.store(batch))

        self.assertEqual([0, 1, 2, 0, 1, 2], self.ids())
        self.assertEqual([b"logs"], self.client.keys())

    def test_window(self) -> None:
        """An id is known for as long as the option says."""
        self.start()
        observer = self.observer(dedup_window="1h")

        self.assertIsNone(observer.store(prepared(observer, [7])))

        self.assertIn(self.client.ttl("{logs}:id:id-7"), range(3500, 3601))

    def test_maxlen(self) -> None:
        """The stream keeps about so many entries, the newest."""
        self.start()
        for dedup in ("script", "off"):
            with self.subTest(dedup):
                self.client.delete("logs")
                observer = self.observer(maxlen="500", dedup=dedup)

                self.assertIsNone(observer.store(prepared(observer, range(10_000), dedup=dedup)))

                ids = self.ids()
                self.assertLess(len(ids), 1000)
                self.assertEqual(list(range(10_000))[-len(ids) :], ids)
                self.client.flushall()

    def test_large_message(self) -> None:
        """A message of 10 MiB is stored, over a connection that is as slow as it may be."""
        self.start()
        observer = self.observer()

        self.assertIsNone(observer.store(prepared(observer, [0], text="x" * 10 * 1024 * 1024)))

        self.assertEqual([0], self.ids())

    # -- a server that fails -----------------------------------------------------------------------------------------

    def test_killed_during_batches(self) -> None:
        """
        Killed again and again while batches come: nothing is missing, nothing is there twice, all is in order.

        Redis itself may have it twice: killed as it writes a command of a transaction, 7.0.15 cuts its file before that
        command and not before the transaction, whose beginning it runs with the next one when it starts once more.
        """
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

        ids = self.ids()
        with open(self.server.path("log"), encoding="utf-8", errors="replace") as log:
            if "MULTI calls can not be nested" in log.read():
                ids = [*dict.fromkeys(ids)]
        self.assertEqual(list(range(number + 300)), ids)

    def test_frozen(self) -> None:
        """A server that hangs is given up in time; what it had in its sockets comes once."""
        self.start()
        observer = self.observer(timeout="1s")
        self.assertIsNone(observer.store(prepared(observer, range(10))))
        self.server.freeze()
        began = time.monotonic()
        self.assertIn("no answer in time", self.reason(observer, prepared(observer, range(10, 500))))
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
        for text in ("small", "x" * 1_000_000):
            began = time.monotonic()
            self.reason(observer, prepared(observer, range(10, 20), text=text))
            self.assertLess(time.monotonic() - began, HURRY_TIME + 1.0)

    def test_look_up_that_hangs(self) -> None:
        """A name whose look-up does not end holds nothing up for longer than C{timeout}, as a server that hangs."""
        ended = threading.Event()
        self.addCleanup(ended.set)

        def look_up(*_: object, **__: object) -> list[object]:
            ended.wait(60)
            return []

        self.patch(socket, "getaddrinfo", look_up)
        observer = self.observer(place="redis.example:6379", timeout="1s")
        began = time.monotonic()

        self.assertIn("no answer in time", self.reason(observer, prepared(observer, [0])))

        self.assertLess(time.monotonic() - began, HURRY_TIME + 1.0)

    def test_answers_lost(self) -> None:
        """When the answer is lost after storing, the same batch is known at the next try."""
        self.start()
        proxy = self.proxy()
        observer = self.observer(place=f"127.0.0.1:{proxy.port}", retry_for="20s")
        self.assertIsNone(observer.store(prepared(observer, [0])))
        proxy.swallow_answers()

        self.assertIsNone(observer.store(prepared(observer, range(1, 200))))

        self.assertEqual(list(range(200)), self.ids())
        self.assertEqual(2, proxy.accepted)

    def test_cut_in_the_middle(self) -> None:
        """Of a transaction that breaks off nothing is stored, and then all of it."""
        self.start()
        proxy = self.proxy()
        observer = self.observer(place=f"127.0.0.1:{proxy.port}")
        self.assertIsNone(observer.store(prepared(observer, [0])))
        proxy.cut_after(5000)
        self.reason(observer, prepared(observer, range(1, 200)))
        self.assertEqual([0], self.ids())
        proxy.mend()

        deliver(observer, prepared(observer, range(1, 200)))

        self.assertEqual(list(range(200)), self.ids())

    def test_script_is_forgotten(self) -> None:
        """After SCRIPT FLUSH, or a restart, the script is brought again."""
        self.start()
        observer = self.observer()
        self.assertIsNone(observer.store(prepared(observer, [0])))
        self.client.script_flush()
        self.assertIn("NOSCRIPT", self.reason(observer, prepared(observer, range(1, 5))))

        self.assertIsNone(observer.store(prepared(observer, range(1, 5))))

        self.assertEqual([0, 1, 2, 3, 4], self.ids())

    # -- a server that is set up wrongly -------------------------------------------------------------------------------

    def test_memory_is_full(self) -> None:
        """
        Without memory nothing of a batch is stored, and all of it once there is some: senders wait, and the stream does
        not grow past its server (U{https://github.com/vectordotdev/vector/issues/23096}).
        """
        for dedup in ("script", "off"):
            with self.subTest(dedup):
                self.start()
                observer = self.observer(dedup=dedup)
                self.assertIsNone(observer.store(prepared(observer, range(5))))
                self.client.config_set("maxmemory", "1")
                self.assertIn("OOM (maxmemory is reached)", self.reason(observer, prepared(observer, range(5, 50))))
                self.assertEqual([0, 1, 2, 3, 4], self.ids())
                self.client.config_set("maxmemory", "0")

                self.assertIsNone(observer.store(prepared(observer, range(5, 50))))

                self.assertEqual(list(range(50)), self.ids())

    def test_memory_becomes_full(self) -> None:
        """When the memory becomes full between two transactions, the rest follows in order."""
        self.start("maxmemory 4mb", "maxmemory-policy noeviction")
        observer = self.observer(batch="10")
        batch = prepared(observer, range(200), text="x" * 50_000)

        outcomes = observer.store(batch)

        stored = sum(outcome is None for outcome in outcomes)
        self.assertEqual(0, stored % 10)
        self.assertEqual(list(range(stored)), self.ids())
        self.client.config_set("maxmemory", "0")
        self.assertIsNone(observer.store(batch[stored:]))
        self.assertEqual(list(range(200)), self.ids())

    def test_replica(self) -> None:
        """A replica takes no writes; once it is a master it does."""
        self.start()
        observer = self.observer()
        self.assertIsNone(observer.store(prepared(observer, [0])))
        self.client.replicaof("127.0.0.1", "1")
        self.assertIn("READONLY (it is a replica", self.reason(observer, prepared(observer, [1])))
        self.client.replicaof("NO", "ONE")

        self.assertIsNone(observer.store(prepared(observer, [1])))

        self.assertEqual([0, 1], self.ids())

    def test_disk_fails(self) -> None:
        """While Redis can't save its data it takes no writes (MISCONF)."""
        self.start("appendonly no", "save 3600 1", "enable-protected-configs yes")
        observer = self.observer()
        self.assertIsNone(observer.store(prepared(observer, [0])))
        gone = self.server.path("gone")
        os.mkdir(gone)
        self.client.config_set("dir", gone)
        shutil.rmtree(gone)
        self.client.bgsave()
        wait_until(lambda: self.client.info()["rdb_last_bgsave_status"] == "err", "saving has failed")
        self.assertIn("MISCONF (it can't write its data", self.reason(observer, prepared(observer, [1])))
        self.client.config_set("dir", self.server.directory)
        self.client.bgsave()
        wait_until(lambda: self.client.info()["rdb_last_bgsave_status"] == "ok", "saving works")

        self.assertIsNone(observer.store(prepared(observer, [1])))

        self.assertEqual([0, 1], self.ids())

    def test_key_of_another_type(self) -> None:
        """A key that is no stream waits for a person; the ids are not known before their messages are there."""
        self.start()
        self.client.set("logs", "x")
        observer = self.observer()
        self.assertIn("WRONGTYPE (the key is no stream)", self.reason(observer, prepared(observer, range(5))))
        self.client.delete("logs")

        self.assertIsNone(observer.store(prepared(observer, range(5))))

        self.assertEqual([0, 1, 2, 3, 4], self.ids())
        self.assertEqual(0, observer.counts.take().known)

    def test_rights(self) -> None:
        """A user without a right waits for a person, and the rights that the docs list are enough."""
        self.start()
        self.client.acl_setuser("me", enabled=True, passwords=[f"+{PASSWORD}"], keys=["other"], commands=["+@all"])
        path = self.password_file()
        observer = self.observer(user="me", password_file=path)
        self.assertIn("NOPERM", self.reason(observer, prepared(observer, [0])))
        rights = ["+multi", "+exec", "+evalsha", "+script|load", "+xadd", "+exists", "+expire", "+set"]
        self.client.execute_command(
            "ACL", "SETUSER", "me", "reset", "on", f">{PASSWORD}", "~logs", "~{logs}:id:*", *rights
        )
        observer.reopen()
        self.assertIsNone(observer.store(prepared(observer, [0])))
        self.client.execute_command("ACL", "SETUSER", "me", "-xadd")
        self.assertIn("NOPERM", self.reason(observer, prepared(observer, [1])))
        self.assertEqual([0], self.ids())

    def test_password(self) -> None:
        """A wrong password is a person's to mend, read again on reopen, and in no text."""
        self.start(f"requirepass {PASSWORD}")
        wrong = "wr0ng-of-redis"
        path = self.password_file(wrong)
        with all_texts() as texts:
            observer = self.observer(password_file=path)
            texts.append(self.reason(observer, prepared(observer, [0])))
            self.assertIn("WRONGPASS", texts[-1])
            self.password_file()
            observer.reopen()
            self.assertIsNone(observer.store(prepared(observer, [0])))
            without = self.observer()
            self.assertIn("NOAUTH (it wants password_file=)", self.reason(without, prepared(without, [1])))

        for text in texts:
            self.assertNotIn(wrong, text)
            self.assertNotIn(PASSWORD, text)

    def test_old_server(self) -> None:
        """A server without WAITAOF is told so, and gets nothing that it could not make safe."""
        self.start()
        observer = self.observer(waitaof="1,0", retry_for="1s")

        self.assertIn("does not know WAITAOF, which needs 7.2", self.reason(observer, prepared(observer, [0])))

        self.assertEqual([], self.ids())

    # -- replicas and sentinels ----------------------------------------------------------------------------------------

    def replica(self) -> RedisServer:
        """Start a replica, and wait until it follows."""
        replica = self.serve(RedisServer, f"replicaof 127.0.0.1 {self.server.port}", "repl-diskless-sync-delay 0")
        client = self.connect(replica)
        wait_until(lambda: client.info()["master_link_status"] == "up", "the replica follows")
        return replica

    def test_replicas_confirm(self) -> None:
        """What is stored with wait=1 is in a replica; while that hangs nothing is safe, and then comes once."""
        self.start("repl-diskless-sync-delay 0")
        replica = self.replica()
        observer = self.observer(wait="1", timeout="2s")
        self.assertIsNone(observer.store(prepared(observer, range(10))))
        self.assertEqual(list(range(10)), self.ids(self.connect(replica)))
        replica.freeze()
        self.assertIn("0 of 1 replicas have confirmed", self.reason(observer, prepared(observer, range(10, 20))))
        # They are known now: what confirms them must be more than that nothing was written.
        self.assertIn("0 of 1 replicas have confirmed", self.reason(observer, prepared(observer, range(10, 20))))
        replica.thaw()

        deliver(observer, prepared(observer, range(10, 20)))

        self.assertEqual(list(range(20)), self.ids(self.connect(replica)))
        replica.kill()
        self.reason(observer, prepared(observer, [20]))

    def test_sentinel(self) -> None:
        """When the master is killed the next one gets the rest, and nothing that a replica has confirmed is missing."""
        self.start("repl-diskless-sync-delay 0")
        replica = self.replica()
        sentinel = self.serve(RedisSentinel, self.server.port)
        watcher: Any = redis.Redis(port=sentinel.port)
        self.addCleanup(watcher.close)
        wait_until(lambda: watcher.info()["master0"]["slaves"] == 1, "the sentinel knows the replica")
        observer = self.observer(place=f"127.0.0.1:1,{sentinel.address}", sentinel="main", wait="1", timeout="2s")
        self.assertIsNone(observer.store(prepared(observer, range(500))))
        self.server.kill()
        second = self.connect(replica)
        wait_until(lambda: second.info()["role"] == "master", "there is another master")
        third = self.serve(RedisServer, f"replicaof 127.0.0.1 {replica.port}", "repl-diskless-sync-delay 0")

        deliver(observer, prepared(observer, range(500, 1000)))

        self.assertEqual(list(range(1000)), self.ids(second))
        self.assertEqual(list(range(1000)), self.ids(self.connect(third)))

    def test_unknown_master(self) -> None:
        """A name that no sentinel knows is a sentence."""
        self.start()
        sentinel = self.serve(RedisSentinel, self.server.port)
        observer = self.observer(place=sentinel.address, sentinel="other")

        self.assertIn("knows no master of that name", self.reason(observer, prepared(observer, [0])))

    # -- TLS -----------------------------------------------------------------------------------------------------------

    def tls(self, names: Any = LOCAL_NAMES) -> tuple[str, str]:
        """Start a server with TLS only on a second port; return its authority and address."""
        directory = os.path.abspath(self.mktemp())
        os.mkdir(directory)
        authority = Authority("redis")
        key_file, cert_file = authority.issue("redis", names=names).write(directory, "server")
        ca_file = write_ca_file(directory, "ca.pem", authority)
        os.chmod(directory, 0o755)
        self.start()
        for name, value in (
            ("tls-cert-file", cert_file),
            ("tls-key-file", key_file),
            ("tls-ca-cert-file", ca_file),
            ("tls-auth-clients", "no"),
            ("tls-port", free_port()),
        ):
            self.client.config_set(name, value)
        return ca_file, f"127.0.0.1:{self.client.config_get('tls-port')['tls-port']}"

    def test_tls(self) -> None:
        """With rediss:// and the right authority all goes encrypted; an unknown one is not accepted."""
        ca_file, place = self.tls()
        observer = self.observer(place=place, scheme="rediss", ca_file=ca_file)
        stranger = self.observer(place=place, scheme="rediss")

        self.assertIsNone(observer.store(prepared(observer, range(3))))

        self.assertIn("certificate was not accepted", self.reason(stranger, prepared(stranger, [3])))
        self.assertEqual([0, 1, 2], self.ids())

    def test_certificate_of_another_name(self) -> None:
        """A certificate that is not for the host is not accepted, and no password goes there."""
        ca_file, place = self.tls(names=(LOCAL_NAMES[0],))
        observer = self.observer(place=place, scheme="rediss", ca_file=ca_file, password_file=self.password_file())

        self.assertIn("certificate was not accepted", self.reason(observer, prepared(observer, [0])))
