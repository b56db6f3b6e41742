# SPDX-License-Identifier: Apache-2.0
"""The same records give every rank the same tensors, whatever format their files have."""

import random
import shutil
import sys
from pathlib import Path

import batchloom as bl
import pytest
from conftest import Run
from shards.every_format import MODULE
from shards.writers import WRITERS, Records, Write, write_plain, write_tree

RANKS = 4
PIPELINE = """
seed = 5
[store]
url = "./stream"
lead_steps = "unlimited"
[topology]
axes = "dp=4"
capacity = 512
[step]
tokens = 4096
max_sample_tokens = 256
[tokens]
tokenizer = "bytes"
vocab = 300
end = [299]
[[source]]
name = "docs"
files = ["docs-*"]
order = "{order}"
weight = 0.7
exhausted = "drop"
[[source]]
name = "chats"
files = ["chats.*"]
fields = {{ prompt = "q", answer = "a" }}
order = "{order}"
weight = 0.3
exhausted = "drop"
"""

def records_of(rng: random.Random, count: int, *fields: str) -> Records:
    def text() -> str:
        return "".join(rng.choice("abcdefgh \u00e4\u20ac\n") for _ in range(rng.randrange(500)))

    return [{field: text() for field in fields} for _ in range(count)]


def write_sources(folder: Path, write: Write) -> None:
    rng = random.Random(11)
    for shard in range(2):
        write(folder / f"docs-{shard}", records_of(rng, 40, "text"))
    write(folder / "chats", records_of(rng, 30, "q", "a"))


def pipeline_for(name: str, order: str) -> str:
    """Fields of a tar are its members' endings."""
    text = PIPELINE.format(order=order)
    if name.startswith("tar"):
        text = text.replace('"q"', '"q.txt"').replace('"a"', '"a.txt"')
        docs = 'files = ["docs-*"]'
        text = text.replace(docs, docs + '\nfields = { text = "text.txt" }')
    return text


def tensors(stream: Path) -> list[list[tuple[bytes, ...]]]:
    """Of each rank: of each micro-batch, in order, what a trainer gets."""
    ranks = []
    for rank in range(RANKS):
        with bl.Consumer(stream, rank=rank, world_size=RANKS, start=0) as data:
            ranks.append([
                tuple(a.tobytes() for a in (mb.tokens, mb.labels, mb.positions, mb.cu_seqlens))
                for batch in data
                for mb in batch.micro_batches
            ])
    return ranks


def run_pipeline(run: Run, folder: Path, text: str) -> list[list[tuple[bytes, ...]]]:
    (folder / "p.toml").write_text(text, encoding="utf-8")
    run("run", folder / "p.toml", "--fsync=none")
    return tensors(folder / "stream")


@pytest.mark.parametrize("order", ["file", "random"])
def test_every_format_gives_every_rank_the_same_tensors(
    run: Run, tmp_path: Path, order: str
) -> None:
    given = {}
    for name, write in WRITERS.items():
        folder = tmp_path / name
        folder.mkdir()
        write_sources(folder, write)
        given[name] = run_pipeline(run, folder, pipeline_for(name, order))
    assert len(given["plain"][0]) > 5
    for name, of_format in given.items():
        assert of_format == given["plain"], name


def with_function(text: str) -> str:
    call = '{ kind = "python", function = "tok:encode" }'
    return text.replace('tokenizer = "bytes"', f"tokenizer = {call}")


@pytest.mark.parametrize("order", ["file", "random"])
def test_a_function_of_python_gives_the_same_for_every_format(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setenv("BATCHLOOM_PYTHON", sys.executable)
    given = {}
    for name in ("bytes", *WRITERS):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "tok.py").write_text(MODULE)
        write_sources(folder, WRITERS.get(name, write_plain))
        text = pipeline_for(name, order)
        given[name] = run_pipeline(run, folder, text if name == "bytes" else with_function(text))
    assert len(given["bytes"][0]) > 5
    for name, of_format in given.items():
        assert of_format == given["bytes"], name


@pytest.mark.parametrize("order", ["file", "random"])
def test_a_tree_of_files_gives_what_lines_give(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setenv("BATCHLOOM_PYTHON", sys.executable)
    docs_only = PIPELINE.format(order=order).partition('[[source]]\nname = "chats"')[0]
    rng = random.Random(12)
    records = records_of(rng, 120, "text")
    given = []
    for write, files in ((write_plain, '"docs-*"'), (write_tree, '"docs-*/**/*.py"')):
        folder = tmp_path / write.__name__
        folder.mkdir()
        write(folder / "docs-0", records[:70])
        write(folder / "docs-1", records[70:])
        text = docs_only.replace('"docs-*"', files)
        if write is write_tree:
            text += 'format = "text"\n'
        given.append(run_pipeline(run, folder, text))
        (folder / "tok.py").write_text(MODULE)
        shutil.rmtree(folder / "stream")
        given.append(run_pipeline(run, folder, with_function(text)))
    assert len(given[0][0]) > 3
    assert all(of_files == given[0] for of_files in given)
