"""
A client that changes its keys as no library would: in parts, and without taking the answer.

It takes over a TLS 1.3 connection after its handshake by the secrets that the library logs. The numbers are those of
RFC 8446: §4.6.3 (KeyUpdate), §5.2 (records), §7.1 to §7.3 (keys).
"""

from __future__ import annotations

import re
import socket
import struct

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

_SECRET = re.compile(r"CLIENT_TRAFFIC_SECRET_0 \w+ (?P<secret>\w+)")
_HANDSHAKE, _DATA = 22, 23


class KeyUpdates:
    """
    The client's sending side. The cipher is TLS_AES_128_GCM_SHA256, which the server prefers.

    @param key_log: what C{SSLKEYLOGFILE} has got of the connection, which has sent nothing since its handshake.
    """

    def __init__(self, sock: socket.socket, key_log: str) -> None:
        self.socket = sock
        with open(key_log) as file:
            secrets = _SECRET.findall(file.read())
        self._use(bytes.fromhex(secrets[-1]))

    def data(self, data: bytes) -> None:
        """Send something."""
        self._send(_DATA, data)

    def update(self, *, wants_answer: bool = False) -> None:
        """Change the keys."""
        self._send(_HANDSHAKE, b"\x18\0\0\1" + bytes([wants_answer]))
        self._renew()

    def update_begins(self) -> None:
        """Announce other keys, without the last byte of it."""
        self._send(_HANDSHAKE, b"\x18\0\0\1")

    def update_ends(self) -> None:
        """Send the last byte."""
        self._send(_HANDSHAKE, b"\0")
        self._renew()

    def _use(self, secret: bytes) -> None:
        self._secret = secret
        self._cipher = AESGCM(_expand(secret, b"key", 16))
        self._nonce = _expand(secret, b"iv", 12)
        self._sent = 0

    def _renew(self) -> None:
        self._use(_expand(self._secret, b"traffic upd", 32))

    def _send(self, kind: int, data: bytes) -> None:
        number = self._sent.to_bytes(12, "big")
        nonce = bytes(a ^ b for a, b in zip(self._nonce, number, strict=True))
        head = struct.pack("!BHH", _DATA, 0x0303, len(data) + 1 + 16)
        self.socket.sendall(head + self._cipher.encrypt(nonce, data + bytes([kind]), head))
        self._sent += 1


def _expand(secret: bytes, label: bytes, length: int) -> bytes:
    label = b"tls13 " + label
    info = struct.pack("!HB", length, len(label)) + label + b"\0"
    return HKDFExpand(SHA256(), length, info).derive(secret)
