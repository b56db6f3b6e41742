# SPDX-License-Identifier: Apache-2.0
"""How a run of a whole pipeline is made."""

import random
from dataclasses import dataclass
from pathlib import Path

from chaos.pipeline_sources import SOURCES, Sources
from chaos.settings import StreamSettings

# What can be spoiled on purpose; each must make the verdict red.
BREAKS = {
    "skip-step": "a rank that was killed goes on one step too far",
    "other-weights": "a producer that was killed goes on with another weight of a source",
    "flip-byte": "in the end, a byte of a stored batch is another",
}

PIPELINE = """\
seed = {seed}

[run]
steps = {steps}

[store]
url = "./stream"
lead_steps = {lead}

[topology]
axes = "{axes}"
capacity = 2048

[step]
tokens = 8192
max_sample_tokens = 512

[balance]
strategy = "{strategy}"
min_share = 64
"""


@dataclass(frozen=True, kw_only=True)
class PipelineSettings(StreamSettings):
    """A job: what it is made of, and how often it is hurt. Its sources lie beside its pipeline."""

    pipeline: Path
    producer_kills: int
    consumer_kills: int
    steps: int
    axes: str = "dp=4"
    strategy: str = "two_level"
    broken: str = ""  # One of BREAKS, or nothing.
    kind_of_sources: str = "plain"  # One of SOURCES.

    @property
    def sources(self) -> Sources:
        return SOURCES[self.kind_of_sources]

    @property
    def index_folder(self) -> Path:
        return self.folder / "index"

    @property
    def report_every(self) -> int:
        """Every step: where the producer waits is then known to the step."""
        return 1

    def to_toml(self, has_other_weight: bool = False) -> str:
        pipeline = PIPELINE.format(
            seed=self.seed,
            steps=self.steps,
            lead=self.lead,
            axes=self.axes,
            strategy=self.strategy,
        )
        return pipeline + self.sources.to_toml(has_other_weight)


# Axes, their HDP ranks, and a strategy; a sample of "hdp" may lie on several ranks.
LAYOUTS = (("dp=4", 4, "two_level"), ("dp=2 cp=2", 4, "hdp"), ("dp=8", 8, "kk"))


def draw_pipeline(
    *,
    command: Path,
    folder: Path,
    producer_kills: int,
    consumer_kills: int,
    steps: int,
    seed: int,
    fsync: str,
    seconds_max: float,
    broken: str,
    kind_of_sources: str = "plain",
) -> PipelineSettings:
    """What the seed leaves open."""
    axes, ranks, strategy = random.Random(seed).choice(LAYOUTS)
    return PipelineSettings(
        command=command,
        folder=folder,
        seed=seed,
        seconds_max=seconds_max,
        fsync=fsync,
        ranks=ranks,
        lead=8,
        pin_every=4,
        pipeline=folder / "pipeline.toml",
        producer_kills=producer_kills,
        consumer_kills=consumer_kills,
        steps=steps,
        axes=axes,
        strategy=strategy,
        broken=broken,
        kind_of_sources=kind_of_sources,
    )
