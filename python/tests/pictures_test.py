# SPDX-License-Identifier: Apache-2.0
"""Pictures reach trainers pixel by pixel, before the captions that they came with."""

import io
import json
import random
import tarfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import batchloom as bl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Run
from shards.writers import png

PIPELINE = """
seed = 3
[store]
url = "./stream"
lead_steps = "unlimited"
[topology]
axes = "dp=4"
capacity = 512
[step]
tokens = 2048
max_sample_tokens = 256
[tokens]
tokenizer = {tokenizer}
vocab = 300
begin = [298]
end = [299]
[image]
patch = 4
merge = 2
max_patches = 64
token = 257
[balance]
strategy = "{strategy}"
cost_model = "costs.toml"
[[source]]
name = "pictures"
files = ["pictures-*"]
fields = {{ image = "{image}", text = "{text}" }}
order = "{order}"
[limits]
bad_records = {bad_records}
"""
COSTS = """
format = 0
name = "with-pictures"
version = 1
layers = 2
launch_ns = 1000
kv_bytes_per_token = 64
activation_bytes_per_token = 64
copy_bytes_per_s = 1000000000
""" + "".join(
    f"""
[{curve}]
growth = "linear"
both_ps = [[1, 30000], [512, 30000000]]
"""
    + ("" if curve == "encoder" else "forward_ps = [[1, 10000], [512, 10000000]]\n")
    for curve in ("attention", "linear", "encoder")
)
FUNCTION = """
def ids_of(texts):
    return [list(text.encode()) for text in texts]

def one_gives_the_id_of_pictures(texts):
    return [[257 if text.startswith("9:") else 65] for text in texts]
"""
BEGIN, PATCH, END, CELL_PX = 298, 257, 299, 8
FIELDS = {"tar": ("png", "txt"), "parquet": ("image.bytes", "caption")}


@dataclass(frozen=True)
class Pair:
    """A picture that fills its grid, so that nothing is resampled, and its caption."""

    rows: int
    columns: int
    pixels: bytes
    caption: str

    @property
    def png(self) -> bytes:
        return png(self.columns * CELL_PX, self.rows * CELL_PX, self.pixels)


def pairs_of(count: int) -> list[Pair]:
    rng = random.Random(7)
    pairs = []
    for number in range(count):
        rows, columns = rng.randint(1, 4), rng.randint(1, 4)
        pixels = rng.randbytes(3 * rows * columns * CELL_PX**2)
        words = "".join(rng.choice("abc \u00e4") for _ in range(rng.randrange(90)))
        pairs.append(Pair(rows, columns, pixels, f"{number}: {words}"))
    return pairs


def write_tar(path: Path, pairs: list[Pair], encoded: list[bytes]) -> None:
    with tarfile.open(f"{path}.tar", "w") as archive:
        for number, (pair, png) in enumerate(zip(pairs, encoded, strict=True)):
            for ending, content in (("txt", pair.caption.encode()), ("png", png)):
                member = tarfile.TarInfo(f"{number:05}.{ending}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


def write_parquet(path: Path, pairs: list[Pair], encoded: list[bytes]) -> None:
    """As data sets of Hugging Face have pictures."""
    rows = [
        {"image": {"bytes": png, "path": None}, "caption": pair.caption}
        for pair, png in zip(pairs, encoded, strict=True)
    ]
    pq.write_table(pa.Table.from_pylist(rows), f"{path}.parquet", row_group_size=13)


WRITERS = {"tar": write_tar, "parquet": write_parquet}


def stream_of(
    run: Run,
    folder: Path,
    pairs: list[Pair],
    encoded: list[bytes] | None = None,
    *,
    kind: str = "tar",
    order: str = "random",
    strategy: str = "two_level",
    tokenizer: str = '"bytes"',
    bad_records: int = 0,
) -> Path:
    folder.mkdir(exist_ok=True)
    encoded = encoded or [pair.png for pair in pairs]
    half = len(pairs) // 2
    WRITERS[kind](folder / "pictures-0", pairs[:half], encoded[:half])
    WRITERS[kind](folder / "pictures-1", pairs[half:], encoded[half:])
    (folder / "costs.toml").write_text(COSTS)
    (folder / "letters.py").write_text(FUNCTION)
    image, text = FIELDS[kind]
    (folder / "p.toml").write_text(
        PIPELINE.format(
            order=order,
            strategy=strategy,
            tokenizer=tokenizer,
            image=image,
            text=text,
            bad_records=bad_records,
        )
    )
    run("run", folder / "p.toml", "--fsync=none")
    return folder / "stream"


def ids_of(pair: Pair) -> list[int]:
    cells = [PATCH] * (pair.rows * pair.columns)
    return [BEGIN, *cells, *pair.caption.encode(), END]


def labels_of(pair: Pair) -> list[int]:
    """Of each token the next one, unless that stands for a part of the picture."""
    ids = ids_of(pair)
    return [-100 if label == PATCH else label for label in ids[1:]] + [-100]


def check_sequence(mb: bl.MicroBatch, place: int, known: dict[str, Pair]) -> Pair:
    """Sequence number `place` is a pair as it was written, whole."""
    begin, end = mb.cu_seqlens[place], mb.cu_seqlens[place + 1]
    first, last = mb.image_spans[place]
    caption = bytes(mb.tokens[last : end - 1].astype(np.uint8)).decode()
    pair = known[caption]
    assert mb.tokens[begin:end].tolist() == ids_of(pair)
    assert mb.labels[begin:end].tolist() == labels_of(pair)
    assert (first, last) == (begin + 1, begin + 1 + pair.rows * pair.columns)
    image = mb.images[place]
    assert image.shape == (pair.rows * CELL_PX, pair.columns * CELL_PX, 3)
    assert image.tobytes() == pair.pixels
    return pair


def delivered(stream: Path, world_size: int, known: dict[str, Pair]) -> list[Counter[str]]:
    """The captions of each step, on all ranks together, each with its own picture."""
    steps: list[Counter[str]] = []
    for rank in range(world_size):
        with bl.Consumer(stream, rank=rank, world_size=world_size, start=0) as data:
            for batch in data:
                if batch.step == len(steps):
                    steps.append(Counter())
                for mb in batch.micro_batches:
                    sequences = 0 if mb.stored.pieces == [] else len(mb.cu_seqlens) - 1
                    assert len(mb.images) == len(mb.image_spans) == sequences
                    for place in range(sequences):
                        steps[batch.step][check_sequence(mb, place, known).caption] += 1
    return steps


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return pairs_of(240)


@pytest.fixture(scope="module")
def known(pairs: list[Pair]) -> dict[str, Pair]:
    return {pair.caption: pair for pair in pairs}


@pytest.mark.parametrize("order", ["file", "random"])
@pytest.mark.parametrize("strategy", ["two_level", "two_module"])
def test_every_picture_arrives_once_in_every_format(
    run: Run,
    tmp_path: Path,
    pairs: list[Pair],
    known: dict[str, Pair],
    order: str,
    strategy: str,
) -> None:
    given = {}
    for kind in WRITERS:
        stream = stream_of(run, tmp_path / kind, pairs, kind=kind, order=order, strategy=strategy)
        given[kind] = delivered(stream, 4, known)
    assert len(given["tar"]) > 3
    assert given["tar"] == given["parquet"]
    assert sum(given["tar"], Counter()) <= Counter(known.keys())
    in_order = [caption for step in given["tar"] for caption in sorted(step, key=number_of)]
    assert (in_order == sorted(in_order, key=number_of)) == (order == "file")


def number_of(caption: str) -> int:
    return int(caption.partition(":")[0])


@pytest.mark.parametrize("kind", WRITERS)
def test_a_function_of_python_makes_the_ids_of_captions(
    run: Run, tmp_path: Path, pairs: list[Pair], known: dict[str, Pair], kind: str
) -> None:
    function = '{ kind = "python", function = "letters:ids_of" }'
    given = [
        delivered(stream_of(run, tmp_path / name, pairs, kind=kind, tokenizer=tokenizer), 2, known)
        for name, tokenizer in (("bytes", '"bytes"'), ("python", function))
    ]
    assert len(given[0]) > 3
    assert given[0] == given[1]


def test_a_text_with_the_id_of_pictures_is_a_bad_record(
    run: Run, tmp_path: Path, pairs: list[Pair]
) -> None:
    function = '{ kind = "python", function = "letters:one_gives_the_id_of_pictures" }'
    with pytest.raises(AssertionError) as refused:
        stream_of(run, tmp_path, pairs, tokenizer=function)
    assert "id 257 stands for pictures (image.token), and a text has it" in str(refused.value)


def test_every_world_size_gets_the_same_pictures(
    run: Run, tmp_path: Path, pairs: list[Pair], known: dict[str, Pair]
) -> None:
    stream = stream_of(run, tmp_path, pairs)
    given = [delivered(stream, world_size, known) for world_size in (1, 2, 3, 4, 8)]
    assert len(given[0]) > 3
    assert all(steps == given[0] for steps in given)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_picture_that_does_not_decode_is_replaced(
    run: Run, tmp_path: Path, pairs: list[Pair], known: dict[str, Pair], kind: str
) -> None:
    encoded = [pair.png for pair in pairs]
    headless, cut = encoded[5], encoded[80]
    encoded[5] = b"GIF89a" + headless[6:]
    encoded[80] = cut[: len(cut) - 20]
    stream = stream_of(run, tmp_path, pairs, encoded, kind=kind, order="file", bad_records=2)
    all_steps = sum(delivered(stream, 4, known), Counter())
    captions = [pairs[number].caption for number in (5, 80)]
    assert not any(caption in all_steps for caption in captions)
    assert all_steps[pairs[4].caption] == all_steps[pairs[81].caption] == 1


def test_too_many_bad_pictures_stop_the_run_and_are_named(
    run: Run, tmp_path: Path, pairs: list[Pair]
) -> None:
    encoded = [pair.png for pair in pairs]
    encoded[7] = encoded[7][:-20]
    with pytest.raises(AssertionError) as refused:
        stream_of(run, tmp_path, pairs, encoded, order="file")
    assert "pictures-0.tar: record 7" in str(refused.value)


def test_torch_gets_pictures_from_workers(
    run: Run, tmp_path: Path, pairs: list[Pair], known: dict[str, Pair]
) -> None:
    torch = pytest.importorskip("torch")
    import batchloom.torch  # noqa: F401, PLC0415

    stream = stream_of(run, tmp_path, pairs)
    data = bl.torch.Dataset(stream, rank=0, world_size=1, start=0)
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=2)
    captions: Counter[str] = Counter()
    for batch in loader:
        for mb in batch.micro_batches:
            for image, (_, end) in zip(mb.images, mb.image_spans, strict=True):
                assert image.dtype == torch.uint8
                sequence_end = int(mb.cu_seqlens[mb.cu_seqlens > end][0])
                caption = bytes(mb.tokens[end : sequence_end - 1].to(torch.uint8)).decode()
                assert image.numpy().tobytes() == known[caption].pixels
                captions[caption] += 1
    assert captions == sum(delivered(stream, 1, known), Counter())


def test_a_plan_counts_the_patches_of_pictures(
    run: Run, tmp_path: Path, pairs: list[Pair]
) -> None:
    stream = stream_of(run, tmp_path, pairs, order="file")
    shown = json.loads(run("store", "show", stream, "--step=0", "--json"))
    patches = {}
    for piece in shown["pieces"]:
        record = int(piece["sample"].split(":")[2])
        patches[record] = piece["sample_image_patches"]
    assert len(patches) > 10
    for record, (counted,) in patches.items():
        assert counted == 4 * pairs[record].rows * pairs[record].columns


def test_a_picture_stays_with_the_first_part_of_its_record(run: Run, tmp_path: Path) -> None:
    caption = "".join(random.Random(1).choice("abc") for _ in range(1000))
    pair = Pair(4, 4, random.Random(2).randbytes(3 * 16 * CELL_PX**2), caption)
    stream = stream_of(run, tmp_path, [pair] * 8, order="file")
    with bl.Consumer(stream, rank=0, world_size=1, start=0) as data:
        micro_batches = [mb for batch in data for mb in batch.micro_batches]
    pieces = [piece for mb in micro_batches for piece in mb.stored.pieces]
    assert {piece.sample[3] for piece in pieces} == {0, 1, 2, 3}
    for piece in pieces:
        assert len(piece.tensors) == (piece.sample[3] == 0)
    images = [image for mb in micro_batches for image in mb.images]
    assert len(images) == sum(piece.sample[3] == 0 for piece in pieces)
    assert all(image.tobytes() == pair.pixels for image in images)
