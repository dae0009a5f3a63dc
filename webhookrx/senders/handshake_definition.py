"""
The types of C{handshake} in a sender's data file: its questions, and how they are answered.

An answer is made of I{texts}: plain text with places in braces, as C{webhookrx.senders.definition} has them, but with
each value exactly as it came. C{{proof}}, C{{setting:NAME}}, C{{now:unix}}, C{{now:unix-ms}} and C{{now:rfc3339}} can
stand in a text, too. C{{{} and C{}}} stand for braces. A place that yields nothing makes the question a wrong one.

A question by its head alone, with C{signed: no}, is answered before any body is read; a POST is one only if it has no
body. Any other question is a body of one JSON object, alone or in an array of one, or no body at all.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta

from webhookrx.senders.data_file import DataFileType, When

METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST")
PROOF_ALGORITHMS: Final = ("verify", "sha256")
PROOF_ENCODINGS: Final = ("hex", "base64")

HARMLESS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+/")
"""The characters of which a text may be that is proved. None of them begins JSON, or is C{:}, C{.}, C{=} or a blank."""


class HandshakeWhen(When, frozen=True):
    """What a question is like: all conditions must hold."""

    method: Annotated[str, Meta(description="One of `" + "`, `".join(METHODS) + "`.")] = "POST"
    only_keys: Annotated[
        tuple[str, ...], Meta(description="Members that the object must have, and no others beside them.")
    ] = ()
    empty_body: Annotated[bool, Meta(description="The body is empty.")] = False


class Proof(DataFileType, frozen=True):
    """A proof that the secret is known here."""

    of: Annotated[
        str,
        Meta(
            description="What it is made of: places in braces with nothing between them; for `sha256` also `{secret}` "
            "and `{url}`, which is `public_url`."
        ),
    ]
    algorithm: Annotated[
        str,
        Meta(
            description="`verify`: the HMAC of the first scheme there that is one, with its keys; or `sha256`, alone."
        ),
    ] = "verify"
    encoding: Annotated[str, Meta(description="One of `" + "`, `".join(PROOF_ENCODINGS) + "`.")] = "hex"


class Handshake(DataFileType, frozen=True):
    """A question and its answer."""

    kind: Annotated[str, Meta(description="Its name, for `webhookrx_handshakes_total`: such as `url_verification`.")]
    when: Annotated[HandshakeWhen, Meta(description="How the question is recognised.")]
    signed: Annotated[
        bool | None, Meta(description="Whether it must be signed as `verify` says. Unless said, a POST must.")
    ] = None
    equal: Annotated[
        str, Meta(description="A locator: what is there must be one of the secrets `verify-token` or `verify-token.X`.")
    ] = ""
    shape: Annotated[
        str,
        Meta(
            description="A regular expression that each value from the request must match as a whole. Unless said, "
            "1 to 1,024 printable characters of ASCII."
        ),
    ] = ""
    proof: Annotated[
        Proof | None, Meta(description="What `{proof}` is. The `shape` must be one that no signed text has.")
    ] = None
    json: Annotated[
        dict[str, Any] | None, Meta(description="The answer, as JSON: texts by name, or values as they are.")
    ] = None
    text: Annotated[str, Meta(description="The answer, as plain text. With neither there is no body.")] = ""
    content_type: Annotated[str, Meta(description="The media type of an answer without `json`.")] = ""
    reply: Annotated[dict[str, str], Meta(description="Headers of the answer: texts by name.")] = {}
    status: Annotated[int, Meta(ge=200, le=299, description="The status of the answer.")] = 200
    keep: Annotated[bool, Meta(description="It becomes a message, too.")] = False
    without_token: Annotated[
        bool,
        Meta(
            description="It comes without the token of the source. Only for a question at a path of its own that is no "
            "POST, and whose answer is always the same."
        ),
    ] = False

    @property
    def must_be_signed(self) -> bool:
        """Whether C{verify} comes first."""
        return self.when.method == "POST" if self.signed is None else self.signed
