"""
What is measured: webhookrx as a user starts it, and what a user might take in its place.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass

from benchmarks import certificates
from benchmarks.lines import FLATTENED, NESTED, UNREAD, Lines
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
    """

    name: str
    tls: str | None = None
    lines: Lines = FLATTENED
    settle: float = 0.02
    quota: float | None = None

    @abstractmethod
    def command(self, tools: Tools, directory: str, port: int) -> tuple[str, ...]:
        """
        Return what starts it, and write the files that it needs.

        @raise Unavailable: it can't be had here.
        """

    def environment(self, output: str) -> dict[str, str]:
        """
        Return the environment to run it in: that of this process, but nobody measures coverage.

        @param output: where its messages are to go.
        """
        return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}


@dataclass(frozen=True, kw_only=True)
class Receiver(Server):
    """
    webhookrx.

    @ivar paths: its path patterns.
    @ivar options: more options.
    """

    ack: str = "written"
    paths: tuple[str, ...] = ("/events",)
    options: tuple[str, ...] = ()

    def command(self, tools: Tools, directory: str, port: int) -> tuple[str, ...]:
        """Return the command line that README shows, with the options of the case."""
        for option in self.options:
            if option.startswith("--") and option.partition("=")[0] not in tools.receiver_help:
                raise Unavailable(f"this webhookrx has no {option.partition('=')[0]}")
        config = os.path.join(directory, "config.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("source: webhook-json\npaths:\n")
            file.writelines(f"  - '{path}'\n" for path in self.paths)
        if self.tls is None:
            endpoint = f"tcp:{port}:interface=127.0.0.1"
        else:
            key, certificate = certificates.files(self.tls)
            endpoint = f"ssl:{port}:interface=127.0.0.1:privateKey={key}:certKey={certificate}"
        return (
            *tools.twistd_command, "--config", config, "--port", endpoint, "--ack", self.ack,
            *_common_options(directory), *self.options, *tools.options,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RouterReceiver(Server):
    """
    webhookrx with a connector from a rules file.

    @ivar preprocessing: what is done to each message, in YAML.
    """

    lines: Lines = NESTED
    preprocessing: str = "{}"

    def command(self, tools: Tools, directory: str, port: int) -> tuple[str, ...]:
        """Write a file with one rule and return the command line that docs/how-to/router.md shows."""
        if "--rules" not in tools.receiver_help:
            raise Unavailable("this webhookrx has no --rules")
        rules = os.path.join(directory, "rules.yaml")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(_RULES.format(port=port, preprocessing=self.preprocessing))
        return (
            *tools.twistd_command, "--rules", rules, "--router-name", "bench", "--ack", "written",
            *_common_options(directory), *tools.options,
        )  # fmt: skip


_RULES = """\
connector_rules:
  - name: bench
    protocol: HTTP
    port: {port}
    paths: [/events]
    preprocessing: {preprocessing}
"""


def _common_options(directory: str) -> tuple[str, ...]:
    output = os.path.join(directory, OUTPUT)
    return ("--observer", f"file:{output}", "--limit", "connections_per_peer=10000")


@dataclass(frozen=True, kw_only=True)
class PythonPeer(Server):
    """
    A peer from the package index.

    @ivar module: what must be importable.
    @ivar arguments: of the interpreter; C{PORT} stands for the port.
    """

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
        arguments=("-m", "benchmarks.peers.tornado_app", "PORT"),
    )
