# SPDX-License-Identifier: Apache-2.0
"""Pipelines whose texts a model of sentencepiece encodes: what is refused, and what is bad."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from cli_test import DONE, FAILED, run, succeed_rows

MODELS = Path(__file__).resolve().parent / "fixtures" / "sentencepiece"
PIPELINE = """
[store]
url = "./stream"
lead_steps = "unlimited"
[topology]
capacity = 4096
[step]
tokens = 4096
max_sample_tokens = 4096
[tokens]
tokenizer = { kind = "sentencepiece", model = "t.model" }
vocab = 900
end = [2]
[[source]]
name = "docs"
files = "docs.jsonl"
exhausted = "drop"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "p.toml").write_text(PIPELINE, encoding="utf-8")
    shutil.copy(MODELS / "unigram.model", tmp_path / "t.model")
    write_texts(tmp_path, ["The loom weaves.", "Ткацкий станок"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_texts(folder: Path, texts: list[str]) -> None:
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / "docs.jsonl").write_text(lines, encoding="utf-8")


def refusal() -> str:
    done = run("run", "p.toml")
    assert (done.returncode, done.stdout) == (FAILED, "")
    return done.stderr


def source_row() -> dict:
    (row,) = [row for row in succeed_rows("index", "p.toml") if "source" in row]
    return row


def test_another_model_is_another_stream(folder: Path) -> None:
    assert run("run", "p.toml").returncode == DONE
    before = source_row()["tokens"]
    shutil.copy(MODELS / "bpe.model", folder / "t.model")
    assert "tokens.tokenizer.model: 5582 bytes, " in refusal()
    assert source_row()["tokens"] != before, "indexes of the other model are not used"
    (folder / "models").mkdir()
    shutil.copy(MODELS / "unigram.model", folder / "models" / "moved.model")
    text = PIPELINE.replace('"t.model"', '"models/moved.model"')
    (folder / "p.toml").write_text(text, encoding="utf-8")
    assert run("run", "p.toml").returncode == DONE, "it is the same model, and lies elsewhere"


def test_a_model_that_is_none_is_named(folder: Path) -> None:
    whole = (MODELS / "unigram.model").read_bytes()
    for content in (b"", b"no model", whole[:-1], whole[: len(whole) // 2]):
        (folder / "t.model").write_bytes(content)
        assert "line 11: tokens.tokenizer.model: t.model: no sentencepiece model" in refusal()
    (folder / "t.model").unlink()
    assert "line 11: tokens.tokenizer.model: t.model: " in refusal()


def test_longer_texts_are_bad_in_every_format(folder: Path) -> None:
    """Of plain text and of tars a record's bytes are those of a file."""
    (folder / "0.txt").write_text("x" * ((16 << 20) + 1), encoding="utf-8")
    (folder / "1.txt").write_text("end", encoding="utf-8")
    subprocess.run(["tar", "-cf", "texts.tar", "0.txt", "1.txt"], check=True)
    for files in ("*.txt", "texts.tar"):
        text = PIPELINE.replace('"docs.jsonl"', f'"{files}"')
        if files == "texts.tar":
            text += 'fields = { text = "txt" }\n'
        (folder / "p.toml").write_text(text, encoding="utf-8")
        row = source_row()
        assert (row["records"], row["bad_records"]) == (2, 1), files


def test_a_text_is_encoded_whole_or_bad(folder: Path) -> None:
    line = "The loom weaves many threads into one cloth. "
    write_texts(folder, [line * (3 << 20) + "end", line * ((2 << 20) // len(line)), "end"])
    row = source_row()
    assert (row["records"], row["bad_records"]) == (3, 1)
    write_texts(folder, [line, line * 2, line * 3])
    tokens = source_row()["tokens"]
    ends = 3
    assert (tokens - ends) % 6 == 0, "each line has as many tokens as the others"
    of_line = (tokens - ends) // 6
    write_texts(folder, ["end"])
    of_end = source_row()["tokens"]
    assert row["tokens"] == of_line * ((2 << 20) // len(line)) + 1 + of_end
