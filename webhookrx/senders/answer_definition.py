"""
The types of C{answer} and C{behaviour} in a sender's data file: what it wants to hear, and what it does with it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta

from webhookrx.senders.data_file import DataFileType, When

RETRIES: Final = ("none", "by-status", "yes")


class RefusedAnswer(DataFileType, frozen=True):
    """
    The answer to a request that is refused; its status is that of the reason.

    Its texts take places outside the body only, and C{{reason}} and C{{detail}}. A place that yields nothing makes it
    the ordinary answer.
    """

    json: Annotated[
        dict[str, Any] | None,
        Meta(description="The body, as JSON: texts by name, or values as they are. Without it there is no body."),
    ] = None


class SenderAnswer(DataFileType, frozen=True):
    """
    The answer to a message that is stored. Its texts are those of a handshake, without C{{proof}}.

    It is made before anything is stored: where a place yields nothing, the request is refused with C{bad_payload}.
    """

    when: Annotated[When | None, Meta(description="Which requests it is for; all of them unless said.")] = None
    status: Annotated[int, Meta(ge=200, le=299, description="Its status.")] = 200
    json: Annotated[
        dict[str, Any] | None, Meta(description="The body, as JSON: texts by name, or values as they are.")
    ] = None
    text: Annotated[str, Meta(description="The body, as plain text. With neither there is no body.")] = ""
    content_type: Annotated[str, Meta(description="The media type of an answer without `json`.")] = ""
    reply: Annotated[dict[str, str], Meta(description="Headers: texts by name.")] = {}
    refused: Annotated[RefusedAnswer | None, Meta(description="The answer to a request that is refused.")] = None


class Behaviour(DataFileType, frozen=True):
    """What the sender does with the answers it gets."""

    deadline: Annotated[str, Meta(description="The time that it waits for an answer, such as `10s`.")] = ""
    retries: Annotated[
        str,
        Meta(
            description="Whether it sends again what was refused: one of `" + "`, `".join(RETRIES) + "`; nothing if "
            "that is not known."
        ),
    ] = ""
    retried: Annotated[
        tuple[int, ...], Meta(description="With `by-status`: the statuses after which it sends again.")
    ] = ()
    disabled_by: Annotated[
        tuple[int, ...], Meta(description="Statuses, one of which is enough for it to stop sending for good.")
    ] = ()
    note: Annotated[str, Meta(description="One sentence on what else refusals cost.")] = ""
    unconfirmed: Annotated[
        tuple[str, ...], Meta(description="Which of these members no public page of the sender confirms.")
    ] = ()
