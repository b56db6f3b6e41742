# SPDX-License-Identifier: Apache-2.0
"""A small training loop as a process, for tests that kill it.

python trainer.py STREAM RANK WORLD_SIZE CHECKPOINT [HOLD_AT]: trains to the stream's end, from the
checkpoint on where there is one, and prints its last checkpoint's digests. With HOLD_AT it says so
after that step, before its checkpoint, and waits to be killed. The file's name is the group's.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

import batchloom as bl
import torch

CHECKPOINT_EVERY = 2
CLASSES = 512


def digest(*parts: bytes) -> bytes:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part).digest())
    return whole.digest()


class Trainer:
    """Predicts the next token from this one. What it learned, and from what, is in its state."""

    def __init__(self, path: Path) -> None:
        torch.manual_seed(7)
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        self.path = path
        self.model = torch.nn.Sequential(
            torch.nn.Embedding(1 << 16, 8), torch.nn.Linear(8, CLASSES)
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.data: bytes | None = None  # The consumer's state.
        self.order = b""  # A hash of all that was learned from, in order.
        if path.exists():
            saved = torch.load(path, weights_only=True)
            self.model.load_state_dict(saved["model"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.data, self.order = saved["data"], saved["order"]

    def learn(self, batch: bl.Batch, world_size: int) -> None:
        for mb in batch.micro_batches:
            labels = torch.where(mb.labels >= 0, mb.labels % CLASSES, mb.labels)
            scores = self.model(mb.tokens)
            loss = torch.nn.functional.cross_entropy(scores, labels, reduction="sum")
            (loss * world_size / batch.global_valid_labels).backward()
            arrays = (mb.tokens, mb.labels, mb.positions, mb.cu_seqlens, *mb.images)
            self.order = digest(self.order, *(one.numpy().tobytes() for one in arrays))
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.data = batch.state

    def save(self) -> None:
        """All of it or none, whenever this process is killed."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "data": self.data,
            "order": self.order,
        }
        unfinished = self.path.with_suffix(".unfinished")
        torch.save(state, unfinished)
        os.replace(unfinished, self.path)

    def digests(self) -> dict[str, str]:
        assert self.data is not None
        weights = [value.numpy().tobytes() for value in self.model.state_dict().values()]
        return {
            "state": self.data.decode(),
            "order": self.order.hex(),
            "weights": digest(*weights).hex(),
        }


def train(
    stream: str, rank: int, world_size: int, checkpoint: Path, hold_at: int | None = None
) -> dict[str, str]:
    trainer = Trainer(checkpoint)
    with bl.Consumer(
        Path(stream),
        rank=rank,
        world_size=world_size,
        group=checkpoint.stem,
        resume=trainer.data,
        framework="torch",
    ) as data:
        for batch in data:
            trainer.learn(batch, world_size)
            if batch.step == hold_at:
                print("held", flush=True)
                sys.stdin.read()
            if (batch.step + 1) % CHECKPOINT_EVERY == 0:
                data.pin(batch.state, name=f"step-{batch.step}", keep=2)
                trainer.save()
    trainer.save()
    return trainer.digests()


if __name__ == "__main__":
    url, rank_text, world_text, path, *hold = sys.argv[1:]
    last = train(url, int(rank_text), int(world_text), Path(path), *map(int, hold))
    print(json.dumps(last))
