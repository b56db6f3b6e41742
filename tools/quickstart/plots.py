# SPDX-License-Identifier: Apache-2.0
"""The report's pictures, as PNG: lengths, what each step is made of, and how even ranks are."""

from collections import Counter
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # Files only: no display is needed.

import matplotlib.pyplot as plt  # noqa: E402

from quickstart.stream import Balance  # noqa: E402

DPI = 110
BINS = 40


def axes_of(title: str, x: str, y: str) -> tuple[Any, Any]:
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    axes.set(title=title, xlabel=x, ylabel=y)
    return figure, axes


def lengths(part_tokens: Counter[int]) -> Any:
    figure, axes = axes_of("Lengths of parts", "tokens", "parts")
    axes.hist(list(part_tokens), bins=BINS, weights=list(part_tokens.values()), color="#0072b2")
    axes.set_yscale("log")
    return figure


def mix(names: list[str], tokens_of_step: list[list[int]]) -> Any:
    figure, axes = axes_of("What each step is made of", "step", "share of tokens")
    shares = [[tokens / sum(of_step) for tokens in of_step] for of_step in tokens_of_step]
    axes.stackplot(range(len(shares)), *zip(*shares, strict=True), labels=names)
    axes.set(xlim=(0, len(shares) - 1), ylim=(0, 1))
    figure.legend(loc="outside right upper")
    return figure


def balance(found: Balance) -> Any:
    figure, axes = axes_of(
        "How even ranks are, as the cost model predicts it", "step", "slowest rank over mean"
    )
    steps, before, after = zip(*found.by_step, strict=True)
    axes.plot(steps, before, color="#d55e00", marker="o", label="as drawn")
    axes.plot(steps, after, color="#0072b2", marker="o", label="as planned")
    axes.set_ylim(bottom=1)
    axes.legend()
    return figure


def write(figures: dict[str, Any], folder: Path) -> None:
    """By name, each to a file NAME.png."""
    folder.mkdir()
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=DPI)
        plt.close(figure)
