"""
Parses expressions: from tokens to syntax trees.

The operators and their precedence are FilterX's: L{LEVELS} has them, the loosest first.
"""

from __future__ import annotations

import re
from typing import Final

from webhookrx.diagnostics import Position
from webhookrx.router.expressions.paths import macro_path, macro_settable
from webhookrx.router.expressions.program_lexer import (
    FLOAT,
    INTEGER,
    MACRO,
    PATTERN,
    TEMPLATE,
    TEXT,
    WORD,
    ProgramToken,
    integer_of,
    unescaped,
)
from webhookrx.router.expressions.program_tree import (
    BinaryOp,
    Call,
    Conditional,
    Default,
    Exit,
    Expression,
    Interpolation,
    ListOf,
    Literal,
    MemberAccess,
    Name,
    ObjectOf,
    Slice,
    TupleOf,
    Unary,
)
from webhookrx.router.expressions.run import MAX_INTEGER, MAX_NESTING, MIN_INTEGER, ExpressionError

LEVELS: Final = (
    ("??",),
    ("or",),
    ("and",),
    ("not",),
    ("==", "!=", "===", "!==", "eq", "ne", "=~", "!~", "in", "not in"),
    ("<", "<=", ">", ">=", "lt", "le", "gt", "ge"),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Operators between operands, the loosest first; C{not} stands before one. Looser still are C{? :} and C{?:}, tighter a
C{-} before an operand, C{.name} and C{[…]}."""

ASSIGNMENTS: Final = ("=", "+=", "=??")

_CONSTANTS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_NOT_LEVEL: Final = LEVELS.index(("not",))
_LEVEL_OF: Final = {sign: level for level, signs in enumerate(LEVELS) for sign in signs if sign != "not"}
_PATTERN_SIGNS: Final = ("=~", "!~")

_RESERVED: Final = frozenset(
    """
    if elif else switch case default break drop done declare
    not and or in eq ne lt le gt ge
    """.split()  # noqa: SIM905
)

_TEMPLATE: Final = re.compile(
    r"((?:[^\\$]|\\.|\$(?![$({A-Za-z_]))++)|\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*+)|\{([^{}]*+)\})", re.DOTALL
)

_LONGEST_INTEGER: Final = 24
"""Most characters of an integer of 64 bits, with zeros and unit."""

_QUOTED: Final = (TEXT, TEMPLATE, PATTERN, MACRO)


class ExpressionParser:
    """
    Recursive descent. Each method consumes the tokens of the part that it is named after, or raises L{ExpressionError}.
    """

    def __init__(self, tokens: list[ProgramToken]) -> None:
        self.tokens = tokens
        self.next = 0
        self.depth = 0

    @property
    def token(self) -> ProgramToken:
        return self.tokens[self.next]

    def error(self, problem: str, token: ProgramToken) -> ExpressionError:
        return ExpressionError(problem, token.position)

    def take(self) -> ProgramToken:
        token = self.token
        self.next += 1
        return token

    def is_(self, *texts: str) -> bool:
        return self.token.text in texts and self.token.kind not in _QUOTED

    def expect(self, text: str, where: str) -> ProgramToken:
        if not self.is_(text):
            raise self.error(f"Expected '{text}' {where}, found {self.token}.", self.token)
        return self.take()

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.error(f"This nests deeper than {MAX_NESTING} levels.", self.token)

    def expression(self) -> Expression:
        self.deeper()
        expression = self._climb(0)
        if self.is_("?"):
            sign = self.take()
            if self.is_(":"):
                self.take()
                expression = Default(sign.position, expression, self.expression())
            else:
                yes = self.expression()
                self.expect(":", "between the values of '?'")
                expression = Conditional(sign.position, expression, yes, self.expression())
        self.depth -= 1
        return expression

    def _climb(self, loosest: int) -> Expression:
        """Parse an operand, and all operators behind it that are not looser than a level."""
        if loosest <= _NOT_LEVEL and self.is_("not"):
            left: Expression = self._negation()
        else:
            left = self._signed()
        while (level := self._level()) >= loosest:
            rest = []
            while self._level() == level:
                operator = self._operator()
                operand = self._pattern(operator) if operator.text in _PATTERN_SIGNS else self._climb(level + 1)
                rest.append((operator.text, operator.position, operand))
            left = BinaryOp(rest[0][1], left, tuple(rest))
        return left

    def _level(self) -> int:
        """Return the level of the next token; -1 when it is not an operator."""
        if self.is_("not"):
            return _LEVEL_OF["not in"] if self.tokens[self.next + 1].text == "in" else -1
        return -1 if self.token.kind in _QUOTED else _LEVEL_OF.get(self.token.text, -1)

    def _operator(self) -> ProgramToken:
        operator = self.take()
        if operator.text != "not":
            return operator
        self.take()
        return operator._replace(text="not in")

    def _pattern(self, operator: ProgramToken) -> Expression:
        """Parse a regular expression: a text in which macros have no meaning."""
        token = self.token
        if token.kind == TEMPLATE:
            self.take()
            return Literal(token.position, unescaped(token.text, token.position))
        if token.kind not in (TEXT, PATTERN):
            raise self.error(f"Behind '{operator.text}' stands a regular expression, written as a text.", token)
        return self._literal(self.take())

    def _negation(self) -> Expression:
        self.deeper()
        operator = self.take()
        operand = self._climb(_NOT_LEVEL)
        self.depth -= 1
        return Unary(operator.position, "not", operand)

    def _signed(self) -> Expression:
        if not self.is_("-", "+"):
            return self.postfix(self.operand())
        self.deeper()
        operator = self.take()
        if operator.text == "-" and self.token.kind == INTEGER:
            operand: Expression = self.postfix(self._literal(self.take(), -1))
        else:
            operand = self._signed()
            if operator.text == "-":
                constant = isinstance(operand, Literal) and type(operand.value) is float
                operand = (
                    Literal(operator.position, -operand.value)  # type: ignore[union-attr,operator]  # a number
                    if constant
                    else Unary(operator.position, "-", operand)
                )
        self.depth -= 1
        return operand

    def postfix(self, expression: Expression) -> Expression:
        """Parse C{.name}, C{[key]} and C{[]} behind a value."""
        for _ in range(MAX_NESTING):
            if self.is_("."):
                dot = self.take()
                if self.token.kind != WORD:
                    raise self.error(
                        f"Expected a name after '.', found {self.token}. Other keys are written [\"key\"].",
                        self.token,
                    )
                expression = MemberAccess(dot.position, expression, Literal(self.token.position, self.take().text))
            elif self.is_("["):
                expression = self._subscript(expression, self.take())
            else:
                return expression
        raise self.error(f"This nests deeper than {MAX_NESTING} levels.", self.token)

    def _subscript(self, of: Expression, bracket: ProgramToken) -> Expression:
        key = None if self.is_("]", "..") else self.expression()
        if not self.is_(".."):
            self.expect("]", "after a key")
            return MemberAccess(bracket.position, of, key)
        self.take()
        last = None if self.is_("]") else self.expression()
        self.expect("]", "after a slice")
        if key is None and last is None:
            raise self.error("A slice has a beginning or an end: [1..], [..3] or [1..3].", bracket)
        return Slice(bracket.position, of, key, last)

    def operand(self) -> Expression:
        token = self.token
        if token.kind == WORD and token.text not in _RESERVED:
            return self._word(self.take())
        if token.kind in (TEXT, PATTERN, INTEGER, FLOAT):
            return self._literal(self.take())
        if token.kind == TEMPLATE:
            return self._interpolation(self.take())
        if token.kind == MACRO:
            return self._macro(self.take())
        if self.is_("("):
            return self._parentheses(self.take())
        if self.is_("drop", "done"):
            return Exit(self.take().position, token.text == "done")
        if self.is_("["):
            self.take()
            return ListOf(token.position, tuple(self._list("]", "list")))
        if self.is_("{"):
            return self._object(self.take())
        raise self.error(f"Expected a value, found {token}.", token)

    def _word(self, token: ProgramToken) -> Expression:
        if self.is_("("):
            return self._call(token)
        if token.text in _CONSTANTS:
            return Literal(token.position, _CONSTANTS[token.text])
        return Name(token.position, token.text)

    def _literal(self, token: ProgramToken, sign: int = 1) -> Literal:
        if token.kind in (TEXT, PATTERN):
            return Literal(token.position, token.text)
        if token.kind == INTEGER:
            number = sign * integer_of(token.text) if len(token.text) <= _LONGEST_INTEGER else MAX_INTEGER + 1
            if not MIN_INTEGER <= number <= MAX_INTEGER:
                raise self.error("This integer has more than 64 bits.", token)
            return Literal(token.position, number)
        fraction = float(token.text)
        if fraction == float("inf"):
            raise self.error("This number is too large.", token)
        return Literal(token.position, fraction)

    def _macro(self, token: ProgramToken) -> Expression:
        expression = _macro_field(token.text, token.position)
        if isinstance(expression, MemberAccess) and not macro_settable(token.text) and self.is_(*ASSIGNMENTS):
            raise self.error(f"The macro {token.text} can't be set.", token)
        return expression

    def _interpolation(self, token: ProgramToken) -> Expression:
        parts: list[Expression] = []
        end = 0
        for found in _TEMPLATE.finditer(token.text):
            if found.start() != end:
                break
            end = found.end()
            if found[1] is not None:
                parts.append(Literal(token.position, unescaped(found[1], token.position)))
            elif found[2]:
                parts.append(Literal(token.position, "$"))
            else:
                parts.append(_macro_field(found[3] or found[4] or "", token.position))
        if end != len(token.text):
            raise self.error("There are no template functions, $(…): use functions, or write $$ for a dollar.", token)
        if all(isinstance(part, Literal) for part in parts):
            return Literal(token.position, "".join(str(part.value) for part in parts if isinstance(part, Literal)))
        return Interpolation(token.position, tuple(parts))

    def _parentheses(self, opening: ProgramToken) -> Expression:
        if self.is_(")"):
            self.take()
            return TupleOf(opening.position, ())
        inner = self.expression()
        if not self.is_(","):
            self.expect(")", "after an expression in parentheses")
            return inner
        self.take()
        return TupleOf(opening.position, (inner, *self._list(")", "tuple")))

    def _list(self, close: str, of: str) -> list[Expression]:
        elements = []
        while not self.is_(close):
            elements.append(self.expression())
            if not self.is_(close):
                self.expect(",", f"or '{close}' in a {of}")
        self.take()
        return elements

    def _object(self, brace: ProgramToken) -> ObjectOf:
        members = []
        while not self.is_("}"):
            key = self.expression()
            only_if_there = self.is_(":??")
            if only_if_there:
                self.take()
            else:
                self.expect(":", "after the name of a member")
            members.append((key, self.expression(), only_if_there))
            if not self.is_("}"):
                self.expect(",", "or '}' in an object")
        self.take()
        return ObjectOf(brace.position, tuple(members))

    def _call(self, name: ProgramToken) -> Call:
        self.take()
        arguments: list[Expression] = []
        options: dict[str, tuple[Position, Expression]] = {}
        while not self.is_(")"):
            start = self.token
            if start.kind == WORD and self.tokens[self.next + 1].text == "=":
                self.next += 2
                if start.text in options:
                    raise self.error(f"The option '{start.text[:40]}' is given twice.", start)
                options[start.text] = (start.position, self.expression())
            elif options:
                raise self.error("Options stand behind all arguments.", start)
            else:
                arguments.append(self.expression())
            if not self.is_(")"):
                self.expect(",", f"or ')' in the arguments of {name.text[:40]}()")
        self.take()
        given = tuple((option, position, value) for option, (position, value) in options.items())
        return Call(name.position, name.text, tuple(arguments), given)


def _macro_field(name: str, position: Position) -> Expression:
    """Return the field of a macro; the name of a pair is a local variable here."""
    path = macro_path(name, position)
    expression: Expression = Name(position, path[0])
    for each in path[1:]:
        expression = MemberAccess(position, expression, Literal(position, each))
    return expression
