"""
The options of a guard as people write them, in either form of configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from webhookrx.quantities import read_flag

NEED_SENDER: Final = ("secrets_file", "verify", "handshake", "split", "idempotency", "public_url", "sender_settings")
"""Options that say something about the sender of a source."""


class GuardWords(msgspec.Struct, frozen=True):
    """
    The options of one source or rule; what is empty or None was not written.

    @ivar has_tokens: whether the source is to have tokens, from files or otherwise.
    """

    sender: str = ""
    secrets_file: tuple[str, ...] = ()
    verify: str = ""
    handshake: bool | None = None
    split: str = ""
    idempotency: str = ""
    quota: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    allow_clients: tuple[str, ...] = ()
    auth_token_file: tuple[str, ...] = ()
    has_tokens: bool = False
    auth_token_in: str = ""
    public_url: str = ""
    sender_settings: Mapping[str, tuple[str, ...]] = {}

    @property
    def without_sender(self) -> tuple[str, ...]:
        """The options that were written although there is no sender that they could be about; C{no} is about none."""
        written = {name: getattr(self, name) for name in NEED_SENDER}
        flags = {"split": read_flag(self.split) or None, "idempotency": read_flag(self.idempotency) is not False}
        about = (
            name for name, value in written.items() if value not in ("", (), {}, None, False) and flags.get(name, True)
        )
        return () if self.sender else tuple(about)
