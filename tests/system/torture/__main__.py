"""
C{python -m tests.system.torture [NAME…] [--long] [--seed N]}.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback

from tests.system.torture.all_proofs import PROOFS
from tests.system.torture.proof import Effort, Skipped


def main() -> int:
    """Run the proofs that are named by their beginnings, else all; return how many missed a goal."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.torture", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"a proof or its beginning: {', '.join(PROOFS)}")
    parser.add_argument(
        "--long", action="store_true", help="as long as the figures for the documents need: more than an hour"
    )
    parser.add_argument("--seed", type=int, help="of what is random; printed, so that a run can be had again")
    options = parser.parse_args()
    names = [name for name in PROOFS if not options.names or name.startswith(tuple(options.names))]
    if not names:
        parser.error(f"there is no proof of that name; there are {', '.join(PROOFS)}")
    effort = Effort(options.long, random.randrange(1 << 32) if options.seed is None else options.seed)
    return min(sum(not _run(name, effort) for name in names), 100)


def _run(name: str, effort: Effort) -> bool:
    """Run one proof, print its figures and return whether it met its goals."""
    print(f"{name} (seed {effort.seed}{', long' if effort.long else ''})", flush=True)
    started = time.monotonic()
    try:
        figures = PROOFS[name](effort)
    except Skipped as reason:
        print(f"  skipped: {reason}", flush=True)
        return True
    except Exception:
        # The other proofs are wanted all the same.
        traceback.print_exc()
        return False
    print(figures.table())
    print(f"  {'MISSED' if figures.missed else 'holds'}, in {time.monotonic() - started:.0f} s\n", flush=True)
    return not figures.missed


if __name__ == "__main__":
    sys.exit(main())
