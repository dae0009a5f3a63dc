"""
The real program as a proof needs it: started in special ways, and asked what it has written so far.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from tests.system.receiver import ROOT, NotReached, Receiver, wait_until
from tests.system.servers.process import free_port

#: Where the file observers of all proofs write.
OUTPUT = "messages.jsonl"


class Subject(Receiver):
    """
    A receiver on a port that stays the same over all its starts, so that senders find it again.

    @param prefix: what it runs under, such as C{strace}, whose process must become the receiver's own.
    @param environment: added to ours.
    """

    def __init__(
        self,
        *options: str,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(*options, directory=_new_directory(), port=f"tcp:{free_port()}:interface=127.0.0.1")
        self.prefix = list(prefix)
        self._environment = dict(environment or {})

    def use(self, environment: Mapping[str, str]) -> None:
        """Add to the environment of the next process."""
        self._environment.update(environment)

    def __enter__(self) -> Subject:
        return self

    def __exit__(self, *_: object) -> None:
        self.clean_up()

    def spawn(self) -> None:
        """Start a process without waiting for anything."""
        paths = os.pathsep.join(filter(None, (self._environment.get("PYTHONPATH"), ROOT)))
        with open(self.path("log"), "ab") as log:
            self._process = subprocess.Popen(
                [*self.prefix, *self._arguments],
                cwd=self.directory,
                env={**os.environ, **self._environment, "PYTHONPATH": paths},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )


def observer_options(kind: str) -> tuple[str, ...]:
    """Return the options that make C{messages.jsonl}: by C{kind} C{"file"}, or C{"spool"} with that file behind it."""
    spec = f"file:{OUTPUT}"
    return ("--observer", f"spool:spool:observer={spec}" if kind == "spool" else spec)


def _new_directory() -> str:
    return tempfile.mkdtemp(prefix="webhookrx-torture-")


class Output:
    """
    A file of messages that is read on and on.

    A line is I{torn} when it is the beginning of a line that a crash has cut off: it is what stood behind the last line
    end when L{crashed} was called, and the next line begins behind it. What else is not a message is I{unreadable}.

    @ivar order: the tokens of all messages, as they stand in the file.
    @ivar torn: how many torn lines there are.
    @ivar unreadable: lines that are neither messages nor torn.
    """

    def __init__(self, path: str) -> None:
        self.order: list[str] = []
        self.torn = 0
        self.unreadable: list[str] = []
        self._path = path
        self._offset = 0
        self._cut = b""

    def read(self) -> None:
        """Read the lines that have come; what stands behind the last line end waits."""
        for line in self._new().split(b"\n")[:-1]:
            self._offset += len(line) + 1
            token = token_of_line(line)
            if token is not None:
                self.order.append(token)
            elif self._cut and line == self._cut:
                self.torn += 1
            else:
                self.unreadable.append(line.decode(errors="replace"))
            self._cut = b""

    def crashed(self) -> None:
        """Read what a process has left that has ended in the middle of its work."""
        self.read()
        self._cut = self._new()

    def settle(self, tokens: Collection[str], seconds: float = 60) -> None:
        """Read until all these messages are there; give up after a time, for whoever looks at L{order} then."""

        def is_settled() -> bool:
            self.read()
            return set(self.order).issuperset(tokens)

        with suppress(NotReached):
            wait_until(is_settled, "all is there", seconds)

    def _new(self) -> bytes:
        if not os.path.exists(self._path):
            return b""
        with open(self._path, "rb") as file:
            file.seek(self._offset)
            return file.read()


_TOKEN = re.compile(r"~[0-9a-z]+\.\d+\.\d+~")
TOKEN_IN_BYTES = re.compile(_TOKEN.pattern.encode())


def token_of_line(line: bytes) -> str | None:
    """Return the token of a message, None when the line is not one whole JSON object with a token in its text."""
    try:
        found = _TOKEN.match(json.loads(line)["MESSAGE"])
    except (ValueError, KeyError, TypeError):
        return None
    return found[0] if found else None
