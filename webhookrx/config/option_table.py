"""
The options and limits as Markdown tables: C{python -m webhookrx.config.option_table}.
"""

from __future__ import annotations

from webhookrx.config.limits import DEFAULTS, LIMITS, show_limit
from webhookrx.config.options import OPTIONS, Option
from webhookrx.text import table


def option_table() -> str:
    """Return the table of options, one row an option, in the order of C{--help}."""
    rows = (
        (
            f"`{_spelling(option)}`",
            ", ".join(f"`{key}`" for key in option.yaml_keys),
            "yes" if option.repeat else "",
            option.default,
            option.help + (f": {', '.join(f'`{choice}`' for choice in option.choices)}" if option.choices else ""),
        )
        for option in OPTIONS
    )
    return table(("option", "YAML key", "repeat", "default", "meaning"), rows)


def limit_table() -> str:
    """Return the table of limits."""
    rows = (
        (f"`{name}`", show_limit(name, DEFAULTS[name]), meaning, f"`{reason}`" if reason else "")
        for name, (_, meaning, reason) in LIMITS.items()
    )
    return table(("limit", "default", "bounds", "reason when it is passed"), rows)


def _spelling(option: Option) -> str:
    short = f"-{option.short}, " if option.short else ""
    return f"{short}--{option.name} {option.value}".rstrip()


if __name__ == "__main__":
    print(option_table() + "\n" + limit_table(), end="")
