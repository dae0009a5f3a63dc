"""
The types of C{verify} in a sender's data file: where signatures are, what is signed, and how.

A I{place} is C{header:NAME}, C{header:BEGINNING-*} for all headers whose names begin so, C{query:NAME}, or a JSON
pointer into the body, in which C{*} stands for every element of an array. Nothing is tidied up: a place that holds
nothing, or that is there twice, fails the check.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from webhookrx.senders.data_file import DataFileType

MAC_ALGORITHMS: Final = ("hmac-sha1", "hmac-sha256", "hmac-sha512")
DIGEST_ALGORITHMS: Final = ("sha1", "sha256", "sha384")
PUBLIC_KEY_ALGORITHMS: Final = ("ed25519", "ecdsa-sha256", "rsa-sha1", "rsa-sha256", "rsa-sha512")
ALGORITHMS: Final = (*MAC_ALGORITHMS, *DIGEST_ALGORITHMS, *PUBLIC_KEY_ALGORITHMS, "equal")
ENCODINGS: Final = ("hex", "base64", "base64url", "text")
KEY_FORMS: Final = ("text", "base64", "hex", "whsec", "whpk", "pem")
CODE_MEMBERS: Final = {
    "adyen": frozenset[str](),
    "contentful": frozenset({"at"}),
    "jwt": frozenset({"at", "prefix", "key", "algorithms", "claims"}),
    "paypal": frozenset({"at"}),
    "sns": frozenset[str](),
    "twilio": frozenset({"at"}),
}
"""Name of a built-in verifier to the members that may stand beside it."""
CODES_WITH_URL: Final = frozenset({"twilio"})
"""Those that need to know the URL of a source."""
CODE_OF_MEMBERS: Final = frozenset({"adyen", "sns"})
"""Those that check some members of the body, and not what else is in it."""
COVERED_BY_CODE: Final = {
    "paypal": frozenset({"header:paypal-transmission-id"}),
    "sns": frozenset({"/Message", "/MessageId", "/Timestamp", "/TopicArn", "/Type"}),
}
"""What nobody without the key can change of a request that one of these has verified, as places are written."""
SIGNED_TIME_FORMATS: Final = ("unix", "unix-ms", "rfc3339")


class SignedTime(DataFileType, frozen=True):
    """The moment of signing."""

    at: Annotated[str, Meta(description="A place, or `item:NAME`; what is signed must hold it.")]
    format: Annotated[
        str, Meta(description="One of `" + "`, `".join(SIGNED_TIME_FORMATS) + "`; numbers are digits alone.")
    ] = "unix"


class SignatureScheme(DataFileType, frozen=True):
    """One way to prove who sent a request."""

    at: Annotated[
        str | tuple[str, ...],
        Meta(
            description="The place, or places, of signatures: `header:NAME`, `header:BEGINNING-*`, `query:NAME`, or a "
            "JSON pointer, in which `*` stands for every element, each of which must hold one."
        ),
    ] = ()
    prefix: Annotated[str, Meta(description="Text in front of each signature; case counts.")] = ""
    items: Annotated[
        str | tuple[str, ...],
        Meta(
            description="The value is a list: its separator, or that and what separates a name from its value, "
            "which is `=` unless said."
        ),
    ] = ()
    signature: Annotated[
        str, Meta(description="The items of this name are signatures; the others are `{item:NAME}`.")
    ] = ""
    algorithm: Annotated[
        str, Meta(description="One of `" + "`, `".join(ALGORITHMS) + "`: the last is the secret itself.")
    ] = "hmac-sha256"
    encoding: Annotated[
        str,
        Meta(
            description="How a signature is written: one of `"
            + "`, `".join(ENCODINGS)
            + "`, and strictly so. `text` is for `equal` alone, and its default; `hex` is the default of all others."
        ),
    ] = ""
    key: Annotated[
        str,
        Meta(description="How the text of a secret becomes a key: one of `" + "`, `".join(KEY_FORMS) + "`."),
    ] = "text"
    signed: Annotated[
        str,
        Meta(
            description="What is signed, byte for byte: text with `{body}` (unpacked), `{wire}` (as it came), "
            "`{body:sha256}`, `{body:crc32}`, `{url}`, `{target}`, `{method}`, `{form:sorted}`, `{form:NAME}`, "
            "`{item:NAME}`, `{header:NAME}`, `{query:NAME}`, `{/JSON/POINTER}`, `{setting:NAME}` and, for plain "
            "digests, `{secret}` in it."
        ),
    ] = "{body}"
    time: Annotated[SignedTime | None, Meta(description="The moment of signing; none is checked without it.")] = None
    tolerance: Annotated[
        str, Meta(description="How far that moment may be away, in the past or the future, such as `90s`.")
    ] = "5m"
    setting: Annotated[
        str,
        Meta(
            description="The name of a flag among `settings`: where a source sets it, the schemes with it count and no "
            "others; where it does not, the others."
        ),
    ] = ""
    code: Annotated[
        str,
        Meta(description="A built-in verifier, for what data can't say: one of `" + "`, `".join(CODE_MEMBERS) + "`."),
    ] = ""
    algorithms: Annotated[
        tuple[str, ...], Meta(description="For `code: jwt`: the algorithms that a token may be signed by.")
    ] = ()
    claims: Annotated[
        dict[str, str | tuple[str, ...]],
        Meta(
            description="For `code: jwt`: name of a claim, or names with `|` between them of which the first that is "
            "there counts, to the text, or texts, that it must be, with places as in `signed`."
        ),
    ] = {}

    @property
    def places(self) -> tuple[str, ...]:
        """C{at} as a tuple, in the order of the file."""
        return (self.at,) if isinstance(self.at, str) else self.at

    @property
    def headers(self) -> tuple[str, ...]:
        """The names of headers among its places, in lower case; C{x-a-*} is all that begin with C{x-a-}."""
        return tuple(place.removeprefix("header:").lower() for place in self.places if place.startswith("header:"))
