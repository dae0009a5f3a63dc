"""
What an error of obstore means for the object that was to be put.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

from obstore.exceptions import AlreadyExistsError

#: As object_store words it (C{RetryError} and C{RequestError::Status} in client/retry.rs), before the answer's body.
_REQUEST: Final = re.compile(
    r"Error performing (?P<method>[A-Z]+) (?P<url>\S+) in \S+ - "
    r"(?:Server returned non-2xx status code: (?P<status>[1-5][0-9]{2})\b)?"
)
_CODE: Final = re.compile(r"<Code>\s*([A-Za-z]{1,60})\s*</Code>")

#: 412 is what S3 answers to If-None-Match when the object is there, 304 what some other services do.
_THERE: Final = ("412", "304")

_REGION: Final = "look at region= and endpoint="
_HINTS: Final = {
    "NoSuchBucket": "look at the bucket in the URL",
    "AccessDenied": "look at credentials_file=, and whether it may PutObject",
    "InvalidAccessKeyId": "look at credentials_file=",
    "SignatureDoesNotMatch": "look at credentials_file=",
    "ExpiredToken": "the session token has expired; look at credentials_file=",
    "RequestTimeTooSkewed": "the clock of this machine is wrong",
    "PermanentRedirect": _REGION,
    "TemporaryRedirect": _REGION,
    "AuthorizationHeaderMalformed": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "NotImplemented": "the service must know If-None-Match",
    "ConditionalRequestConflict": "something else happens to the same object",
    "301": _REGION,
    "307": _REGION,
    "401": "look at credentials_file=",
    "403": "look at credentials_file=",
    "404": "look at the bucket in the URL, and endpoint=",
    "405": "look at endpoint=",
}

#: Words of obstore's own, and what to say for them.
_CAUSES: Final = (
    ("Connection refused", "the connection was refused"),
    ("dns error", "the name of the service leads to no address"),
    ("without LOCATION", f"it answers with a redirection; {_REGION}"),
    ("InvalidCertificate", "the certificate of the service is not accepted"),
    ("ETag Header missing", "the answer has no ETag"),
    ("TimedOut", "no answer came in time"),
    ("timed out", "no answer came in time"),
)


class Fate(Enum):
    """What becomes of the object."""

    KNOWN = "known"
    """It is there already, from an earlier try."""
    TOO_LARGE = "too large"
    """The service takes no object of this size."""
    LATER = "later"
    """The service, or a person, may remove the cause."""


class PutFailure(NamedTuple):
    """
    Why an object was not put.

    @ivar text: one line, without anything of the answer but its status and code.
    """

    fate: Fate
    text: str


def read_failure(error: Exception, path: str) -> PutFailure:
    """
    Tell what an error of obstore means. Only an answer to the request for the object itself says anything of messages:
    obstore asks for credentials, too, and words their errors the same.

    @param path: the name of the object.

    C{AlreadyExistsError} alone does not say that the object is there: object_store raises it for any 409, too, among
    them C{ConditionalRequestConflict}, after which nothing is stored and the request must be sent again (its pull
    request 852; S3's own page on C{PutObject}).
    """
    text = str(error)
    found = _REQUEST.search(text)
    # The digest and the ending: no character of them is written as another in a URL.
    if found is not None and (found["method"] != "PUT" or not found["url"].endswith(path.rpartition("-")[2])):
        return PutFailure(Fate.LATER, "there are no credentials; look at credentials_file=")
    if found is None or found["status"] is None:
        return PutFailure(Fate.LATER, next((said for word, said in _CAUSES if word in text), "no answer came"))
    status = found["status"]
    code = _CODE.search(text, found.end())
    name = "" if code is None else code[1]
    said = f"it answers {status} {name}".rstrip()
    if isinstance(error, AlreadyExistsError) and status in _THERE:
        return PutFailure(Fate.KNOWN, said)
    hint = _HINTS.get(name) or _HINTS.get(status)
    # Any other status with this code is of something that does not mean it.
    is_too_large = status == "413" or (status == "400" and name == "EntityTooLarge")
    fate = Fate.TOO_LARGE if is_too_large else Fate.LATER
    return PutFailure(fate, f"{said}: {hint}" if hint else said)
