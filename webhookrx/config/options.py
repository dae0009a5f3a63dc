"""
The table of options, from which the command line, the YAML file, C{--check} and the docs are made.

L{webhookrx.settings} has the defaults.
"""

from __future__ import annotations

import re

from webhookrx.config.guard_options import GUARD_OPTIONS
from webhookrx.config.option import Option
from webhookrx.config.service_options import SERVICE_OPTIONS
from webhookrx.config.source_options import SOURCE_OPTIONS
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.quantities import read_flag
from webhookrx.text import table

OPTIONS: tuple[Option, ...] = (*SOURCE_OPTIONS, *GUARD_OPTIONS, *SERVICE_OPTIONS)

BY_NAME: dict[str, Option] = {option.name: option for option in OPTIONS}

BY_YAML_KEY: dict[str, Option] = {key: option for option in OPTIONS for key in option.yaml_keys}


def parse_flag(text: str) -> bool:
    """
    Return the value of a flag; quotes around it in YAML make no difference.

    @raise ConfigError: it is another word.
    """
    value = read_flag(text)
    if value is None:
        raise ConfigError(f"{quoted(text)} is neither yes nor no (on, off, true and false mean the same).")
    return value


def shown_name(word: str) -> str:
    """
    Return as much of an unknown option or key as is safe to show. Without its C{=} or C{:}, as in
    C{--auth-tokenSECRET} or C{auth_token SECRET}, a secret stands behind the name.
    """
    name = re.match(r"[\w.-]*", word)
    shown = name[0] if name else ""
    folded = shown.replace("_", "-")
    for option in OPTIONS:
        if option.secret and folded.startswith(option.name):
            shown = shown[: len(option.name)]
    return shown if shown == word else f"{shown}…"


def option_table() -> str:
    """Return the options as a Markdown table, in the order of C{--help}."""
    rows = (
        (
            f"`{f'-{option.short}, ' if option.short else ''}{f'--{option.name} {option.value}'.rstrip()}`",
            ", ".join(f"`{key}`" for key in option.yaml_keys),
            "yes" if option.repeat else "",
            option.default,
            option.help + (f": {', '.join(f'`{choice}`' for choice in option.choices)}" if option.choices else ""),
        )
        for option in OPTIONS
    )
    return table(("option", "YAML key", "repeat", "default", "meaning"), rows)
