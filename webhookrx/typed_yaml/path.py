"""
Where in a file a value is, by the names that lead to it.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from webhookrx.diagnostics import quoted

#: Names of members and indices, from the whole file down: C{("connector_rules", 0, "port")}.
Path: TypeAlias = tuple[str | int, ...]


_PLAIN: Final = re.compile(r"[\w./-]+")


def field_text(path: Path) -> str:
    """Return a path as people write it, such as C{connector_rules[0].port} and C{labels["a b"]}."""
    text = ""
    for name in path:
        if isinstance(name, int):
            text += f"[{name}]"
        elif _PLAIN.fullmatch(name):
            text += f".{name}" if text else name
        else:
            text += f"[{quoted(name)}]"
    return text
