# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/v1 with the build at hand: `.venv/bin/python tests/golden/make.py FOLDER`.

What is committed there was made once, and is frozen: every later build reads it, and goes on with
it as the build that wrote it would have (tests/golden_test.py). Another format version gets a
folder of its own, beside this one.

    stream/    everything that a stream can hold (cli/sample_stream_testing.cc)
    pipeline/  two sources, their sidecar indexes, and the first steps of `batchloom run`
    expected.json
    states.json  states of consumers, by their version, and what the steps' arrays were: those of
                 version 1 are of a build that wrote no other
"""

import hashlib
import json
import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "dev"
COMMITTED_STEPS = 3
ALL_STEPS = 6

PIPELINE = """
seed = 17
[store]
url = "./stream"
lead_steps = "unlimited"
[topology]
axes = "dp=2"
capacity = 128
[step]
tokens = 256
max_sample_tokens = 64
[tokens]
tokenizer = "bytes"
vocab = 300
end = [299]
[balance]
strategy = "none"
[[source]]
name = "docs"
files = ["docs.jsonl"]
weight = [{ step = 0, value = 0.7 }, { step = 4, value = 0.4 }]
[[source]]
name = "ids"
files = ["ids.bin"]
weight = 0.3
exhausted = "repeat"
"""


def command(*arguments: object) -> str:
    line = [str(BUILD / "batchloom"), *map(str, arguments)]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout


def rows(*arguments: object) -> list[dict]:
    return [json.loads(line) for line in command(*arguments, "--json").splitlines()]


def write_sources(folder: Path) -> None:
    rng = random.Random(1)
    with (folder / "docs.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for _ in range(40):
            text = " ".join(rng.choice(("ein", "два", "three")) for _ in range(rng.randrange(30)))
            file.write(json.dumps({"text": text}) + "\n")
        file.write("{}\n")  # A bad record: it has no text.
    documents = [[rng.randrange(300) for _ in range(rng.randrange(1, 90))] for _ in range(8)]
    sizes = [len(ids) for ids in documents]
    starts = [2 * sum(sizes[:i]) for i in range(len(sizes))]
    ids = [token for document in documents for token in document]
    (folder / "ids.bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))
    count = len(documents)
    (folder / "ids.idx").write_bytes(
        struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, 8, count, count + 1)
        + struct.pack(f"<{count}i{count}q{count + 1}q", *sizes, *starts, *range(count + 1))
    )


def hashes_of(stream: Path, ranks: int) -> list[list[str]]:
    """By rank, a line for each step that is left."""
    lines = []
    for rank in range(ranks):
        steps = json.loads(command("store", "show", stream, "--json"))["next_step"]
        out = command("consume", stream, f"--rank={rank}", f"--steps={steps}", "--hashes=-")
        lines.append([line for line in out.splitlines() if line.startswith("step=")])
    return lines


def samples_of(stream: Path, steps: int) -> list[list[str]]:
    """By step, its samples."""
    shown = [json.loads(command("store", "show", stream, f"--step={n}", "--json"))
             for n in range(steps)]
    return [sorted({piece["sample"] for piece in step["pieces"]}) for step in shown]


def arrays_hash(batch) -> str:
    """Of all that a trainer computes with."""
    digest = hashlib.sha256()
    for mb in batch.micro_batches:
        for array in (mb.tokens, mb.labels, mb.positions, mb.cu_seqlens):
            digest.update(array.tobytes())
    return digest.hexdigest()


def states_of(stream: Path, ranks: int) -> dict:
    """After each committed step; and by rank, its arrays. Leaves cursors in the stream."""
    sys.path.insert(0, str(BUILD / "python"))
    import batchloom as bl

    arrays: list[list[str]] = []
    states: list[str] = []
    for rank in range(ranks):
        with bl.Consumer(stream, rank=rank, world_size=ranks, group="golden", start=0) as data:
            batches = [next(data) for _ in range(COMMITTED_STEPS)]
            arrays.append([arrays_hash(batch) for batch in batches])
            states = [batch.state.decode() for batch in batches]  # Those of all ranks are equal.
    return {"states": {states[0].split(" ")[1]: states}, "arrays": arrays}


def make(folder: Path) -> None:
    folder.mkdir()
    subprocess.run([str(BUILD / "batchloom_sample_stream"), str(folder / "stream")], check=True)
    shutil.rmtree(folder / "stream" / ".lock")
    pipeline = folder / "pipeline"
    pipeline.mkdir()
    write_sources(pipeline)
    (pipeline / "p.toml").write_text(PIPELINE, encoding="utf-8")
    run = ("run", pipeline / "p.toml", "--store", pipeline / "stream", "--fsync=none")
    command(*run, f"--steps={COMMITTED_STEPS}")
    other = folder.with_name(folder.name + "-other")  # Goes on, and is not kept.
    shutil.copytree(pipeline, other)  # With the times of its files.
    command("run", other / "p.toml", "--store", other / "stream", f"--steps={ALL_STEPS}")
    shutil.rmtree(pipeline / "stream" / ".lock", ignore_errors=True)
    shutil.rmtree(pipeline / ".blidx.tmp", ignore_errors=True)
    expected = {
        "stream": {
            "head": json.loads(command("store", "show", folder / "stream", "--json")),
            "objects": rows("store", "ls", folder / "stream"),
            "hashes": hashes_of(folder / "stream", 1),
        },
        "pipeline": {
            "changed_ns": {
                file.name: file.stat().st_mtime_ns for file in sorted(pipeline.glob("*.[jbi]*"))
            },
            "hashes": hashes_of(pipeline / "stream", 2),
            "samples": samples_of(other / "stream", ALL_STEPS),
        },
    }
    shutil.copytree(pipeline / "stream", other / "read")
    for name, content in (("expected", expected), ("states", states_of(other / "read", 2))):
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]).resolve())
