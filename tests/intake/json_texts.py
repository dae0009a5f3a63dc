"""Hypothesis strategies: texts of JSON as senders may write them, and texts that are nearly JSON."""

from __future__ import annotations

from hypothesis import strategies as st

_BLANKS = st.sampled_from([b"", b"", b"", b" ", b"\n", b"\t", b"\r\n  "])
_ODD_NUMBERS = b"0 -0 -0.0 1e5 1E+400 -1.50e-7 0.10 01 1. - 9999999999999999999".split()
_NUMBERS = st.one_of(
    st.integers().map(lambda number: b"%d" % number),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda number: repr(number).encode()),
    st.sampled_from([*_ODD_NUMBERS, b"9" * 64, b"9" * 65]),
)
_ESCAPES = rb"""
    \n \" \\ \/ \b \f \r \t \u00e9 \u003C \u0000 \u001f \u0022 \u005c \ud83d\ude00
    \ud800 \udc00 \u2028 \u007f \u20AC \uFFFF
""".split()
_PARTS = st.one_of(
    st.text("abc XYZ09._-/'<>&%{}[]:,", max_size=12).map(str.encode),
    st.text(max_size=6).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from(_ESCAPES),
    st.sampled_from([b"\x7f", "\u2028".encode(), "é€😀".encode(), b"\xff", b"\n", b"1" * 64]),
)


def _clean(part: bytes) -> bytes:
    return part.replace(b"\\", b"").replace(b'"', b"")


def strings() -> st.SearchStrategy[bytes]:
    """Return strings of JSON, with escapes of all kinds."""
    parts = _PARTS.map(lambda part: part if part.startswith(b"\\") else _clean(part))
    usual = st.text("abc XYZ09._-/é€", max_size=30).map(str.encode)
    return st.one_of(usual, usual, st.lists(parts, max_size=5).map(b"".join)).map(lambda text: b'"' + text + b'"')


def json_texts(names: st.SearchStrategy[bytes] | None = None) -> st.SearchStrategy[bytes]:
    """
    Return objects and arrays, some of them with a mistake.

    @param names: of members, as strings of JSON.
    """
    keys = strings() if names is None else st.one_of(names, names, strings())
    scalars = st.one_of(strings(), _NUMBERS, st.sampled_from([b"true", b"false", b"null", b"{}", b"[]"]))

    def containers(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
        padded = st.tuples(_BLANKS, inner, _BLANKS).map(b"".join)
        member = st.tuples(_BLANKS, keys, _BLANKS, st.just(b":"), padded).map(b"".join)
        arrays = st.lists(padded, max_size=4).map(lambda parts: b"[" + b",".join(parts) + b"]")
        objects = st.lists(member, max_size=6).map(lambda parts: b"{" + b",".join(parts) + b"}")
        return st.one_of(arrays, objects, objects)

    return containers(st.recursive(scalars, containers, max_leaves=12))


@st.composite
def mutated(draw: st.DrawFn, texts: st.SearchStrategy[bytes]) -> bytes:
    """Return a text with some of its bytes taken out, replaced, or cut off."""
    text = bytearray(draw(texts))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(text)))
        how = draw(st.integers(0, 3))
        if how == 0:
            text[place : place + 1] = b""
        elif how == 1:
            text[place : place + 1] = bytes([draw(st.integers(0, 255))])
        elif how == 2:
            text[place:place] = draw(
                st.sampled_from([b'"', b"\\", b",", b":", b"}", b"{", b"[", b"]", b"0", b"-", b" ", b"\0"])
            )
        else:
            del text[place:]
    return bytes(text)
