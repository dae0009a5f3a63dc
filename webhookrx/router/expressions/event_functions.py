"""
Functions that read formats of events: CEF, LEEF and XML.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple
from xml.parsers import expat

from webhookrx.router.expressions.function import SEPARATOR, SOME, Function, text_argument
from webhookrx.router.expressions.kv_functions import CHARACTER, greedy_pairs, key_values
from webhookrx.router.expressions.run import CALL, ELEMENT, MAX_DEPTH, OperationError, Run
from webhookrx.router.expressions.values import stored

_BAR: Final = re.compile(r"([^|\\]*+(?:\\.[^|\\]*+|\\\Z)*+)(\||\Z)", re.DOTALL)
_ESCAPED_BAR: Final = re.compile(r"\\([\\|])")


class _Format(NamedTuple):
    """
    A format of events.

    @ivar names: of the parts of its head, the first of which is the version.
    @ivar separator: between pairs.
    @ivar escapes: characters that a backslash escapes in a value, besides itself.
    """

    signature: str
    names: tuple[str, ...]
    separator: str
    escapes: str


_CEF: Final = _Format(
    "CEF",
    (
        "cef_version",
        "device_vendor",
        "device_product",
        "device_version",
        "device_event_class_id",
        "event_name",
        "agent_severity",
    ),
    "  ",
    "=",
)
_LEEF: Final = _Format(
    "LEEF", ("leef_version", "vendor_name", "product_name", "product_version", "event_id"), "\t", "\t"
)


def _parse_cef(run: Run, value: Any, **options: Any) -> dict[str, Any]:
    # Some senders put line ends where the format has blanks.
    text = text_argument(run, value).replace("\r", " ").replace("\n", " ")
    made, rest = _head(run, text, _CEF)
    return _with_extensions(run, made, rest, _CEF, **options)


def _parse_leef(run: Run, value: Any, **options: Any) -> dict[str, Any]:
    text = text_argument(run, value)
    made, rest = _head(run, text, _LEEF)
    if "2.0" not in made["leef_version"]:
        return _with_extensions(run, made, rest, _LEEF, **options)
    found = _BAR.match(rest)
    assert found is not None, "it matches any text"
    delimiter = _leef_delimiter(found[1])
    if delimiter is None:
        # The head ends without a delimiter, and the pairs begin.
        return _with_extensions(run, made, rest, _LEEF, **options)
    if rest and (found[1] or found[2]):
        made["leef_delimiter"] = delimiter
    written = _LEEF._replace(separator=delimiter or _LEEF.separator, escapes=delimiter or _LEEF.escapes)
    return _with_extensions(run, made, rest[found.end() :], written, **options)


def _leef_delimiter(text: str) -> str | None:
    """Return a part of a head as a delimiter; None when it is something else."""
    if len(text) <= 1:
        return text
    digits = text[1:] if text[0] in "xX" else text[2:] if text[:2] in ("0x", "0X") else ""
    if len(text) - len(digits) > 2 or not re.fullmatch("[0-9a-fA-F]{1,2}", digits):
        return None
    return chr(int(digits, 16))


def _head(run: Run, text: str, written: _Format) -> tuple[dict[str, Any], str]:
    """
    Return the parts of a head, and the text behind it.

    @raise OperationError: a part is missing.
    """
    run.spend(len(text) * CHARACTER + CALL * len(written.names))
    made: dict[str, Any] = {}
    at = 0
    for number, name in enumerate(written.names):
        found = _BAR.match(text, at)
        assert found is not None, "it matches any text"
        if not found[1] and not found[2]:
            raise OperationError(f"The head has no {name}.")
        at = found.end()
        run.spend(found[1].count("\\") * CALL)
        part = _ESCAPED_BAR.sub(r"\1", found[1])
        if number:
            made[name] = part
            continue
        signature, colon, version = part.partition(":")
        if not colon or not signature or not written.signature.startswith(signature):
            raise OperationError(f"The text does not begin with {written.signature}: and a version.")
        made[name] = version
    return made, text[at:]


def _with_extensions(
    run: Run,
    made: dict[str, Any],
    text: str,
    written: _Format,
    *,
    value_separator: str = "=",
    pair_separator: str = "",
    separate_extensions: bool = False,
) -> dict[str, Any]:
    escapes = value_separator[0] if written.escapes == "=" else (pair_separator or written.escapes)[0]
    unescaped = re.compile(rf"\\([\\{re.escape(escapes)}])")
    target = made.setdefault("extensions", {}) if separate_extensions else made
    pairs = greedy_pairs(run, text, key_values(value_separator[0], pair_separator or written.separator))
    for name, each in pairs:
        run.spend(each.count("\\") * CALL)
        target[name] = unescaped.sub(r"\1", each) if "\\" in each else each
        if len(target) > run.limits.elements:
            raise run.too_many("An object")
    parsed: dict[str, Any] = stored(run, made, fresh=False)
    return parsed


_TEXT: Final = "#text"
_PROLOG: Final = re.compile(r"\s*+(?:<\?xml\s[^>]*+>\s*+)?+(?:<!--(?:[^-]|-(?!->))*+-->\s*+)*+(?:<!DOCTYPE[^\[>]*+>)?+")


class _Xml:
    """
    Makes an object of XML, as FilterX does: an element with neither attributes nor elements in it is its text, others
    are objects with C{@name} for attributes and C{#text}, and elements of one name are a list. A document type is
    skipped as long as it declares nothing, so there are no entities but those of XML.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._elements = 0
        self._texts: list[list[str]] = [[]]
        self._made: list[dict[str, Any]] = [{}]
        self._parser = expat.ParserCreate("utf-8")
        self._parser.buffer_text = True
        self._parser.ordered_attributes = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._texts_of

    def parse(self, text: str) -> dict[str, Any]:
        """
        @raise OperationError: it is no XML, or too much.
        """
        prolog = _PROLOG.match(text)
        body = text[prolog.end() :] if prolog else text
        try:
            # One element around all, since FilterX takes several.
            self._parser.Parse(f"<_>{body}</_>".encode("utf-8", "replace"), True)
        except expat.ExpatError as error:
            raise OperationError(f"The text is no XML: {expat.ErrorString(error.code)}.") from None
        made = self._made[0].get("_")
        if type(made) is not dict or _TEXT in made:
            raise OperationError("The text is no XML: there is text around its elements, or no element.")
        return made

    def _start(self, name: str, attributes: list[str]) -> None:
        self._elements += 1 + len(attributes) // 2
        if self._elements > self._run.limits.elements:
            raise self._run.too_many("An object")
        if len(self._made) >= MAX_DEPTH:
            raise OperationError(f"An object or a list nests deeper than {MAX_DEPTH} levels.")
        self._run.spend(CALL * 2 + len(attributes) * ELEMENT)
        pairs = zip(attributes[::2], attributes[1::2], strict=True)
        self._made.append({f"@{key}": value for key, value in pairs})
        self._texts.append([])

    def _end(self, name: str) -> None:
        made: Any = self._made.pop()
        text = "".join(self._texts.pop())
        if not made:
            made = text
        elif text:
            made[_TEXT] = text
        parent = self._made[-1]
        there = parent.get(name)
        if there is None:
            parent[name] = made
        elif type(there) is list:
            there.append(made)
        else:
            parent[name] = [there, made]

    def _texts_of(self, text: str) -> None:
        self._texts[-1].append(text.strip(" \t\r\n\f\v"))


def _parse_xml(run: Run, value: Any) -> dict[str, Any]:
    text = text_argument(run, value)
    run.spend(len(text) * CHARACTER)
    parsed: dict[str, Any] = stored(run, _Xml(run).parse(text), fresh=False)
    return parsed


_PAIRS: Final = {"value_separator": str, "pair_separator": str, "separate_extensions": bool}
_CHECKS: Final = {"value_separator": SEPARATOR, "pair_separator": SOME}

EVENT_FUNCTIONS: Final = (
    Function(
        "parse_cef",
        'text, value_separator="=", pair_separator="  ", separate_extensions=false',
        "The head and the extensions of an event in CEF, as an object; the extensions optionally in their own object.",
        _parse_cef,
        options=_PAIRS,
        checks=_CHECKS,
    ),
    Function(
        "parse_leef",
        'text, value_separator="=", pair_separator="\\t", separate_extensions=false',
        "The same of LEEF 1.0 and 2.0.",
        _parse_leef,
        options=_PAIRS,
        checks=_CHECKS,
    ),
    Function(
        "parse_xml",
        "text",
        "XML as an object: `@name` for attributes, `#text` for text beside them, a list for elements of one name.",
        _parse_xml,
    ),
)
