# SPDX-License-Identifier: Apache-2.0
"""What the built command says of a stream."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from quickstart.commands import CommandFailed
from quickstart.records import PartId
from quickstart.verdict import Plan


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

    def explain(self, *words: str) -> dict:
        """What `plan explain` says, with what each rank does when."""
        return self.ask("plan", "explain", *words, "--timeline")

    def size_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())
