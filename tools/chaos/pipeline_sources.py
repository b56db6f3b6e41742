# SPDX-License-Identifier: Apache-2.0
"""What a pipeline under kills reads: JSON Lines and Megatron's ids, or files of every format, and
pictures, with a tokenizer in Python."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chaos import corpus
from shards import every_format


@dataclass(frozen=True)
class Sources:
    """Their files lie in the folder `data` beside the pipeline."""

    write: Callable[[Path, int], None]
    """Into the pipeline's folder, the same ones for the same seed."""
    to_toml: Callable[[bool], str]
    """The rest of the pipeline; where it is told to, one of them has another weight."""
    shards: int
    """So many have an index."""
    aimed: tuple[str, ...] = ()
    """Of these, each, an index is to be hit while it is written."""
    by_python: tuple[str, ...] = ()
    """Those of them whose ids come from workers."""


def write_every_format(folder: Path, seed: int) -> None:
    every_format.write_sources(folder / "data", seed)
    every_format.write_module(folder)


def every_format_to_toml(has_other_weight: bool) -> str:
    weights = {"plain": 0.5} if has_other_weight else {}
    return every_format.to_toml("data", "python", weights)


SOURCES = {
    "plain": Sources(
        write=lambda folder, seed: corpus.write_corpus(folder / "data", seed),
        to_toml=corpus.to_toml,
        shards=corpus.SHARDS + 2,
    ),
    "all": Sources(
        write=write_every_format,
        to_toml=every_format_to_toml,
        shards=sum(source.shards for source in every_format.SOURCES.values()),
        aimed=tuple(every_format.SOURCES),
        by_python=tuple(name for name in every_format.SOURCES if name != "ids"),
    ),
}
