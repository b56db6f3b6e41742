# SPDX-License-Identifier: Apache-2.0
"""torch.utils.data.DataLoader over a memory map: the map-style data set of its documentation."""

import json
from collections.abc import Iterator

import numpy as np
import torch
from reading import Batch, Job, main, trainer_arrays
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Sampler

SEED = 17


class MappedSamples(Dataset[np.ndarray]):
    def __init__(self, tokens: np.ndarray) -> None:
        self._tokens = tokens

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, index: int) -> np.ndarray:
        return self._tokens[index]


class ShuffledFrom(Sampler[int]):
    """A random order that can begin anywhere in an epoch: the DataLoader itself keeps no state."""

    def __init__(self, samples: int, epoch: int, first: int) -> None:
        self._samples = samples
        self.epoch = epoch
        self.first = first

    def __len__(self) -> int:
        return self._samples - self.first

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(SEED + self.epoch)
        order = torch.randperm(self._samples, generator=generator)
        return iter(order[self.first :].tolist())


class Collate:
    """Samples to the arrays of a batch, in the worker."""

    def __init__(self, labels: bool) -> None:
        self._labels = labels

    def __call__(self, samples: list[np.ndarray]) -> dict[str, torch.Tensor]:
        arrays = trainer_arrays(np.stack(samples), self._labels)
        return {name: torch.from_numpy(array) for name, array in arrays.items()}


class Loading:
    def __init__(self, job: Job, state: bytes | None) -> None:
        self._job = job
        self._epoch, self._taken = json.loads(state) if state else (0, 0)
        self._sampler = ShuffledFrom(job.samples, self._epoch, self._taken)
        parts = [MappedSamples(job.source.tokens(source)) for source in range(job.sources)]
        self._loader: DataLoader[np.ndarray] | None = DataLoader(
            ConcatDataset(parts) if len(parts) > 1 else parts[0],
            batch_size=job.batch,
            sampler=self._sampler,
            num_workers=job.workers,
            collate_fn=Collate(job.labels),
            persistent_workers=job.workers > 0,
        )

    def batches(self) -> Iterator[Batch]:
        assert self._loader is not None
        for self._epoch in range(self._epoch, self._job.epochs):
            self._sampler.epoch = self._epoch
            for batch in self._loader:
                self._taken += len(batch["tokens"])
                yield batch
            self._taken = self._sampler.first = 0

    def state(self) -> bytes:
        return json.dumps([self._epoch, self._taken]).encode()

    def close(self) -> None:
        self._loader = None  # Its workers end with it.


class DataLoaderPeer:
    def write(self, job: Job) -> None:
        """Nothing: it maps the corpus as it lies."""

    def open(self, job: Job, state: bytes | None) -> Loading:
        return Loading(job, state)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(DataLoaderPeer())
