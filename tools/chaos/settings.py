# SPDX-License-Identifier: Apache-2.0
"""How a run is made."""

import random
from dataclasses import dataclass
from pathlib import Path

PRODUCER = "main"
GROUP = "job"


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    """A stream, and a group that reads it."""

    command: Path
    folder: Path
    seed: int
    seconds_max: float = 1800.0
    fsync: str = "none"
    ranks: int = 8
    lead: int = 48
    pin_every: int = 8

    @property
    def stream(self) -> Path:
        return self.folder / "stream"

    @property
    def report_every(self) -> int:
        """Steps between two reports of the group's cursor."""
        return self.lead // 4

    def on_stream(self, *words: str) -> list[str]:
        """A command line on this stream: `words` and then its URL and policy."""
        return [str(self.command), *words, str(self.stream), f"--fsync={self.fsync}"]


@dataclass(frozen=True, kw_only=True)
class Settings(StreamSettings):
    """A run of the store: its size, and what its producer writes."""

    kills: int
    steps_per_object: int = 1
    ring: bool = True
    slots_kept: int = 64

    @property
    def pause_s(self) -> float:
        """Between two signals, on average."""
        return 0.6

    def synthetic(self) -> list[str]:
        """The options that say what the producer writes."""
        options = [
            f"--seed={self.seed}",
            f"--ranks={self.ranks}",
            f"--steps-per-object={self.steps_per_object}",
            "--records-per-run=2",
            "--record-tokens=100",
        ]
        return options + (["--ring"] if self.ring else [])


def draw_settings(
    command: Path, folder: Path, kills: int, seed: int, fsync: str, seconds_max: float
) -> Settings:
    """What the seed leaves open."""
    choice = random.Random(seed)
    return Settings(
        command=command,
        folder=folder,
        kills=kills,
        seed=seed,
        seconds_max=seconds_max,
        fsync=fsync,
        steps_per_object=choice.choice([1, 1, 2, 3]),
        ring=choice.choice([True, False]),
        lead=choice.choice([24, 48, 96]),
        slots_kept=choice.choice([16, 64]),
    )
