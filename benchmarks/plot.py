"""
Draws the ratios beside their goals: C{python -m benchmarks.plot FILE.png} with the JSON of a run on standard input.

It runs in the peers' interpreter, which has matplotlib, and imports nothing of ours.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

INK, SOFT, GOAL = "#20435c", "#9db4c0", "#c8553d"


def main(path: str) -> None:
    """Read, draw, write."""
    outcome = json.load(sys.stdin)
    ratios = [entry for entry in outcome["comparisons"] if entry["is ratio"] and entry["spread"]][::-1]
    costs = _costs(outcome["rounds"])
    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(16, 1.2 + 0.34 * max(len(ratios), len(costs))), gridspec_kw={"width_ratios": (3, 2)}
    )
    _draw_ratios(left, ratios)
    _draw_costs(right, costs)
    machine = outcome["machine"]
    figure.text(0.005, 0.005, f"{machine['machine']}; {machine['kernel']}; {machine['measured']}", size=7, color="grey")
    figure.tight_layout(rect=(0, 0.02, 1, 1))
    figure.savefig(path, dpi=130)


def _costs(rounds: dict[str, dict[str, list[dict[str, float] | None]]]) -> list[tuple[str, float]]:
    """Return what a request costs each server over 64 connections, cheapest last."""
    found: dict[str, list[float]] = {}
    for runs in rounds.values():
        for name, measured in runs.items():
            server, _, connections = name.partition(" @")
            if connections == "64" and "," not in server:
                found.setdefault(server, []).extend(
                    figures["cpu"] for figures in measured if figures and "cpu" in figures
                )
    costs = [(server, sorted(values)[len(values) // 2]) for server, values in found.items() if values]
    return sorted(costs, key=lambda cost: -cost[1])


def _draw_ratios(axes: Any, ratios: list[dict[str, Any]]) -> None:
    """Draw a dot with its spread for each ratio, and two ticks for its goal."""
    for row, entry in enumerate(ratios):
        spread, goal = entry["spread"], entry["goal"]
        axes.plot((spread["least"], spread["most"]), (row, row), color=SOFT, linewidth=5, solid_capstyle="round")
        axes.plot(spread["median"], row, "o", color=INK)
        axes.annotate(f"{spread['median']:.2g}×", (spread["most"], row), (6, -3), textcoords="offset points", size=8)
        if goal is not None:
            axes.plot(goal["enough"], row, "|", color=GOAL, markersize=13, markeredgewidth=2)
            axes.plot(goal["best"], row, "|", color=GOAL, markersize=13, markeredgewidth=1)
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.set_xscale("log")
    ticks = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(ratios)), [entry["what"] for entry in ratios], size=8)
    axes.set_title("Ratio, more is better; red: goal, at least and go for", size=10)
    axes.margins(x=0.12)
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)


def _draw_costs(axes: Any, costs: list[tuple[str, float]]) -> None:
    bars = axes.barh(
        [server for server, _ in costs],
        [cost for _, cost in costs],
        color=[INK if server.startswith("webhookrx") else SOFT for server, _ in costs],
    )
    axes.bar_label(bars, fmt="%.1f", padding=3, size=8)
    axes.tick_params(axis="y", labelsize=8)
    axes.set_title("CPU a request, µs, 64 connections", size=10)
    axes.set_xlim(0, 1.15 * max((cost for _, cost in costs), default=1))


if __name__ == "__main__":
    main(sys.argv[1])
