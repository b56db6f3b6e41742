# SPDX-License-Identifier: Apache-2.0
"""Ids that lie in files: whether they are those of the texts that they were made of.

A Megatron data set holds no texts. So they are kept beside it, as NAME.jsonl.zst beside NAME.bin,
where no pipeline reads them.
"""

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

from quickstart.ids import encoder_of
from quickstart.shard_files import write_jsonl_zst, write_megatron
from quickstart.shards import documents_of_ids, rows_of

ENDING = ".jsonl.zst"
FIELDS = {"text": "text"}


def write_ids(path: Path, texts: Sequence[str], ids: Sequence[array]) -> None:
    """`path` is a .bin."""
    write_megatron(path, ids)
    write_jsonl_zst(path.with_suffix(ENDING), [{"text": text} for text in texts])


def faults_of_ids(folder: Path, pipeline: dict) -> Iterator[str]:
    """Of all Megatron data sets of a pipeline, which lies in `folder`: the first fault of each."""
    encode = encoder_of(folder, pipeline)
    for pattern in (pattern for table in pipeline["source"] for pattern in table["files"]):
        for path in sorted(folder.glob(pattern)) if pattern.endswith(".bin") else ():
            rows = rows_of(path.with_suffix(ENDING), FIELDS)
            made = encode([text for row in rows for text in row.texts])
            held = list(documents_of_ids(path))
            if len(made) != len(held):
                yield f"{path.name} has {len(held)} documents, made of {len(made)} texts"
            elif odd := [number for number, ids in enumerate(held) if ids != made[number]]:
                yield f"{path.name}: document {odd[0]} has other ids than its text"
