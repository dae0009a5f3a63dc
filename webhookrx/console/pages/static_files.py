"""
The files that pages load: each under a path with a part of its hash, so that browsers keep it for good.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from typing import Final, NamedTuple

from webhookrx.console.api.problems import NOT_FOUND, ApiProblem

DIRECTORY: Final = os.path.join(os.path.dirname(__file__), "static")
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS: Final = (
    ("Cache-Control", "public, max-age=31536000, immutable"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Content-Security-Policy", "default-src 'none'"),
    ("Vary", "Accept-Encoding"),
)


class _StaticFile(NamedTuple):
    digest: str
    content_type: str
    content: bytes
    packed: bytes


class ServedFile(NamedTuple):
    """
    A file as it is answered.

    @ivar headers: all but type and length.
    """

    content: bytes
    content_type: str
    headers: tuple[tuple[str, str], ...]


class StaticFiles:
    """The files, read once."""

    def __init__(self) -> None:
        self._files: dict[str, _StaticFile] = {}
        for name in sorted(os.listdir(DIRECTORY)):
            content_type = _TYPES.get(os.path.splitext(name)[1])
            if content_type is not None:
                with open(os.path.join(DIRECTORY, name), "rb") as file:
                    content = file.read()
                digest = hashlib.sha256(content).hexdigest()[:16]
                self._files[name] = _StaticFile(digest, content_type, content, gzip.compress(content, 9, mtime=0))

    def url(self, name: str) -> str:
        """Return the path of a file."""
        return f"/static/{self._files[name].digest}/{name}"

    def file(self, digest: str, name: str, *, packed: bool) -> ServedFile:
        """
        Return a file.

        @param packed: by gzip.
        @raise ApiProblem: there is none of that name and hash.
        """
        found = self._files.get(name)
        if found is None or found.digest != digest:
            raise ApiProblem(NOT_FOUND)
        headers = (*_HEADERS, ("Content-Encoding", "gzip")) if packed else _HEADERS
        return ServedFile(found.packed if packed else found.content, found.content_type, headers)
