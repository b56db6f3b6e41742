# SPDX-License-Identifier: Apache-2.0
"""WebDataset: tar shards, read in order, shards and samples shuffled, batched in the workers."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import webdataset as wds
from reading import Batch, Job, main, trainer_arrays

SEED = 17
SHARDS = 4  # Of each source, so that every worker has one of each.
SHUFFLED = 1000  # Samples; of all sources together where there are several.
MEMBER = "tokens"


class Trainable:
    """Samples that were batched to the arrays of a batch, in the worker."""

    def __init__(self, labels: bool) -> None:
        self._labels = labels

    def __call__(self, tokens: np.ndarray) -> dict[str, torch.Tensor]:
        arrays = trainer_arrays(tokens, self._labels)
        return {name: torch.from_numpy(array) for name, array in arrays.items()}


def ids_of(sample: dict[str, bytes]) -> np.ndarray:
    return np.frombuffer(sample[MEMBER], dtype=np.uint16)


def shards_of(job: Job, source: int) -> list[str]:
    return [str(Path(job.files) / f"source-{source:04}-{n}.tar") for n in range(SHARDS)]


class Loading:
    def __init__(self, job: Job) -> None:
        self._epochs = job.epochs
        sources = [
            wds.WebDataset(shards_of(job, source), shardshuffle=SHARDS, seed=SEED)
            for source in range(job.sources)
        ]
        mixed = sources[0] if job.sources == 1 else mix(sources)
        dataset = mixed.compose(
            wds.shuffle(SHUFFLED),
            wds.map(ids_of),
            wds.batched(job.batch, collation_fn=np.stack),
            wds.map(Trainable(job.labels)),
        )
        self._loader: wds.WebLoader | None = wds.WebLoader(
            dataset,
            batch_size=None,
            num_workers=job.workers,
            persistent_workers=job.workers > 0,
        )

    def batches(self) -> Iterator[Batch]:
        assert self._loader is not None
        for _ in range(self._epochs):
            yield from self._loader

    def state(self) -> None:
        """It has none: a restart begins anew."""

    def close(self) -> None:
        self._loader = None  # Its workers end with it.


def mix(sources: list[wds.WebDataset]) -> wds.DataPipeline:
    """Draws at random until all sources are exhausted."""
    return wds.DataPipeline(wds.RandomMix(sources, longest=True))


class WebDatasetPeer:
    def write(self, job: Job) -> None:
        for source in range(job.sources):
            samples = job.source.tokens(source)
            for path, part in zip(shards_of(job, source), np.array_split(samples, SHARDS)):
                with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
                    for number, sample in enumerate(part):
                        content = sample.tobytes()
                        member = tarfile.TarInfo(f"{source}-{number:06}.{MEMBER}")
                        member.size = len(content)
                        tar.addfile(member, io.BytesIO(content))

    def open(self, job: Job, state: bytes | None) -> Loading:
        assert state is None
        return Loading(job)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(WebDatasetPeer())
