# SPDX-License-Identifier: Apache-2.0
"""A step holds the same parts, with the same tokens, labels and positions, on any number of ranks,
however they were balanced."""

import json
import random
import sys
from collections import Counter
from pathlib import Path

import batchloom as bl
import numpy as np
import pytest
from conftest import Run
from shards import every_format
from shards.writers import write_megatron

WORLD_SIZES = (1, 2, 3, 4, 6, 8, 16)
PART = 256

PIPELINE = """
[store]
url = "./stream"
lead_steps = "unlimited"
[topology]
axes = "dp=8"
capacity = {capacity}
[step]
tokens = 8192
max_sample_tokens = {part}
[tokens]
tokenizer = "bytes"
vocab = 300
begin = [298]
end = [299]
[balance]
strategy = "{strategy}"
[[source]]
name = "docs"
files = ["docs.jsonl"]
weight = 0.5
[[source]]
name = "chats"
files = ["chats.jsonl"]
fields = {{ prompt = "q", answer = "a" }}
loss_on = "answer"
weight = 0.2
exhausted = "repeat"
[[source]]
name = "ids"
files = ["ids.bin"]
weight = 0.3
exhausted = "repeat"
"""

EVERY_FORMAT = """
[store]
url = "./stream"
lead_steps = "unlimited"
[run]
steps = 5
[topology]
axes = "dp=8"
capacity = 512
[step]
tokens = 8192
max_sample_tokens = 256
[balance]
strategy = "{strategy}"
"""

Part = tuple[bytes, bytes, bytes, bytes]  # Its tokens, labels, positions and pictures.


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    rng = random.Random(3)

    def words(most: int) -> str:
        return " ".join(rng.choice(("ein", "two", "trois", "четыре")) for _ in range(most))

    with (folder / "docs.jsonl").open("w", encoding="utf-8") as file:
        for i in range(120):  # Some are many parts long.
            file.write(json.dumps({"text": words(rng.randrange(300 if i % 9 == 0 else 30))}) + "\n")
    with (folder / "chats.jsonl").open("w", encoding="utf-8") as file:
        for _ in range(30):
            file.write(json.dumps({"q": words(9), "a": words(rng.randrange(1, 20))}) + "\n")
    lengths = [rng.randrange(1, 500) for _ in range(40)]
    write_megatron(folder / "ids", [[rng.randrange(300) for _ in range(n)] for n in lengths])
    return folder


def make_stream(run: Run, sources: Path, folder: Path, **settings: object) -> Path:
    for file in sources.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "p.toml").write_text(PIPELINE.format(**settings), encoding="utf-8")
    run("run", folder / "p.toml", "--store", folder / "stream", "--fsync=none")
    return folder / "stream"


def pieces_of(batch: bl.Batch) -> list[tuple[tuple, int, int, Part]]:
    """(sample, tokens of the sample, lo, what a trainer gets of it)"""
    pieces = []
    for mb in batch.micro_batches:
        stored = mb.stored.pieces
        if not stored:
            assert (len(mb), int(mb.labels[0])) == (1, -100), "a filler is one token without label"
            continue
        ends = np.cumsum([len(piece.tokens) for piece in stored])
        assert list(mb.cu_seqlens) == [0, *ends]
        for piece, end in zip(stored, ends, strict=True):
            span = slice(end - len(piece.tokens), end)
            arrays = (mb.tokens[span], mb.labels[span], mb.positions[span])
            content = (*(array.tobytes() for array in arrays), pictures_in(mb, span, piece.lo))
            pieces.append((piece.sample, piece.sample_tokens, piece.lo, content))
    return pieces


def pictures_in(mb: bl.MicroBatch, span: slice, lo: int) -> bytes:
    """Of a piece from token `lo` of its sample on: where in the sample they are, how large, and
    their pixels."""
    found = b""
    for image, (begin, end) in zip(mb.images, mb.image_spans, strict=True):
        if span.start <= begin < span.stop:
            place = (lo + begin - span.start, lo + end - span.start, *image.shape)
            found += np.array(place).tobytes() + image.tobytes()
    return found


def merged(batches: list[bl.Batch]) -> Counter:
    """The parts of a step, put together from all ranks' pieces of them."""
    by_sample: dict[tuple, list] = {}
    for batch in batches:
        for sample, tokens, lo, content in pieces_of(batch):
            by_sample.setdefault((sample, tokens), []).append((lo, content))
    parts: Counter = Counter()
    for (sample, tokens), pieces in by_sample.items():
        at = 0
        for lo, content in sorted(pieces):
            assert lo == at, f"sample {sample} has a gap, or twice a piece, at token {at}"
            at += len(content[0]) // 4
        assert at == tokens
        parts[sample, *(b"".join(column) for column in zip(*(c for _, c in sorted(pieces))))] += 1
    return parts


def read(stream: Path, world_size: int, split_samples: bool) -> list[Counter]:
    ranks = []
    for rank in range(world_size):
        with bl.Consumer(
            stream, rank=rank, world_size=world_size, start=0, split_samples=split_samples
        ) as data:
            ranks.append([(b.step, b.global_valid_labels, b.state, b) for b in data])
    steps = []
    for of_step in zip(*ranks, strict=True):
        assert len({known[:3] for known in of_step}) == 1
        steps.append(merged([known[3] for known in of_step]))
    return steps


@pytest.mark.parametrize("strategy", ["none", "lpt", "kk", "two_level"])
def test_every_world_size_gets_the_same_parts(
    run: Run, sources: Path, tmp_path: Path, strategy: str
) -> None:
    stream = make_stream(run, sources, tmp_path, strategy=strategy, capacity=512, part=PART)
    planned = read(stream, 8, False)
    assert len(planned) > 3
    for world_size in WORLD_SIZES:
        assert read(stream, world_size, False) == planned, f"{world_size} ranks"


@pytest.fixture(scope="module")
def every_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("every_source")
    every_format.write_sources(folder / "data", seed=1)
    every_format.write_module(folder)
    return folder


@pytest.fixture(scope="module")
def parts_of_every_format(run: Run, every_source: Path) -> list[Counter]:
    """As one rank gets them that nothing was balanced for."""
    stream = stream_of_every_format(run, every_source, every_source / "whole", "bytes", "none")
    return read(stream, 1, False)


def stream_of_every_format(
    run: Run, sources: Path, stream: Path, tokenizer: str, strategy: str
) -> Path:
    text = EVERY_FORMAT.format(strategy=strategy) + every_format.to_toml("data", tokenizer)
    pipeline = sources / f"{tokenizer}-{strategy}.toml"
    pipeline.write_text(text, encoding="utf-8")
    run("run", pipeline, "--store", stream, "--fsync=none")
    return stream


@pytest.mark.parametrize("tokenizer", every_format.TOKENIZERS)
@pytest.mark.parametrize("strategy", ["none", "lpt", "kk", "two_level"])
def test_every_world_size_gets_the_same_parts_of_every_format(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    every_source: Path,
    parts_of_every_format: list[Counter],
    tmp_path: Path,
    tokenizer: str,
    strategy: str,
) -> None:
    monkeypatch.setenv("BATCHLOOM_PYTHON", sys.executable)
    arguments = (every_source, tmp_path / "stream", tokenizer, strategy)
    stream = stream_of_every_format(run, *arguments)
    for world_size in WORLD_SIZES:
        given = read(stream, world_size, False)
        for of_step, expected in zip(given, parts_of_every_format, strict=True):
            assert differing(of_step, expected) == set(), f"{world_size} ranks"


def differing(some: Counter, others: Counter) -> set[str]:
    """The formats of which two steps have other parts."""
    numbers = {part[0][0] for part in (some - others) + (others - some)}
    return {[*every_format.SOURCES][number] for number in numbers}


def test_steps_of_every_format_have_all_of_them(parts_of_every_format: list[Counter]) -> None:
    """Else the test above would show little."""
    assert len(parts_of_every_format) == 5
    for parts in parts_of_every_format:
        assert {sample[0] for sample, *_ in parts} == {*range(len(every_format.SOURCES))}
        with_pictures = {sample[0] for sample, *_, pictures in parts if pictures}
        names = [[*every_format.SOURCES][number] for number in sorted(with_pictures)]
        assert names == ["pictures_tar", "pictures_parquet"]
        assert any(sample[3] > 0 for sample, *_ in parts), "a record of several parts"


def test_parts_are_those_of_another_strategy(run: Run, sources: Path, tmp_path: Path) -> None:
    streams = []
    for strategy in ("none", "hdp"):
        (tmp_path / strategy).mkdir()
        streams.append(
            make_stream(
                run, sources, tmp_path / strategy, strategy=strategy, capacity=512, part=PART
            )
        )
    assert read(streams[0], 8, False) == read(streams[1], 8, True)


def test_hdp_refuses_at_once_where_parts_have_no_room(
    run: Run, sources: Path, tmp_path: Path
) -> None:
    stream = make_stream(run, sources, tmp_path, strategy="hdp", capacity=256, part=4 * 256)
    planned = read(stream, 8, True)
    assert any(len({p[0] for p in step}) for step in planned)
    for world_size in WORLD_SIZES:
        if world_size >= 4:
            assert read(stream, world_size, True) == planned, f"{world_size} ranks"
            continue
        room = f"may have 1024 tokens .max_sample_tokens.*has room for {world_size * 256}: "
        with pytest.raises(bl.DoesNotFit, match=room):
            bl.Consumer(stream, rank=0, world_size=world_size, start=0, split_samples=True)
