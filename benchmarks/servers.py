"""
What is measured, as far as it is alike for all, and what a user might take in place of webhookrx.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass

from benchmarks import certificates
from benchmarks.lines import FLATTENED, UNREAD, Lines
from benchmarks.tools import ECHO_MODULE, ROOT, Tools, Unavailable, program

OUTPUT = "messages.jsonl"
"""The file of messages of every server, in its directory."""


@dataclass(frozen=True, kw_only=True)
class Server(ABC):
    """
    Something that can be started.

    @ivar name: in tables; also the name of its directory.
    @ivar tls: the certificate that it shows, of L{certificates.KINDS}; None: it speaks plain HTTP.
    @ivar lines: what its lines are to be.
    @ivar settle: when its file has not grown for so many seconds, the last lines are in it.
    @ivar quota: the cores' worth of processor time that it may take in all; None: it has a core of its own.
    @ivar quota_each: the same for each of its processes.
    @ivar less: what a peer does not do that webhookrx does, in its favour; for tables.
    """

    name: str
    tls: str | None = None
    lines: Lines = FLATTENED
    settle: float = 0.02
    quota: float | None = None
    quota_each: float | None = None
    less: str = ""

    @abstractmethod
    def command(self, tools: Tools, directory: str, port: int) -> tuple[str, ...]:
        """
        Return what starts it, and write the files that it needs.

        @raise Unavailable: it can't be had here.
        """

    @property
    def is_webhookrx(self) -> bool:
        """Whether it is what is measured, and no peer."""
        return False

    @property
    def compiles(self) -> bool:
        """Whether it is to use a compiled module of webhookrx."""
        return False

    def environment(self, output: str) -> dict[str, str]:
        """
        Return the environment to run it in: that of this process, but nobody measures coverage.

        @param output: where its messages are to go.
        """
        return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}


@dataclass(frozen=True, kw_only=True)
class PythonPeer(Server):
    """
    A peer from the package index.

    @ivar module: what must be importable.
    @ivar arguments: of the interpreter; C{PORT} stands for the port.
    """

    settle: float = 0.1
    less: str = "the same job with orjson, but answers before it writes; no limits, no escapes, no exact numbers"
    module: str
    arguments: tuple[str, ...]

    def command(self, tools: Tools, directory: str, port: int) -> tuple[str, ...]:
        """Return the peer's own way to start."""
        return (tools.peer(self.module), *(word.replace("PORT", str(port)) for word in self.arguments))

    def environment(self, output: str) -> dict[str, str]:
        """Let it find its module and its file."""
        return {**super().environment(output), "PYTHONPATH": ROOT, "BENCHMARK_OUTPUT": output}


_NGINX = """\
load_module {module};
daemon off;
worker_processes 1;
pid {directory}/pid;
error_log {directory}/log warn;
{user}
events {{ worker_connections 8192; }}
http {{
    log_format line escape=json '{{"ISODATE":"$time_iso8601","HOST":"$remote_addr","MESSAGE":"$request_body",'
        '"SOURCE":"default","SOURCEIP":"$remote_addr","SOURCEPORT":$remote_port,"TRANSPORT":"$scheme",'
        '"RAWMSG_SIZE":$content_length,"TAGS":".source.default","RCPTID":"$request_id"}}';
    access_log off;
    client_body_temp_path {directory}/temporary;
    proxy_temp_path {directory}/temporary;
    fastcgi_temp_path {directory}/temporary;
    uwsgi_temp_path {directory}/temporary;
    scgi_temp_path {directory}/temporary;
    client_body_in_single_buffer on;
    client_body_buffer_size 64k;
    keepalive_requests 1000000000;
    keepalive_timeout 75s;
    default_type application/json;
    server {{
        listen 127.0.0.1:{port}{tls};
        ssl_protocols TLSv1.3;
        location ~ ^/events$ {{
            access_log {directory}/{output} line buffer=64k flush=100ms;
            echo_read_request_body;
            echo -n '{{"status":"received"}}';
        }}
    }}
}}
"""


@dataclass(frozen=True, kw_only=True)
class Nginx(Server):
    """nginx with one worker, which writes the body to its access log."""

    lines: Lines = UNREAD
    settle: float = 0.3
    less: str = "does not parse the body; answers before it writes, ten times a second"

    def command(self, tools: Tools, directory: str, port: int) -> tuple[str, ...]:
        """Write the configuration and return the command."""
        nginx = program("nginx")
        if not os.path.exists(ECHO_MODULE):
            raise Unavailable("nginx has no echo module (Debian package libnginx-mod-http-echo)")
        tls = ""
        if self.tls is not None:
            key, certificate = certificates.files(self.tls)
            tls = f" ssl; ssl_certificate {certificate}; ssl_certificate_key {key}"
        config = os.path.join(directory, "nginx.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(
                _NGINX.format(
                    module=ECHO_MODULE,
                    directory=directory,
                    output=OUTPUT,
                    port=port,
                    tls=tls,
                    # Else the worker could not write into a directory of root's.
                    user="user root;" if os.geteuid() == 0 else "",
                )
            )
        return (nginx, "-e", os.path.join(directory, "log"), "-p", directory, "-c", config)


def uvicorn() -> PythonPeer:
    """Return uvicorn with its fastest parts and a bare application, and nothing on that the others have off."""
    return PythonPeer(
        name="uvicorn",
        module="uvicorn, uvloop, httptools, orjson",
        arguments=(
            "-m", "uvicorn", "--host", "127.0.0.1", "--port", "PORT", "--loop", "uvloop", "--http", "httptools",
            "--no-access-log", "--no-proxy-headers", "--lifespan", "off", "--log-level", "warning",
            "benchmarks.peers.asgi_app:app",
        ),
    )  # fmt: skip


def granian() -> PythonPeer:
    """Return granian with one worker and its own, fastest interface."""
    return PythonPeer(
        name="granian",
        module="granian, uvloop, orjson",
        arguments=(
            "-m", "granian", "--interface", "rsgi", "--host", "127.0.0.1", "--port", "PORT", "--loop", "uvloop",
            "--workers", "1", "--log-level", "warning", "benchmarks.peers.rsgi_app:app",
        ),
    )  # fmt: skip


def aiohttp() -> PythonPeer:
    """Return aiohttp on uvloop."""
    return PythonPeer(
        name="aiohttp",
        module="aiohttp, uvloop, orjson",
        arguments=("-m", "benchmarks.peers.aiohttp_app", "PORT"),
    )


def tornado() -> PythonPeer:
    """Return Tornado in the shape of the collector's source."""
    return PythonPeer(
        name="tornado",
        module="tornado, orjson",
        lines=UNREAD,
        less="does not parse the body, and leaves out what the collector does in C; writes each message alone, as the "
        "collector takes them",
        arguments=("-m", "benchmarks.peers.tornado_app", "PORT"),
    )
