# SPDX-License-Identifier: Apache-2.0
"""`run --split`: whatever files the records lie in, each is of the same split."""

import gzip
import io
import json
import random
import subprocess
import tarfile
import zlib
from collections import Counter
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from pipeline_test import edit, folder, pieces_of, refusal, run_pipeline, text_of

__all__ = ["folder"]

AUTHORS = 25


def letters(count: int) -> list[dict[str, str]]:
    """Some of them twice."""
    rng = random.Random(3)
    texts = [text_of(rng, 200) + str(n % (count - 20)) for n in range(count - 20)]
    texts += texts[:20]
    return [{"author": f"a{hash_of(text) % AUTHORS}", "text": text} for text in texts]


def hash_of(text: str) -> int:
    return zlib.crc32(text.encode("utf-8"))


def write_jsonl(stem: Path, records: list[dict[str, str]]) -> str:
    lines = "".join(json.dumps(record) + "\n" for record in records)
    stem.with_suffix(".jsonl").write_text(lines, encoding="utf-8")
    return ".jsonl"


def write_gzip(stem: Path, records: list[dict[str, str]]) -> str:
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    stem.with_suffix(".jsonl.gz").write_bytes(gzip.compress(lines.encode("utf-8")))
    return ".jsonl.gz"


def write_zstd(stem: Path, records: list[dict[str, str]]) -> str:
    plain = stem.parent / (stem.name + write_jsonl(stem, records))
    subprocess.run(["zstd", "--rm", "-q", plain], check=True, timeout=60)
    return ".jsonl.zst"


def write_parquet(stem: Path, records: list[dict[str, str]]) -> str:
    columns = {key: [record[key] for record in records] for key in ("text", "author")}
    pyarrow.parquet.write_table(pyarrow.table(columns), stem.with_suffix(".parquet"))
    return ".parquet"


def write_tar(stem: Path, records: list[dict[str, str]]) -> str:
    with tarfile.open(stem.with_suffix(".tar"), "w") as tar:
        for number, record in enumerate(records):
            content = json.dumps(record).encode("utf-8")
            member = tarfile.TarInfo(f"{number:05}.json")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return ".tar"


WRITERS = {
    "jsonl": write_jsonl,
    "gzip": write_gzip,
    "zstd": write_zstd,
    "parquet": write_parquet,
    "tar": write_tar,
}


def texts_drawn(folder: Path, split: str, records: list[dict[str, str]]) -> Counter[str]:
    """What a run of the split trains on, its stream put away."""
    result = run_pipeline(f"--split={split}")
    drawn = {piece[1] for piece in pieces_of(folder, result["steps"])}
    (folder / "stream").rename(folder / f"stream-{len(list(folder.glob('stream-*')))}")
    return Counter(records[number]["text"] for number in drawn)


@pytest.mark.parametrize("how", sorted(WRITERS))
@pytest.mark.parametrize("by", ["content", "field"])
def test_splits_survive_other_files(folder: Path, how: str, by: str) -> None:
    records = letters(300)
    head = (folder / "p.toml").read_text(encoding="utf-8").split("[[source]]")[0]
    splits = []
    for layout, writer in (("before", write_jsonl), ("after", WRITERS[how])):
        in_files = []
        for number, part in enumerate([records[n::4] for n in range(4)]):
            if layout == "before":
                part = records[number * 75 : (number + 1) * 75]
            ending = writer(folder / f"{layout}-{number}", part)
            in_files += part
        of_tar = "json." if ending == ".tar" else ""
        rule = f'{{ field = "{of_tar}author" }}' if by == "field" else '"content"'
        (folder / "p.toml").write_text(
            f'{head}[[source]]\nname = "{layout}"\nfiles = "{layout}-*{ending}"\n'
            f'fields = {{ text = "{of_tar}text" }}\nexhausted = "drop"\n'
            f"split = {{ train = 3, valid = 1 }}\nsplit_by = {rule}\n",
            encoding="utf-8",
        )
        splits.append({split: texts_drawn(folder, split, in_files) for split in ("train", "valid")})
    assert splits[0] == splits[1]
    train, valid = splits[0]["train"], splits[0]["valid"]
    assert not train.keys() & valid.keys(), "no text is in both"
    assert train + valid == Counter(record["text"] for record in records)
    assert train.total() > 1.5 * valid.total() > 0
    if by == "field":
        author = {record["text"]: record["author"] for record in records}
        assert not {author[text] for text in train} & {author[text] for text in valid}


def test_a_stream_divided_by_number_goes_on_if_it_is_said(folder: Path) -> None:
    split = "split = { train = 3, valid = 1 }\n"
    edit(folder, "weight = 0.7\n", f'weight = 0.7\n{split}split_by = "number"\n')
    run_pipeline("--steps=2")
    edit(folder, 'split_by = "number"\n', "")
    assert 'source.docs.split_by: (nothing) -> "content"' in refusal()
    edit(folder, split, f'{split}split_by = "number"\n')
    assert run_pipeline("--steps=4")["next_step"] == 4
