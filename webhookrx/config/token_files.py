"""
Files of tokens, which sources and connectors name. No error quotes a token.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from webhookrx.config.files import public_warning, read_file
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.intake.named_lines import MEANT_NAMED, is_meant_named, named_lines
from webhookrx.intake.token_places import AUTHORIZATION, TokenPlace, token_place
from webhookrx.intake.tokens import NamedToken, read_tokens


class TokenFile(NamedTuple):
    """
    The tokens of a file.

    @ivar unnamed: what tokens are called whose line has no name.
    @ivar has_names: whether a line has a name, or a digest in place of a token.
    @ivar warning: what is wrong with the mode of the file; empty if nothing is.
    @ivar doubt: what may be wrong with a line of it; likewise.
    """

    tokens: tuple[NamedToken, ...]
    unnamed: frozenset[str]
    has_names: bool
    warning: str
    doubt: str


def read_token_file(path: str, place: str) -> TokenFile:
    """
    Read the tokens of a file.

    @param place: C{auth_token_in} as it was written; whoever reads the guard tells what is wrong with it.
    @raise ConfigError: it can't be read, holds none, or a line of it can't be used.
    """
    data, mode = read_file(path)
    # Tokens are compared as bytes: one that is not UTF-8 is as good as any.
    text = data.decode("utf-8", "surrogateescape")
    try:
        tokens = tuple(read_tokens(text, _place(place)))
        lines = named_lines(text)
        has_names = any(token.sha256 for token in tokens) or any(line.has_name for line in lines)
    except ValueError as error:
        raise ConfigError(f"{quoted(path)}: {error}") from None
    if not tokens:
        raise ConfigError(f"{quoted(path)} holds no token; it takes one a line.")
    doubtful = next((line for line in lines if not line.has_name and is_meant_named(line.value)), None)
    doubt = "" if doubtful is None else f"{quoted(path)}, line {doubtful.number}: {MEANT_NAMED.format('token')}"
    unnamed = frozenset(line.name for line in lines if not line.has_name)
    return TokenFile(tokens, unnamed, has_names, public_warning(path, mode), doubt)


def told_apart(files: Sequence[tuple[str, TokenFile]], *, beside_others: bool = False) -> list[NamedToken]:
    """
    Return the tokens of all files of a source, in their order. Where there are several, those without a name are called
    C{FILE:LINE}, with the whole path of files that have the same name.

    @param files: each with its path.
    @param beside_others: the source has tokens that are not in files, which are called by numbers, too.
    """
    if len(files) + beside_others < 2:
        return [token for _, file in files for token in file.tokens]
    same = Counter(os.path.basename(path) for path, _ in files)
    tokens: list[NamedToken] = []
    for path, file in files:
        name = os.path.basename(path)
        # Messages are UTF-8, which names of files need not be.
        shown = os.fsencode(name if same[name] == 1 else path).decode("utf-8", "replace")
        for token in file.tokens:
            is_unnamed = token.name in file.unnamed
            tokens.append(msgspec.structs.replace(token, name=f"{shown}:{token.name}") if is_unnamed else token)
    return tokens


def _place(text: str) -> TokenPlace:
    try:
        return token_place(text) if text else AUTHORIZATION
    except ValueError:
        return AUTHORIZATION
