"""
Log-ins on their way to the provider and back: each is bound to one browser, used once, and over after ten minutes.

Nothing is kept of a log-in that has begun, so whoever begins many takes no one's place: the browser keeps it in a
cookie, from which, with a key of this process, state, nonce and the verifier of PKCE (RFC 7636) are made.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

FLOW_COOKIE: Final = "__Host-wrx-oidc"
"""A browser takes it with C{Secure}, without C{Domain} and for all paths only. It comes back with the provider's
redirect, which C{SameSite=Lax} allows."""

LIFE: Final = 600
"""Seconds from the begin of a log-in to its end."""

MOST_USED: Final = 10_000
LONGEST_NEXT: Final = 2000

_COOKIE: Final = re.compile(r"([\w-]{43})\.([0-9]{1,12})\.([\w-]{0,2700})\.([\w-]{43})", re.ASCII)


class LoginFlow(msgspec.Struct, frozen=True):
    """
    A log-in on its way.

    @ivar secret: what all else is made of, known to the browser alone.
    @ivar state: comes back with the answer of the provider.
    @ivar nonce: comes back inside of the ID token.
    @ivar verifier: shows to the provider that who asks for the token has begun the log-in.
    @ivar next: where somebody wanted to be.
    """

    secret: str
    state: str
    nonce: str
    verifier: str
    next: str

    @property
    def challenge(self) -> str:
        """What the provider is told of the verifier, by C{S256}."""
        return _base64(hashlib.sha256(self.verifier.encode()).digest())

    def __repr__(self) -> str:
        return "<LoginFlow>"


class LoginFlows:
    """
    Begins log-ins, and knows them again.

    @param seconds: monotonic.
    """

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._key = os.urandom(32)
        self._used: OrderedDict[str, float] = OrderedDict()

    def begin(self, next_path: str) -> tuple[LoginFlow, str]:
        """Return a new log-in, and the value of its cookie."""
        secret = secrets.token_urlsafe(32)
        kept = next_path if len(next_path) <= LONGEST_NEXT and next_path.isascii() else ""
        body = f"{secret}.{int(self._seconds())}.{_base64(kept.encode())}"
        return self._flow(secret, body, kept), f"{body}.{self._derived('cookie', body)}"

    def find(self, cookie: str, state: str) -> LoginFlow | None:
        """Return the log-in of a browser to which a state belongs; None if it is none of ours, over or used."""
        found = _COOKIE.fullmatch(cookie)
        if found is None:
            return None
        secret, begun, packed, seal = found.groups()
        body = cookie.rpartition(".")[0]
        if not hmac.compare_digest(self._derived("cookie", body), seal):
            return None
        flow = self._flow(secret, body, base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)).decode())
        if not hmac.compare_digest(flow.state.encode(), state.encode()):
            return None
        is_late = not 0 <= self._seconds() - int(begun) <= LIFE
        return None if is_late or secret in self._used else flow

    def use(self, flow: LoginFlow) -> bool:
        """Return whether a log-in is used for the first time, and there is room to remember that."""
        now = self._seconds()
        while self._used and now - next(iter(self._used.values())) > LIFE + 1:
            self._used.popitem(last=False)
        if flow.secret in self._used or len(self._used) >= MOST_USED:
            return False
        self._used[flow.secret] = now
        return True

    def _flow(self, secret: str, body: str, next_path: str) -> LoginFlow:
        state, nonce, verifier = (self._derived(name, body) for name in ("state", "nonce", "verifier"))
        return LoginFlow(secret, state, nonce, verifier, next_path)

    def _derived(self, name: str, body: str) -> str:
        return _base64(hmac.digest(self._key, f"{name}.{body}".encode(), "sha256"))


def flow_cookie(value: str) -> str:
    """Return the header that has a browser keep a log-in; an empty one has it forget that."""
    life = LIFE if value else 0
    return f"{FLOW_COOKIE}={value}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={life}"


def _base64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
