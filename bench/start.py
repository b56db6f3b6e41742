# SPDX-License-Identifier: Apache-2.0
"""Start: how long until a rank has its first step, where there are 5,000 files?

50 sources of 100 files with 1,000 samples each, indexed, all in the page cache. The time goes from
the exec of `batchloom run`, which makes the stream, to a rank that has read and verified the first
step of 8 MiB; the rank's process is started when the stream is there, so its start counts, too.
fsync is as it is by default. The median of the rounds counts.
"""

import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bars import at_most, report
from job import (
    ROOT,
    TOKEN_BYTES,
    Data,
    Pipeline,
    consume,
    index,
    next_step,
    started,
    wait_for_stream,
)

STEP_BYTES = 8 << 20
WORKERS = 2
BARS = (at_most("start_5000_files_s", 1),)


def first_step_s(pipeline: Pipeline) -> float:
    begin = time.monotonic()
    with started("run", str(pipeline.file)) as producer:
        wait_for_stream(pipeline, producer)
        with started(*consume(pipeline, "--steps=1")) as rank:
            next_step(rank)
            end = time.monotonic()
    return end - begin


def measure(data: Data, rounds: int) -> dict[str, Any]:
    print(f"writing {data.sources} sources of {data.files} files", file=sys.stderr)
    data.write()
    place = data.folder.parent
    step_tokens = min(STEP_BYTES // TOKEN_BYTES, data.files * data.records * data.sample_tokens)
    first = Pipeline(place / "0", data, WORKERS, step_tokens)
    first.write()
    index(first)
    times = []
    for number in range(1, rounds + 2):  # The first is not counted: it warms the page cache.
        pipeline = replace(first, folder=place / f"{number}")
        pipeline.write()
        times.append(first_step_s(pipeline))
        print(f"{times[-1]:.3f} s", file=sys.stderr)
    counted = times[1:]
    figures: dict[str, float] = {"start_5000_files_s": statistics.median(counted)}
    figures["bars_missed"] = report(BARS, figures)
    row = {
        "sources": data.sources,
        "files": data.sources * data.files,
        "samples": data.sources * data.files * data.records,
        "median_s": round(statistics.median(counted), 3),
        "least_s": round(min(counted), 3),
        "most_s": round(max(counted), 3),
    }
    return {"figures": figures, "rows": [row]}


def main(arguments: Sequence[str]) -> None:
    quick = "--quick" in arguments
    folder = ROOT / "build" / f"start.{os.getpid()}"
    sizes = {"sources": 5, "files": 10} if quick else {"sources": 50, "files": 100}
    data = Data(Path(folder / "data"), **sizes, records=1000, text_bytes=127)
    try:
        document = measure(data, 1 if quick else 5)
        if quick:  # Few files say nothing of 5,000.
            document["figures"] = {"bars_missed": 0}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    json.dump(document, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
