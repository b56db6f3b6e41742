# SPDX-License-Identifier: Apache-2.0
"""The same records in every format. A record is a text or a picture by field."""

import json
import struct
import subprocess
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shards import megatron

Records = list[dict[str, Any]]
Write = Callable[[Path, Records], None]
"""Writes a shard. Of its path the format's ending is missing."""

GZIP = ("gzip", "-n")
ZSTD = ("zstd", "-q")


def lines_of(records: Records) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def compressed(command: tuple[str, ...], content: bytes) -> bytes:
    return subprocess.run(command, input=content, capture_output=True, check=True).stdout


def in_halves(command: tuple[str, ...], content: bytes) -> bytes:
    """Two members, or frames, cut within a line."""
    half = len(content) // 2 + 1
    return compressed(command, content[:half]) + compressed(command, content[half:])


def write_plain(path: Path, records: Records) -> None:
    Path(f"{path}.jsonl").write_bytes(lines_of(records))


def write_gzip(path: Path, records: Records) -> None:
    Path(f"{path}.jsonl.gz").write_bytes(compressed(GZIP, lines_of(records)))


def write_members(path: Path, records: Records) -> None:
    Path(f"{path}.jsonl.gz").write_bytes(in_halves(GZIP, lines_of(records)))


def write_zstd(path: Path, records: Records) -> None:
    Path(f"{path}.jsonl.zst").write_bytes(compressed(ZSTD, lines_of(records)))


def write_frames(path: Path, records: Records) -> None:
    Path(f"{path}.jsonl.zst").write_bytes(in_halves(ZSTD, lines_of(records)))


def write_tar(path: Path, records: Records) -> None:
    """A member a field, with names that need headers of their own: `text.txt`, `image.png`."""
    with tempfile.TemporaryDirectory() as folder:
        members = []
        for number, record in enumerate(records):
            for field, content in record.items():
                is_text = isinstance(content, str)
                ending = "txt" if is_text else "png"
                name = f"{number:04}{'-long' * (number % 3 * 20)}.{field}.{ending}"
                (Path(folder) / name).write_bytes(content.encode() if is_text else content)
                members.append(name)
        command = ["tar", "-C", folder, "-cf", f"{path}.tar", "-T", "-"]
        command += ["--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--mode=0644"]
        subprocess.run(command, input="\n".join(members).encode(), check=True)


def write_tar_gzip(path: Path, records: Records) -> None:
    write_tar(path, records)
    subprocess.run([*GZIP, f"{path}.tar"], check=True)


def write_tar_zstd(path: Path, records: Records) -> None:
    write_tar(path, records)
    subprocess.run([*ZSTD, "--rm", f"{path}.tar"], check=True)


def write_parquet(path: Path, records: Records) -> None:
    """Several row groups, and pages of a few records. Pictures are structs, as data sets of
    Hugging Face have them: `image.bytes`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def cell(content: Any) -> Any:
        return {"bytes": content, "path": None} if isinstance(content, bytes) else content

    columns = dict.fromkeys(field for record in records for field in record)
    rows = [{field: cell(record.get(field)) for field in columns} for record in records]
    pq.write_table(pa.Table.from_pylist(rows), f"{path}.parquet", row_group_size=17,
                   data_page_size=700, write_batch_size=3, compression="zstd")  # fmt: skip


def write_tree(path: Path, records: Records) -> None:
    """A file a record, and beside them what a pattern does not name."""
    for number, record in enumerate(records):
        folder = path / f"{number // 7:02}" / "inner"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:04}.py").write_text(record["text"], encoding="utf-8", newline="")
        (folder / f".{number:04}.py").write_text("hidden")
        (folder / "notes.rst").write_text("of another kind")
    (path / "loop").symlink_to(".")


LINES: dict[str, Write] = {
    "plain": write_plain,
    "gzip": write_gzip,
    "gzip_members": write_members,
    "zstd": write_zstd,
    "zstd_frames": write_frames,
}
TARS: dict[str, Write] = {
    "tar": write_tar,
    "tar_gzip": write_tar_gzip,
    "tar_zstd": write_tar_zstd,
}
WRITERS: dict[str, Write] = {**LINES, "parquet": write_parquet, **TARS}
"""Of shards with any fields; a tree of files has texts only."""


def write_megatron(path: Path, documents: list[list[int]]) -> None:
    """A data set of 16-bit ids, with one sequence for each document."""
    ids = [number for document in documents for number in document]
    Path(f"{path}.bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))
    Path(f"{path}.idx").write_bytes(megatron.index_of([len(document) for document in documents]))


def png(width: int, height: int, pixels: bytes) -> bytes:
    """8-bit RGB, line by line."""
    rows = (pixels[3 * width * y : 3 * width * (y + 1)] for y in range(height))
    return b"\x89PNG\r\n\x1a\n" + b"".join([
        png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        png_chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))),
        png_chunk(b"IEND", b""),
    ])


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
