# SPDX-License-Identifier: Apache-2.0
"""`batchloom explain` from outside: pipelines on a disk."""

import tomllib
from pathlib import Path

import pytest
from cli_test import fail, refuse, run, succeed, succeed_json

PIPELINE = """seed = 17

[store]
url = "./stream"

[topology]
axes = "dp=2 cp=2"

[step]
tokens = 4096
max_sample_tokens = 1024

[tokens]
tokenizer = "bytes"

[[source]]
name = "docs"
files = ["data/docs-*.jsonl"]
weight = 0.5

[[source]]
name = "code"
files = "data/code.jsonl"
split = { valid = 1 }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    for name in [*(f"docs-{number:02}" for number in range(12)), "code"]:
        (tmp_path / "data" / f"{name}.jsonl").write_text('{"text": "a"}\n')
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "pipeline.toml"
    path.write_text(text)
    return path


def test_the_text_is_a_pipeline_again(folder: Path) -> None:
    text = succeed("explain", write(folder, PIPELINE))
    full = tomllib.loads(text)
    assert full["step"]["tokens"] == 4096
    assert full["balance"]["strategy"] == "two_level"
    assert [source["name"] for source in full["source"]] == ["docs", "code"]
    again = succeed("explain", write(folder, text))
    assert tomllib.loads(again) == full
    assert "# default" in text
    assert "# default" not in again


def test_comments_tell_what_follows(folder: Path) -> None:
    text = succeed("explain", write(folder, PIPELINE))
    assert "# ranks: 4, HDP ranks: 4; one part may span 2 of them, and have 16384 tokens" in text
    assert "# source docs: jsonl, 12 files\n# records: unknown until indexed\n" in text
    assert f'#   "{folder}/data/docs-00.jsonl"\n' in text
    assert "docs-10.jsonl" not in text
    assert "#   and 2 more, which --json lists" in text
    assert "# source code: jsonl, 1 file; nothing of it is in this split" in text


def test_json_has_the_same(folder: Path) -> None:
    told = succeed_json("explain", write(folder, PIPELINE))
    settings = {row["key"]: row for row in told["settings"]}
    assert settings["seed"] == {"key": "seed", "value": "17", "origin": "set"}
    assert settings["source.docs.weight"]["value"] == "0.5"
    assert settings["source.code.weight"]["origin"] == "default"
    assert settings["run.steps"] == {"key": "run.steps", "value": "", "origin": "absent"}
    assert told["topology"]["hdp_ranks"] == 4
    docs = told["sources"][0]
    assert docs["files"][11] == f"{folder}/data/docs-11.jsonl"
    assert docs["records"] == "unknown until indexed"
    assert [source["takes_part"] for source in told["sources"]] == [True, False]


def test_faults_are_told_with_file_and_line(folder: Path) -> None:
    path = write(folder, PIPELINE.replace("tokens = 4096", "token = 4096").replace("docs-*", "x-*"))
    assert fail("explain", path) == (
        f"batchloom: invalid: {path}: 3 faults\n"
        "  line 9: step.tokens is missing: tokens of a step, at most\n"
        "  line 10: \"token\" is no key of step; did you mean 'tokens'?\n"
        f"  line 18: source.files: {folder}/data/x-*.jsonl: no plain file has such a name; the "
        f"nearest folder that exists is {folder}/data\n"
    )


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"", "faults"), (b"\x00\xff\xfe", "line 1"), (b"x" * (10 << 20), "line 1")],
    ids=["empty", "binary", "one-long-line"],
)
def test_what_is_no_pipeline(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "junk"
    path.write_bytes(content)
    complaint = fail("explain", path)
    assert str(path) in complaint
    assert told in complaint
    assert len(complaint) < 2000


def test_what_is_no_file(tmp_path: Path) -> None:
    assert "there is no such file" in fail("explain", tmp_path / "none.toml")
    assert str(tmp_path) in fail("explain", tmp_path)
    assert "FILE" in refuse("explain")


def test_help() -> None:
    assert "pipeline" in run("explain", "--help").stdout
