# SPDX-License-Identifier: Apache-2.0
"""The oracle's view of weights that change: a source's share at each step, and when it will have
earned something.

Written after docs/design/0004-mixture.md, for weights that change at steps, without ramps.
"""

from collections.abc import Sequence
from itertools import pairwise

SHARE_BITS = 35
BILLION = 10**9
NEVER = 1 << 200

Weight = float | list[dict]  # As a pipeline's file has it.


def weight_at(weight: Weight, step: int) -> float:
    """Before the first point its weight holds."""
    if isinstance(weight, int | float):
        return weight
    assert all("ramp" not in point for point in weight), "ramps are not known here"
    reached = [point for point in weight if point["step"] <= step] or weight[:1]
    return reached[-1]["value"]


def changes_of(weights: Sequence[Weight]) -> list[int]:
    """The steps at which a weight may become another one, after step 0."""
    points = (point for weight in weights if isinstance(weight, list) for point in weight)
    return sorted({point["step"] for point in points} - {0})


def shares_of(weights: Sequence[float]) -> list[int]:
    """Fixed-point shares that add up to exactly 1: the heaviest has what rounding leaves."""
    billionths = [round(weight * BILLION) for weight in weights]
    assert min(billionths) > 0, "weights of 0 are not known here"
    shares = [(weight << SHARE_BITS) // sum(billionths) for weight in billionths]
    shares[billionths.index(max(billionths))] += (1 << SHARE_BITS) - sum(shares)
    return shares


class Shares:
    """By step, of all sources."""

    def __init__(self, weights: Sequence[Weight]) -> None:
        self._begins = [0, *changes_of(weights)]
        self._shares = [shares_of([weight_at(w, begin) for w in weights]) for begin in self._begins]

    @property
    def change(self) -> bool:
        return len(self._begins) > 1

    def at(self, step: int) -> list[int]:
        return self._shares[self._stretch(step)]

    def due(self, number: int, owed: int, step: int, filled: int, step_tokens: int) -> int:
        """The last place, counted in tokens of steps as if all were full, at which this source has
        earned no more than `owed`, from `filled` tokens of `step` on."""
        place = step * step_tokens + filled
        first = self._stretch(step)
        ends = [begin * step_tokens for begin in self._begins[first + 1 :]] + [NEVER]
        for shares, (begin, end) in zip(
            self._shares[first:], pairwise([place, *ends]), strict=True
        ):
            share = shares[number]
            # What was earned before counts as if the source had always had this share.
            if owed < 0 or owed // share < end - begin:
                return begin + owed // share
            owed -= share * (end - begin)
        raise AssertionError("the last stretch has no end")

    def _stretch(self, step: int) -> int:
        return sum(1 for begin in self._begins if begin <= step) - 1
