# SPDX-License-Identifier: Apache-2.0
"""Grain: ArrayRecord files with a record in each group, a MapDataset that is shuffled, mixed,
parsed and batched, read by its threads, or in worker processes."""

import json
from collections.abc import Iterator
from pathlib import Path

import grain
import numpy as np
from array_record.python import array_record_module
from reading import Batch, Job, main, trainer_arrays

SEED = 17


class Ids(grain.transforms.Map):
    def map(self, element: bytes) -> np.ndarray:
        return np.frombuffer(element, dtype=np.uint16)


class Trainable(grain.transforms.Map):
    """Samples that were batched to the arrays of a batch."""

    def __init__(self, labels: bool) -> None:
        self._labels = labels

    def map(self, element: np.ndarray) -> dict[str, np.ndarray]:
        return trainer_arrays(element, self._labels)


def file_of(job: Job, source: int) -> str:
    return str(Path(job.files) / f"source-{source:04}.array_record")


def pipeline(job: Job) -> grain.MapDataset:
    sources = [
        grain.MapDataset.source(grain.sources.ArrayRecordDataSource(file_of(job, source)))
        .seed(SEED)
        .shuffle()
        for source in range(job.sources)
    ]
    mixed = sources[0] if job.sources == 1 else grain.MapDataset.mix(sources)
    dataset = mixed.repeat(job.epochs).map(Ids())
    return dataset.batch(job.batch, batch_fn=np.stack).map(Trainable(job.labels))


class Loading:
    def __init__(self, job: Job, state: bytes | None) -> None:
        dataset = pipeline(job).to_iter_dataset()
        if job.workers:
            options = grain.multiprocessing.MultiprocessingOptions(num_workers=job.workers)
            dataset = dataset.mp_prefetch(options)
        self._iterator = iter(dataset)
        if state:
            self._iterator.set_state(json.loads(state))

    def batches(self) -> Iterator[Batch]:
        yield from self._iterator

    def state(self) -> bytes:
        return json.dumps(self._iterator.get_state()).encode()

    def close(self) -> None:
        self._iterator.close()


class GrainPeer:
    def write(self, job: Job) -> None:
        for source in range(job.sources):
            writer = array_record_module.ArrayRecordWriter(file_of(job, source), "group_size:1")
            for sample in job.source.tokens(source):
                writer.write(sample.tobytes())
            writer.close()

    def open(self, job: Job, state: bytes | None) -> Loading:
        return Loading(job, state)


if __name__ == "__main__":
    main(GrainPeer())
