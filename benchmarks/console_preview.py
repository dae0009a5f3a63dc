"""
C{python -m benchmarks.console_preview}: how long the preview of a rule takes beside many rules and routers.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from statistics import quantiles
from time import perf_counter
from typing import Final

from webhookrx.management.preview import RouterState, RuleSurroundings, preview_rule
from webhookrx.router.rules.router import Router
from webhookrx.router.rules.rule import Rule
from webhookrx.router.rules.rules_file import read_rules

SITES: Final = ("fra", "ams", "lon", "nyc", "sfo", "sin", "syd", "gru")
GOAL: Final = 0.3
"""Seconds that 95 of 100 previews must not exceed, at 1,000 routers and 200 rules."""


def fleet(count: int) -> list[RouterState]:
    """Return routers with two labels, spread over sites."""
    return [
        RouterState(
            Router(
                f"router-{number}",
                {"site": SITES[number % len(SITES)], "rack": str(number % 40)},
                hostname=f"router-{number}",
                ip=(f"10.0.{number // 250}.{number % 250 + 1}",),
            )
        )
        for number in range(count)
    ]


def rule(number: int, ports: int, everywhere: bool) -> Rule:
    """Return a rule with a selector of its own; rules share C{ports} ports."""
    site = SITES[number % len(SITES)]
    others = f"NOT name = router-{number}"
    selected = f"label.site = {site} AND (label.rack = {number % 40} OR hostname =~ {number % 10}$) AND {others}"
    return Rule(
        name=f"rule-{number}",
        protocol="HTTP",
        port=8000 + number % ports,
        selector=others if everywhere else selected,
    )


def measure(routers: int, rules: int, ports: int, rounds: int, everywhere: bool) -> tuple[float, list[float]]:
    """
    Return the seconds of the first preview, when nothing is matched yet, and those of later ones.

    @param ports: ports that the rules share; with 1 each rule is compared with all others.
    @param everywhere: each rule matches nearly all routers, so that with one port all clash on all.
    """
    around = RuleSurroundings([rule(number, ports, everywhere) for number in range(rules)], fleet(routers))
    times = []
    for number in range(rounds + 1):
        edited = rule(number % rules, ports, everywhere)
        document = {
            "name": edited.name,
            "protocol": "HTTP",
            "port": edited.port,
            "selector": f"{edited.selector} AND NOT name = router-{number + 7}",
        }
        start = perf_counter()
        found = preview_rule(
            around, read_rules(json.dumps({"connector_rules": [document]}).encode(), "rule"), edited.name
        )
        times.append(perf_counter() - start)
        if found.findings or not found.matched:
            raise RuntimeError("The rule is wrong or matches nothing, so that nothing was measured.")
    return times[0], times[1:]


def main(arguments: Sequence[str]) -> int:
    """Print the times; return 1 if the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console_preview", description=__doc__)
    parser.add_argument("--routers", type=int, default=1000)
    parser.add_argument("--rules", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=100)
    asked = parser.parse_args(arguments)
    missed = False
    for what, ports, everywhere in (
        ("a port for each rule", asked.rules, False),
        ("one port for all", 1, False),
        ("one port for all, everywhere", 1, True),
    ):
        first, times = measure(asked.routers, asked.rules, ports, asked.rounds, everywhere)
        p95 = quantiles(times, n=20)[-1]
        missed |= max(first, p95) > GOAL
        print(f"{asked.routers:,} routers, {asked.rules} rules, {what}: ", end="")
        print(f"first {first * 1000:.1f} ms, p95 {p95 * 1000:.1f} ms, longest {max(times) * 1000:.1f} ms")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
