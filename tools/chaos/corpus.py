# SPDX-License-Identifier: Apache-2.0
"""Made-up shards for a pipeline: JSON Lines and a Megatron data set, with what real ones have too:
records that are longer than a sample may be, bad lines, and bad ids that no index knows of."""

import json
import random
from pathlib import Path

from shards.writers import write_megatron

SHARDS = 4
RECORDS = 40  # Of a shard.
LONG_RECORDS = 3
TEXT_MAX = 400
LONG_TEXT = 40_000  # Some 80 samples of a pipeline whose samples have 512 tokens.
BAD_LINES = ('{"text": 7}', "nonsense", '{"other": "no text"}')
VOCAB = 300
BAD_IDS = 3  # Megatron documents with an id that is too large: found when they are loaded.

PIPELINE = """
[tokens]
tokenizer = "bytes"
vocab = {vocab}
end = [{end}]

[[source]]
name = "docs"
files = ["data/docs-*.jsonl"]
weight = {docs_weight}
exhausted = "repeat"

[[source]]
name = "chats"
files = ["data/chats.jsonl"]
fields = {{ prompt = "q", answer = "a" }}
weight = 0.2
exhausted = "repeat"

[[source]]
name = "ids"
files = ["data/ids.bin"]
weight = 0.3
exhausted = "repeat"
"""
DOCS_WEIGHT = 0.5
OTHER_WEIGHT = 0.1


def to_toml(has_other_weight: bool) -> str:
    docs_weight = OTHER_WEIGHT if has_other_weight else DOCS_WEIGHT
    return PIPELINE.format(vocab=VOCAB, end=VOCAB - 1, docs_weight=docs_weight)


def write_corpus(folder: Path, seed: int) -> None:
    """docs-N.jsonl, chats.jsonl, and ids.bin with ids.idx; the same ones for the same seed."""
    choice = random.Random(seed)
    folder.mkdir(parents=True)
    for shard in range(SHARDS):
        lines = [json.dumps({"text": text_of(choice, TEXT_MAX)}) for _ in range(RECORDS)]
        lines += [json.dumps({"text": text_of(choice, LONG_TEXT)}) for _ in range(LONG_RECORDS)]
        write_lines(folder / f"docs-{shard}.jsonl", [*lines, *BAD_LINES], choice)
    chats = [
        json.dumps({"q": text_of(choice, 90), "a": text_of(choice, 90)}) for _ in range(RECORDS)
    ]
    write_lines(folder / "chats.jsonl", [*chats, '{"q": "no answer"}'], choice)
    write_megatron(folder / "ids", documents_of(choice))


def text_of(choice: random.Random, most: int) -> str:
    return "".join(choice.choices("abcdefgh \u00e4\u20ac\n", k=choice.randint(most // 2, most)))


def write_lines(path: Path, lines: list[str], choice: random.Random) -> None:
    choice.shuffle(lines)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def documents_of(choice: random.Random) -> list[list[int]]:
    documents = [
        [choice.randrange(VOCAB) for _ in range(choice.randint(1, TEXT_MAX))]
        for _ in range(3 * RECORDS)
    ]
    for document in choice.sample(documents, BAD_IDS):
        document[choice.randrange(len(document))] = VOCAB
    return documents
