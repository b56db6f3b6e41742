# SPDX-License-Identifier: Apache-2.0
"""What the program of every peer does: `python peer_NAME.py write JOB` makes its files from the
corpus, and `python peer_NAME.py read JOB` reads them as a trainer's loop does, and measures that.

JOB is a JSON object, the fields of Job. `read` prints one, the fields of Done. It runs in the
peer's own environment, where NumPy is and nothing of the others.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import process_tree
from corpus import Corpus, digest, numbers_of

IGNORED = -100  # The label of a token that none follows.


@dataclass(frozen=True)
class Job:
    corpus: str  # The folder of the Megatron pairs.
    files: str  # The peer's own folder.
    samples: int
    sources: int
    sample_tokens: int
    batch: int = 64
    workers: int = 0
    epochs: int = 1
    labels: bool = True  # Trainer tensors: tokens as int32 and labels as int64. Else tokens alone.
    batches: int | None = None  # Stop there, and write `state`.
    state: str | None = None  # A file.
    resume: bool = False  # From what `state` holds.
    check: bool = False  # Look at every token and label, and at the memory; not to be timed then.

    @property
    def source(self) -> Corpus:
        return Corpus(Path(self.corpus), self.samples, self.sources, self.sample_tokens)


@dataclass
class Done:
    samples: int = 0
    wall_s: float = 0
    cpu_s: float = 0
    first_batch_s: float = 0  # From the opening on; imports come before.
    before_mib: float = 0  # After the imports.
    memory_mib: float = 0  # The most that was seen.
    digest: int = 0
    numbers: list[int] = field(default_factory=list)  # Which samples, sorted; with `check`.
    each_once_an_epoch: bool = False


Batch = dict[str, Any]  # "tokens" and "labels": [sample, token], tensors or arrays.


class Loader(Protocol):
    """What a peer opens."""

    def batches(self) -> Iterator[Batch]:
        """Of all epochs."""

    def state(self) -> bytes | None:
        """Of the batch that came last. None where the peer has no such thing."""

    def close(self) -> None:
        """Ends all its processes."""


class Peer(Protocol):
    def write(self, job: Job) -> None: ...

    def open(self, job: Job, state: bytes | None) -> Loader: ...


def trainer_arrays(tokens: np.ndarray, labels: bool) -> dict[str, np.ndarray]:
    """What a trainer takes of the ids [sample, token] of a batch. Few operations on large arrays,
    for all peers alike."""
    arrays = {"tokens": tokens.astype(np.int32)}
    if labels:
        arrays["labels"] = np.empty(tokens.shape, np.int64)
        arrays["labels"][:, :-1] = tokens[:, 1:]
        arrays["labels"][:, -1] = IGNORED
    return arrays


def check_batch(batch: Batch, job: Job) -> int:
    """The digest of its samples. AssertionError where a label is wrong."""
    tokens = np.asarray(batch["tokens"])
    assert tokens.dtype == np.int32, tokens.dtype
    if job.labels:
        labels = np.asarray(batch["labels"])
        assert labels.dtype == np.int64, labels.dtype
        assert (labels[:, :-1] == tokens[:, 1:]).all()
        assert (labels[:, -1] == IGNORED).all()
    return digest(tokens)


def read(peer: Peer, job: Job) -> Done:
    done = Done(before_mib=process_tree.memory(os.getpid()).total_mib)
    state = Path(job.state).read_bytes() if job.resume and job.state else None
    numbers: list[np.ndarray] = []
    cpu_s = process_tree.cpu_s(os.getpid())
    begin = time.monotonic()
    loader = peer.open(job, state)
    looked = max(job.samples * job.epochs // job.batch // 8, 1)
    for count, batch in enumerate(loader.batches(), 1):
        if count == 1:
            done.first_batch_s = time.monotonic() - begin
        numbers.append(numbers_of(np.asarray(batch["tokens"][:, :2])))
        if job.check:
            done.digest = (done.digest + check_batch(batch, job)) % (1 << 64)
            if count % looked == 0:
                seen = process_tree.memory(os.getpid()).total_mib
                done.memory_mib = max(done.memory_mib, seen)
        if count == job.batches:
            break
    if job.batches is not None and job.state and (state := loader.state()) is not None:
        Path(job.state).write_bytes(state)
    done.wall_s = time.monotonic() - begin
    loader.close()
    done.cpu_s = process_tree.cpu_s(os.getpid()) - cpu_s
    all_numbers = np.concatenate(numbers)
    done.samples = len(all_numbers)
    done.numbers = np.sort(all_numbers).tolist() if job.check else []
    done.each_once_an_epoch = has_each_once_an_epoch(all_numbers, job)
    return done


def has_each_once_an_epoch(numbers: np.ndarray, job: Job) -> bool:
    """Epochs are whole batches, one behind the other."""
    if len(numbers) != job.samples * job.epochs:
        return False
    by_epoch = np.sort(numbers.reshape(job.epochs, job.samples), axis=1)
    return bool((by_epoch == np.arange(job.samples)).all())


def main(peer: Peer) -> None:
    what, path = sys.argv[1:]
    job = Job(**json.loads(Path(path).read_text(encoding="utf-8")))
    if what == "write":
        Path(job.files).mkdir(parents=True)
        peer.write(job)
        return
    # What a library prints is not the result.
    with contextlib.redirect_stdout(sys.stderr):
        done = read(peer, job)
    json.dump(asdict(done), sys.stdout)
