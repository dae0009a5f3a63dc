"""
From text to a tree.

The operators and their precedence are FilterX's: L{LEVELS} has them, the loosest first.
"""

from __future__ import annotations

from typing import Final

from webhookrx.expressions.limits import MAX_INTEGER, MAX_NESTING
from webhookrx.expressions.macros import macro_path
from webhookrx.expressions.mistakes import ExpressionError
from webhookrx.expressions.paths import ROOTS
from webhookrx.expressions.tokens import END, FLOAT, INTEGER, MACRO, TEXT, WORD, Token, tokenize
from webhookrx.expressions.tree import (
    Assign,
    Block,
    Call,
    Chain,
    Choice,
    Demand,
    End,
    Expression,
    If,
    ListOf,
    Literal,
    Member,
    Name,
    ObjectOf,
    Statement,
    Unary,
)
from webhookrx.findings import Position

LEVELS: Final = (
    ("??",),
    ("or",),
    ("and",),
    ("not",),
    ("==", "!=", "===", "!==", "eq", "ne", "=~", "!~", "in"),
    ("<", "<=", ">", ">=", "lt", "le", "gt", "ge"),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Operators between operands, the loosest first; C{not} stands before one. Looser still is C{?:}, tighter a C{-} before
an operand, C{.name} and C{[…]}."""

ASSIGNMENTS: Final = ("=", "+=", "=??")

_CONSTANTS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_NOT_LEVEL: Final = LEVELS.index(("not",))
_LEVEL_OF: Final = {sign: level for level, signs in enumerate(LEVELS) for sign in signs if sign != "not"}

_RESERVED: Final = frozenset(
    ["if", "elif", "else", "drop", "done", "declare", "not", "and", "or", "in", "eq", "ne", "lt", "le", "gt", "ge"]
)

_FOREIGN: Final = {
    "switch": "There is no switch here: use if, elif and else.",
    "case": "There is no switch here: use if, elif and else.",
    "break": "There is no break here: use if, elif and else, or done.",
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

    @raise ExpressionError: it is no program; the place is that of the token that does not fit.
    """
    return _Parser(tokenize(text)).program()


class _Parser:
    """Recursive descent. Each method takes what it is named after from the tokens, or raises L{ExpressionError}."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _error(self, problem: str, token: Token) -> ExpressionError:
        return ExpressionError(problem, token.position.line, token.position.column)

    def _take(self) -> Token:
        token = self._token
        self._next += 1
        return token

    def _is(self, *texts: str) -> bool:
        return self._token.text in texts and self._token.kind not in (TEXT, MACRO)

    def _expect(self, text: str, where: str) -> Token:
        if not self._is(text):
            raise self._error(f"Expected '{text}' {where}, found {self._token}.", self._token)
        return self._take()

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._error(f"This nests deeper than {MAX_NESTING} levels.", self._token)

    def program(self) -> Block:
        statements = self._statements(END)
        if self._token.kind != END:
            raise self._error("This '}' closes nothing.", self._token)
        return statements

    def _statements(self, until: str) -> Block:
        statements = []
        while self._token.kind != END and not self._is("}"):
            if self._is(";"):
                self._take()
                continue
            statements.append(self._statement())
        if until == "}" and self._token.kind == END:
            raise self._error("Expected '}' after the statements of a block, found the end.", self._token)
        return tuple(statements)

    def _statement(self) -> Statement:
        token = self._token
        statement: Statement
        if self._is("if"):
            return self._if()
        if self._is("elif", "else"):
            raise self._error(f"'{token.text}' stands after the block of an if.", token)
        if self._is("drop", "done"):
            statement = End(self._take().position, token.text == "done")
        elif self._is("declare"):
            statement = self._declaration()
        else:
            statement = self._assignment_or_demand()
        self._expect(";", "after a statement")
        return statement

    def _if(self) -> If:
        start = self._take()
        arms = [self._arm("if")]
        otherwise: Block = ()
        while self._is("elif"):
            self._take()
            arms.append(self._arm("elif"))
        if self._is("else"):
            self._take()
            if self._is("if"):
                raise self._error("Write elif for else if.", self._token)
            otherwise = self._block("else")
        return If(start.position, tuple(arms), otherwise)

    def _arm(self, word: str) -> tuple[Expression, Block]:
        self._expect("(", f"after {word}")
        condition = self._expression()
        if self._is("="):
            raise self._error("Expected ')', found '='. To compare, write == for numbers or eq for texts.", self._token)
        self._expect(")", f"after the condition of {word}")
        return condition, self._block(f"{word} (…)")

    def _block(self, after: str) -> Block:
        self._deeper()
        self._expect("{", f"after {after}")
        statements = self._statements("}")
        self._take()
        self._depth -= 1
        return statements

    def _declaration(self) -> Assign:
        self._take()
        name = self._token
        target = self._operand()
        if not isinstance(target, Name) or target.name in ROOTS:
            raise self._error("Expected the name of a variable after declare.", name)
        operator = self._expect("=", "after the name of a variable")
        return Assign(operator.position, target, "=", self._expression())

    def _assignment_or_demand(self) -> Statement:
        start = self._token
        follower = self._tokens[self._next + 1]
        if start.kind == WORD and start.text in _FOREIGN and follower.text not in (*ASSIGNMENTS, ".", "["):
            raise self._error(_FOREIGN[start.text], start)
        expression = self._expression()
        if not self._is(*ASSIGNMENTS):
            return Demand(start.position, expression)
        self._check_target(expression, start)
        operator = self._take()
        return Assign(operator.position, expression, operator.text, self._expression())

    def _check_target(self, target: Expression, start: Token) -> None:
        root = target
        while isinstance(root, Member):
            root = root.of
        if not isinstance(root, Name):
            raise self._error("Only fields, such as log.body.user, and local variables can be set.", start)
        if root is target and root.name in ROOTS:
            raise self._error(
                f"'{root.name}' can't be set as a whole; set fields of it, such as {root.name}.name.", start
            )

    def _expression(self) -> Expression:
        self._deeper()
        expression = self._climb(0)
        if self._is("?"):
            sign = self._take()
            yes = self._expression()
            self._expect(":", "between the values of '?'")
            expression = Choice(sign.position, expression, yes, self._expression())
        self._depth -= 1
        return expression

    def _climb(self, loosest: int) -> Expression:
        """Take an operand, and what follows it up to an operator that is looser than a level."""
        if loosest <= _NOT_LEVEL and self._is("not"):
            left: Expression = self._negation()
        else:
            left = self._signed()
        while (level := self._level()) >= loosest:
            rest = []
            while self._level() == level:
                operator = self._take()
                rest.append((operator.text, operator.position, self._climb(level + 1)))
            left = Chain(rest[0][1], left, tuple(rest))
        return left

    def _level(self) -> int:
        """Return the level of the operator that is next; -1 when there is none."""
        return -1 if self._token.kind in (TEXT, MACRO) else _LEVEL_OF.get(self._token.text, -1)

    def _negation(self) -> Expression:
        self._deeper()
        operator = self._take()
        operand = self._climb(_NOT_LEVEL)
        self._depth -= 1
        return Unary(operator.position, "not", operand)

    def _signed(self) -> Expression:
        if not self._is("-", "+"):
            return self._places(self._operand())
        self._deeper()
        operator = self._take()
        operand = self._signed()
        self._depth -= 1
        if operator.text == "+":
            return operand
        if isinstance(operand, Literal) and type(operand.value) in (int, float):
            return Literal(operator.position, -operand.value)  # type: ignore[operator]  # a number
        return Unary(operator.position, "-", operand)

    def _places(self, expression: Expression) -> Expression:
        """Take C{.name}, C{[key]} and C{[]} that follow a value."""
        for _ in range(MAX_NESTING):
            if self._is("."):
                dot = self._take()
                if self._token.kind != WORD:
                    raise self._error(
                        f"Expected a name after '.', found {self._token}. Other keys are written [\"key\"].",
                        self._token,
                    )
                expression = Member(dot.position, expression, Literal(self._token.position, self._take().text))
            elif self._is("["):
                bracket = self._take()
                key = None if self._is("]") else self._expression()
                self._expect("]", "after a key")
                expression = Member(bracket.position, expression, key)
            else:
                return expression
        raise self._error(f"This nests deeper than {MAX_NESTING} levels.", self._token)

    def _operand(self) -> Expression:
        token = self._token
        if token.kind == WORD and token.text not in _RESERVED:
            return self._word(self._take())
        if token.kind in (TEXT, INTEGER, FLOAT):
            return self._literal(self._take())
        if token.kind == MACRO:
            return self._macro(self._take())
        if self._is("("):
            self._take()
            inner = self._expression()
            self._expect(")", "after an expression in parentheses")
            return inner
        if self._is("["):
            self._take()
            return ListOf(token.position, tuple(self._list("]", "list")))
        if self._is("{"):
            return self._object(self._take())
        raise self._error(f"Expected a value, found {token}.", token)

    def _word(self, token: Token) -> Expression:
        if self._is("("):
            return self._call(token)
        if token.text in _CONSTANTS:
            return Literal(token.position, _CONSTANTS[token.text])
        return Name(token.position, token.text)

    def _literal(self, token: Token) -> Literal:
        if token.kind == TEXT:
            return Literal(token.position, token.text)
        if token.kind == INTEGER:
            if len(token.text) > len(str(MAX_INTEGER)) or int(token.text) > MAX_INTEGER:
                raise self._error("This integer has more than 64 bits.", token)
            return Literal(token.position, int(token.text))
        number = float(token.text)
        if number == float("inf"):
            raise self._error("This number is too large.", token)
        return Literal(token.position, number)

    def _macro(self, token: Token) -> Expression:
        settable, path = macro_path(token.text, token.position)
        if not settable and self._is(*ASSIGNMENTS):
            raise self._error(f"The macro {token.text} can't be set.", token)
        expression: Expression = Name(token.position, path[0])
        for name in path[1:]:
            expression = Member(token.position, expression, Literal(token.position, name))
        return expression

    def _list(self, close: str, of: str) -> list[Expression]:
        elements = []
        while not self._is(close):
            elements.append(self._expression())
            if not self._is(close):
                self._expect(",", f"or '{close}' in a {of}")
        self._take()
        return elements

    def _object(self, brace: Token) -> ObjectOf:
        members = []
        while not self._is("}"):
            key = self._expression()
            self._expect(":", "after the name of a member")
            members.append((key, self._expression()))
            if not self._is("}"):
                self._expect(",", "or '}' in an object")
        self._take()
        return ObjectOf(brace.position, tuple(members))

    def _call(self, name: Token) -> Call:
        self._take()
        arguments: list[Expression] = []
        options: dict[str, tuple[Position, Expression]] = {}
        while not self._is(")"):
            start = self._token
            if start.kind == WORD and self._tokens[self._next + 1].text == "=":
                self._next += 2
                if start.text in options:
                    raise self._error(f"The option '{start.text[:40]}' is given twice.", start)
                options[start.text] = (start.position, self._expression())
            elif options:
                raise self._error("Options stand behind all arguments.", start)
            else:
                arguments.append(self._expression())
            if not self._is(")"):
                self._expect(",", f"or ')' in the arguments of {name.text[:40]}()")
        self._take()
        given = tuple((option, position, value) for option, (position, value) in options.items())
        return Call(name.position, name.text, tuple(arguments), given)
