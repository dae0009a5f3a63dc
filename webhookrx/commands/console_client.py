"""
A client of the API of a console, for commands: one request at a time, TLS that is always verified, waits that end.
"""

from __future__ import annotations

import argparse
import http.client
import ipaddress
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, urlencode, urlsplit

import msgspec

from webhookrx.config.files import public_warning, read_file
from webhookrx.diagnostics import quoted, quoted_short
from webhookrx.errors import ConfigError, WebhookrxError

BAD_ARGUMENTS: Final = 2
CONFLICT: Final = 3
UNREACHABLE: Final = 4
"""Exit statuses besides those of L{webhookrx.commands.terminal}: 0 for done, 1 for findings or differences."""

YAML: Final = "application/yaml"
JSON: Final = "application/json"

API: Final = "/api/v1"
"""Before the path of each request."""

_WAIT: Final = 60.0
"""Seconds for connecting and the whole answer, together: a console has long answered, or is not well."""

_LARGEST: Final = 32 * 1024 * 1024
"""Bytes of an answer: rules and what is said about them are much less."""

_SILENCE: Final = 40.0
"""Seconds between two signs of life of a stream, which pings each 15 s."""

_LONGEST_EVENT: Final = 4 * 1024 * 1024
"""Bytes of a line of a stream."""

_LONGEST_TOKEN: Final = 512
_CONFLICTS: Final = (409, 412, 428)


class ConsoleError(WebhookrxError):
    """
    A console did not do what it was asked for.

    @ivar status: the exit status of a command that can't go on.
    @ivar findings: what is wrong with rules, as the console says it.
    @ivar facts: the whole of what the console says; empty when it has not answered.
    """

    def __init__(self, sentence: str, status: int, facts: Mapping[str, Any] = {}) -> None:
        super().__init__(sentence)
        self.status = status
        self.facts = facts
        findings = facts.get("findings")
        self.findings = [each for each in findings if isinstance(each, dict)] if isinstance(findings, list) else []


class ApiAnswer(NamedTuple):
    """
    What a console has answered.

    @ivar etag: for C{If-Match}; empty without one.
    """

    etag: str
    body: bytes

    def decoded(self, wanted: Any) -> Any:
        """
        Return the body, JSON, as a value of a type. Where that is any value, numbers keep their digits, as in the
        documents of rules.

        @raise ConsoleError: it is none.
        """
        try:
            return msgspec.json.Decoder(wanted, float_hook=lambda text: msgspec.Raw(text.encode())).decode(self.body)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise ConsoleError("The answer is not that of a console of this version.", UNREACHABLE) from None


class ConsoleClient:
    """
    Makes requests to a console. There are no redirects, and no proxies of the environment: either would get the token.

    @param url: with scheme, host and maybe port.
    @param token: an API token.
    @param ca: PEM certificates to trust in place of those of the system.
    @raise ConfigError: one of them can't be used.
    """

    def __init__(self, url: str, token: str, ca: bytes | None = None, wait: float = _WAIT) -> None:
        self._url = _checked_url(url)
        self._token = token
        self._wait = wait
        self._tls = _context(ca) if self._url.scheme == "https" else None
        if ca is not None and self._tls is None:
            raise ConfigError("--ca is for consoles on https.")

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] = {},
        body: bytes | None = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        if_match: str = "",
    ) -> ApiAnswer:
        """
        Make a request.

        @param path: behind L{API}.
        @raise ConsoleError: the console can't be reached, or refuses it.
        """
        headers = {"Authorization": f"Bearer {self._token}", "Accept": f"{accept}, application/problem+json"}
        if body is not None:
            headers["Content-Type"] = content_type
        if if_match:
            headers["If-Match"] = if_match
        target = f"{API}{path}{'?' if query else ''}{urlencode(query)}"
        status, etag, answer = self._exchange(method, target, body, headers)
        if 200 <= status < 300:
            return ApiAnswer(etag, answer)
        raise _refusal(status, answer)

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        """
        Read a stream of server-sent events, for as long as it goes on: the name of each, and its data from JSON.

        @param path: behind L{API}.
        @raise ConsoleError: the console can't be reached, refuses it, or is silent for too long.
        """
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "text/event-stream, application/problem+json"}
        with self._connected(_SILENCE) as connection:
            connection.request("GET", f"{API}{path}", headers=headers)
            response = connection.getresponse()
            if response.status != 200:
                raise _refusal(response.status, response.read(_LARGEST))
            name = ""
            while line := response.readline(_LONGEST_EVENT):
                field, _, value = line.rstrip(b"\n").partition(b": ")
                if field == b"event":
                    name = value.decode("ascii", "replace")
                elif field == b"data":
                    yield name, _value(value)

    def _exchange(
        self, method: str, target: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, str, bytes]:
        with self._connected(self._wait) as connection:
            # The timeout of a socket begins anew with each byte.
            end = Timer(self._wait, _cut, [connection])
            end.daemon = True
            end.start()
            try:
                connection.request(method, target, body, headers)
                response = connection.getresponse()
                answer = response.read(_LARGEST + 1)
            except (OSError, http.client.HTTPException):
                if not end.is_alive():
                    raise TimeoutError from None
                raise
            finally:
                end.cancel()
            if len(answer) > _LARGEST:
                raise ConsoleError(f"The answer of the console has more than {_LARGEST:,} bytes.", UNREACHABLE)
            return response.status, response.headers.get("ETag", ""), answer

    @contextmanager
    def _connected(self, wait: float) -> Iterator[http.client.HTTPConnection]:
        """
        Close a connection at the end, and say in a sentence why it has failed.

        @param wait: seconds for connecting, and between two bytes.
        """
        host, port = self._url.hostname or "", self._url.port
        connection: http.client.HTTPConnection
        if self._tls is None:
            connection = http.client.HTTPConnection(host, port, timeout=wait)
        else:
            connection = http.client.HTTPSConnection(host, port, timeout=wait, context=self._tls)
        try:
            yield connection
            return
        except ssl.SSLCertVerificationError as error:
            why = f"its certificate is not trusted: {error.verify_message}"
        except ssl.SSLError as error:
            why = f"TLS fails: {error.reason or 'no reason is known'}"
        except TimeoutError:
            why = f"it has not answered within {wait:g} s"
        except (OSError, http.client.HTTPException) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        finally:
            connection.close()
        raise ConsoleError(f"The console at {self._url.netloc} can't be reached: {why}.", UNREACHABLE)


def add_console_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add what all commands take that ask a console."""
    parser.add_argument(
        "--console", metavar="URL", required=required, help="the console, such as https://console.example.net"
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        required=required,
        help="a file that holds an API token of the console, and no more",
    )
    parser.add_argument(
        "--ca", metavar="FILE", help="CA certificates in PEM to trust for the console, in place of those of the system"
    )


def console_of(asked: argparse.Namespace) -> tuple[ConsoleClient, str]:
    """
    Return the console that a command line names, and a warning about the file of the token, empty without one.

    @raise ConfigError: the URL, the token or the CA can't be used.
    """
    data, mode = read_file(asked.token_file)
    try:
        token = data.decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not token or len(token) > _LONGEST_TOKEN or not token.isprintable() or " " in token:
        raise ConfigError(f"{quoted(asked.token_file)} does not hold an API token: one line of printable ASCII.")
    ca = None if asked.ca is None else read_file(asked.ca)[0]
    return ConsoleClient(asked.console, token, ca), public_warning(asked.token_file, mode)


def _checked_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ConfigError(f"{quoted_short(url)} is not a URL.") from None
    if parts.username is not None or parts.password is not None:
        raise ConfigError("The URL of a console has no user and no password; --token-file takes a token.")
    if not host or not host.isascii() or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ConfigError(f"{quoted_short(url)} is not the URL of a console; it is https://HOST or https://HOST:PORT.")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(host)):
        raise ConfigError(
            f"{quoted_short(url)} is not the URL of a console; it begins with https, or with http on this machine."
        )
    return parts


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _context(ca: bytes | None) -> ssl.SSLContext:
    if ca is None:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=ca.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        raise ConfigError("The file of --ca holds no CA certificate in PEM.") from None


def _value(text: bytes) -> Any:
    try:
        return json.loads(text, parse_int=_integer)
    except (ValueError, RecursionError):
        raise ConsoleError("An event is not that of a console of this version.", UNREACHABLE) from None


def _integer(text: str) -> int | str:
    """Return an integer that a message has; as text, if it is so long that no integer is made of it."""
    return int(text) if len(text) < 4_000 else text


def _cut(connection: http.client.HTTPConnection) -> None:
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)


def _refusal(status: int, answer: bytes) -> ConsoleError:
    """Return what a console has said when it has refused a request (RFC 9457)."""
    facts: Any = None
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        facts = msgspec.json.decode(answer)
    if not isinstance(facts, dict) or not isinstance(facts.get("code"), str):
        return ConsoleError(f"The answer, with status {status}, is not that of a console.", UNREACHABLE)
    said = facts.get("detail") or facts.get("title") or facts["code"]
    sentence = f"The console says: {said}" if isinstance(said, str) else f"The console answers {status}."
    if status in _CONFLICTS:
        return ConsoleError(sentence, CONFLICT, facts)
    if status == 422:
        return ConsoleError(sentence, 1, facts)
    return ConsoleError(sentence, UNREACHABLE if status >= 500 or status == 429 else BAD_ARGUMENTS, facts)
