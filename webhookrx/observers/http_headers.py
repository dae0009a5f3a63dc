"""
The secrets of the C{http} observer: a token and further header fields, each from a file.

What a file holds is never quoted, only the number of a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from webhookrx.config.files import read_file
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.intake.tokens import check_token, parse_token_file

#: A header field: its name and its value.
Header = tuple[bytes, bytes]

#: RFC 9110, section 5.6.2.
TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: RFC 9110, section 5.5: visible bytes, with spaces and tabs between them.
FIELD_VALUE = re.compile(rb"[\x21-\x7e\x80-\xff](?:[\t \x21-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?")

#: Fields that frame a request or that the observer makes itself.
_OURS = frozenset(
    b"accept-encoding connection content-encoding content-length content-type expect idempotency-key keep-alive "
    b"te trailer transfer-encoding upgrade".split()
)


def read_token(path: str, scheme: str) -> Header:
    """
    Read a file that holds one token; blank lines and lines that begin with C{#} are skipped.

    @param scheme: the word before the token.
    @raise ConfigError: it can't be read, or holds no token, several, or one that can't be sent.
    """
    content, _ = read_file(path)
    tokens = parse_token_file(content.decode("utf-8", "surrogateescape"))
    if len(tokens) != 1:
        raise ConfigError(f"{quoted(path)} holds {len(tokens)} tokens; it must hold one, on a line of its own.")
    problem = check_token(tokens[0])
    if problem is not None:
        raise ConfigError(f"{quoted(path)}: {problem}")
    return b"Authorization", scheme.encode() + b" " + tokens[0]


def read_headers(path: str) -> list[Header]:
    """
    Read a file of header fields, C{Name: value} a line; blank lines and lines that begin with C{#} are skipped.

    @raise ConfigError: it can't be read, or a line is no header field or one that is not for a file to set.
    """
    content, _ = read_file(path)
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    headers = [_header(path, number, line) for number, line in _meaningful(lines)]
    if not headers:
        raise ConfigError(f"{quoted(path)} holds no header field; write Name: value, one a line.")
    return headers


def _meaningful(lines: list[bytes]) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(lines, 1):
        # Only what ends a line in some editor is stripped: a space before a name is a mistake that counts.
        text = line.rstrip(b"\r\t ")
        if text and not text.startswith(b"#"):
            yield number, text


def _header(path: str, number: int, line: bytes) -> Header:
    where = f"{quoted(path)}, line {number}"
    name, colon, value = line.partition(b":")
    if not colon or not TOKEN.fullmatch(name):
        raise ConfigError(f"{where} is not a header field; write Name: value.")
    if name.lower() in _OURS:
        raise ConfigError(f"{where}: {name.decode()} is set by the observer itself.")
    value = value.strip(b"\t ")
    if not FIELD_VALUE.fullmatch(value):
        raise ConfigError(f"{where}: the value of {name.decode()} is empty or holds a control character.")
    return name, value
