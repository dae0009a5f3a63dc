"""
A backup of a console's keys: one file, encrypted by a passphrase.

The file has C{wrxkeys1}, 16 bytes of salt, 12 bytes of nonce, and the keys as JSON, encrypted by ChaCha20-Poly1305
(RFC 8439) under a key that scrypt (RFC 7914) makes of the passphrase. What stands in front is authenticated, too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from webhookrx.errors import CannotStart

SHORTEST_PASSPHRASE: Final = 16
"""Bytes: who has the file can try as many as they like."""

_MAGIC: Final = b"wrxkeys1"
_SALT: Final = 16
_NONCE: Final = 12
_HEAD: Final = len(_MAGIC) + _SALT + _NONCE
#: 128 MiB of memory for each try.
_COST: Final = 1 << 17

_decode: Final = msgspec.json.Decoder(dict[str, bytes]).decode


def encrypt_keys(files: Mapping[str, bytes], passphrase: bytes) -> bytes:
    """
    Return the backup of files by their names.

    @raise CannotStart: the passphrase is too short.
    """
    if len(passphrase) < SHORTEST_PASSPHRASE:
        raise CannotStart(f"The passphrase has fewer than {SHORTEST_PASSPHRASE} bytes.")
    head = _MAGIC + os.urandom(_SALT) + os.urandom(_NONCE)
    return head + _cipher(head, passphrase).encrypt(_nonce(head), msgspec.json.encode(dict(files)), head)


def decrypt_keys(backup: bytes, passphrase: bytes) -> dict[str, bytes]:
    """
    Return the files in a backup.

    @raise CannotStart: it is none, or is damaged, or the passphrase is another.
    """
    head = backup[:_HEAD]
    if len(head) < _HEAD or not head.startswith(_MAGIC):
        raise CannotStart("The file is no backup of a console's keys.")
    try:
        return _decode(_cipher(head, passphrase).decrypt(_nonce(head), backup[_HEAD:], head))
    except InvalidTag:
        raise CannotStart("The passphrase is another, or the backup of the keys is damaged.") from None
    except msgspec.MsgspecError:
        raise CannotStart("This version can't read the backup of the keys.") from None


def _cipher(head: bytes, passphrase: bytes) -> ChaCha20Poly1305:
    salt = head[len(_MAGIC) : len(_MAGIC) + _SALT]
    return ChaCha20Poly1305(Scrypt(salt=salt, length=32, n=_COST, r=8, p=1).derive(passphrase))


def _nonce(head: bytes) -> bytes:
    return head[-_NONCE:]
