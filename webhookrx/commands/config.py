"""
The subject C{config}: its help. The receiver's own options do its work, see L{webhookrx.commands.main}.
"""

from __future__ import annotations

import argparse

from webhookrx.commands.terminal import Verbs


def add_to(subject: argparse.ArgumentParser) -> None:
    """Put the verb on the command line."""
    Verbs(subject).add(
        "check",
        lambda asked, out, errors: 0,
        "print what would run and where each setting came from, as twistd webhookrx --check does",
        "webhookrx config check /etc/webhookrx/webhookrx.yaml",
    )
