# SPDX-License-Identifier: Apache-2.0
"""MosaicML Streaming: MDS shards without compression on the local disk, read by a
StreamingDataLoader, shuffled by its default, py1e."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from reading import Batch, Job, main, trainer_arrays
from streaming import MDSWriter, Stream, StreamingDataLoader, StreamingDataset
from streaming.base.util import clean_stale_shared_memory

SEED = 17


class Collate:
    """Samples to the arrays of a batch, in the worker: a dict of tensors, as resuming needs it."""

    def __init__(self, labels: bool) -> None:
        self._labels = labels

    def __call__(self, samples: list[dict[str, np.ndarray]]) -> dict[str, torch.Tensor]:
        tokens = np.stack([sample["tokens"] for sample in samples])
        arrays = trainer_arrays(tokens, self._labels)
        return {name: torch.from_numpy(array) for name, array in arrays.items()}


class Loading:
    def __init__(self, job: Job, state: bytes | None) -> None:
        clean_stale_shared_memory()
        self._epochs = job.epochs
        streams = [Stream(local=str(folder_of(job, source))) for source in range(job.sources)]
        dataset = StreamingDataset(
            streams=streams, batch_size=job.batch, shuffle=True, shuffle_seed=SEED
        )
        self._loader: StreamingDataLoader | None = StreamingDataLoader(
            dataset,
            batch_size=job.batch,
            num_workers=job.workers,
            collate_fn=Collate(job.labels),
            persistent_workers=job.workers > 0,
        )
        if state:
            self._loader.load_state_dict(json.loads(state))

    def batches(self) -> Iterator[Batch]:
        assert self._loader is not None
        for _ in range(self._epochs):
            yield from self._loader

    def state(self) -> bytes:
        assert self._loader is not None
        state: dict[str, Any] | None = self._loader.state_dict()
        return json.dumps(state).encode()

    def close(self) -> None:
        self._loader = None  # Its workers end with it.


def folder_of(job: Job, source: int) -> Path:
    return Path(job.files) / f"source-{source:04}"


class StreamingPeer:
    def write(self, job: Job) -> None:
        columns = {"tokens": f"ndarray:uint16:{job.sample_tokens}"}
        for source in range(job.sources):
            with MDSWriter(out=str(folder_of(job, source)), columns=columns) as writer:
                for sample in job.source.tokens(source):
                    writer.write({"tokens": np.asarray(sample)})

    def open(self, job: Job, state: bytes | None) -> Loading:
        return Loading(job, state)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(StreamingPeer())
