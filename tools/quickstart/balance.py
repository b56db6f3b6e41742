# SPDX-License-Identifier: Apache-2.0
"""How even ranks are before and after balancing, as the cost model predicts it.

After is the plan in the stream. Before is what the same parts would be without balancing: dealt to
ranks in turn, in the order that they were drawn in (strategy "none"), with the same costs. Both are
timed by `batchloom plan explain`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from quickstart.stream import Stream

LOOKED_AT = 24  # So many steps, about.
# Links take no part: no part of a record lies on two ranks here.
CLUSTER = """axes = "dp={ranks}"
capacity_tokens = {capacity}
cost_model = "{costs}"
[[levels]]
name = "all"
ranks = {ranks}
bandwidth = "400GB/s"
latency = "2us"
"""


@dataclass(frozen=True)
class StepBalance:
    step: int
    before_ms: list[float]  # By rank.
    after_ms: list[float]
    lower_bound_ms: float
    over_bound: float  # The step's predicted time over what no plan can go below.

    @property
    def before(self) -> float:
        return imbalance(self.before_ms)

    @property
    def after(self) -> float:
        return imbalance(self.after_ms)


def imbalance(loads: Sequence[float]) -> float:
    """The slowest rank's work over the mean."""
    return max(loads) / fmean(loads)


@dataclass(frozen=True)
class Balance:
    """Means over the steps that were looked at, one of which is shown rank by rank."""

    steps: list[StepBalance]
    shown: StepBalance

    @property
    def before(self) -> float:
        return fmean(one.before for one in self.steps)

    @property
    def after(self) -> float:
        return fmean(one.after for one in self.steps)

    @property
    def over_bound(self) -> float:
        return fmean(one.over_bound for one in self.steps)


def balance_of(
    stream: Stream, capacity: int, lengths_of_step: Sequence[Sequence[int]], shown: int
) -> Balance:
    """`lengths_of_step` has the tokens of each part, in the order drawn."""
    steps = len(lengths_of_step)
    looked_at = range(0, steps, max(1, steps // LOOKED_AT))
    with TemporaryDirectory() as folder:
        found = {
            step: step_balance(stream, capacity, step, lengths_of_step[step], Path(folder))
            for step in sorted({*looked_at, shown})
        }
    return Balance([found[step] for step in looked_at], found[shown])


def step_balance(
    stream: Stream, capacity: int, step: int, lengths: Sequence[int], folder: Path
) -> StepBalance:
    planned = stream.explain(f"--store={stream.path.resolve()}", f"--step={step}")
    cluster, drawn = folder / "cluster.toml", folder / "lengths.txt"
    cluster.write_text(
        CLUSTER.format(ranks=stream.ranks, capacity=capacity, costs=planned["costs"])
    )
    drawn.write_text("".join(f"{length}\n" for length in lengths))
    in_turn = stream.explain(
        f"--lengths={drawn}", f"--cluster={cluster}", "--strategy=none", f"--context={capacity}"
    )
    return StepBalance(
        step=step,
        before_ms=loads_of(in_turn, stream.ranks),
        after_ms=loads_of(planned, stream.ranks),
        lower_bound_ms=planned["lower_bound_ms"],
        over_bound=planned["gap_of_step"],
    )


def loads_of(explained: dict, ranks: int) -> list[float]:
    loads = [0.0] * ranks
    for span in explained["timeline"]:
        loads[span["rank"]] += span["compute_ms"]
    return loads
