"""
Whether a record matches that holds long texts or many: each text is made, and folded, once for all terms of a query,
and all the work together is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from webhookrx.message.fields import MISSING, Path, get_field
from webhookrx.query.query_tree import And, Everything, Exists, Node, Not, Or, Term
from webhookrx.query.texts import bytes_of, compared_text, counted_leaves, spend_json
from webhookrx.work import MOST_FOR_MESSAGE, TooMuchWork, Work

MOST_WORK: Final = MOST_FOR_MESSAGE
"""Units of work for all terms of a query that is asked alone."""

_ASKING: Final = 250
_LEAF: Final = 350
"""Units for asking one text, and for what is neither object nor array in a record."""


class QueryTooCostly(TooMuchWork):
    """A record holds too much for a query of that many terms; the text quotes neither."""


def spend(work: Work, units: int) -> None:
    """
    Count what is to be done for a query.

    @raise QueryTooCostly: there is not so much left; what is then not done is not counted.
    """
    if units > work.left:
        raise QueryTooCostly("The message holds too much for a query of that size.")
    work.left -= units


class Thorough:
    """
    One record, asked one query.

    @param record: nested dicts; it must not change as long as this is in use.
    @param work: what may be done.
    """

    def __init__(self, record: Mapping[str, Any], work: Work) -> None:
        self._record = record
        self._texts: dict[Path | None, _Texts | None] = {}
        self._work = work

    def matches(self, node: Node) -> bool:
        """
        Tell whether the record matches a tree.

        @raise QueryTooCostly: that would take too long.
        @raise webhookrx.regex.RegexTooCostly: so would one regular expression.
        """
        match node:
            case Term():
                return self._holds(node) is not node.negated
            case Exists():
                return get_field(self._record, node.path) is not MISSING
            case Not():
                return not self.matches(node.operand)
            case And():
                return all(map(self.matches, node.operands))
            case Or():
                return any(map(self.matches, node.operands))
            case Everything():
                return True

    def _holds(self, term: Term) -> bool:
        texts = self._texts_at(term.path)
        if texts is None:
            return False
        asked = term.predicate
        if asked.kind == "equals":
            return asked.value in (texts.exact if asked.strict else texts.folded)
        if asked.kind == "contains":
            self._spend(texts.size * _LOOKING)
            joined = texts.joined if asked.strict else texts.joined_folded
            return asked.value in joined and bool(texts.texts)
        if asked.needs:
            self._spend(texts.size * _LOOKING)
            if asked.needs not in texts.joined_folded:
                return False
        for text in texts.texts:
            self._spend(_ASKING + bytes_of(text) * asked.cost)
            if asked.holds(text):
                return True
        return False

    def _texts_at(self, path: Path | None) -> _Texts | None:
        """Return the texts of a field; None when it is missing."""
        if path not in self._texts:
            self._texts[path] = self._make(path)
        return self._texts[path]

    def _make(self, path: Path | None) -> _Texts | None:
        if path is None:
            values: Iterable[Any] = counted_leaves(self._record, self._spend)
        else:
            value = get_field(self._record, path)
            if value is MISSING:
                return None
            values = value if isinstance(value, list | tuple) else (value,)
        texts = []
        for each in values:
            if isinstance(each, Mapping | list | tuple):
                spend_json(each, self._spend)
            text = compared_text(each)
            # It is folded, joined and hashed, each at most once.
            self._spend(_LEAF + len(text) * (_FOLDING_ASCII if text.isascii() else _FOLDING))
            texts.append(text)
        return _Texts(texts)

    def _spend(self, units: int) -> None:
        spend(self._work, units)


_FOLDING_ASCII: Final = 1
_FOLDING: Final = 6
_LOOKING: Final = 2
"""Units of a character that is casefolded, alone among ASCII or not, and of one that is looked at."""


class _Texts:
    """
    The texts of a field.

    @ivar texts: one by one.
    @ivar size: characters of all of them, with what is between.
    """

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self.size = sum(map(len, texts)) + len(texts)

    @cached_property
    def exact(self) -> frozenset[str]:
        """The texts."""
        return frozenset(self.texts)

    @cached_property
    def folded(self) -> frozenset[str]:
        """The texts, casefolded."""
        return frozenset(map(str.casefold, self.texts))

    @cached_property
    def joined(self) -> str:
        """The texts with a line end between them, which no value of a query holds."""
        return "\n".join(self.texts)

    @cached_property
    def joined_folded(self) -> str:
        """The same, casefolded: that goes character by character."""
        return self.joined.casefold()
