"""
Whether a record matches that holds long texts or many: each text is made, and folded, once for all terms of a query,
and all the work together is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from webhookrx.errors import WebhookrxError
from webhookrx.message.fields import MISSING, Path, get_field, leaves
from webhookrx.query.texts import text_of, texts_of
from webhookrx.query.tree import And, Everything, Exists, Node, Not, Or, Term

MOST_WORK: Final = 200_000_000
"""
Characters that all terms of a query look at: some 0.3 s; one or two where a text is full of beginnings of what is
looked for, or RE2 has to try hard.
"""

_ASKING: Final = 200
"""What it costs to ask a regular expression of one text, in characters."""


class QueryTooCostly(WebhookrxError):
    """A record holds too much for a query of that many terms; the text quotes neither."""


class Thorough:
    """
    One record, asked one query.

    @param record: nested dicts; it must not change as long as this is in use.
    """

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._record = record
        self._texts: dict[Path | None, _Texts | None] = {}
        self._left = MOST_WORK

    def matches(self, node: Node) -> bool:
        """
        Tell whether the record matches a tree.

        @raise QueryTooCostly: that would take too long.
        @raise webhookrx.linear_regex.RegexTooCostly: so would one regular expression.
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
            joined = texts.joined if asked.strict else texts.joined_folded
            self._spend(len(joined))
            return asked.value in joined and bool(texts.texts)
        if asked.needs:
            self._spend(len(texts.joined_folded))
            if asked.needs not in texts.joined_folded:
                return False
        for text in texts.texts:
            self._spend(_ASKING + len(text) * asked.cost)
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
            return _Texts(list(map(text_of, leaves(self._record))))
        value = get_field(self._record, path)
        return None if value is MISSING else _Texts(list(texts_of(value)))

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise QueryTooCostly("The message holds too much for a query of that size.")


class _Texts:
    """
    The texts of a field.

    @ivar texts: one by one.
    """

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

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
