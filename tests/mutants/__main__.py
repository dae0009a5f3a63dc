"""
C{python -m tests.mutants}: puts mutants into a part of webhookrx, and says how many its tests notice.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.candidates import candidates_of, sample
from tests.mutants.equivalents import FILE, out_of_date, read_equivalents
from tests.mutants.report import report, score
from tests.mutants.scope import files, tests_of
from tests.mutants.trial_runs import TestsDoNotPass, fates_of

ROOT = Path(__file__).resolve().parent.parent.parent
#: Percent.
WANTED = 85.0


def main(arguments: Sequence[str]) -> int:
    """Run; return the exit status: 0 where enough were noticed, 1 where not, 2 where nothing could be learned."""
    options = _options(arguments)
    every = [each for path in files(ROOT) for each in candidates_of(path, (ROOT / path).read_text(encoding="utf-8"))]
    equivalent = read_equivalents(FILE.read_text(encoding="utf-8"))
    if gone := out_of_date(equivalent, {candidate.name for candidate in every}):
        print("Out of date in equivalent.txt:", *gone, sep="\n", file=sys.stderr)
        return 2
    wanted = [
        candidate
        for candidate in every
        if candidate.name not in equivalent
        and candidate.path.startswith(tuple(options.paths or [""]))
        and options.named in candidate.name
    ]
    mutants = sample(wanted, options.seed, None if options.all else options.count, ROOT)
    if options.list:
        for mutant in mutants:
            print(f"{mutant.path}:{mutant.line}\n{mutant.name}\n{mutant.diff}\n")
        return 0
    began = time.monotonic()
    try:
        fates = fates_of(mutants, ROOT, tests_of, options.jobs, lambda text: print(text, file=sys.stderr))
    except TestsDoNotPass as error:
        print(error, file=sys.stderr)
        return 2
    print(report(mutants, fates))
    minutes = (time.monotonic() - began) / 60
    print(f"seed {options.seed}, {len(equivalent)} equivalent ones left out, {minutes:.1f} minutes")
    return 0 if score(fates) >= WANTED else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("paths", nargs="*", help="only files whose path begins so, such as webhookrx/http")
    parser.add_argument("--count", type=int, default=500, help="how many mutants (%(default)s)")
    parser.add_argument("--all", action="store_true", help="all there are")
    parser.add_argument("--named", default="", help="only those whose name holds this text, such as that of a line")
    parser.add_argument("--seed", type=int, default=1, help="which of them (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (%(default)s)")
    parser.add_argument("--list", action="store_true", help="show them, and run nothing")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    # So that the copies are removed, as they are after SIGINT.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
