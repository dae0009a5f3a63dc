"""
The rows of the table of options that say who may send to a source, and what its sender asks for; and their values, as
C{--check} shows them.
"""

from __future__ import annotations

from typing import Final

from webhookrx.config.option import Kind, Option, OptionScope
from webhookrx.guard.quota_text import show_quota
from webhookrx.quantities import format_duration
from webhookrx.settings import GuardSettings

_GUARD: Final = GuardSettings()

GUARD_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "auth-token-in",
        OptionScope.SOURCE,
        Kind.TEXT,
        "where requests show their token: header:NAME, query:NAME, path:GROUP or basic",
        value="PLACE",
        default=str(_GUARD.token_place),
    ),
    Option(
        "sender",
        OptionScope.SOURCE,
        Kind.TEXT,
        "the one kind of sender that the source hears, by the id of its definition",
        value="ID",
    ),
    Option(
        "secrets-file",
        OptionScope.SOURCE,
        Kind.FILE,
        "a file with secrets, public keys or verify tokens of the sender, one NAME = VALUE per line",
        value="FILE",
        repeat=True,
    ),
    Option(
        "verify",
        OptionScope.SOURCE,
        Kind.TEXT,
        "whether requests must be signed by the sender: refuse others, take all and note which were, or do not look",
        value="HOW",
        default="required when the sender signs",
        choices=("required", "note", "off"),
    ),
    Option(
        "handshake",
        OptionScope.SOURCE,
        Kind.TEXT,
        "whether to answer the questions that the sender asks before it sends",
        value="WHETHER",
        default="yes with a sender",
        choices=("yes", "no"),
    ),
    Option(
        "split",
        OptionScope.SOURCE,
        Kind.TEXT,
        "make each event of a body one message: no, yes (as the sender does it), lines, documents, or a JSON pointer",
        value="HOW",
        default=_GUARD.split,
    ),
    Option(
        "idempotency",
        OptionScope.SOURCE,
        Kind.TEXT,
        "how long to remember the ids of deliveries, and store none of them twice",
        value="TIME",
        default="off",
    ),
    Option(
        "quota",
        OptionScope.SOURCE,
        Kind.LABELS,
        "how much may come: messages=100/s, bytes=10MiB/s, burst=10s, and per=source, token or address",
        value="NAME=VALUE",
        repeat=True,
    ),
    Option(
        "allow",
        OptionScope.SOURCE,
        Kind.TEXT,
        "a network from which requests may come, such as 192.0.2.0/24, or the name of a list of networks",
        value="NETWORK",
        default="all",
        repeat=True,
    ),
    Option(
        "allow-client",
        OptionScope.SOURCE,
        Kind.TEXT,
        "a name of client certificates that may send, such as *.example.net, or a fingerprint sha256:HEX",
        value="CLIENT",
        default="all",
        repeat=True,
        plural="allow_clients",
    ),
    Option(
        "public-url",
        OptionScope.SOURCE,
        Kind.TEXT,
        "scheme, host and port of the source as the sender knows them, for senders that sign the URL",
        value="URL",
    ),
    Option(
        "sender-setting",
        OptionScope.SOURCE,
        Kind.SETTINGS,
        "what the definition of the sender leaves to you, such as webhook_id=VALUE",
        value="NAME=VALUE",
        repeat=True,
        plural="sender_settings",
    ),
)


def guard_rows(guard: GuardSettings) -> dict[str, str]:
    """
    Return the value of each option of a guard as people write it, by the name of the option; but for files of tokens.
    Secrets and tokens are not among them.
    """
    return {
        "sender": guard.sender.id if guard.sender is not None else "none",
        "secrets-file": " ".join(guard.secrets_files) or "none",
        "verify": guard.verify,
        "handshake": _flag(guard.handshake),
        "split": guard.split,
        "idempotency": "off" if guard.idempotency is None else format_duration(guard.idempotency),
        "quota": "none" if guard.quota is None else show_quota(guard.quota),
        "allow": " ".join(guard.allow) or "all",
        "allow-client": " ".join(guard.allow_clients) or "all",
        "auth-token-in": str(guard.token_place),
        "public-url": guard.public_url or "none",
        "sender-setting": " ".join(f"{name}={_text(value)}" for name, value in guard.sender_settings.items()) or "none",
    }


def _text(value: str | bool | tuple[str, ...]) -> str:
    if isinstance(value, bool):
        return _flag(value)
    return value if isinstance(value, str) else ",".join(value)


def _flag(value: bool) -> str:
    return "yes" if value else "no"
