"""
C{python -m tests.fuzz TARGET [libFuzzer options]}.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile

import atheris

# Only what is imported in here is watched for new branches.
with atheris.instrument_imports(include=["webhookrx"]):
    from tests.fuzz import values, wire

TARGETS = {**wire.TARGETS, **values.TARGETS}


def main(arguments: list[str]) -> None:
    if len(arguments) < 2 or arguments[1] not in TARGETS:
        raise SystemExit(f"usage: python -m tests.fuzz {'|'.join(TARGETS)} [libFuzzer options]")
    program, name, *options = arguments
    run, seeds = TARGETS[name]
    if not any(os.path.exists(option) for option in options):
        options.append(_corpus(name, seeds))
    atheris.Setup([program, "-timeout=10", "-rss_limit_mb=2048", *options], run)
    atheris.Fuzz()


def _corpus(name: str, seeds: list[bytes]) -> str:
    directory = os.path.join(tempfile.gettempdir(), "webhookrx-fuzz", name)
    os.makedirs(directory, exist_ok=True)
    for seed in seeds:
        with open(os.path.join(directory, hashlib.sha256(seed).hexdigest()[:16]), "wb") as file:
            file.write(seed)
    return directory


if __name__ == "__main__":
    main(sys.argv)
