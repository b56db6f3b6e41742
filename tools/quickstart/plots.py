# SPDX-License-Identifier: Apache-2.0
"""The report's pictures, as PNG: what ranks have to do, how even that is, what steps are made of,
and how long parts are."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib

matplotlib.use("Agg")  # Files only: no display is needed.

import matplotlib.pyplot as plt  # noqa: E402

from quickstart.balance import Balance, StepBalance  # noqa: E402

DPI = 110
MS_PER_S = 1000
BEFORE, AFTER, BOUND = "#e69f00", "#0072b2", "#000000"
# A colour for each source; as tools/plot.py has them for strategies.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")


def axes_of(title: str, x: str, y: str) -> tuple[Any, Any]:
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd")
    axes.set_axisbelow(True)
    return figure, axes


def loads(of_step: StepBalance) -> Any:
    title = f"Work of each rank in step {of_step.step}, as the cost model predicts it"
    figure, axes = axes_of(title, "rank", "seconds")
    ranks = range(len(of_step.before_ms))
    for shift, loads_ms, color, name in (
        (-0.2, of_step.before_ms, BEFORE, "as drawn, dealt in turn"),
        (0.2, of_step.after_ms, AFTER, "as planned"),
    ):
        slowest = f"{name}: {max(loads_ms) / MS_PER_S:.2f} s for the slowest"
        heights = [load / MS_PER_S for load in loads_ms]
        axes.bar([rank + shift for rank in ranks], heights, 0.38, color=color, label=slowest)
    for style, color, ms, name in (
        (":", BEFORE, fmean(of_step.before_ms), "mean as drawn"),
        ("-", BOUND, of_step.lower_bound_ms, "lower bound of any plan"),
    ):
        label = f"{name}: {ms / MS_PER_S:.2f} s"
        axes.axhline(ms / MS_PER_S, color=color, linestyle=style, linewidth=1.3, label=label)
    axes.set_xticks(ranks)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


def balance(found: Balance) -> Any:
    title = "How even ranks are, as the cost model predicts it"
    figure, axes = axes_of(title, "step", "slowest rank's work over the mean")
    steps = [one.step for one in found.steps]
    for loads_of, color, name, mean in (
        ([one.before for one in found.steps], BEFORE, "as drawn, dealt in turn", found.before),
        ([one.after for one in found.steps], AFTER, "as planned", found.after),
    ):
        label = f"{name}: {mean:.2f} on average"
        axes.plot(steps, loads_of, color=color, marker="o", markersize=4, label=label)
    axes.axhline(1, color=BOUND, linewidth=1.3, label="all ranks alike: 1")
    axes.set_ylim(bottom=0.95)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def mix(
    names: Sequence[str], tokens_of_step: Sequence[Sequence[int]], changes: Sequence[int]
) -> Any:
    """`changes` are the steps that weights change at."""
    figure, axes = axes_of("What each step is made of", "step", "share of the step's tokens (%)")
    shares = [[100 * tokens / sum(of_step) for tokens in of_step] for of_step in tokens_of_step]
    colors = [COLORS[number % len(COLORS)] for number in range(len(names))]
    axes.stackplot(
        range(len(shares)), *zip(*shares, strict=True), labels=names, colors=colors, linewidth=0
    )
    for step in changes:
        axes.axvline(step, color=BOUND, linestyle="--", linewidth=1.3, label="weights change")
    axes.set(xlim=(0, len(shares) - 1), ylim=(0, 100))
    handles, labels = axes.get_legend_handles_labels()
    # As they lie on each other, from the top.
    order = [*reversed(range(len(names))), *range(len(names), len(labels))]
    figure.legend(
        [handles[i] for i in order], [labels[i] for i in order],
        loc="outside right upper", frameon=False,
    )
    return figure


def lengths(tokens: Sequence[int]) -> Any:
    """Shares of parts, and of their tokens, by length: each bin reaches twice as far as the one
    before."""
    title = f"Lengths of {len(tokens):,} parts: {fmean(tokens):,.0f} tokens on average"
    figure, axes = axes_of(title, "tokens of a part", "share (%)")
    bin_of = [(one - 1).bit_length() for one in tokens]
    bins = range(min(bin_of), max(bin_of) + 1)
    for shift, weights, color, name in (
        (-0.2, [1] * len(tokens), BEFORE, "of all parts"),
        (0.2, tokens, AFTER, "of all tokens"),
    ):
        sums = dict.fromkeys(bins, 0)
        for number, weight in zip(bin_of, weights, strict=True):
            sums[number] += weight
        heights = [100 * one / sum(weights) for one in sums.values()]
        axes.bar([number + shift for number in bins], heights, 0.38, color=color, label=name)
    axes.set_xticks(bins, [text_of_bin(number) for number in bins], rotation=30, ha="right")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


def text_of_bin(number: int) -> str:
    first, last = (1 << number - 1) + 1 if number else 1, 1 << number
    return f"{first:,}" if first == last else f"{first:,}\N{EN DASH}{last:,}"


def write(figures: dict[str, Any], folder: Path) -> None:
    """By name, each to a file NAME.png."""
    folder.mkdir()
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=DPI)
        plt.close(figure)
