"""
The reload gate of a router as values: why it is closed, and which connectors could not begin.
"""

from __future__ import annotations

from dataclasses import dataclass

from webhookrx.diagnostics import quoted


@dataclass(frozen=True, slots=True)
class GateReason:
    """
    Why the reload gate of a router is closed.

    @ivar text: a sentence for people, with the place in the rules.
    @ivar path: the file that is missing or can't be used; empty when it is no file.
    """

    text: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class ClosedConnector:
    """
    A connector of the rules that could not begin because of its files.

    @ivar reason: a sentence.
    """

    name: str
    rule: str
    port: int
    reason: str

    @property
    def sentence(self) -> str:
        """All of it for people."""
        return f"Connector {quoted(self.name)} is closed: {self.reason}"
