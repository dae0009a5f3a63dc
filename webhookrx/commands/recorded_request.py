"""
The recorded request that C{webhookrx try} is asked about, as its arguments change it.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec.structs import replace

from webhookrx.commands.terminal import read_input, shown_name
from webhookrx.errors import WebhookrxError
from webhookrx.intake.client_address import normal_ip
from webhookrx.intake.head import Head
from webhookrx.intake.provenance import ClientIdentity
from webhookrx.senders.http_file import HttpFileError, read_http_file


class RecordedRequest(NamedTuple):
    """
    A recorded request.

    @ivar at: when it is taken to have come, in nanoseconds since the epoch; None when that is not said.
    """

    head: Head
    body: bytes
    at: int | None


def recorded_request(asked: argparse.Namespace) -> RecordedRequest:
    """
    Return the request.

    @raise WebhookrxError: it can't be read.
    """
    try:
        head, _, body = read_http_file(read_input(asked.file))
    except HttpFileError as error:
        raise WebhookrxError(f"{shown_name(asked.file)}: {error}") from None
    if asked.path is not None:
        path, _, query = asked.path.partition("?")
        head = replace(head, path=path.encode("utf-8", "surrogateescape"), query=query.encode())
    peer = head.peer
    if asked.peer is not None:
        peer = replace(peer, ip=asked.peer)
    if asked.client_cert is not None:
        peer = replace(peer, client=_client(asked.client_cert))
    # A recording leaves out how its body came.
    length = [(b"content-length", b"%d" % len(body))] if body or head.method == b"POST" else []
    return RecordedRequest(replace(head, headers=[*head.headers, *length], peer=peer), body, asked.at)


def moment(text: str) -> int:
    """Return a time of the command line, in ISO 8601, in nanoseconds since the epoch."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 2026-11-22T12:00:00Z") from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return int(found.timestamp()) * 10**9 + found.microsecond * 1000


def address(text: str) -> str:
    """Return an address of the command line in its normal form."""
    ip = normal_ip(text)
    if ip is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no address such as 192.0.2.7")
    return ip


def _client(path: str) -> ClientIdentity:
    """Return whom a certificate in PEM names."""
    # Few trials have one; the others need not load what reads it.
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import load_pem_x509_certificate

    from webhookrx.intake.client_certificates import identity_of

    data = read_input(path)
    try:
        certificate = load_pem_x509_certificate(data)
    except ValueError:
        raise WebhookrxError(f"{shown_name(path)} holds no certificate in PEM.") from None
    return identity_of(certificate.public_bytes(Encoding.DER))
