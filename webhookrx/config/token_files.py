"""
Files of tokens. No error quotes one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from webhookrx.config.files import public_warning, read_file
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.intake.named_lines import named_lines
from webhookrx.intake.token_places import TokenPlace
from webhookrx.intake.tokens import NamedToken, read_tokens

_HASHED: Final = "sha256:"


class TokenFile(NamedTuple):
    """
    The tokens of a file.

    @ivar has_names: whether a line has a name, or a digest in place of a token.
    @ivar warning: what is wrong with the mode of the file; empty if nothing is.
    """

    tokens: tuple[NamedToken, ...]
    has_names: bool
    warning: str


def read_token_file(path: str, place: TokenPlace) -> TokenFile:
    """
    Read the tokens of a file.

    @raise ConfigError: it can't be read, holds none, or a line of it can't be used.
    """
    data, mode = read_file(path)
    # Tokens are compared as bytes: one that is not UTF-8 is as good as any.
    text = data.decode("utf-8", "surrogateescape")
    try:
        tokens = tuple(read_tokens(text, place))
        has_names = any(line.has_name or line.value.startswith(_HASHED) for line in named_lines(text))
    except ValueError as error:
        raise ConfigError(f"{quoted(path)}: {error}") from None
    if not tokens:
        raise ConfigError(f"{quoted(path)} holds no token; it takes one a line.")
    return TokenFile(tokens, has_names, public_warning(path, mode))
