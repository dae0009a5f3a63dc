"""
Header masking: headers as messages record them, with the values of credentials and signatures replaced.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, Final

from webhookrx.intake.head import Head, HeaderLines
from webhookrx.intake.remembered import Remembered

#: Names of headers with credentials; their values are never recorded. When in doubt, a name is on the list.
_CREDENTIALS: Final = re.compile(
    r"token|secret|passw|api-?key|access-?key|subscription-key|cookie|session|jwt|credential|(?:^|-)auth(?:$|-|oriz|entic)"
    r"|^x-adobesign-clientid$"
)
#: Names of headers with signatures. Messages never have their values; recordings do, so that they can be tried.
_SIGNATURES: Final = re.compile(r"signature|hmac|(?:^|-)(?:sig|mac)(?:$|-)|^x-trello-webhook$")
MASK: Final = "***"


def recorded_headers(headers: Iterable[tuple[bytes, bytes]], masked: Collection[str] = ()) -> dict[str, Any]:
    """
    Return headers as C{webhook.headers} has them: name to list of values, credentials and signatures masked.

    @param masked: names of more headers to mask, in lower case; C{x-a-*} is all that begin with C{x-a-}.
    """
    recorded = _recorded(headers)
    for name in masked:
        for shown in [_NAMES[name][0]] if not name.endswith("*") else list(recorded):
            if shown in recorded and (shown.lower().startswith(name[:-1]) or not name.endswith("*")):
                recorded[shown] = [MASK] * len(recorded[shown])
    return recorded


def _recorded(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, Any]:
    if isinstance(headers, HeaderLines) and headers.block.isascii():
        recorded = _recorded_at_once(headers.block.decode())
        if recorded is not None:
            return recorded
    recorded = {}
    for name, value in headers:
        shown, _, masked = _NAMES[name.decode("latin-1")]
        text = MASK if masked else _text(value)
        if shown in recorded:
            recorded[shown].append(text)
        else:
            recorded[shown] = [text]
    return recorded


def cloud_event_headers(head: Head) -> dict[str, str | list[str]]:
    """
    Return the headers C{ce-*} of a CloudEvent in binary content mode, the only place of its attributes (CloudEvents
    1.0, HTTP protocol binding, section 3.1): lower-case name to text, or to a list if it is repeated; credentials
    and signatures masked, nothing percent-decoded. Empty for any other request.
    """
    if not head.values(b"ce-specversion"):
        return {}
    found: dict[str, str | list[str]] = {}
    for raw_name, value in head.headers:
        if not raw_name.startswith(b"ce-"):
            continue
        name = raw_name.decode("latin-1")
        text = MASK if _NAMES[name][2] else _text(value)
        known = found.get(name)
        if known is None:
            found[name] = text
        else:
            found[name] = [*known, text] if isinstance(known, list) else [known, text]
    return found


def is_masked(name: str) -> bool:
    """Tell whether messages show no value of a header of this name; of one that ends in C{*}, of all that begin so."""
    return _NAMES[name.removesuffix("*")][2]


def is_credential(name: str) -> bool:
    """Tell whether a header of this name holds a credential."""
    return _NAMES[name][1]


def _text(value: bytes) -> str:
    """Decode the value of a header: as UTF-8, as senders mean it today, else as ISO 8859-1 (RFC 9110 section 5.5)."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _recorded_at_once(block: str) -> dict[str, list[str]] | None:
    """Like L{recorded_headers}, for the text of L{HeaderLines}, in 2/3 of the time; None if a name is repeated."""
    lines = block.split("\r\n")[1:-2]
    recorded = {}
    for line in lines:
        name, _, value = line.partition(":")
        shown, _, masked = _NAMES[name]
        recorded[shown] = [MASK if masked else value.strip()]
    return recorded if len(recorded) == len(lines) else None


def _named(name: str) -> tuple[str, bool, bool]:
    spelled = "-".join(part.capitalize() for part in name.split("-"))
    is_credential = bool(_CREDENTIALS.search(name.lower()))
    return spelled, is_credential, is_credential or bool(_SIGNATURES.search(name.lower()))


#: The usual spelling, C{X-Github-Event} for C{x-github-event}, whether the value is a credential, and whether it is
#: that or a signature.
_NAMES: Final = Remembered(_named, most=1024, longest=64)
