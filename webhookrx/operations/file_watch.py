"""
Whether files have changed, by what stat(2) says of them: a few calls a second, and nothing that a file system may lack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from webhookrx.config.files import signature_of
from webhookrx.settings import Signature


class FileWatch:
    """
    Looks at files. A change counts once it has stayed for a look, so that a file which is being written is not read
    half-way.

    @param look: gives the signature of a path.
    """

    def __init__(self, look: Callable[[str], Signature] = signature_of) -> None:
        self._look = look
        self._known: dict[str, Signature] = {}
        self._last = self._known

    def use(self, files: Mapping[str, Signature]) -> None:
        """
        Watch these.

        @param files: the signature of each path from just before it was read: what has changed since then counts.
        """
        self._known = self._last = dict(files)

    def read(self) -> None:
        """All of them are about to be read as they are now, so that only what changes from now on counts."""
        self._known = self._last = {path: self._look(path) for path in self._known}

    def tick(self) -> bool:
        """Look, and tell whether something has changed and is the same as at the last look. It is told once."""
        now = {path: self._look(path) for path in self._known}
        settled = now != self._known and now == self._last
        self._last = now
        if settled:
            self._known = now
        return settled
