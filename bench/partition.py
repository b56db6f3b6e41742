# SPDX-License-Identifier: Apache-2.0
"""Partition: are as many threads as `workers = "auto"` takes as good as the best number there is?

Three mixes: cheap text (JSON Lines and ids of Megatron), pictures (JPEGs in tars, with captions,
and text beside), and a tokenizer in Python that is slow, whose texts are indexed anew each time. Of
each, `batchloom run` with nobody who reads is run with each fixed number of workers, and the best
two of this sweep are compared with auto, in pairs of runs one right after the other: tokens/s of
the run, or, with the tokenizer, of indexing and run together. The median of the pairs counts, and
of the two finalists the one that auto reaches less of: the best of many medians is mostly the
luckiest. On a virtual machine, runs that fill the page cache for a second differ by a fifth: the
shorter the runs of a mix, the more pairs there are.
"""

import io
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bars import at_least, report
from job import COMMAND, ROOT, TIME_LIMIT_S
from PIL import Image
from shards import megatron

AUTO = "auto"
FINALISTS = 2
BARS = tuple(at_least(f"partition_over_best_{mix}", 0.9) for mix in ("text", "pictures", "python"))

HEAD = """
seed = 17
[store]
url = "./stream"
lead_steps = "unlimited"
[topology]
axes = "dp=2"
capacity = 65_536
[step]
tokens = {step_tokens}
max_sample_tokens = 8192
[tokens]
tokenizer = {tokenizer}
vocab = 300
end = [256]
[limits]
workers = {workers}
"""
IMAGE = """
[image]
patch = 14
max_patches = 256
token = 257
"""
SOURCE = """
[[source]]
name = "{name}"
files = ["{files}"]
weight = {weight}
exhausted = "repeat"
"""
TOKENIZER = """
def encode(texts):
    return [[sum(map(ord, word)) % 256 for word in text.split(" ")] for text in texts]
"""
WORDS = ("batch", "loom", "warp", "weft", "shuttle", "heddle", "reed", "selvedge")


@dataclass(frozen=True)
class Size:
    """How much there is, and how much of it is run."""

    text_records: int = 6000  # Of a file of text.
    files: int = 4  # Of a source.
    pictures: int = 150  # Of a tar.
    python_records: int = 1500  # Of a file.
    text_steps: int = 300
    picture_steps: int = 48
    rounds: int = 2  # Of the sweep.
    text_pairs: int = 24  # With each finalist.
    picture_pairs: int = 16
    python_pairs: int = 6
    workers: Sequence[int] = tuple(range(1, 9))


QUICK = Size(
    text_records=200,
    files=2,
    pictures=8,
    python_records=50,
    text_steps=4,
    picture_steps=2,
    rounds=1,
    text_pairs=1,
    picture_pairs=1,
    python_pairs=1,
    workers=(1, 2),
)


def text_of(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words))


def write_lines(file: Path, seed: int, records: int, words: int) -> None:
    rng = random.Random(seed)
    lines = (f'{{"text": "{text_of(rng, words)}"}}\n' for _ in range(records))
    file.write_text("".join(lines), encoding="utf-8")


def write_ids(stem: Path, seed: int, samples: int, tokens: int) -> None:
    """A pair of Megatron's, of 16 bits."""
    ids = bytearray(random.Random(seed).randbytes(2 * samples * tokens))
    ids[1::2] = bytes(samples * tokens)  # All below 256.
    stem.with_suffix(".bin").write_bytes(ids)
    stem.with_suffix(".idx").write_bytes(megatron.index_of([tokens] * samples))


def jpeg(rng: random.Random, side: int = 448) -> bytes:
    """Of coarse noise, which compresses about as photographs do."""
    coarse = side // 8
    picture = Image.frombytes("RGB", (coarse, coarse), rng.randbytes(3 * coarse * coarse))
    file = io.BytesIO()
    picture.resize((side, side), Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
    return file.getvalue()


def write_tar(file: Path, seed: int, pictures: int) -> None:
    rng = random.Random(seed)
    with tarfile.open(file, "w", format=tarfile.USTAR_FORMAT) as tar:
        for number in range(pictures):
            members = {"jpg": jpeg(rng), "txt": text_of(rng, 20).encode()}
            for ending, content in members.items():
                member = tarfile.TarInfo(f"{number:06}.{ending}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


@dataclass(frozen=True)
class Mix:
    """A pipeline over data that is there."""

    name: str
    folder: Path  # Of the data; pipelines lie in folders of their own in it.
    step_tokens: int
    steps: int
    sources: str  # And what else their files need.
    pairs: int  # With each finalist.
    tokenizer: str = '"bytes"'
    indexes_each_time: bool = False

    def write(self, workers: int | str) -> Path:
        folder = self.folder / f"w{workers}"
        folder.mkdir(exist_ok=True)
        head = HEAD.format(
            step_tokens=self.step_tokens,
            tokenizer=self.tokenizer,
            workers=f'"{AUTO}"' if workers == AUTO else workers,
        )
        (folder / "tok.py").write_text(TOKENIZER, encoding="utf-8")
        file = folder / "pipeline.toml"
        file.write_text(head + self.sources, encoding="utf-8")
        return file


def source(name: str, files: str, weight: float, more: str = "") -> str:
    return SOURCE.format(name=name, files=files, weight=weight) + more


def text_mix(place: Path, size: Size) -> Mix:
    folder = place / "text"
    folder.mkdir(parents=True)
    for number in range(size.files):
        write_lines(folder / f"lines-{number}.jsonl", number, size.text_records, words=400)
        write_ids(folder / f"ids-{number}", number, size.text_records, tokens=2048)
    sources = source("lines", f"{folder}/lines-*.jsonl", 0.5)
    sources += source("ids", f"{folder}/ids-*.bin", 0.5)
    return Mix("text", folder, 1 << 20, size.text_steps, sources, size.text_pairs)


def picture_mix(place: Path, size: Size) -> Mix:
    folder = place / "pictures"
    folder.mkdir(parents=True)
    for number in range(size.files):
        write_tar(folder / f"pictures-{number}.tar", number, size.pictures)
        write_lines(folder / f"lines-{number}.jsonl", number, size.text_records // 4, words=400)
    fields = 'fields = { image = "jpg", text = "txt" }\n'
    sources = IMAGE + source("pictures", f"{folder}/pictures-*.tar", 0.5, fields)
    sources += source("lines", f"{folder}/lines-*.jsonl", 0.5)
    return Mix("pictures", folder, 1 << 16, size.picture_steps, sources, size.picture_pairs)


def python_mix(place: Path, size: Size) -> Mix:
    folder = place / "python"
    folder.mkdir(parents=True)
    for number in range(2 * size.files):
        write_lines(folder / f"lines-{number}.jsonl", number, size.python_records, words=400)
    return Mix(
        "python",
        folder,
        1 << 16,
        steps=4,
        sources=source("lines", f"{folder}/lines-*.jsonl", 1),
        tokenizer='{ kind = "python", function = "tok:encode" }',
        pairs=size.python_pairs,
        indexes_each_time=True,
    )


def run(mix: Mix, workers: int | str) -> float:
    """Tokens/s: of the run; of all that is indexed, where that is part of it."""
    file = mix.write(workers)
    stream = file.parent / "stream"
    shutil.rmtree(stream, ignore_errors=True)
    indexes = file.parent / "indexes"
    if mix.indexes_each_time:
        shutil.rmtree(indexes, ignore_errors=True)
    indexes.mkdir(exist_ok=True)
    options = [f"--steps={mix.steps}", "--fsync=none", f"--index-folder={indexes}", "--json"]
    begin = time.monotonic()
    done = subprocess.run(
        [COMMAND, "run", file, *options],
        stdout=subprocess.PIPE,
        stderr=sys.stderr if os.environ.get("BENCH_LOUD") else subprocess.DEVNULL,
        env={**os.environ, "BATCHLOOM_PYTHON": sys.executable},
        timeout=TIME_LIMIT_S,
        check=True,
    )
    seconds = time.monotonic() - begin
    shutil.rmtree(stream)
    told = json.loads(done.stdout)
    if mix.indexes_each_time:
        return float(told["tokens"]) / seconds
    return float(told["tokens_per_s"])


Rates = Mapping[int | str, Sequence[float]]


def sweep(mix: Mix, size: Size) -> Rates:
    """All of them, in an order that each round draws anew: neighbours are felt."""
    numbers: list[int | str] = [AUTO, *size.workers]
    rates: dict[int | str, list[float]] = {workers: [] for workers in numbers}
    for workers in numbers:  # Not counted: indexes are made, and the page cache is filled.
        run(mix, workers)
    rng = random.Random(mix.name)
    for number in range(size.rounds):
        for workers in rng.sample(numbers, len(numbers)):
            rates[workers].append(run(mix, workers))
        print(f"{mix.name}: round {number + 1} of {size.rounds}", file=sys.stderr)
    return rates


def over(mix: Mix, rival: int | str) -> Sequence[float]:
    """What auto reaches of the rival's rate, in runs one right after the other; who comes first
    changes."""
    ratios = []
    for number in range(mix.pairs):
        order = (AUTO, rival) if number % 2 == 0 else (rival, AUTO)
        rates = {workers: run(mix, workers) for workers in order}
        ratios.append(rates[AUTO] / rates[rival])
    return ratios


def row_of(mix: Mix, workers: int | str, rates: Sequence[float]) -> dict[str, Any]:
    return {
        "mix": mix.name,
        "workers": str(workers),
        "median_tokens_per_s": round(statistics.median(rates)),
        "least": round(min(rates)),
        "most": round(max(rates)),
    }


def measure(place: Path, size: Size) -> dict[str, Any]:
    makers: Sequence[Callable[[Path, Size], Mix]] = (text_mix, picture_mix, python_mix)
    rows: list[dict[str, Any]] = []
    figures: dict[str, float] = {}
    for make in makers:
        mix = make(place, size)
        rates = sweep(mix, size)
        by_rate = sorted(size.workers, key=lambda of: statistics.median(rates[of]), reverse=True)
        compared = {rival: over(mix, rival) for rival in by_rate[:FINALISTS]}
        ratios = {rival: statistics.median(of) for rival, of in compared.items()}
        figures[f"partition_over_best_{mix.name}"] = min(ratios.values())
        for workers, of in rates.items():
            row = row_of(mix, workers, of)
            if workers in ratios:
                row["auto_over_it"] = round(ratios[workers], 3)
            rows.append(row)
        shutil.rmtree(mix.folder)
    figures["bars_missed"] = report(BARS, figures)
    return {"figures": figures, "rows": rows}


def main(arguments: Sequence[str]) -> None:
    folder = ROOT / "build" / f"partition.{os.getpid()}"
    try:
        document = measure(folder, QUICK if "--quick" in arguments else Size())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    json.dump(document, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
