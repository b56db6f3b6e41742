# SPDX-License-Identifier: Apache-2.0
"""Ids and labels that trainers get, for every tokenizer, kind of fields and `loss_on`: what they
must be is reckoned from the files, by the formula of docs/formats/jsonl.md and with spm_encode."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import batchloom as bl
import numpy as np
import pytest
from conftest import ROOT, Run

MODELS = ROOT / "tests" / "fixtures" / "sentencepiece"
RANKS = 2
PART = 64
BEGIN, END = [801, 802], [803]
PIPELINE = """
seed = 5
[store]
url = "./stream"
lead_steps = "unlimited"
[topology]
axes = "dp=2"
capacity = 128
[step]
tokens = 512
max_sample_tokens = 64
[tokens]
tokenizer = {tokenizer}
vocab = 900
begin = [801, 802]
end = [803]
"""
SOURCES = {
    "text": '{ text = "q" }\nloss_on = "all"',
    "answers": '{ prompt = "q", answer = "a" }',
    "chats": '{ prompt = "q", answer = "a" }\nloss_on = "all"',
    "masked": '{ tokens = "i", loss_mask = "m" }\nloss_on = "mask"',
    "ids": '{ tokens = "i", loss_mask = "m" }\nloss_on = "all"',
}
WORDS = ("the loom weaves", "Fäden", "нить", "糸を織り", "a b", "🧵", "", "x = [1, 2];", " two  spaces ")
Encode = Callable[[list[str]], list[list[int]]]


def spm_encode(model: str) -> Encode:
    def encode(texts: list[str]) -> list[list[int]]:
        command = ["spm_encode", f"--model={MODELS / model}.model", "--output_format=id"]
        lines = "".join(text + "\n" for text in texts)
        done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
        return [[int(id) for id in line.split()] for line in done.stdout.splitlines()]

    return encode


TOKENIZERS: dict[str, tuple[str, Encode]] = {
    "bytes": ('"bytes"', lambda texts: [list(text.encode()) for text in texts]),
    **{
        name: (f'{{ kind = "sentencepiece", model = "{MODELS / name}.model" }}', spm_encode(name))
        for name in ("unigram", "bpe")
    },
}


def text_of(rng: random.Random, most: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(most)))


def write_records(path: Path, rng: random.Random, count: int) -> list[dict]:
    records = []
    for _ in range(count):
        ids = [rng.randrange(900) for _ in range(rng.randrange(150))]
        mask = [int(rng.random() < 0.4) for _ in ids]
        text = {"q": text_of(rng, 40), "a": text_of(rng, 30)}
        marks = [bool(m) if rng.random() < 0.5 else m for m in mask]
        records.append({**text, "i": ids, "m": marks})
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return records


def expected(source: str, records: list[dict], encode: Encode) -> list[tuple[list[int], list[int]]]:
    """Of each record: its ids, and for each whether the loss counts it."""
    prompts = encode([record["q"] for record in records])
    answers = encode([record["a"] for record in records])
    result = []
    for record, prompt, answer in zip(records, prompts, answers, strict=True):
        if source == "text":
            ids, mask = prompt, [1] * len(prompt)
        elif source in ("answers", "chats"):
            ids = prompt + answer
            mask = [int(source == "chats")] * len(prompt) + [1] * len(answer)
        else:
            ids, mask = record["i"], [int(m or source == "ids") for m in record["m"]]
        first = int(source in ("text", "chats", "ids"))
        # What is put behind a record counts as its last id does; with "answer" that is one of the
        # answer, though it may be empty.
        last = 1 if source == "answers" else (mask[-1] if mask else first)
        result.append(([*BEGIN, *ids, *END], [first] * len(BEGIN) + mask + [last] * len(END)))
    return result


def labels_of(ids: list[int], mask: list[int]) -> list[int]:
    """The label of an id is the id after it, where that counts."""
    return [id if counts else -100 for id, counts in zip(ids[1:], mask[1:], strict=True)] + [-100]


Got = dict[int, dict[int, tuple[int, int]]]


def delivered(stream: Path) -> tuple[dict[int, Got], int]:
    """By source, record and position: id and label; and how many labels steps say they count."""
    sources: dict[int, Got] = {}
    valid = 0
    for rank in range(RANKS):
        with bl.Consumer(stream, rank=rank, world_size=RANKS, start=0) as data:
            for batch in data:
                valid += batch.global_valid_labels if rank == 0 else 0
                for mb in batch.micro_batches:
                    ends = np.cumsum([len(piece.tokens) for piece in mb.stored.pieces])
                    for piece, end in zip(mb.stored.pieces, ends, strict=True):
                        source, _, record, _ = piece.sample
                        got = sources.setdefault(source, {}).setdefault(record, {})
                        for at in range(end - len(piece.tokens), end):
                            position = int(mb.positions[at])
                            assert position not in got
                            got[position] = (int(mb.tokens[at]), int(mb.labels[at]))
    return sources, valid


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_labels_are_those_that_the_loss_shall_count(
    run: Run, tmp_path: Path, tokenizer: str
) -> None:
    setting, encode = TOKENIZERS[tokenizer]
    rng = random.Random(3)
    text = PIPELINE.format(tokenizer=setting)
    given = {}
    for source, fields in SOURCES.items():
        given[source] = write_records(tmp_path / f"{source}.jsonl", rng, 30)
        text += f'[[source]]\nname = "{source}"\nfiles = ["{source}.jsonl"]\n'
        text += f'fields = {fields}\nexhausted = "drop"\n'
    (tmp_path / "p.toml").write_text(text, encoding="utf-8")
    indexed = run("index", tmp_path / "p.toml", "--json").splitlines()
    rows = {row["source"]: row for row in map(json.loads, indexed) if "source" in row}
    run("run", tmp_path / "p.toml", "--fsync=none")

    sources, valid = delivered(tmp_path / "stream")
    for number, source in enumerate(SOURCES):
        labels = 0
        records = expected(source, given[source], encode)
        assert any(len(ids) > PART for ids, _ in records), "some are cut into parts"
        for record, (ids, mask) in enumerate(records):
            got = sources[number][record]
            assert sorted(got) == list(range(len(ids))), (source, record)
            assert [got[at][0] for at in range(len(ids))] == ids, (source, record)
            assert [got[at][1] for at in range(len(ids))] == labels_of(ids, mask), (source, record)
            labels += sum(mask[1:])
        assert rows[source]["valid_labels"] == labels
        valid -= labels
    assert valid == 0


# Turns as a chat template makes them; what follows an answer is learned with it.
CHAT_MODULE = """
def encode(chats):
    return [encode_chat(**chat) for chat in chats]


def encode_chat(prompt, answer):
    asked, answered = f"<{prompt}>".encode(), f"{answer}.".encode()
    return [*asked, *answered], [0] * len(asked) + [1] * len(answered)
"""


def test_a_chat_function_trains_on_what_its_mask_marks(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCHLOOM_PYTHON", sys.executable)
    (tmp_path / "chat.py").write_text(CHAT_MODULE)
    rng = random.Random(1)
    records = write_records(tmp_path / "chats.jsonl", rng, 40)
    source = '[[source]]\nname = "chats"\nfiles = "chats.jsonl"\n'
    source += 'fields = { prompt = "q", answer = "a" }\nexhausted = "drop"\n'
    tokenizer = '{ kind = "python", function = "chat:encode" }'
    (tmp_path / "p.toml").write_text(PIPELINE.format(tokenizer=tokenizer) + source)
    run("run", tmp_path / "p.toml", "--fsync=none")
    sources, _ = delivered(tmp_path / "stream")
    assert len(sources[0]) == 40
    for record, chat in enumerate(records):
        asked, answered = f"<{chat['q']}>".encode(), f"{chat['a']}.".encode()
        ids = [*BEGIN, *asked, *answered, *END]
        mask = [0] * (len(BEGIN) + len(asked)) + [1] * (len(answered) + len(END))
        got = [sources[0][record][at] for at in range(len(ids))]
        assert got == list(zip(ids, labels_of(ids, mask), strict=True)), record


def test_a_chat_data_set_trains_on_answers_alone(run: Run, tmp_path: Path) -> None:
    """Prompts and answers of letters that the other has none of."""
    rng = random.Random(1)
    with (tmp_path / "chats.jsonl").open("w", encoding="utf-8") as file:
        for _ in range(40):
            prompt = "".join(rng.choices("abc", k=rng.randrange(100)))
            answer = "".join(rng.choices("xyz", k=rng.randrange(100)))
            file.write(json.dumps({"q": prompt, "a": answer}) + "\n")
    source = '[[source]]\nname = "chats"\nfiles = "chats.jsonl"\n'
    source += 'fields = { prompt = "q", answer = "a" }\n'
    (tmp_path / "p.toml").write_text(PIPELINE.format(tokenizer='"bytes"') + source)
    run("run", tmp_path / "p.toml", "--fsync=none")
    sources, _ = delivered(tmp_path / "stream")
    got = [pair for record in sources[0].values() for pair in record.values()]
    assert {label for _, label in got} == {-100, *b"xyz", *END}
    assert {id for id, _ in got} == {*b"abcxyz", *BEGIN, *END}
