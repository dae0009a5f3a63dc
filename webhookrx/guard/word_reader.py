"""
Reads the options of a guard, each by itself and beside the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from webhookrx.diagnostics import Diagnostic, diagnose, nearest, quoted_short
from webhookrx.errors import ConfigError
from webhookrx.guard.quota import SourceQuota
from webhookrx.guard.quota_text import quota_members, quota_of
from webhookrx.guard.words import GuardWords
from webhookrx.intake.client_patterns import check_client_pattern
from webhookrx.intake.networks import LIST_NAME, parse_network
from webhookrx.intake.token_places import AUTHORIZATION, TokenPlace, token_place
from webhookrx.quantities import parse_duration, read_flag
from webhookrx.senders.locator import LocatorError, parse_pointer

VERIFY_WORDS: Final = ("required", "note", "off")
SPLIT_WORDS: Final = ("no", "yes", "lines", "documents")

_LONGEST_WINDOW: Final = 30 * 86400.0
_VISIBLE: Final = re.compile(r"[!-~]+")

T = TypeVar("T")


class GuardValues(msgspec.Struct, frozen=True):
    """
    What these options mean, as far as that depends on nothing else.

    @ivar verify: None for the default, which the sender decides.
    @ivar split: C{"no"}, C{"yes"}, C{"lines"}, C{"documents"} or a JSON pointer.
    @ivar idempotency: seconds; None for no window.
    """

    verify: str | None = None
    split: str = "no"
    idempotency: float | None = None
    quota: SourceQuota | None = None
    token_place: TokenPlace = AUTHORIZATION
    public_url: str = ""


def read_words(words: GuardWords) -> tuple[GuardValues, list[Diagnostic]]:
    """
    Return what options mean, and what is wrong with them; the path of each diagnostic begins with the option, as a rule
    spells it. An option in L{GuardWords.without_sender} is not among that.
    """
    reader = _WordReader()
    values = GuardValues(
        verify=reader.read("verify", read_verify, words.verify),
        split=reader.read("split", read_split, words.split) or "no",
        idempotency=reader.read("idempotency", read_window, words.idempotency),
        quota=reader.read_quota(words.quota),
        token_place=reader.read("auth_token_in", token_place, words.auth_token_in) or AUTHORIZATION,
        public_url=reader.read("public_url", read_public_url, words.public_url) or "",
    )
    for number, item in enumerate(words.allow):
        if not LIST_NAME.fullmatch(item):
            reader.read("allow", parse_network, item, number)
    for number, pattern in enumerate(words.allow_clients):
        problem = check_client_pattern(pattern)
        if problem is not None:
            reader.found.append(diagnose("bad-client", ("allow_clients", number), problem))
    reader.found += _together(words, values)
    return values, reader.found


_CODES: Final = {
    "verify": "bad-verify",
    "split": "bad-split",
    "idempotency": "bad-window",
    "quota": "bad-quota",
    "auth_token_in": "bad-token-place",
    "public_url": "bad-public-url",
    "allow": "bad-network",
}


class _WordReader:
    """Reads values, and notes what is wrong with them."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    def read(self, option: str, read: Callable[[str], T | None], written: str, *more: int) -> T | None:
        """Return a value; None for one that was not written, or is wrong."""
        if not written:
            return None
        try:
            return read(written)
        except (ValueError, ConfigError) as error:
            self.found.append(diagnose(_CODES[option], (option, *more), str(error)))
            return None

    def read_quota(self, texts: Sequence[str]) -> SourceQuota | None:
        """Return a quota of all these texts; None without any, and for a wrong one."""
        found = [self.read("quota", quota_members, text, number) for number, text in enumerate(texts)]
        members = [member for each in found if each is not None for member in each]
        try:
            return quota_of(members) if found and None not in found else None
        except ConfigError as error:
            self.found.append(diagnose("bad-quota", ("quota",), error.problem))
            return None


def _together(words: GuardWords, values: GuardValues) -> Iterator[Diagnostic]:
    """Yield what is wrong with options beside others."""
    if not words.has_tokens:
        without = "There is no token: give auth_token_file, or leave {} out."
        if words.auth_token_in:
            yield diagnose("needs-token", ("auth_token_in",), without.format("auth_token_in"))
        if values.quota is not None and values.quota.per == "token":
            yield diagnose("needs-token", ("quota",), without.format("per: token"))


def read_verify(text: str) -> str:
    """
    Read C{verify}.

    @raise ValueError: it is another word; the text is one sentence.
    """
    if text not in VERIFY_WORDS:
        near = nearest(text, VERIFY_WORDS)
        raise ValueError(f"{quoted_short(text)} is not one of {', '.join(VERIFY_WORDS)}. {near}".strip())
    return text


def read_split(text: str) -> str:
    """
    Read C{split}.

    @raise ValueError: it is neither one of the words nor a JSON pointer; the text is one sentence.
    """
    flag = read_flag(text)
    if flag is not None:
        return "yes" if flag else "no"
    if text.startswith("/"):
        try:
            parse_pointer(text)
        except LocatorError as error:
            raise ValueError(f"{quoted_short(text)} is no JSON pointer: {error}") from None
        return text
    if text not in SPLIT_WORDS:
        near = nearest(text, SPLIT_WORDS)
        allowed = f"{', '.join(SPLIT_WORDS)}, or a JSON pointer such as /events/*"
        raise ValueError(f"{quoted_short(text)} is not one of {allowed}. {near}".strip())
    return text


def read_window(text: str) -> float | None:
    """
    Read C{idempotency}, in seconds; None for none.

    @raise ValueError: it is no length of time, or nobody could mean it; the text is one sentence.
    """
    if read_flag(text) is False:
        return None
    seconds = parse_duration(text)
    if not 1 <= seconds <= _LONGEST_WINDOW:
        raise ValueError(f"{quoted_short(text)} is not sensible; write 1s to 30d, such as 24h, or off.")
    return seconds


def read_public_url(text: str) -> str:
    """
    Read C{public_url}.

    @raise ValueError: it is no such URL; the text is one sentence.
    """
    example = "such as https://logs.example.net"
    if not _VISIBLE.fullmatch(text):
        raise ValueError(f"{quoted_short(text)} is no URL: it is visible ASCII alone, {example}.")
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        raise ValueError(f"{quoted_short(text)} is no URL, {example}.") from None
    if parts.scheme not in ("https", "http") or not text.startswith(f"{parts.scheme}://") or not parts.hostname:
        raise ValueError(f"{quoted_short(text)} does not begin with https:// or http:// and a host, {example}.")
    if "@" in parts.netloc:
        raise ValueError(f"A user or a password is not part of it; write scheme, host and port, {example}.")
    if "?" in text or "#" in text:
        raise ValueError(f"{quoted_short(text)} has a query or a fragment, which it can't have.")
    return text
