# SPDX-License-Identifier: Apache-2.0
"""Shards of every format that cannot be read, hold nothing, or hold records that are of no use:
what is said, and what the committed state shows."""

import io
import json
import re
import shutil
import struct
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_test import DONE, FAILED, run, succeed_json, succeed_rows
from shards import every_format, writers
from source_faults_test import folder, goes_on_exactly, hashes_of, pristine, shards_of

__all__ = ["folder", "pristine"]  # Fixtures.

Pristine = tuple[Path, list[dict]]
SHARDED = [source for source in every_format.SOURCES if source != "tree"]  # Of many records.
NUMBERS = {source: number for number, source in enumerate(every_format.SOURCES)}


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def write_as_utf_16(path: Path) -> None:
    path.write_bytes(path.read_text(encoding="utf-8").encode("utf-16"))


def refused(folder: Path, *options: str) -> str:
    done = run("run", folder / "p.toml", "--fsync=none", "--lead=unlimited", *options)
    assert done.returncode == FAILED, done.stderr
    return done.stderr


@pytest.mark.parametrize("source", SHARDED)
def test_a_shard_that_cannot_be_read_is_refused_by_name(
    pristine: Pristine, folder: Path, source: str
) -> None:
    """Be it at the begin of a stream or later. Text that is cut is text still."""
    done = run("run", folder / "p.toml", "--fsync=none", "--steps=2")
    assert done.returncode == DONE, done.stderr
    path = shards_of(folder, source)[-1]
    shutil.copy2(path, folder / "kept")
    (write_as_utf_16 if source == "plain" else cut)(path)
    said = refused(folder, f"--store={folder / 'fresh'}")
    # Megatron's data set has an index still: of its file of places.
    met = "loading step 0" if source == "ids" else f"indexing {path}"
    assert said.splitlines()[-1].startswith(f"batchloom: corruption: {met}: {path}: ")
    if source == "ids":
        assert succeed_json("store", "show", folder / "fresh")["next_step"] == 0
    else:
        assert not (folder / "fresh").exists()
    said = refused(folder)
    assert f"indexing {path}: " in said or f'  source.{source}.file."{path.name}": ' in said
    assert succeed_json("store", "show", folder / "stream")["next_step"] == 2
    assert hashes_of(folder / "stream", "--steps=2") == pristine[1][:2]
    shutil.copy2(folder / "kept", path)
    goes_on_exactly(folder, pristine[1])


def write_nothing(folder: Path, source: str) -> None:
    """In its format, instead of all its records."""
    if source == "ids":
        writers.write_megatron(folder / "data" / "ids", [])
    for path in shards_of(folder, source):
        if path.suffix == ".parquet":
            pq.write_table(pq.read_table(path).slice(0, 0), path)
        elif source in every_format.WRITE:
            stem = path.with_name(path.name.partition(".")[0])
            path.unlink()
            every_format.WRITE[source](stem, [])
            assert path.exists()


@pytest.mark.parametrize("source", SHARDED)
def test_steps_are_made_without_a_source_that_holds_nothing(folder: Path, source: str) -> None:
    write_nothing(folder, source)
    options = ("--fsync=none", "--lead=unlimited", "--steps=2")
    done = run("run", folder / "p.toml", *options)
    assert done.returncode == DONE, done.stderr
    drawn = set()
    for step in range(2):
        shown = succeed_json("store", "show", folder / "stream", f"--step={step}")
        drawn |= {piece["source"] for piece in shown["pieces"]}
    assert drawn == every_format.SOURCES.keys() - {source}


def documents_with_too_large_ids(folder: Path) -> set[tuple[int, int]]:
    index, ids = (folder / "data" / f"ids.{ending}" for ending in ("idx", "bin"))
    (count,) = struct.unpack_from("<Q", index.read_bytes(), 18)
    lengths = struct.unpack_from(f"<{count}i", index.read_bytes(), 34)
    content, found, at = ids.read_bytes(), set(), 0
    for number, length in enumerate(lengths):
        if max(struct.unpack_from(f"<{length}H", content, 2 * at)) >= every_format.VOCAB:
            found.add((NUMBERS["ids"], number))
        at += length
    return found


def cut_pictures(folder: Path, source: str) -> set[tuple[int, int]]:
    """PNG that do not come to their end."""
    pictures: list[bytes] = []
    for path in shards_of(folder, source):
        if path.suffix == ".parquet":
            rows = pq.read_table(path, columns=["image"]).to_pylist()
            pictures += [row["image"]["bytes"] for row in rows]
            continue
        with tarfile.open(path) as tar:
            members = [m for m in tar.getmembers() if m.name.endswith(".png")]
            pictures += [tar.extractfile(member).read() for member in members]
    return {
        (NUMBERS[source], number)
        for number, picture in enumerate(pictures)
        if picture.startswith(b"\x89PNG") and b"IEND" not in picture[-12:]
    }


def struck_in(stream: Path) -> list[tuple[int, int]]:
    """Of the newest committed state, as docs/formats/pipeline_state.md has it; a head holds it, or,
    where it is large, an object of its own."""
    head = max((stream / "m").iterdir()).read_bytes()
    objects = sorted(stream.rglob("*.state"), key=lambda path: path.name)
    content = head if b"BLPS" in head else objects[-1].read_bytes()
    state = content[content.index(b"BLPS") :]
    (count,) = struct.unpack_from("<I", state, 22)
    return [struct.unpack_from("<IQ", state, 26 + 12 * i) for i in range(count)]


def drawn_in(stream: Path, steps: int) -> set[tuple[int, int]]:
    """Source and number of the records that steps hold parts of."""
    drawn = set()
    for step in range(steps):
        for piece in succeed_json("store", "show", stream, f"--step={step}")["pieces"]:
            source, _, record, _ = map(int, piece["sample"].split(":"))
            drawn.add((source, record))
    return drawn


def test_what_turned_out_to_be_bad_is_in_the_committed_state(
    pristine: Pristine, folder: Path
) -> None:
    """An id that is too large, and pictures that do not decode: whatever step met them, and also
    for a run that goes on."""
    bad = documents_with_too_large_ids(folder)
    bad |= cut_pictures(folder, "pictures_tar") | cut_pictures(folder, "pictures_parquet")
    assert len(bad) == 1 + 2 * every_format.SHARDS
    struck: list[tuple[int, int]] = []
    places: list[tuple[str, str]] = []
    for end in (1, 3, len(pristine[1])):
        options = ("--fsync=none", "--lead=unlimited", f"--steps={end}", "--json")
        done = run("run", folder / "p.toml", *options)
        assert done.returncode == DONE, done.stderr
        before, struck = struck, struck_in(folder / "stream")
        assert struck == sorted(struck)
        assert {*before} <= {*struck} <= bad
        assert json.loads(done.stdout)["struck_records"] == len(struck)
        assert done.stderr.count("struck out, and replaced by") == len(struck) - len(before)
        places += re.findall(r"record (\d+) at offset (\d+): its picture", done.stderr)
    assert len(places) == 2 * every_format.SHARDS
    assert all(offset != "0" or record == "0" for record, offset in places), "where it lies is told"
    assert {*struck} == bad, "all of them were met"
    drawn = drawn_in(folder / "stream", len(pristine[1]))
    assert not drawn & bad
    assert {source for source, _ in drawn} == {*NUMBERS.values()}
    assert hashes_of(folder / "stream") == pristine[1]


NOT_UTF_8 = b"\xff\xfe\xfd of no text"


def add_what_is_no_text(folder: Path, source: str) -> None:
    """A record more, behind all others."""
    path = shards_of(folder, source)[-1]
    if source == "tree":
        path = path.with_name("9999.py")
        path.write_bytes(b"x = 1\n" + NOT_UTF_8)
    elif source == "plain":
        path.write_bytes(path.read_bytes() + b'{"text": "' + NOT_UTF_8 + b'"}\n')
    elif path.suffix == ".gz" and source == "gzip":
        line = b'{"q": "a", "a": "' + NOT_UTF_8 + b'"}\n'
        path.write_bytes(path.read_bytes() + writers.compressed(writers.GZIP, line))
    elif path.suffix == ".zst" and source in ("zstd", "frames"):
        line = b'{"text": "' + NOT_UTF_8 + b'", "q": "a", "a": "b"}\n'
        path.write_bytes(path.read_bytes() + writers.compressed(writers.ZSTD, line))
    elif path.suffix == ".parquet":
        add_row_that_is_no_text(path)
    elif source in ("tar_gzip", "tar_zstd"):
        command = writers.GZIP if source == "tar_gzip" else writers.ZSTD
        tar = path.with_suffix("")
        tar.write_bytes(writers.compressed((*command, "-d"), path.read_bytes()))
        add_members_that_are_no_text(tar)
        path.write_bytes(writers.compressed(command, tar.read_bytes()))
        tar.unlink()
    else:
        add_members_that_are_no_text(path)


def add_members_that_are_no_text(path: Path) -> None:
    with tarfile.open(path, "a") as tar:
        for name, content in (("image.png", b""), ("text.txt", NOT_UTF_8)):
            member = tarfile.TarInfo(f"9999.{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def add_row_that_is_no_text(path: Path) -> None:
    table = pq.read_table(path)
    row = table.slice(0, 1)
    for number, field in enumerate(table.schema):
        if field.type == pa.string():
            # Nobody looks at what is seen as text.
            column = pa.array([NOT_UTF_8], pa.binary()).view(pa.string())
            row = row.set_column(number, field, column)
    pq.write_table(pa.concat_tables([table, row]), path)


TEXT_SOURCES = [name for name in NUMBERS if name != "ids"]


@pytest.mark.parametrize("source", TEXT_SOURCES)
def test_a_record_that_is_not_utf_8_is_left_out_and_named(folder: Path, source: str) -> None:
    def row_of_source() -> dict:
        rows = succeed_rows("index", folder / "p.toml")
        (row,) = [row for row in rows if row.get("source") == source]
        return row

    before = row_of_source()
    add_what_is_no_text(folder, source)
    after = row_of_source()
    assert after["records"] == before["records"] + 1
    assert after["bad_records"] == before["bad_records"] + 1
    assert after["tokens"] == before["tokens"]
    steps = 20  # More than a pass over it.
    done = run("run", folder / "p.toml", "--fsync=none", "--lead=unlimited", f"--steps={steps}")
    assert done.returncode == DONE, done.stderr
    assert f"source '{source}': {after['bad_records']} bad records are left out" in done.stderr
    bad = (NUMBERS[source], after["records"] - 1)
    drawn = drawn_in(folder / "stream", steps)
    assert bad not in drawn
    assert (bad[0], bad[1] - 1) in drawn, "its neighbour is there"
