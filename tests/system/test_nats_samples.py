"""The samples in C{etc/nats}, read by a real nats-server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import tempfile

from tests.documents import read
from tests.system.certificates import Authority
from tests.system.servers.nats_server import NatsServer
from tests.system.servers.process import ServerCase, program


class NatsSampleTests(ServerCase):
    """Configuration and stream."""

    def test_configuration(self) -> None:
        """nats-server takes the configuration, but for sync_interval where it is older than 2.10."""
        if reason := NatsServer.missing():
            self.skipTest(reason)
        directory = tempfile.mkdtemp(prefix="webhookrx-")
        self.addCleanup(lambda: subprocess.run(["rm", "-r", directory], check=True))
        key, chain = Authority("Root").issue("server").write(directory, "server")
        text = read("etc/nats/nats-server.conf")
        for sample, path in (("/etc/nats/key.pem", key), ("/etc/nats/chain.pem", chain), ("/var/lib/nats", directory)):
            self.assertIn(sample, text)
            text = text.replace(sample, path)
        version = subprocess.run([program("nats-server"), "-v"], capture_output=True, text=True, check=True).stdout
        major, minor = map(int, re.findall(r"\d+", version)[:2])
        if (major, minor) < (2, 10):
            text = re.sub(r"^ *sync_interval: always\n", "", text, flags=re.MULTILINE)
        path = os.path.join(directory, "nats-server.conf")
        with open(path, "w") as file:
            file.write(text)
        done = subprocess.run(
            [program("nats-server"), "-c", path, "-t"],
            env={**os.environ, "RECEIVER_PASSWORD": "a", "RELAY_PASSWORD": "b", "ADMIN_PASSWORD": "c"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(0, done.returncode, done.stderr)

    def test_stream(self) -> None:
        """JetStream makes the stream, with as many copies as one server can have, and says all of it back."""
        server = self.serve(NatsServer, "max_payload: 12MB")
        wanted = {**json.loads(read("etc/nats/stream.json")), "num_replicas": 1, "max_bytes": 1 << 20}

        async def make() -> dict[str, object]:
            import nats

            client = await nats.connect(f"nats://{server.address}")
            try:
                answer = await client.request("$JS.API.STREAM.CREATE.LOGS", json.dumps(wanted).encode(), timeout=10)
            finally:
                await client.close()
            made: dict[str, object] = json.loads(answer.data)
            return made

        made = asyncio.run(make())
        self.assertNotIn("error", made, made)
        config = made["config"]
        assert isinstance(config, dict)
        self.assertEqual(wanted, {name: config[name] for name in wanted})
