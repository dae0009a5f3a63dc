"""
What is wrong with a processing step as it is written.
"""

from __future__ import annotations

from webhookrx.diagnostics import Diagnostic, Path, diagnose
from webhookrx.errors import WebhookrxError


class StepError(WebhookrxError):
    """
    A step can't be used.

    @ivar diagnostic: the first thing that is wrong with it.
    """

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.sentence)
        self.diagnostic = diagnostic


class StepProblems(list[Diagnostic]):
    """
    What is wrong with one step, in the order in which it was found. Paths begin at the step.

    @ivar hides: the step removes or masks something of a message.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hides = False

    def add(self, code: str, sentence: str, path: Path = (), line: int = 0, column: int = 0) -> None:
        """Note one more; the arguments are those of L{Diagnostic}."""
        self.append(diagnose(code, path, sentence, line, column))
