# SPDX-License-Identifier: Apache-2.0
"""Batchloom: the corpus as it lies, a producer that attach() starts, and a rank that takes the
steps of its stream in a local folder."""

from collections.abc import Iterator
from typing import Any

import batchloom as bl
import torch
from batchloom.pipeline import Limits, Step, Store, Tokens, Topology
from corpus import TOKEN_BYTES, VOCAB
from reading import Batch, Job, main

SEED = 17
STEP_BATCHES = 4  # A step has so many micro-batches of the size of the others' batches.
PINNED_STEPS = 8  # As checkpoints do; what is older is removed.
PREFETCHED_STEPS = 4


def pipeline(job: Job) -> bl.Pipeline:
    one = job.sources == 1
    sources = [
        bl.Source(
            name=f"s{source}",
            files=str(job.source.data(source)),
            # Where one of several is at its end, the others go on, so that all samples come.
            exhausted="repeat" if one else "drop",
            epochs=job.epochs if one else None,
        )
        for source in range(job.sources)
    ]
    return bl.Pipeline(
        seed=SEED,
        store=Store(url=f"{job.files}/stream"),
        topology=Topology(axes="dp=1", capacity=job.batch * job.sample_tokens),
        step=Step(samples=job.batch * STEP_BATCHES, max_sample_tokens=job.sample_tokens),
        tokens=Tokens(tokenizer="ids", vocab=VOCAB),
        limits=Limits(memory="16 MiB", workers=max(job.workers, 1)),
        sources=sources,
    )


def run_options(job: Job) -> list[str]:
    return ["--fsync=none", "--reclaim-every=1s", f"--index-folder={job.files}/indexes"]


def reader_settings(job: Job, state: bytes | None) -> dict[str, Any]:
    """How the one rank reads, whoever makes the stream."""
    step_bytes = TOKEN_BYTES * job.batch * STEP_BATCHES * job.sample_tokens
    return {
        "rank": 0,
        "world_size": 1,
        "resume": state,
        "prefetch_bytes": PREFETCHED_STEPS * step_bytes,
        "framework": "torch",
    }


class Loading:
    def __init__(self, job: Job, data: bl.Consumer) -> None:
        self._sample_tokens = job.sample_tokens
        self._data = data
        self._state: bytes | None = None

    def batches(self) -> Iterator[Batch]:
        for step in self._data:
            *others, last = step.micro_batches
            for batch in others:
                yield self._arrays(batch)
            self._state = step.state
            if step.step % PINNED_STEPS == 0:
                self._data.pin(step.state, name=f"step-{step.step}", keep=2)
            yield self._arrays(last)

    def _arrays(self, batch: bl.MicroBatch) -> Batch:
        """Samples have one length here, so that what is packed is a rectangle."""
        shape = (-1, self._sample_tokens)
        return {"tokens": batch.tokens.view(shape), "labels": batch.labels.view(shape)}

    def state(self) -> bytes | None:
        return self._state

    def close(self) -> None:
        self._data.close()


class BatchloomPeer:
    def write(self, job: Job) -> None:
        """Nothing: it reads the corpus as it lies."""

    def open(self, job: Job, state: bytes | None) -> Loading:
        settings = reader_settings(job, state)
        data = bl.attach(pipeline(job), group="job", options=run_options(job), **settings)
        return Loading(job, data)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(BatchloomPeer())
