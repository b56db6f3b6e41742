# SPDX-License-Identifier: Apache-2.0
"""Loops that train, are killed, and go on from their checkpoint, as if nothing had happened."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import batchloom as bl
import pytest
from conftest import Run
from shards import every_format

torch = pytest.importorskip("torch")
import trainer  # noqa: E402

STEPS = 12
PIPELINE = """
[store]
url = "./stream"
lead_steps = "unlimited"
[topology]
axes = "dp=4"
capacity = 512
[step]
tokens = 8192
max_sample_tokens = 256
"""


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("every_format")
    every_format.write_sources(folder / "data", seed=1)
    every_format.write_module(folder)
    text = PIPELINE + every_format.to_toml("data", "python")
    (folder / "p.toml").write_text(text, encoding="utf-8")
    return folder / "p.toml"


@pytest.fixture
def stream(run: Run, pipeline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """12 steps for 4 ranks, of files of every format and of pictures."""
    monkeypatch.setenv("BATCHLOOM_PYTHON", sys.executable)
    made = tmp_path / "stream"
    run("run", pipeline, "--store", made, f"--steps={STEPS}", "--fsync=none")
    run("store", "end", made)
    return made


def start(stream: Path, checkpoint: Path, *hold_at: int) -> subprocess.Popen[str]:
    words = [trainer.__file__, stream, 0, 2, checkpoint, *hold_at]
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill_after(step: int, stream: Path, checkpoint: Path) -> None:
    """SIGKILL after the optimizer's step, before its checkpoint."""
    process = start(stream, checkpoint, step)
    assert process.stdout
    held = process.stdout.readline()
    process.kill()
    _, said = process.communicate(timeout=60)
    assert held == "held\n", said


def test_a_killed_loop_goes_on_as_one_that_was_not(stream: Path, tmp_path: Path) -> None:
    whole = trainer.train(str(stream), 0, 2, tmp_path / "whole.pt")
    checkpoint = tmp_path / "killed.pt"
    for step in (3, 8):  # One that would have had a checkpoint, and one that would not.
        kill_after(step, stream, checkpoint)
    process = start(stream, checkpoint)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert json.loads(out) == whole


def test_the_order_hash_tells_another_order(stream: Path, tmp_path: Path) -> None:
    """Were it the same for any order, the test above would show nothing."""
    with bl.Consumer(stream, rank=0, world_size=2, framework="torch") as data:
        first, second = next(data), next(data)
    digests = []
    for number, order in enumerate([(first, second), (second, first)]):
        one = trainer.Trainer(tmp_path / f"{number}.pt")
        for batch in order:
            one.learn(batch, 2)
        digests.append(one.digests())
    assert digests[0]["order"] != digests[1]["order"]
    assert digests[0]["weights"] != digests[1]["weights"]


def sequences(batch: bl.Batch) -> Iterator[tuple[bytes, ...]]:
    """What was trained on, but for fillers: content, not names, and pictures."""
    for mb in batch.micro_batches:
        if mb.stored.pieces:
            ends = mb.cu_seqlens.tolist()
            for lo, hi in zip(ends, ends[1:], strict=False):
                arrays = (mb.tokens, mb.labels, mb.positions)
                placed = zip(mb.images, mb.image_spans, strict=True)
                pictures = [image.numpy().tobytes() for image, (at, _) in placed if lo <= at < hi]
                yield (*(one[lo:hi].numpy().tobytes() for one in arrays), *pictures)


def read(stream: Path, world_size: int, resume: bytes | None) -> dict[int, Counter]:
    """By step what all ranks got together."""
    steps: dict[int, Counter] = {}
    for rank in range(world_size):
        settings = {"rank": rank, "world_size": world_size, "group": f"of-{world_size}"}
        with bl.Consumer(stream, **settings, framework="torch", resume=resume) as data:
            for batch in data:
                steps.setdefault(batch.step, Counter()).update(sequences(batch))
    return steps


@pytest.mark.parametrize("world_size", [1, 3, 8])
def test_another_world_size_has_the_same_parts_in_each_step(
    stream: Path, tmp_path: Path, world_size: int
) -> None:
    checkpoint = tmp_path / "checkpoint.pt"
    kill_after(7, stream, checkpoint)
    state = torch.load(checkpoint, weights_only=True)["data"]
    resumed = read(stream, world_size, resume=state)
    assert list(resumed) == list(range(6, STEPS))
    planned = read(stream, 4, resume=None)
    assert resumed == {step: planned[step] for step in resumed}
    assert all(resumed.values())
    assert any(len(sequence) > 3 for parts in resumed.values() for sequence in parts), "pictures"
