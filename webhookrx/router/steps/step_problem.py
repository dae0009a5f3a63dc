"""
What is wrong with a processing step as it is written.
"""

from __future__ import annotations

from typing import TypeAlias

from webhookrx.errors import WebhookrxError

#: Where in a step something is, such as C{("set", 0, "field")}; empty for the step itself.
Member: TypeAlias = tuple[str | int, ...]


class StepProblem(WebhookrxError):
    """
    One mistake in a step.

    @ivar code: a stable word, such as C{bad-query}.
    @ivar sentence: what is wrong and what is allowed.
    @ivar member: the member of the step that it is about.
    @ivar line: the line within that member's text, from 1; 1 when it is not about a place in a text.
    @ivar column: the same for the column.
    """

    def __init__(self, code: str, sentence: str, member: Member = (), line: int = 1, column: int = 1) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.member = member
        self.line = line
        self.column = column


class StepProblems(list[StepProblem]):
    """
    All mistakes of one step, in the order in which they were found.

    @ivar doubts: what is probably not meant, and keeps nothing from running.
    @ivar hides: the step removes or masks something of a message.
    """

    def __init__(self) -> None:
        super().__init__()
        self.doubts: list[StepProblem] = []
        self.hides = False

    def add(self, code: str, sentence: str, member: Member = (), line: int = 1, column: int = 1) -> None:
        """Note one more; the arguments are those of L{StepProblem}."""
        self.append(StepProblem(code, sentence, member, line, column))

    def doubt(self, code: str, sentence: str, member: Member, line: int = 1, column: int = 1) -> None:
        """Note one more doubt; the arguments are those of L{StepProblem}."""
        self.doubts.append(StepProblem(code, sentence, member, line, column))
