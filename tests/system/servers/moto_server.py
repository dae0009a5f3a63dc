"""S3 as moto has it: objects in memory, gone with its process."""

from __future__ import annotations

import importlib.util
import sys
from http.client import HTTPConnection

from tests.system.servers.process import Server


class MotoServer(Server):
    """
    moto's server. A kill loses all objects, so tests freeze it and cut it off instead.
    """

    name = "moto"

    @classmethod
    def missing(cls) -> str:
        """Say that it is not installed."""
        found = all(importlib.util.find_spec(name) for name in ("moto", "flask", "flask_cors", "boto3"))
        return "" if found else "no moto: pip install 'moto[s3]' flask flask-cors"

    def command(self) -> list[str]:
        """Run it."""
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]

    def is_ready(self) -> bool:
        """Ask for the list of buckets."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status < 500
        finally:
            connection.close()

    def make_bucket(self, name: str) -> None:
        """Make a bucket."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("PUT", f"/{name}", headers={"Host": f"127.0.0.1:{self.port}"})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
        finally:
            connection.close()
