# SPDX-License-Identifier: Apache-2.0
"""Draws what `batchloom whatif --json=FILE` wrote, as PNG: step_time.png and gap.png by strategy
and context, and timeline-STRATEGY.png of one step. `scripts/plot` calls it."""

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # Files only: no display is needed.

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.collections import PolyCollection  # noqa: E402

NS_PER_MS = 1e6
NS_PER_S = 1e9
KI = 1 << 10
FORWARD, BACKWARD, WAITING = "#56b4e9", "#0072b2", "#d55e00"

Record = dict[str, Any]


class PlotError(Exception):
    """For the person who called: what is wrong with a file."""


def load(path: Path) -> Record:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise PlotError(f"{path}: {error}") from error
    if not isinstance(report, dict) or not report.get("contexts"):
        raise PlotError(f"{path}: not what `batchloom whatif --json` writes: no contexts in it")
    return report


def plotted(context: Record) -> list[Record]:
    """What could not plan is among them, without a word on plots."""
    return [strategy for strategy in context["strategies"] if strategy.get("in_plots", True)]


# As cli/svg_chart.cc has them: one for each strategy.
COLORS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000"),
    *("#999999", "#7f3c8d", "#8c564b", "#bcbd22"),
)


def tokens_text(tokens: int) -> str:
    for unit, size in (("M", KI * KI), ("K", KI)):
        if tokens >= size and tokens % size == 0:
            return f"{tokens // size}{unit}"
    return str(tokens)


def figures_text(value: float) -> str:
    """Three figures, or all before the point where there are more; as cli/svg_chart.cc writes."""
    decimals = 2 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:,.{max(decimals, 0)}f}"


def subject(report: Record) -> str:
    ranks = report["cluster"]["hdp_ranks"]
    return f"{report['lengths']}, {ranks} ranks, {report['step']} a step (simulated)"


def mean_step_s(strategy: Record) -> float:
    return sum(strategy["step_ns"]) / len(strategy["step_ns"]) / NS_PER_S


def gap(strategy: Record) -> float:
    return strategy["gap"]


def draw_bars(report: Record, title: str, label: str, value: Callable[[Record], float]) -> Any:
    """A group of bars for each context, one for each strategy that could plan."""
    figure, axes = plt.subplots(figsize=(9, 5))
    contexts = report["contexts"]
    names = [strategy["strategy"] for strategy in plotted(contexts[0])]
    width = 0.8 / len(names)
    for place, name in enumerate(names):
        values = []
        for context in contexts:
            found = {row["strategy"]: row for row in context["strategies"]}[name]
            values.append(value(found) if "failure" not in found else math.nan)
        at = [group - 0.4 + (place + 0.5) * width for group in range(len(contexts))]
        color = COLORS[place % len(COLORS)]
        bars = axes.bar(at, values, width * 0.92, label=name, color=color)
        axes.bar_label(bars, fmt=figures_text, fontsize=8)
    groups = [f"context {tokens_text(context['context_tokens'])}" for context in contexts]
    axes.set_xticks(range(len(contexts)), groups)
    axes.set_ylabel(label)
    axes.set_title(f"{title}: {subject(report)}")
    axes.legend()
    return figure


def box(rank: int, left: float, right: float) -> list[tuple[float, float]]:
    """The corners of a span."""
    low, high = rank - 0.5, rank + 0.5
    return [(left, low), (left, high), (right, high), (right, low)]


def draw_timeline(report: Record, context: Record, strategy: Record) -> Any:
    """What each rank's first stage does in one step; the time between is idle."""
    spans = strategy["timeline"]
    figure, axes = plt.subplots(figsize=(11, 7))
    boxes: dict[str, list[list[tuple[float, float]]]] = {FORWARD: [], BACKWARD: [], WAITING: []}
    for i, rank in enumerate(spans["rank"]):
        if spans["stage"][i] != 0:
            continue
        begin, end = spans["begin_ns"][i] / NS_PER_MS, spans["end_ns"][i] / NS_PER_MS
        computed = min(begin + spans["compute_ns"][i] / NS_PER_MS, end)
        phase = BACKWARD if spans["backward"][i] else FORWARD
        boxes[phase].append(box(rank, begin, computed))
        if computed < end:
            boxes[WAITING].append(box(rank, computed, end))
    names = {FORWARD: "forward", BACKWARD: "backward", WAITING: "waiting for hops or copies"}
    for color, name in names.items():
        axes.add_collection(PolyCollection(boxes[color], facecolors=color, label=name))
    axes.set_xlim(0, max(spans["end_ns"]) / NS_PER_MS)
    axes.set_ylim(-0.5, max(spans["rank"]) + 0.5)
    axes.invert_yaxis()
    axes.set_xlabel("ms")
    axes.set_ylabel("HDP rank")
    size = tokens_text(context["context_tokens"])
    axes.set_title(f"{strategy['strategy']}: context {size}, {subject(report)}")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=3)
    return figure


def draw_all(report: Record, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "step_time": draw_bars(report, "Step time", "seconds a step", mean_step_s),
        "gap": draw_bars(report, "Gap to the lower bound", "step time / bound", gap),
    }
    longest = report["contexts"][-1]
    for strategy in plotted(longest):
        if "failure" not in strategy:
            name = f"timeline-{strategy['strategy']}"
            figures[name] = draw_timeline(report, longest, strategy)
    written = []
    for name, figure in figures.items():
        written.append(folder / f"{name}.png")
        figure.savefig(written[-1], dpi=120)
        plt.close(figure)
    return written


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/plot", description=__doc__)
    parser.add_argument("file", type=Path, help="what `batchloom whatif --json=FILE` wrote")
    parser.add_argument("--out", type=Path, default=Path(), help="a folder (default: this one)")
    options = parser.parse_args(arguments)
    try:
        for path in draw_all(load(options.file), options.out):
            print(path)
    except (PlotError, OSError) as error:
        print(f"plot: {error}", file=sys.stderr)
        return 1
    except (KeyError, TypeError, IndexError) as error:
        what = "not what `batchloom whatif --json` writes"
        print(f"plot: {options.file}: {what}: {error!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
