"""
Random queries and records, and what the one matches of the other, worked out in the plainest way.

A tree here is a tuple: C{("term", field, operator, value)}, C{("exists", field)}, C{("not", tree)} and
C{("and" | "or", tree, tree, …)}. Nothing here comes from the code under test.
"""

from __future__ import annotations

import ipaddress
import json
import operator
import re
from typing import Any

import msgspec
from hypothesis import strategies as st

PATTERNS = ["a", "^a", "b$", "^.b?$", "[ab]c", r"\d+", "a|1", r"\.", "x.*1", "ß", "k", "", "a+?b", r"true\Z"]
OPERATORS = ["=", "!=", "=*", "!*", "=~", "!~", "==", "!==", "==*", "!=*", "==~", "!=~"]
COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
NUMBERS = ["0", "1", "1.0", "-1.5", "1e400", "-1e400", "11", "0.1e1"]
ADDRESSES = ["10.0.0.1", "::1", "10.0.0.0/8", "::/0", "0.0.0.0/0", "::ffff:10.0.0.1", "fe80::/10"]

TEXTS = st.text("aAbc1.ßſK k'\"`\\", max_size=4) | st.sampled_from(
    ["true", "null", "1.0", "Ab", "[]", '{"a":1}', "in", "10.0.0.1"]
)
NAMES = st.sampled_from(["a", "b", "A", "0", "1", "a.b", "b.0", "@x", "a b", "not", "c'd"])
FIELDS = st.lists(NAMES, min_size=1, max_size=3).map(".".join)
LEAVES = (
    TEXTS
    | st.integers(-2, 12)
    | st.booleans()
    | st.none()
    | st.sampled_from([msgspec.Raw(b"1.0"), msgspec.Raw(b"1e400"), msgspec.Raw(b"-0")])
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
RECORDS = st.dictionaries(NAMES, VALUES, max_size=4)


@st.composite
def _terms(draw: st.DrawFn) -> tuple[Any, ...]:
    field = draw(FIELDS | st.just("@ANY"))
    sign = draw(st.sampled_from([*OPERATORS, *COMPARISONS, "in", "in", "exists"]))
    if sign == "exists":
        return ("exists", "a" if field == "@ANY" else field)
    if sign in COMPARISONS:
        return ("term", field, sign, draw(st.sampled_from(NUMBERS)))
    if sign == "in":
        return ("in", field, *draw(st.lists(TEXTS | st.sampled_from(ADDRESSES), min_size=1, max_size=3)))
    return ("term", field, sign, draw(st.sampled_from(PATTERNS) if "~" in sign else TEXTS))


def _compounds(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=2, max_size=3)
    return inner.map(lambda tree: ("not", tree)) | st.builds(
        lambda kind, trees: (kind, *trees), st.sampled_from(["and", "or"]), several
    )


TREES: st.SearchStrategy[Any] = st.recursive(_terms(), _compounds, max_leaves=6)


def text_of_tree(tree: Any, choose: Any) -> str:
    """
    Write a tree as a query.

    @param choose: picks one of a list, where several ways of writing mean the same.
    """
    kind, *parts = tree
    if kind == "term":
        field, sign, value = parts
        field = choose(["@ANY", "@any"]) if field == "@ANY" else _name(field, choose)
        blank = choose(["", " ", "\t "])
        return f"{field}{blank}{sign}{blank}{_name(value, choose)}"
    if kind == "in":
        field = choose(["@ANY", "@any"]) if parts[0] == "@ANY" else _name(parts[0], choose)
        values = choose([",", " , "]).join(_name(value, choose) for value in parts[1:])
        return f"{field} {choose(['IN', 'in'])}{choose(['', ' '])}({values})"
    if kind == "exists":
        return f"{_name(parts[0], choose)} {choose(['EXISTS', 'exists'])}"
    if kind == "not":
        if parts[0][0] == "exists" and choose([True, False]):
            return f"{_name(parts[0][1], choose)} Not EXISTS"
        return f"{choose(['NOT', 'not '])} ({text_of_tree(parts[0], choose)})"
    between = {"and": [" AND ", " and ", ",", " , "], "or": [" OR ", " oR "]}[kind]
    return choose(between).join(f"({text_of_tree(part, choose)})" for part in parts)


def _name(text: str, choose: Any) -> str:
    if re.fullmatch("[a-z0-9@.]+", text) and text not in ("not", "@any") and choose([True, False]):
        return text
    quote = choose(["'", '"', "`"])
    return quote + re.sub(r"([\\'\"`])", lambda found: _escaped(found[0], quote), text) + quote


def _escaped(char: str, quote: str) -> str:
    return "\\" + char if char in ("\\", quote) else char


def naive(tree: Any, record: Any) -> bool:
    """Tell whether a record matches a tree."""
    kind, *parts = tree
    if kind == "term":
        field, sign, value = parts
        values = _all_leaves(record) if field == "@ANY" else _elements(_look(record, field.split(".")))
        strict = sign in ("==", "!==", "==*", "!=*", "==~", "!=~")
        positive = any(_holds(_text(each), sign, strict, value) for each in values)
        return not positive if sign.startswith("!") else positive
    if kind == "in":
        values = _all_leaves(record) if parts[0] == "@ANY" else _elements(_look(record, parts[0].split(".")))
        return any(_is_one(_text(each), value) for each in values for value in parts[1:])
    if kind == "exists":
        return _look(record, parts[0].split(".")) != []
    results = [naive(part, record) for part in parts]
    return {"not": not results[0], "and": all(results), "or": any(results)}[kind]


def _is_one(text: str, value: str) -> bool:
    """Tell whether a text is a value of C{IN}, or an address in the network that the value is."""
    if text.casefold() == value.casefold():
        return True
    try:
        network, address = ipaddress.ip_network(value), ipaddress.ip_address(text)
    except ValueError:
        return False
    inner = getattr(address, "ipv4_mapped", None)
    return "/" in value and (address in network or (inner is not None and inner in network))


def _holds(text: str, sign: str, strict: bool, value: str) -> bool:
    if sign in COMPARISONS:
        try:
            number = json.loads(text)
        except ValueError:
            return False
        return type(number) in (int, float) and COMPARISONS[sign](number, json.loads(value))
    if "~" in sign:
        return re.search(value, text, 0 if strict else re.IGNORECASE) is not None
    if not strict:
        text, value = text.casefold(), value.casefold()
    return value in text if "*" in sign else value == text


def _look(value: Any, names: list[str]) -> list[Any]:
    """Return the value of a field in a list, or an empty list."""
    if not names:
        return [value]
    inner: list[Any] = []
    if isinstance(value, list) and names[0].isdigit() and int(names[0]) < len(value):
        inner = _look(value[int(names[0])], names[1:])
    if isinstance(value, dict):
        if names[0] in value:
            inner = _look(value[names[0]], names[1:])
        if not inner and ".".join(names) in value:
            inner = [value[".".join(names)]]
    return inner


def _elements(found: list[Any]) -> list[Any]:
    return found[0] if found and isinstance(found[0], list) else found


def _all_leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in _all_leaves(each)]
    if isinstance(value, list):
        return [leaf for each in value for leaf in _all_leaves(each)]
    return [value]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    if isinstance(value, msgspec.Raw):
        return bytes(value).decode()
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_json(name)}:{_json(each)}" for name, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
