# SPDX-License-Identifier: Apache-2.0
"""What figures are held to, as bench/bars.h has it for programs."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """A figure, and what it should be at least and at most."""

    figure: str
    least: float = 0
    most: float = math.inf


def at_least(figure: str, least: float) -> Bar:
    return Bar(figure, least=least)


def at_most(figure: str, most: float) -> Bar:
    return Bar(figure, most=most)


def report(bars: Sequence[Bar], figures: Mapping[str, float]) -> int:
    """Says of each on stderr whether it is reached; how many are missed."""
    missed = 0
    for bar in bars:
        value = figures[bar.figure]
        reached = bar.least <= value <= bar.most
        missed += not reached
        verdict = "reached" if reached else "MISSED"
        print(
            f"{bar.figure}: {value:.4g}, should be from {bar.least} to {bar.most}: {verdict}",
            file=sys.stderr,
        )
    return missed
