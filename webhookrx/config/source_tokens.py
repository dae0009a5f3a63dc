"""
The tokens of a source of the collector form, from options and files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from webhookrx.config.files import absolute, signature_of
from webhookrx.config.option_reader import COMMAND_LINE, NOWHERE, Effective, OptionReader, Problems, RawValue
from webhookrx.config.token_files import TokenFile, read_token_file, told_apart
from webhookrx.intake.tokens import NamedToken, check_token
from webhookrx.settings import Signature


class SourceTokens(NamedTuple):
    """
    The tokens of a source.

    @ivar has_names: whether a line of a file has a name, or a digest in place of a token.
    @ivar watched: the state of each file from just before it was read, by absolute path.
    """

    tokens: tuple[NamedToken, ...]
    has_names: bool
    watched: Mapping[str, Signature]

    @property
    def plain(self) -> tuple[bytes, ...]:
        """The tokens alone, each once; for a source without a guard, which has no others."""
        return tuple(dict.fromkeys(token.value for token in self.tokens))


def read_source_tokens(options: OptionReader) -> SourceTokens:
    """
    Return the tokens of the highest layer that gives any, by option or file: a lower one does not add to them, so that
    a source with a token of its own never accepts the others' too. Mistakes are noted.
    """
    layer = next((each for each in options.layers if "auth-token" in each or "auth-token-file" in each), {})
    values, files = layer.get("auth-token", ()), layer.get("auth-token-file", ())
    tokens = [_token(number, value, options.problems) for number, value in enumerate(values, 1)]
    has_names = False
    of_files: list[tuple[str, TokenFile]] = []
    watched: dict[str, Signature] = {}
    places = options.raw("auth-token-in")
    place = places[0].text if places else ""
    for value in files:
        path = absolute(value.text)
        watched[path] = signature_of(path)
        found = options.problems.attempt(value.origin, read_token_file, path, place)
        if found is not None:
            for warning in filter(None, (found.warning, found.doubt)):
                options.problems.warn(warning, value.origin)
            of_files.append((path, found))
            has_names = has_names or found.has_names
    tokens += told_apart(of_files, beside_others=bool(values))
    _show(options, "auth-token", values, ("***" for _ in values))
    _show(options, "auth-token-file", files, (absolute(value.text) for value in files))
    return SourceTokens(tuple(tokens), has_names, watched)


def _show(options: OptionReader, name: str, values: Sequence[RawValue], shown: Iterable[str]) -> None:
    origin = str(values[0].origin if values else NOWHERE)
    options.effective.append(Effective(options.section, name, " ".join(shown) or "none", origin))


def _token(number: int, value: RawValue, problems: Problems) -> NamedToken:
    token = value.text.encode()
    problem = check_token(token)
    if problem is not None:
        problems.error(problem, value.origin)
    if value.origin.file == COMMAND_LINE:
        problems.warn(
            "Every user of this machine can see the token in the process list; use --auth-token-file.", value.origin
        )
    return NamedToken(str(number), token)
