"""
Client patterns: which verified client certificates a source takes, by their names or fingerprints.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from webhookrx.diagnostics import quoted
from webhookrx.intake.provenance import ClientIdentity

_FINGERPRINT: Final = "sha256:"
_HEX: Final = re.compile(r"[0-9a-f]{64}")
_WILDCARD: Final = "*."
#: One label of a name, which a wildcard stands for; a certificate's own wildcard is none.
_LABEL: Final = re.compile(r"[a-z0-9_-]+")
_LONGEST: Final = 255
_MOST_KNOWN: Final = 1024
"""Certificates of which is remembered what they match."""


def check_client_pattern(text: str) -> str | None:
    """Say in one sentence what is wrong with a pattern; None if it can be used."""
    if text.startswith(_FINGERPRINT):
        if _HEX.fullmatch(_normal_fingerprint(text)):
            return None
        return f"{quoted(text)} is no fingerprint: after sha256: come 64 hexadecimal digits, with or without colons."
    rest = text.removeprefix(_WILDCARD)
    if not rest or len(text) > _LONGEST or not rest.isprintable() or rest != rest.strip():
        return f"{quoted(text)} is no name of a client, such as relay.shippers.example."
    if "*" in rest:
        return f"{quoted(text)}: a wildcard is the whole first label, as in *.shippers.example."
    return None


class ClientPatterns:
    """
    The clients that a source takes, compiled.

    A name is compared without regard to case: first with the names of C{subjectAltName}, then with the common name.
    C{*.shippers.example} stands for names with exactly one label more. C{sha256:FINGERPRINT} is one certificate.

    @param patterns: see L{check_client_pattern}.
    """

    __slots__ = ("_endings", "_fingerprints", "_known", "_names")

    def __init__(self, patterns: Sequence[str]) -> None:
        self._fingerprints = {_normal_fingerprint(text): text for text in patterns if text.startswith(_FINGERPRINT)}
        names = [text for text in patterns if not text.startswith(_FINGERPRINT)]
        self._names = {text.lower(): text for text in names if not text.startswith(_WILDCARD)}
        self._endings = {text.lower()[1:]: text for text in names if text.startswith(_WILDCARD)}
        self._known: dict[str, str | None] = {}

    def match(self, client: ClientIdentity | None) -> str | None:
        """
        Return the pattern that a client matches, as it was written.

        @param client: None for a connection without a verified certificate.
        @return: None if there is none.
        """
        if client is None:
            return None
        known = self._known
        if client.fingerprint not in known:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[client.fingerprint] = self._find(client)
        return known[client.fingerprint]

    def _find(self, client: ClientIdentity) -> str | None:
        by_fingerprint = self._fingerprints.get(client.fingerprint)
        if by_fingerprint is not None:
            return by_fingerprint
        for name in (*client.san, client.cn):
            lower = name.lower()
            found = self._names.get(lower)
            if found is None:
                label, dot, rest = lower.partition(".")
                found = self._endings.get(dot + rest) if _LABEL.fullmatch(label) else None
            if found is not None:
                return found
        return None


def _normal_fingerprint(text: str) -> str:
    return text.removeprefix(_FINGERPRINT).replace(":", "").lower()
