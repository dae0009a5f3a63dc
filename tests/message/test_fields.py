"""
Tests for L{webhookrx.message.fields}.
"""

from __future__ import annotations

import copy
from types import MappingProxyType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.message.fields import (
    MAX_NAMES,
    MISSING,
    FieldError,
    get_field,
    getter,
    leaves,
    set_field,
    setter,
    split_path,
    unset_field,
)

NAMES = st.sampled_from(["a", "b", "0", "1", "a.b", "b.0", "a.b.0"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(["x", 1, None, False]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.dictionaries(NAMES, VALUES, max_size=3)
PATHS = st.lists(st.sampled_from(["a", "b", "0", "1"]), min_size=1, max_size=4).map(tuple)


def found(value: Any, path: tuple[str, ...]) -> list[Any]:
    """Look a field up as the module's docstring says it."""
    if not path:
        return [value]
    name, *tail = path
    if isinstance(value, list):
        return found(value[int(name)], tuple(tail)) if name in [str(index) for index in range(len(value))] else []
    if not isinstance(value, dict):
        return []
    rest = ".".join(path)
    inner = found(value[name], tuple(tail)) if name in value else []
    return inner or ([value[rest]] if rest in value else [])


def behind_dots(value: Any, path: tuple[str, ...]) -> list[Any]:
    """Look a field up behind names with dots; that is done where nothing else is found."""
    while path:
        name, *tail = path
        if isinstance(value, list) and name in [str(index) for index in range(len(value))]:
            value, path = value[int(name)], tuple(tail)
        elif not isinstance(value, dict):
            return []
        elif name in value:
            value, path = value[name], tuple(tail)
        else:
            joined = {end: ".".join(path[:end]) for end in range(2, len(path))}
            end = next((end for end, name in joined.items() if name in value), None)
            if end is None:
                return []
            inner, rest = value[joined[end]], path[end:]
            return found(inner, rest) or behind_dots(inner, rest)
    return []


class LookUpTests(SynchronousTestCase):
    """Fields are found."""

    TABLE = (
        ({"a": {"b": 1}}, "a.b", 1),
        ({"a": {"b": None}}, "a.b", None),
        ({"a": {"b": 1}}, "a.c", MISSING),
        ({"a": "text"}, "a.b", MISSING),
        ({"a": {"b.c.d": 1}}, "a.b.c.d", 1),
        ({"label": {"app": "x", "app.kubernetes.io/name": "y"}}, "label.app.kubernetes.io/name", "y"),
        ({"label": {"app": "x", "app.kubernetes.io/name": "y"}}, "label.app", "x"),
        ({"a": {"b": {"c": 1}}, "a.b.c": 2}, "a.b.c", 1),
        ({"a": {"b": {"d": 1}, "b.c": 3}, "a.b.c": 2}, "a.b.c", 3),
        ({"a": {"b.c": {"d": 1}}}, "a.b.c.d", 1),
        ({"a": {"b.c": {"d": {"e": 1}, "d.e": 2}}}, "a.b.c.d.e", 1),
        ({"a": {"b.c": {"d.e": {"f": [1]}}}}, "a.b.c.d.e.f.0", 1),
        ({"a": {"b.c": {"d": 1}}, "a.b.c.d": 2}, "a.b.c.d", 2),
        ({"a": {"b.c": {"x": 1}, "b.c.d": {"e": 2}}}, "a.b.c.d.e", MISSING),
        ({"a": {"b.c": "text"}}, "a.b.c.d", MISSING),
        ({"a": {"b.c": {}}}, "a.b.c.d", MISSING),
        ({"a": [1, {"b": 2}]}, "a.1.b", 2),
        ({"a": [1, {"b": 2}]}, "a.2", MISSING),
        ({"a": [1]}, "a.-1", MISSING),
        ({"a": [1]}, "a.x", MISSING),
        ({"a": [1]}, f"a.{'1' * 5000}", MISSING),
        ({"a": {"1": "name"}}, "a.1", "name"),
        ({"a": []}, "a", []),
    )

    def test_table(self) -> None:
        """A field is found by its names, by names with dots in them, and by the index of an element."""
        for record, text, expected in self.TABLE:
            with self.subTest(path=text):
                path = split_path(text)
                self.assertEqual((expected, expected), (get_field(record, path), getter(path)(record)))

    def test_mappings(self) -> None:
        """A record need not be a dict."""
        record = MappingProxyType({"a": MappingProxyType({"b": 1})})

        self.assertEqual((1, [1]), (getter(("a", "b"))(record), list(leaves(record))))

    @given(RECORDS, PATHS)
    def test_law(self, record: dict[str, Any], path: tuple[str, ...]) -> None:
        """Both ways of looking up find what the law says."""
        expected = [*(found(record, path) or behind_dots(record, path)), MISSING][0]

        self.assertEqual((expected, expected), (get_field(record, path), getter(path)(record)))


class ChangeTests(SynchronousTestCase):
    """Fields are set and removed."""

    @given(RECORDS, PATHS)
    def test_setter(self, record: dict[str, Any], path: tuple[str, ...]) -> None:
        """Both ways of setting a field change the same, or refuse the same."""
        other = copy.deepcopy(record)
        outcomes = []
        for set_it in (lambda: set_field(record, path, "new"), lambda: setter(path)(other, "new")):
            try:
                outcomes.append(set_it())
            except FieldError as error:
                outcomes.append(str(error))
        self.assertEqual((outcomes[0], record), (outcomes[1], other))

    @given(RECORDS, PATHS)
    def test_set_and_get(self, record: dict[str, Any], path: tuple[str, ...]) -> None:
        """What was set is found there; what can't be set was not there, and has not become so."""
        was_there = get_field(record, path) is not MISSING
        try:
            set_field(record, path, "new")
        except FieldError:
            self.assertFalse(was_there)
            self.assertIs(MISSING, get_field(record, path))
        else:
            self.assertEqual("new", get_field(record, path))

    @given(RECORDS, PATHS)
    def test_unset(self, record: dict[str, Any], path: tuple[str, ...]) -> None:
        """What is said to be removed was there, and the record has changed; else it has not."""
        before = copy.deepcopy(record)
        removed = unset_field(record, path)

        self.assertEqual(removed, before != record)
        if removed:
            self.assertIsNot(MISSING, get_field(before, path))

    def test_set_makes_objects(self) -> None:
        """Objects that are missing on the way are made."""
        record: dict[str, Any] = {"a": [{}]}
        set_field(record, ("a", "0", "b", "c"), 1)

        self.assertEqual({"a": [{"b": {"c": 1}}]}, record)

    def test_set_name_with_dots(self) -> None:
        """A name with dots is set where it is, and not once more as objects."""
        record: dict[str, Any] = {"a": {"b.c": 1}}
        set_field(record, ("a", "b", "c"), 2)

        self.assertEqual({"a": {"b.c": 2}}, record)

    def test_no_place(self) -> None:
        """The error names the field, and quotes no value."""
        for record, text in (({"a": "secret"}, "a.b"), ({"a": ["secret"]}, "a.1.b"), ({"a": ["secret"]}, "a.1")):
            with self.subTest(path=text):
                error = self.assertRaises(FieldError, set_field, record, split_path(text), 1)
                self.assertRegex(str(error), r"^a(\.\w)* has no place for a field '\w'")
                self.assertNotIn("secret", str(error))

    def test_elements_stay(self) -> None:
        """An element of an array is not removed."""
        record = {"a": [1, {"b": 1}]}

        self.assertEqual((False, True), (unset_field(record, ("a", "0")), unset_field(record, ("a", "1", "b"))))
        self.assertEqual({"a": [1, {}]}, record)


class PathTests(SynchronousTestCase):
    """Paths are taken apart."""

    def test_bad_paths(self) -> None:
        """No name is empty, and there are not too many."""
        for text in ("", ".", "a.", ".a", "a..b", "a" + ".a" * MAX_NAMES):
            with self.subTest(path=text):
                self.assertRaises(ValueError, split_path, text)

    def test_missing(self) -> None:
        """What stands for a missing field is false, and says what it is."""
        self.assertEqual((False, "MISSING"), (bool(MISSING), repr(MISSING)))


class LeavesTests(SynchronousTestCase):
    """All that a value holds."""

    def test_leaves(self) -> None:
        """Names are no leaves; empty objects and arrays have none."""
        value = {"a": [1, [2, {"b": None}], (3,)], "c": {}, "d": [], "e": "x"}

        self.assertEqual({1, 2, 3, None, "x"}, set(leaves(value)))
