# SPDX-License-Identifier: Apache-2.0
"""The shards of tests/fixtures are what their writers write."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pyarrow.parquet as pq

FIXTURES = Path(__file__).resolve().parent / "fixtures"


def test_shards_are_fresh(tmp_path: Path) -> None:
    subprocess.run([sys.executable, FIXTURES / "write_shards.py", tmp_path], check=True)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    stored = {path.name: path.read_bytes() for path in (FIXTURES / "shards").iterdir()}
    assert stored == written, "run python3 tests/fixtures/write_shards.py"


def content(path: Path) -> bytes:
    command = ["gzip" if path.suffix == ".gz" else "zstd", "-dc"]
    with path.open("rb") as file:
        return subprocess.run(command, stdin=file, capture_output=True, check=True).stdout


def test_compressed_shards_hold_what_was_compressed(tmp_path: Path) -> None:
    """Other versions of the commands may write other bytes."""
    subprocess.run([FIXTURES / "compress_shards.sh", tmp_path], check=True)
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == sorted(path.name for path in (FIXTURES / "compressed").iterdir())
    for name in written:
        shard = "empty.jsonl" if name.startswith("empty") else "text.jsonl"
        plain = (FIXTURES / "shards" / shard).read_bytes()
        assert content(tmp_path / name) == plain, name
        assert content(FIXTURES / "compressed" / name) == plain, name


def members(path: Path) -> list[tuple[str, int, bytes]]:
    """tarfile sees through gzip; zstd it does not know."""
    with tarfile.open(path) as file:
        return [
            (one.name, one.offset, file.extractfile(one).read() if one.isreg() else b"")
            for one in file.getmembers()
        ]


def test_tars_are_fresh(tmp_path: Path) -> None:
    """Other versions of tar may write other bytes around the same members."""
    subprocess.run([sys.executable, FIXTURES / "write_tars.py", tmp_path], check=True)
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == sorted(path.name for path in (FIXTURES / "tars").iterdir())
    for name in written:
        new, old = tmp_path / name, FIXTURES / "tars" / name
        if name.endswith(".records"):
            assert new.read_text() == old.read_text(), name
        elif name.endswith(".zst"):
            assert content(old) == old.with_suffix("").read_bytes(), name
        else:
            assert members(new) == members(old), name


def test_parquet_shards_hold_what_their_writer_writes(tmp_path: Path) -> None:
    """Other versions of pyarrow may write other bytes."""
    subprocess.run([sys.executable, FIXTURES / "write_parquet.py", tmp_path], check=True)
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == sorted(path.name for path in (FIXTURES / "parquet").iterdir())
    for name in written:
        stored, new = FIXTURES / "parquet" / name, tmp_path / name
        if new.suffix == ".parquet":
            assert pq.ParquetFile(stored).read().equals(pq.ParquetFile(new).read()), name
        else:
            assert stored.read_bytes() == new.read_bytes(), name


def test_ids_of_texts_are_those_of_sentencepiece() -> None:
    folder = FIXTURES / "sentencepiece"
    texts = (folder / "texts.txt").read_bytes()
    for model in ("unigram", "bpe"):
        command = ["spm_encode", f"--model={folder / model}.model", "--output_format=id"]
        done = subprocess.run(command, input=texts, capture_output=True, check=True)
        assert done.stdout == (folder / f"{model}.ids").read_bytes(), model
