# SPDX-License-Identifier: Apache-2.0
"""Pipelines as values: they have every key, and their files are what the command reads."""

import re
import subprocess
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType

import batchloom as bl
import pytest
from batchloom import pipeline as of
from conftest import COMMAND, ROOT, Run

PAGE = ROOT / "docs" / "formats" / "pipeline_toml.md"
# Keys of the file whose values are a class: their fields are keys, too.
CLASSES = {
    "run": of.Run,
    "store": of.Store,
    "store.retain": of.Retain,
    "topology": of.Topology,
    "step": of.Step,
    "tokens": of.Tokens,
    "tokens.tokenizer": of.Tokenizer,
    "image": of.Image,
    "balance": of.Balance,
    "limits": of.Limits,
    "source": of.Source,
    "source.fields": of.Fields,
    "source.split_by": of.SplitBy,
    "source.weight": of.WeightPoint,
}


def page_keys() -> dict[str, str]:
    """Every key, as its page has it (a test of the library compares that with the parser's), and
    its effect."""
    rows = re.findall(r"^\| `([a-z_.]+)` \| ([a-z ]+) \|", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(rows) > 50
    return dict(rows)


def test_every_key_is_a_field() -> None:
    known = {"seed"}
    for path, table in CLASSES.items():
        known |= {f"{path}.{field.name}" for field in fields(table)}
    assert known == page_keys().keys()


def test_every_class_is_a_table() -> None:
    def classes_of(module: ModuleType) -> set[type]:
        return {value for value in vars(module).values() if is_dataclass(value)}

    assert classes_of(of) == {*CLASSES.values(), bl.Pipeline}


def full(folder: Path) -> bl.Pipeline:
    """With as many keys as go together."""
    for name in ("docs-0", "docs-1", "chats", "ids"):
        (folder / f"{name}.jsonl").write_text('{"body": "a", "q": "b", "a": "c", "ids": [1]}\n')
    return bl.Pipeline(
        seed=17,
        run=of.Run(steps=40, split="valid"),
        store=of.Store(
            url="./it's \"the\" stream",
            lead_steps="unlimited",
            codec="raw",
            retain=of.Retain(max_bytes="1 GiB"),
        ),
        topology=of.Topology(axes="pp=1 dp=4 cp=2 tp=1", capacity=512),
        step=of.Step(tokens=4096, max_sample_tokens=256, over_length="drop"),
        tokens=of.Tokens(tokenizer=of.Tokenizer(kind="bytes"), vocab=300, begin=[298], end=[299]),
        balance=of.Balance(
            strategy="hdp", cost_model="bytescale-fig6", min_share=16, offload=False
        ),
        limits=of.Limits(memory="64 MiB", workers=3, bad_records=7),
        sources=[
            bl.Source(
                name="docs",
                files=["docs-*.jsonl"],
                format="jsonl",
                fields=of.Fields(text="body"),
                split={"train": 999, "valid": 1},
                split_by=of.SplitBy(field="author"),
                weight=0.5,
                order="file",
                exhausted="repeat",
                epochs=3,
            ),
            bl.Source(
                name="chats",
                files="chats.jsonl",
                fields=of.Fields(prompt="q", answer="a"),
                loss_on="all",
                split={"valid": 2},
                split_by="number",
                weight=[
                    of.WeightPoint(step=0, value=0.1),
                    of.WeightPoint(step=20, value=1, ramp="linear"),
                ],
            ),
            bl.Source(
                name="ids",
                files="ids.jsonl",
                fields=of.Fields(tokens="ids", loss_mask="mask"),
                loss_on="all",
            ),
        ],
    )


def explained(run: Run, file: Path) -> dict:
    """What the command has understood, as a file again."""
    text = run("explain", file)
    return tomllib.loads(text)


def test_the_command_reads_what_is_written(run: Run, tmp_path: Path) -> None:
    pipeline = full(tmp_path)
    written = tomllib.loads(pipeline.write(tmp_path / "p.toml").read_text(encoding="utf-8"))
    told = explained(run, tmp_path / "p.toml")
    # It names what it was not told, and writes some values in its own way.
    for source in written["source"]:
        if isinstance(source["files"], str):
            source["files"] = [source["files"]]
    written["tokens"]["tokenizer"] = "bytes"
    for section, values in written.items():
        if section == "source":
            for there, source in zip(told["source"], values, strict=True):
                assert source.items() <= {key: there.get(key) for key in source}.items()
        elif section == "seed":
            assert told["seed"] == 17
        else:
            assert values == {key: told[section].get(key) for key in values}, section


def test_what_is_none_has_the_commands_default(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    pipeline = bl.Pipeline(
        store=of.Store(url="s"),
        step=of.Step(samples=4, max_sample_tokens=8),
        tokens=of.Tokens(tokenizer="bytes"),
        sources=[bl.Source(name="a", files="a.jsonl")],
    )
    assert set(tomllib.loads(pipeline.to_toml())) == {"store", "step", "tokens", "source"}
    told = explained(run, pipeline.write(tmp_path / "p.toml"))
    assert told["run"]["split"] == "train"
    assert told["source"][0]["split_by"] == "content"


@pytest.mark.parametrize("text", ["\x7f", "\x00", "\\", '"', "\n\u2028", "\u00e4\U0001f600"])
def test_any_text_is_one_in_toml(text: str) -> None:
    store = of.Store(url=text)
    assert tomllib.loads(f"x = {of._toml(store)}") == {"x": {"url": text}}


def test_what_is_wrong_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    pipeline = bl.Pipeline(
        store=of.Store(url="s"),
        step=of.Step(max_sample_tokens=8),
        tokens=of.Tokens(tokenizer="bytes"),
        sources=[bl.Source(name="a", files="a.jsonl")],
    )
    file = pipeline.write(tmp_path / "p.toml")
    done = subprocess.run(
        [COMMAND, "explain", file], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode != 0
    assert "step.tokens" in done.stderr
