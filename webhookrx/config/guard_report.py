"""
The options of a guard, as C{--check} shows them. Secrets and tokens are not among them.
"""

from __future__ import annotations

from webhookrx.guard.quota_text import show_quota
from webhookrx.quantities import format_duration
from webhookrx.settings import GuardSettings


def guard_rows(guard: GuardSettings) -> dict[str, str]:
    """Return the value of each option of a guard as people write it, by the name of the option; but for files."""
    return {
        "sender": guard.sender.id if guard.sender is not None else "none",
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
