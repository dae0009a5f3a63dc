"""
The URLs that anything is ever fetched from: patterns that each match one as a whole.

A request may name such a URL, so that a pattern leaves no room for another host, port, user or encoding: letters,
digits and the few marks that these paths have. Nothing is decoded or repaired before it is compared.
"""

from __future__ import annotations

import re
from typing import Final

#: As Amazon's validators have it, U{https://github.com/aws/aws-js-sns-message-validator}, but with names of regions in
#: place of any name: C{sns.s3-us-west-2.amazonaws.com} has what the owner of the bucket C{sns} puts there.
_SNS: Final = r"https://sns\.[a-z]{2,4}(?:-[a-z]{2,16}){1,3}-[0-9]{1,2}\.amazonaws\.com(?:\.cn)?(?::443)?/"
_GUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

SNS_CERTIFICATE: Final = re.compile(_SNS + r"[A-Za-z0-9_-]{1,200}\.pem")
SNS_CONFIRMATION: Final = re.compile(_SNS + r"\?[A-Za-z0-9%&=:._~-]{1,2000}")
PAYPAL_CERTIFICATE: Final = re.compile(
    r"https://api(?:-m)?(?:\.sandbox)?\.paypal\.com(?::443)?/v1/notifications/certs/[A-Za-z0-9_-]{1,200}"
)
GOOGLE_KEYS: Final = re.compile(r"https://www\.googleapis\.com/oauth2/v3/certs")
MICROSOFT_KEYS: Final = re.compile(rf"https://login\.microsoftonline\.com/{_GUID}/discovery/v2\.0/keys")

_ISSUERS: Final = (
    (re.compile(r"https://accounts\.google\.com"), "https://www.googleapis.com/oauth2/v3/certs"),
    (
        re.compile(rf"https://(?:login\.microsoftonline\.com/({_GUID})/v2\.0|sts\.windows\.net/({_GUID})/)"),
        "https://login.microsoftonline.com/{}/discovery/v2.0/keys",
    ),
)
_ALL: Final = (SNS_CERTIFICATE, SNS_CONFIRMATION, PAYPAL_CERTIFICATE, GOOGLE_KEYS, MICROSOFT_KEYS)
_HOST: Final = re.compile(r"https://([a-z0-9.-]+)(?::443)?(/.*)", re.DOTALL)


def pinned_host(url: str) -> tuple[str, str] | None:
    """Return the host of a URL that may be fetched, and what stands behind it; None for any other URL."""
    if not any(pattern.fullmatch(url) for pattern in _ALL):
        return None
    found = _HOST.fullmatch(url)
    assert found is not None, "all patterns begin so"
    return found[1], found[2]


def is_of_issuer(url: str) -> bool:
    """Tell whether a URL has the keys of an issuer: such a URL comes from the operator alone, see L{keys_of}."""
    return any(pattern.fullmatch(url) for pattern in (GOOGLE_KEYS, MICROSOFT_KEYS))


def keys_of(issuer: str) -> str:
    """
    Return the URL of the keys of an issuer of tokens; empty for one that is not known.

    @param issuer: as the operator and the definition say, never as a token does.
    """
    for pattern, url in _ISSUERS:
        found = pattern.fullmatch(issuer)
        if found is not None:
            return url.format(*filter(None, found.groups()))
    return ""
