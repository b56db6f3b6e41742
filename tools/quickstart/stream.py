# SPDX-License-Identifier: Apache-2.0
"""What the built command says of a stream."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from quickstart.records import PartId
from quickstart.verdict import Plan


class CommandFailed(Exception):
    pass


@dataclass(frozen=True)
class Balance:
    """Means over the steps that were looked at."""

    before: float  # The slowest rank's work over the mean, as samples were drawn.
    after: float  # The same, as the plan has it.
    over_bound: float  # The step's predicted time over what no plan can go below.
    steps: int
    by_step: list[tuple[int, float, float]]  # Step, before and after, of those looked at.


@dataclass(frozen=True)
class Stream:
    command: Path
    path: Path
    ranks: int

    def ask(self, *words: str) -> dict:
        done = subprocess.run(
            [self.command, *words, "--json"], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise CommandFailed(done.stderr.strip().splitlines()[-1])
        return json.loads(done.stdout)

    def plan_of(self, step: int) -> Plan:
        shown = self.ask("store", "show", str(self.path.resolve()), f"--step={step}")
        pieces = shown["pieces"]
        micro_batches = 1 + max(piece["micro_batch"] for piece in pieces)  # On every rank.
        plan: Plan = [[[] for _ in range(micro_batches)] for _ in range(self.ranks)]
        for piece in pieces:
            part = PartId(*map(int, piece["sample"].split(":")))
            plan[piece["rank"]][piece["micro_batch"]].append(part)
        return plan

    def balance(self, steps: int) -> Balance:
        looked_at = range(0, steps, max(1, steps // 24))
        explained = [
            self.ask("plan", "explain", f"--store={self.path.resolve()}", f"--step={step}")
            for step in looked_at
        ]
        return Balance(
            before=fmean(one["imbalance_before"] for one in explained),
            after=fmean(one["imbalance_after"] for one in explained),
            over_bound=fmean(one["gap_of_step"] for one in explained),
            steps=len(looked_at),
            by_step=[
                (step, one["imbalance_before"], one["imbalance_after"])
                for step, one in zip(looked_at, explained, strict=True)
            ],
        )

    def size_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())
