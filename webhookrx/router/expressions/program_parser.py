"""
Parses programs: from text to a syntax tree, statement by statement.
"""

from __future__ import annotations

from typing import Final

from webhookrx.router.expressions.expression_parser import ASSIGNMENTS, ExpressionParser
from webhookrx.router.expressions.paths import ROOTS
from webhookrx.router.expressions.program_lexer import END, WORD, ProgramToken, tokenize
from webhookrx.router.expressions.program_tree import (
    Assign,
    Block,
    Break,
    Case,
    End,
    Expression,
    FilterStatement,
    If,
    Literal,
    MemberAccess,
    Name,
    Statement,
    Switch,
)

DECLARE: Final = "declare"
"""The operator of an assignment that declares its variable."""

_FOREIGN: Final = {
    "for": "There are no loops.",
    "while": "There are no loops.",
    "import": "Nothing can be imported.",
    "elseif": "Write elif.",
    "elsif": "Write elif.",
    "return": "Write done to end the program and keep the message, or drop.",
    "exit": "Write done to end the program and keep the message, or drop.",
    "continue": "Write done to end the program and keep the message.",
}
"""Words that begin statements elsewhere. As names of variables they are free."""


def parse(text: str) -> Block:
    """
    Return the statements of a program.

    @raise ExpressionError: the text is not a program; the position is that of the token that does not fit.
    """
    return _ProgramParser(tokenize(text)).program()


class _ProgramParser(ExpressionParser):
    """Parses statements."""

    def program(self) -> Block:
        statements = self._statements(END)
        if self.token.kind != END:
            raise self.error("This '}' closes nothing.", self.token)
        return statements

    def _statements(self, until: str) -> Block:
        statements = []
        while self.token.kind != END and not self.is_("}"):
            if self.is_(";"):
                self.take()
                continue
            statements.append(self._statement())
        if until == "}" and self.token.kind == END:
            raise self.error("Expected '}' after the statements of a block, found the end.", self.token)
        return tuple(statements)

    def _statement(self) -> Statement:
        token = self.token
        if self.is_("if"):
            return self._if()
        if self.is_("switch"):
            return self._switch()
        if self.is_("elif", "else"):
            raise self.error(f"'{token.text}' stands after the block of an if.", token)
        if self.is_("case", "default"):
            raise self.error(f"'{token.text}' stands in the block of a switch.", token)
        statement = self._simple_statement()
        self.expect(";", "after a statement")
        return statement

    def _simple_statement(self) -> Statement:
        token = self.token
        if self.is_("break"):
            return Break(self.take().position)
        if self.is_("drop", "done") and self.tokens[self.next + 1].text in (";", "}", ""):
            return End(self.take().position, token.text == "done")
        return self._declaration() if self.is_("declare") else self._assignment_or_filter()

    def _switch(self) -> Switch:
        start = self.take()
        self.expect("(", "after switch")
        value = self.expression()
        self.expect(")", "after the value of switch")
        self.deeper()
        self.expect("{", "after switch (…)")
        cases: list[Case] = []
        body: list[Statement] = []
        while not self.is_("}"):
            if self.token.kind == END:
                raise self.error("Expected '}' after the cases of a switch, found the end.", self.token)
            if self.is_("case", "default"):
                cases.append(self._case(len(body), cases))
            elif self.is_(";"):
                self.take()
            else:
                body.append(self._statement())
        self.take()
        self.depth -= 1
        return Switch(start.position, value, tuple(cases), tuple(body))

    def _case(self, target: int, before: list[Case]) -> Case:
        word = self.take()
        value = last = None
        if word.text == "case":
            value = self.expression()
            if self.is_(".."):
                self.take()
                last = self.expression()
        found = Case(word.position, value, last, target)
        if any(_key(found) is not None and _key(found) == _key(other) for other in before):
            raise self.error("There are two of this case in one switch.", word)
        self.expect(":", f"after {word.text}")
        return found

    def _if(self) -> If:
        start = self.take()
        arms = [self._arm("if")]
        otherwise: Block = ()
        while self.is_("elif"):
            self.take()
            arms.append(self._arm("elif"))
        if self.is_("else"):
            self.take()
            if self.is_("if"):
                raise self.error("Write elif for else if.", self.token)
            otherwise = self._block("else")
        return If(start.position, tuple(arms), otherwise)

    def _arm(self, word: str) -> tuple[Expression, Block]:
        self.expect("(", f"after {word}")
        condition = self.expression()
        if self.is_("="):
            raise self.error("Expected ')', found '='. To compare, write == for numbers or eq for texts.", self.token)
        self.expect(")", f"after the condition of {word}")
        return condition, self._block(f"{word} (…)")

    def _block(self, after: str) -> Block:
        self.deeper()
        self.expect("{", f"after {after}")
        statements = self._statements("}")
        self.take()
        self.depth -= 1
        return statements

    def _declaration(self) -> Assign:
        self.take()
        name = self.token
        target = self.operand()
        if not isinstance(target, Name) or target.name in ROOTS or name.kind != WORD:
            raise self.error("Expected the name of a variable after declare.", name)
        operator = self.expect("=", "after the name of a variable")
        return Assign(operator.position, target, DECLARE, self.expression())

    def _assignment_or_filter(self) -> Statement:
        start = self.token
        follower = self.tokens[self.next + 1]
        if start.kind == WORD and start.text in _FOREIGN and follower.text not in (*ASSIGNMENTS, ".", "["):
            raise self.error(_FOREIGN[start.text], start)
        expression = self._dpath() if start.text == "dpath" and follower.text == "(" else self.expression()
        if not self.is_(*ASSIGNMENTS):
            return FilterStatement(start.position, expression)
        self._check_target(expression, start)
        operator = self.take()
        return Assign(operator.position, expression, operator.text, self.expression())

    def _dpath(self) -> Expression:
        """Parse C{dpath(field)}: a target in FilterX that makes missing objects on the way, as all targets here do."""
        self.take()
        self.take()
        expression = self.postfix(self.operand())
        self.expect(")", "after the field of dpath()")
        if not self.is_(*ASSIGNMENTS):
            raise self.error("dpath() is a field that is set: dpath(log.body.user) = 1.", self.token)
        return expression

    def _check_target(self, target: Expression, start: ProgramToken) -> None:
        root = target
        while isinstance(root, MemberAccess):
            root = root.of
        if not isinstance(root, Name):
            raise self.error("Only fields, such as log.body.user, and local variables can be set.", start)
        if root is target and root.name in ROOTS:
            raise self.error(
                f"'{root.name}' can't be set as a whole; set fields of it, such as {root.name}.name.", start
            )


def _key(case: Case) -> str | None:
    """Return a key that no two cases of a switch may share; None for a case that is neither a text nor the default."""
    if case.value is None:
        return ""
    if case.last is None and isinstance(case.value, Literal) and isinstance(case.value.value, str):
        return f"={case.value.value}"
    return None
