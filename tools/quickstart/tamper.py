# SPDX-License-Identifier: Apache-2.0
"""Spoils what one rank delivered, so that the verdict can be seen to find it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from quickstart.delivered import RankFile, Step, write_end, write_step

RANK = 3
OTHER_RANK = 5


def skip_step(steps: list[Step], place: int) -> None:
    del steps[place]


def dup_step(steps: list[Step], place: int) -> None:
    steps.insert(place, steps[place])


def flip_byte(steps: list[Step], place: int) -> None:
    first = steps[place].micro_batches[0]
    tokens = bytearray(first.tokens)
    tokens[len(tokens) // 8 * 4] ^= 1  # The lowest byte of a token in the middle.
    steps[place].micro_batches[0] = replace(first, tokens=bytes(tokens))


BREAKS_OF_A_RANK: dict[str, Callable[[list[Step], int], None]] = {
    "skip-step": skip_step,
    "dup-step": dup_step,
    "flip-byte": flip_byte,
}
SWAP_RANK = "swap-rank"
BREAKS = [*BREAKS_OF_A_RANK, SWAP_RANK]


def tamper(how: str, files: list[Path], place: int) -> None:
    """`files` by rank; `place` counts what the rank delivered."""
    content = RankFile(files[RANK]).load_all()
    if how == SWAP_RANK:
        other = RankFile(files[OTHER_RANK]).load_all()
        content[place], other[place] = other[place], content[place]
        rewrite(files[OTHER_RANK], other)
    else:
        BREAKS_OF_A_RANK[how](content, place)
    rewrite(files[RANK], content)


def rewrite(path: Path, steps: list[Step]) -> None:
    peak_memory_bytes = RankFile(path).peak_memory_bytes
    with path.open("wb") as file:
        for step in steps:
            write_step(file, step)
        if peak_memory_bytes is not None:
            write_end(file, peak_memory_bytes)
