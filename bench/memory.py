# SPDX-License-Identifier: Apache-2.0
"""Memory: what do sources and workers cost?

A producer and a rank, each a process of its own, with `limits.memory = "16 MiB"`. The rank takes
steps until every source was drawn 100 times; the most that both processes have together while it
does is looked at 16 times, as anonymous and shared memory, a page that both have counted once. From
that the base is taken: the same two processes over one source, of which this producer reads
nothing, since its stream is as far ahead as it may be, and of which the rank reads ahead what it
may, and takes nothing.
"""

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import process_tree
from bars import at_most, report
from job import (
    ROOT,
    Data,
    Pipeline,
    call,
    consume,
    index,
    next_step,
    started,
    wait_for_stream,
)

TEXT_BYTES = 2047  # Samples of 2,048 tokens.
STEP_SAMPLES = 512
LOOKS = 16
SETTLED_S = 1.0
BARS = (at_most("memory_256x4_mib", 30),)


@dataclass(frozen=True)
class Effort:
    sources: Sequence[int] = (1, 16, 256, 1024)
    workers: Sequence[int] = (1, 4, 8)
    draws: int = 100  # Of each source.


QUICK = Effort(sources=(1, 256), workers=(1, 4), draws=4)


def data_of(place: Path, sources: int) -> Data:
    return Data(place / f"data-{sources}", sources, files=1, records=128, text_bytes=TEXT_BYTES)


def pipeline_of(folder: Path, data: Data, workers: int) -> Pipeline:
    step_tokens = STEP_SAMPLES * data.sample_tokens
    return Pipeline(folder, data, workers=workers, step_tokens=step_tokens)


def memory_mib(pids: Sequence[int]) -> float:
    return sum(process_tree.memory(pid).total_mib for pid in pids)


def take(rank: Any) -> None:
    with contextlib.suppress(BrokenPipeError):  # It has ended, which the next line says.
        rank.stdin.write("\n")
        rank.stdin.flush()
    next_step(rank)


def while_drawing_mib(pipeline: Pipeline, steps: int) -> float:
    """The most, while a rank takes so many steps."""
    most = 0.0
    with started("run", str(pipeline.file)) as producer:
        wait_for_stream(pipeline, producer)
        with started(*consume(pipeline, "--paced", "--group=job", "--report"), paced=True) as rank:
            for step in range(1, steps + 1):
                take(rank)
                if step == steps or step % max(steps // LOOKS, 1) == 0:
                    most = max(most, memory_mib([producer.pid, rank.pid]))
    return most


def base_mib(pipeline: Pipeline) -> float:
    """Of two processes that have nothing to do."""
    call("run", str(pipeline.file), f"--steps={pipeline.lead_steps}")
    with (
        started("run", str(pipeline.file)) as producer,
        started(*consume(pipeline, "--paced"), paced=True) as rank,
    ):
        time.sleep(SETTLED_S)
        for process in (producer, rank):
            if process.poll() is not None:
                raise SystemExit("bench/memory: a process ended that had to wait")
        return memory_mib([producer.pid, rank.pid])


def measure(place: Path, effort: Effort) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    figures: dict[str, float] = {}
    base = 0.0
    for sources in effort.sources:
        data = data_of(place, sources)
        data.write()
        for workers in effort.workers:
            pipeline = pipeline_of(place / f"{sources}x{workers}", data, workers)
            pipeline.write()
            index(pipeline)
            if not base:
                idle = replace(pipeline, folder=place / "idle")
                idle.write()
                base = base_mib(idle)
                figures["base_mib"] = base
            steps = -(-effort.draws * sources // STEP_SAMPLES)
            total = while_drawing_mib(pipeline, max(steps, LOOKS))
            figures[f"memory_{sources}x{workers}_mib"] = total - base
            rows.append(
                {
                    "sources": sources,
                    "workers": workers,
                    "total_mib": round(total, 1),
                    "over_base_mib": round(total - base, 1),
                }
            )
            print(f"{sources} x {workers}: {total - base:.1f} MiB", file=sys.stderr)
            shutil.rmtree(pipeline.folder)
        shutil.rmtree(data.folder)
    figures["bars_missed"] = report(BARS, figures)
    return {"figures": figures, "rows": rows}


def main(arguments: Sequence[str]) -> None:
    folder = ROOT / "build" / f"memory.{os.getpid()}"
    try:
        document = measure(folder, QUICK if "--quick" in arguments else Effort())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    json.dump(document, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
