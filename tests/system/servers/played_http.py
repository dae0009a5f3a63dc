"""A played HTTP store in a process of its own, whose messages are in a file: it can be killed."""

from __future__ import annotations

import sys
from typing import Any

from tests.system.servers.played_http_program import read_journal
from tests.system.servers.process import Server


class PlayedHTTPServer(Server):
    """
    A store that is played from its documentation.

    @ivar kind: its key in L{tests.system.http_stores.HTTP_STORE_KINDS}.
    """

    name = "played"

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    @classmethod
    def missing(cls) -> str:
        """Return nothing: it is our own."""
        return ""

    def command(self) -> list[str]:
        """Run the program."""
        module = "tests.system.servers.played_http_program"
        return [sys.executable, "-m", module, self.kind, str(self.port), self.path("journal")]

    def rows(self) -> list[Any]:
        """Return what it holds."""
        return read_journal(self.path("journal"))
