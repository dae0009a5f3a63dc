"""
What all types of a sender's data file share, and the conditions by which its requests are recognised.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class DataFileType(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All types of the file: nothing in it is ignored."""


class When(DataFileType, frozen=True):
    """How requests of the sender are recognised: all conditions must hold. At least one of C{headers}, C{any_header},
    C{query}, C{body_keys} and C{body} is needed."""

    headers: Annotated[
        dict[str, str],
        Meta(description="Header name to `*` (it exists) or a regular expression that its value must contain."),
    ] = {}
    any_header: Annotated[tuple[str, ...], Meta(description="Names of headers, at least one of which must exist.")] = ()
    query: Annotated[
        dict[str, str],
        Meta(description="Name of a query parameter to `*` (it exists) or a regular expression for its value."),
    ] = {}
    content_type: Annotated[str, Meta(description="The media type without parameters, such as `text/plain`.")] = ""
    path: Annotated[str, Meta(description="A regular expression that the path must contain.")] = ""
    body_keys: Annotated[tuple[str, ...], Meta(description="Members that the object must have.")] = ()
    body: Annotated[
        str, Meta(description="A query on the members of the object, such as `cloudEventsVersion EXISTS`.")
    ] = ""
