"""
C{webhookrx import}: what others have configured, as a configuration of ours.
"""

from __future__ import annotations

import argparse
import os
from typing import TextIO

from webhookrx.commands.collector_options import as_yaml, sentences
from webhookrx.commands.collector_text import read_collector
from webhookrx.commands.input import read_text
from webhookrx.commands.output import DONE, FAILED, safe
from webhookrx.commands.verbs import Verbs


def add_to(subject: argparse.ArgumentParser) -> None:
    """Put the verb on the command line."""
    collector = Verbs(subject).add(
        "collector",
        _import_collector,
        "print the webhook() and webhook-json() sources of a collector's configuration as YAML of ours",
        "webhookrx import collector /etc/syslog-ng/syslog-ng.conf > webhookrx.yaml",
    )
    collector.add_argument("file", metavar="FILE", help="the configuration; - reads standard input")


def _import_collector(asked: argparse.Namespace, out: TextIO, errors: TextIO) -> int:
    yaml, mistakes = as_yaml(read_collector(read_text(asked.file), os.environ))
    for line in sentences(asked.file, mistakes):
        print(safe(line), file=errors)
    if not yaml:
        print(safe(f"{asked.file}: error: There is no source with webhook() or webhook-json() in it."), file=errors)
        return FAILED
    out.write(yaml)
    return FAILED if mistakes else DONE
