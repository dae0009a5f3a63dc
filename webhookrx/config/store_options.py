"""
What the options of stores mean, for the tables of the docs: those that several have, and how a table is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from webhookrx.config.observers import ObserverSpec, OptionText
from webhookrx.text import table

COMMON_TEXTS: Final[Mapping[str, OptionText]] = MappingProxyType(
    {
        "allow_plaintext": OptionText("`no`", "`yes` lets secrets go unencrypted to another machine"),
        "ca_file": OptionText("the system's store", "CA certificates that are trusted for the server, in PEM format"),
        "cert_file": OptionText("none", "a client certificate with its chain; goes with `key_file`"),
        "gzip": OptionText("`no`", "`yes` compresses requests"),
        "headers_file": OptionText("none", "file with further header fields, one `Name: value` per line"),
        "id": OptionText("the message's id", "[template](messages.md#templates) of the id that copies share"),
        "key": OptionText("none", "[template](messages.md#templates) of the key: messages of one key stay in order"),
        "key_file": OptionText("none", "the key of `cert_file`"),
        "password_file": OptionText("none", "file with the password of `user`, on a line of its own"),
        "retry_for": OptionText("`10s`", "how long a batch is retried before the spool, or the sender, gets an error"),
        "template": OptionText("none", "[template](messages.md#templates) of each message, instead of JSON"),
        "timeout": OptionText("`10s`", "time limit of each request, from connecting to the end of the answer"),
        "token_file": OptionText("none", "file with one token"),
        "user": OptionText("none", "the name of a user"),
    }
)
"""What an option means where the observer says nothing else of it."""


def store_option_table(spec: ObserverSpec) -> str:
    """
    Return the options of a store as a table, in the order of its declaration.

    @raise KeyError: one has no text.
    """
    texts = {**COMMON_TEXTS, **spec.texts}
    return table(
        ("option", "default", "meaning"),
        [(f"`{name}`", texts[name].default, texts[name].meaning) for name in spec.options],
    )
