"""
What a container needs for the files that rules name: the specification, 2.2, rule 8.
"""

from __future__ import annotations

import posixpath
import shlex
from typing import Final

RECOMMENDED: Final = "/etc/webhookrx"
"""The directory of a router's keys, certificates and secrets; a container has it mounted."""


def volume_argument(path: str) -> str:
    """
    Return the argument by which a container of a router has a file that is outside of L{RECOMMENDED}, as a shell takes
    it; empty for one that is inside, or is no absolute path.
    """
    place = posixpath.normpath(path)
    if not place.startswith("/") or place.startswith(f"{RECOMMENDED}/"):
        return ""
    directory = posixpath.dirname(place)
    # A whole root is mounted over everything; the file alone is not.
    mounted = place if directory in ("/", "//") else directory
    if ":" in mounted:
        # What is between colons has a meaning in --volume; in --mount, what is between commas, quoted as in CSV.
        fields = ("type=bind", _csv(f"source={mounted}"), _csv(f"target={mounted}"), "readonly")
        return f"--mount {shlex.quote(','.join(fields))}"
    return f"--volume {shlex.quote(f'{mounted}:{mounted}:ro')}"


def _csv(field: str) -> str:
    return '"{}"'.format(field.replace('"', '""')) if set(field) & set(',"') else field
