# SPDX-License-Identifier: Apache-2.0
"""Pipelines of Parquet: what pyarrow writes, what the command counts of it, and what it refuses."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_test import fail, succeed_json, succeed_rows

PIPELINE = """seed = 1
[store]
url = "./stream"
[topology]
axes = "dp=1"
capacity = 512
[step]
tokens = 1024
max_sample_tokens = 512
[tokens]
tokenizer = "bytes"
vocab = 300
[[source]]
name = "docs"
files = ["docs-*.parquet"]
fields = { text = "meta.text" }
"""
TEXTS = [f"{'Text' * (i % 7)} number {i}" for i in range(60)]


def table(texts: list[str | None]) -> pa.Table:
    meta = pa.array([{"id": i, "text": text} for i, text in enumerate(texts)])
    return pa.table({"meta": meta, "other": ["not read"] * len(texts)})


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """Of two shards with three row groups each, and one without rows."""
    for shard in range(2):
        part = table(TEXTS[shard * 30 : shard * 30 + 30])
        pq.write_table(part, tmp_path / f"docs-{shard}.parquet", row_group_size=11,
                       compression="zstd", write_page_checksum=True)  # fmt: skip
    pq.write_table(table([]).cast(table(["a"]).schema), tmp_path / "docs-2.parquet")
    (tmp_path / "p.toml").write_text(PIPELINE, encoding="utf-8")
    return tmp_path / "p.toml"


def shards_of(pipeline: Path) -> list[dict]:
    return [row for row in succeed_rows("index", pipeline) if "shard" in row]


def test_an_index_counts_what_the_tables_hold(pipeline: Path) -> None:
    shards = shards_of(pipeline)
    assert [shard["records"] for shard in shards] == [30, 30, 0]
    assert sum(shard["tokens"] for shard in shards) == sum(len(text) for text in TEXTS)
    assert shards_of(pipeline) == [], "all are indexed"


def test_rows_without_a_text_are_bad_records(pipeline: Path) -> None:
    pq.write_table(table(["a", None, "b"]), pipeline.with_name("docs-3.parquet"))
    assert [shard["bad_records"] for shard in shards_of(pipeline)] == [0, 0, 0, 1]


def test_lengths_are_those_of_the_texts(pipeline: Path) -> None:
    longest = max(len(text) for text in TEXTS)
    files = f"--lengths={pipeline.with_name('docs-[01].parquet')}"
    told = succeed_json("plan", "explain", files, "--tokenizer=bytes", "--field=meta.text")
    assert told["tokens"] == sum(len(text) for text in TEXTS)
    assert told["longest_sample"] == longest
    assert not list(pipeline.parent.glob("*.blidx")), "a question leaves nothing beside the data"
    shards_of(pipeline)
    told = succeed_json("plan", "explain", f"--lengths={pipeline}")
    assert told["longest_sample"] == longest


def cut(shard: Path) -> None:
    shard.write_bytes(shard.read_bytes()[:-9])


def change_a_page(shard: Path) -> None:
    group = pq.read_metadata(shard).row_group(2)
    chunk = next(c for c in map(group.column, range(3)) if c.path_in_schema == "meta.text")
    content = bytearray(shard.read_bytes())
    content[chunk.data_page_offset - 5] ^= 1  # Of its dictionary.
    shard.write_bytes(content)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut": (cut, "its footer cannot be read"),
    "of another format": (lambda shard: shard.write_text('{"text": "a"}\n' * 9), "magic bytes"),
    "empty": (lambda shard: shard.write_bytes(b""), "its footer cannot be read"),
    "changed": (change_a_page, "row group 2: column 'meta.text' cannot be read"),
    "without the column": (
        lambda shard: pq.write_table(pa.table({"text": TEXTS}), shard),
        "it has no column 'meta.text'; it has text",
    ),
    "with another type": (
        lambda shard: pq.write_table(pa.table({"meta": [{"text": 1}]}), shard),
        "column 'meta.text' is INT64; expected a text",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_shard_that_is_none_is_refused_by_name(pipeline: Path, damage: str) -> None:
    shard = pipeline.with_name("docs-0.parquet")
    do_damage, why = DAMAGE[damage]
    do_damage(shard)
    for command in ("index", "run"):
        error = fail(command, pipeline)
        assert str(shard) in error
        assert why in error
