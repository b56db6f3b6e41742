# SPDX-License-Identifier: Apache-2.0
"""Sources of every format, and of pictures, for one pipeline. They have what real ones have, too:
records that are longer than a sample may be, bad records that an index knows of, and bad ones that
are found when they are loaded (ids of Megatron, and pictures that end too early)."""

import random
from dataclasses import dataclass
from pathlib import Path

from shards.writers import (
    Records,
    Write,
    png,
    write_frames,
    write_megatron,
    write_members,
    write_parquet,
    write_plain,
    write_tar,
    write_tar_gzip,
    write_tar_zstd,
    write_tree,
    write_zstd,
)

VOCAB = 300
END = 299
PATCH = 298  # The token that stands for a part of a picture.
SHARDS = 2  # Of a source,
RECORDS = 24  # and of a shard.
FILES = 6  # Of a tree.
LONG_TEXT = 3000
CELL_PX = 8

TOKENS = """
[tokens]
tokenizer = {tokenizer}
vocab = 300
end = [299]

[image]
patch = 4
merge = 2
max_patches = 64
token = 298
"""
TOKENIZERS = {
    "bytes": '"bytes"',
    "python": '{ kind = "python", function = "letters:encode" }',
}
# What "bytes" does.
MODULE = '''\
def encode(records):
    if isinstance(records[0], str):
        return [list(text.encode()) for text in records]
    return [of_pair(**pair) for pair in records]


def of_pair(prompt, answer):
    asked, answered = prompt.encode(), answer.encode()
    return [*asked, *answered], [0] * len(asked) + [1] * len(answered)
'''


@dataclass(frozen=True)
class Source:
    files: str
    shards: int  # Files that have an index.
    fields: str = ""
    format: str = ""
    weight: float = 0.08

    def to_toml(self, name: str, folder: str, weight: float) -> str:
        text = f'\n[[source]]\nname = "{name}"\nfiles = "{folder}/{self.files}"\n'
        text += f"fields = {{ {self.fields} }}\n" if self.fields else ""
        text += f'format = "{self.format}"\n' if self.format else ""
        return text + f'weight = {weight}\nexhausted = "repeat"\n'


PAIRS = 'prompt = "q", answer = "a"'
SOURCES: dict[str, Source] = {
    "plain": Source("plain-*.jsonl", SHARDS, weight=0.1),
    "gzip": Source("gzip-*.jsonl.gz", SHARDS, PAIRS),
    "zstd": Source("zstd-*.jsonl.zst", SHARDS),
    "frames": Source("frames-*.jsonl.zst", SHARDS, PAIRS),
    "parquet": Source("parquet-*.parquet", SHARDS, PAIRS),
    "tar": Source("tar-*.tar", SHARDS, 'text = "text.txt"'),
    "tar_gzip": Source("tar_gzip-*.tar.gz", SHARDS, 'prompt = "q.txt", answer = "a.txt"'),
    "tar_zstd": Source("tar_zstd-*.tar.zst", SHARDS, 'text = "text.txt"'),
    "tree": Source("tree/**/*.py", FILES, format="text"),
    "ids": Source("ids.bin", 1, weight=0.1),
    "pictures_tar": Source("pictures_tar-*.tar", SHARDS, 'image = "image.png", text = "text.txt"'),
    "pictures_parquet": Source(
        "pictures_parquet-*.parquet", SHARDS, 'image = "image.bytes", text = "text"'
    ),
}
WRITE: dict[str, Write] = {
    "plain": write_plain,
    "gzip": write_members,
    "zstd": write_zstd,
    "frames": write_frames,
    "parquet": write_parquet,
    "tar": write_tar,
    "tar_gzip": write_tar_gzip,
    "tar_zstd": write_tar_zstd,
    "pictures_tar": write_tar,
    "pictures_parquet": write_parquet,
}


def to_toml(folder: str, tokenizer: str, weights: dict[str, float] | None = None) -> str:
    """[tokens], [image], and a [[source]] for each format, whose files lie in `folder`."""
    sources = [
        source.to_toml(name, folder, (weights or {}).get(name, source.weight))
        for name, source in SOURCES.items()
    ]
    return TOKENS.format(tokenizer=TOKENIZERS[tokenizer]) + "".join(sources)


def write_sources(folder: Path, seed: int) -> None:
    """The files of all sources; the same ones for the same seed. The module of the tokenizer
    belongs beside the pipeline: write_module()."""
    choice = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for name, write in WRITE.items():
        for shard in range(SHARDS):
            write(folder / f"{name}-{shard}", records_of(choice, name))
    write_tree(folder / "tree", [{"text": text_of(choice, 200)} for _ in range(FILES)])
    write_megatron(folder / "ids", documents_of(choice))


def write_module(folder: Path) -> None:
    (folder / "letters.py").write_text(MODULE, encoding="utf-8")


def text_of(choice: random.Random, most: int) -> str:
    return "".join(choice.choices("abcdefgh \u00e4\u20ac\n", k=choice.randint(most // 2, most)))


def records_of(choice: random.Random, name: str) -> Records:
    """One of them is long, and one or two are bad."""
    if name.startswith("pictures"):
        return pictures_of(choice)
    fields = ("q", "a") if "q" in SOURCES[name].fields else ("text",)
    records: Records = [
        {field: text_of(choice, 200) for field in fields} for _ in range(RECORDS)
    ]
    records[choice.randrange(RECORDS)][fields[0]] = text_of(choice, LONG_TEXT)
    records.insert(choice.randrange(RECORDS), {"other": "has no text"})
    return records


def pictures_of(choice: random.Random) -> Records:
    """One is cut, which its header does not tell, and one is none."""
    pairs: Records = []
    for _ in range(RECORDS):
        width, height = (CELL_PX * choice.randint(1, 4) for _ in range(2))
        picture = png(width, height, choice.randbytes(3 * width * height))
        pairs.append({"image": picture, "text": text_of(choice, 60)})
    cut, none = choice.sample(pairs, 2)
    cut["image"] = cut["image"][:-20]
    none["image"] = b"GIF89a" + none["image"]
    return pairs


def documents_of(choice: random.Random) -> list[list[int]]:
    """One has an id that is too large."""
    documents = [
        [choice.randrange(VOCAB) for _ in range(choice.randint(1, 400))] for _ in range(2 * RECORDS)
    ]
    document = choice.choice(documents)
    document[choice.randrange(len(document))] = VOCAB
    return documents
