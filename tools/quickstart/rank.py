# SPDX-License-Identifier: Apache-2.0
"""One rank, a process of its own: takes step after step while they are made, and writes down what
it got. `python -m quickstart.rank STREAM RANK WORLD_SIZE STEPS FILE` prints a line when it has half
of them, and a few steps later waits for the end of stdin.
"""

import resource
import sys

import batchloom as bl

from quickstart.delivered import write_batch, write_end

PATIENCE_S = 120.0  # For one step.
STEPS_TO_GO_ON = 8


def main() -> None:
    stream, rank, world_size, steps, path = sys.argv[1:]
    with (
        open(path, "wb") as file,
        bl.Consumer(
            stream,
            rank=int(rank),
            world_size=int(world_size),
            group="quickstart",
            start=0,  # Nothing but the lead keeps these ranks together: the first may be far ahead.
            prefetch_bytes=16 << 20,
            open_timeout=PATIENCE_S,
        ) as data,
    ):
        while data.cursor < int(steps) and (batch := data.next(timeout=PATIENCE_S)):
            write_batch(file, batch)
            if batch.step + 1 == int(steps) // 2:
                print("half", flush=True)
            if batch.step + 1 == int(steps) // 2 + STEPS_TO_GO_ON:
                sys.stdin.read()
        write_end(file, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)


if __name__ == "__main__":
    main()
