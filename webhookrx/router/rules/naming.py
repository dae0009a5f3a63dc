"""
Names of rules, routers and connectors, and the keys and values of labels.
"""

from __future__ import annotations

import re
from typing import Final

from webhookrx.diagnostics import quoted_short
from webhookrx.errors import ConfigError
from webhookrx.message.escapes import TEXT_ESCAPES

LONGEST_NAME: Final = 253
"""Characters of the name of a router or a connector: those of a DNS name (RFC 1035 section 2.3.4)."""

LONGEST_RULE_NAME: Final = 63
"""Characters of the name of a rule, and of a suffix."""

_LONGEST_KEY: Final = 63
_LONGEST_VALUE: Final = 63
NAME_PATTERN: Final = "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
"""What the names of routers, and the keys and values of labels, are made of."""

RULE_NAME_PATTERN: Final = f"^[^\ud800-\udfff{re.escape(''.join(TEXT_ESCAPES))}]+$"
"""What the names of rules, and suffixes, are made of: all but characters that end lines or mislead people. The
specification sets no limit."""

_NAME: Final = re.compile(NAME_PATTERN)
_RULE_NAME: Final = re.compile(RULE_NAME_PATTERN)
_PREFIX: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_WHAT_IT_TAKES: Final = "ASCII letters, digits and . _ -, with a letter or digit at both ends"


def connector_name(router: str, rule: str, suffix: str = "") -> str:
    """
    Return C{<router-name>-<rule-name>-<suffix>}.

    @param suffix: when it is empty, the name of the rule is in its place, and so there twice.
    """
    return f"{router}-{rule}-{suffix or rule}"


def check_name(name: str) -> None:
    """
    Check the name of a router.

    @raise ConfigError: it is none.
    """
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise ConfigError(f"{quoted_short(name)} is not a name; it takes 1 to {LONGEST_NAME} {_WHAT_IT_TAKES}.")


def check_rule_name(name: str) -> None:
    """
    Check the name of a rule, or a suffix.

    @raise ConfigError: it is none.
    """
    if not _RULE_NAME.fullmatch(name) or len(name) > LONGEST_RULE_NAME:
        raise ConfigError(
            f"{quoted_short(name)} is not a name; "
            f"it takes 1 to {LONGEST_RULE_NAME} characters without control characters."
        )


def check_label_key(key: str) -> None:
    """
    Check the key of a label: a name, that may have a DNS name and a slash before it, as in Kubernetes.

    @raise ConfigError: it is none.
    """
    prefix, slash, name = key.rpartition("/")
    if slash and not (_PREFIX.fullmatch(prefix) and len(prefix) <= LONGEST_NAME):
        raise ConfigError(f"The key {quoted_short(key)} of a label has something before its / that is not a DNS name.")
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_KEY:
        raise ConfigError(
            f"{quoted_short(key)} is not the key of a label; it takes 1 to {_LONGEST_KEY} {_WHAT_IT_TAKES}; "
            "a DNS name and a / may stand before it."
        )


def check_label_value(value: str) -> None:
    """
    Check the value of a label; it may be empty.

    @raise ConfigError: it is none.
    """
    if value and not (_NAME.fullmatch(value) and len(value) <= _LONGEST_VALUE):
        raise ConfigError(
            f"{quoted_short(value)} is not the value of a label; it takes up to {_LONGEST_VALUE} {_WHAT_IT_TAKES}."
        )


def check_label(key: str, value: str) -> None:
    """
    Check a label.

    @raise ConfigError: its key or its value can't be used.
    """
    check_label_key(key)
    check_label_value(value)
