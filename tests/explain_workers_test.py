# SPDX-License-Identifier: Apache-2.0
"""`batchloom explain` of what samples cost, and of the threads and the memory that follow."""

import json
import os
import re
from pathlib import Path

import pytest
from cli_test import DONE, run, succeed, succeed_json

PIPELINE = """
seed = 17
[store]
url = "./stream"
lead_steps = "unlimited"
[topology]
capacity = 4096
[step]
tokens = 4096
max_sample_tokens = 1024
[tokens]
tokenizer = "bytes"
[limits]
memory = "64 MiB"
[[source]]
name = "docs"
files = "docs-*.jsonl"
weight = 0.8
exhausted = "repeat"
[[source]]
name = "rare"
files = "rare.jsonl"
weight = 0.2
exhausted = "repeat"
[[source]]
name = "void"
files = "void.jsonl"
exhausted = "drop"
"""
CORES = min(os.sysconf("SC_NPROCESSORS_ONLN"), 64)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for number in range(3):
        write_texts(tmp_path / f"docs-{number}.jsonl", [f"text {i}, " * 20 for i in range(100)])
    write_texts(tmp_path / "rare.jsonl", ["rare " * 30] * 5)
    write_texts(tmp_path / "void.jsonl", [])
    (tmp_path / "p.toml").write_text(PIPELINE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_texts(file: Path, texts: list[str]) -> None:
    lines = (json.dumps({"text": text}) + "\n" for text in texts)
    file.write_text("".join(lines), encoding="utf-8")


def change(old: str, new: str) -> None:
    file = Path("p.toml")
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def workers() -> dict:
    return succeed_json("explain", "p.toml")["workers"]


def threads_of_lanes(told: dict) -> int:
    """Each lane of one source, and the one that several share, once."""
    alone = [row["threads"] for row in told["sources"] if not row["shares_threads"]]
    shared = {row["threads"] for row in told["sources"] if row["shares_threads"]}
    assert len(shared) <= 1
    return sum(alone) + sum(shared)


def test_what_is_not_indexed_is_not_measured(folder: Path) -> None:
    before = sorted(folder.iterdir())
    told = workers()
    assert told["threads"] == "unknown until indexed"
    assert told["indexing_threads"] == min(CORES, 5)
    assert told["python_processes"] == 0
    assert "\n# threads of loaders: unknown until indexed\n" in succeed("explain", "p.toml")
    assert sorted(folder.iterdir()) == before


def test_threads_follow_from_what_samples_cost(folder: Path) -> None:
    succeed("index", "p.toml")
    before = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    told = workers()
    assert {file: file.stat().st_mtime_ns for file in folder.iterdir()} == before
    assert told["cores"] == CORES
    assert not told["fixed"]
    assert 1 <= told["threads"] <= 4 * CORES
    assert told["threads"] == told["auto_threads"] == threads_of_lanes(told)
    assert told["loaders_bytes"] == told["constructors_bytes"] == 32 << 20
    assert told["orders_bytes"] <= told["loaders_bytes"]
    assert told["steps_per_s"] > 0
    rows = {row["source"]: row for row in told["sources"]}
    assert [rows[name]["measured_samples"] for name in ("docs", "rare", "void")] == [64, 5, 0]
    for name in ("docs", "rare"):
        assert 0 < rows[name]["cpu_us"] <= rows[name]["sample_us"]
        assert rows[name]["sample_bytes"] > 0
    tokens = {"docs": len("text 50, ") * 20, "rare": 150}
    for name, share in (("docs", 0.8), ("rare", 0.2)):
        expected = share * 4096 / tokens[name]
        assert rows[name]["samples_per_step"] == pytest.approx(expected, rel=0.05)
    assert rows["void"]["samples_per_step"] == 0


def test_it_is_said_to_people(folder: Path) -> None:
    succeed("index", "p.toml")
    text = succeed("explain", "p.toml")
    assert re.search(
        rf"\n# loaders: \d+ threads on {CORES} cores; at most [\d.]+ steps/s, bound by "
        r"(cores|threads), most of it by source (docs|rare)\n",
        text,
    )
    assert re.search(r"\n# docs +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +\d+", text)
    assert re.search(r"\n# void +- +- +- +0\.0 +0\.00 +\d+", text)
    assert "\n# memory: loaders hold up to 32 MiB, of which threads have " in text
    assert f"\n# indexing: {min(CORES, 5)} threads\n" in text


def test_a_fixed_number_stays_and_is_compared(folder: Path) -> None:
    change("[limits]", "[limits]\nworkers = 3")
    succeed("index", "p.toml")
    told = workers()
    assert (told["threads"], told["fixed"]) == (3, True)
    assert 1 <= told["auto_threads"] <= 4 * CORES
    text = succeed("explain", "p.toml")
    assert '\n# loaders: 3 threads, as limits.workers has it; "auto" takes ' in text


def test_what_does_not_fit_is_said_with_its_bytes(folder: Path) -> None:
    write_texts(folder / "rare.jsonl", ["x" * 900_000])
    for old, new in (("1024", "1_000_000"), ("tokens = 4096", "tokens = 2_000_000")):
        change(old, new)
    change("capacity = 4096", "capacity = 1_000_000")
    change("64 MiB", "1 MiB")
    succeed("index", "p.toml")
    told = workers()
    assert re.fullmatch(
        r"exhausted: source 'rare': a sample takes \d+ bytes, and loaders may hold 512 KiB, half "
        r"of limits\.memory: .*",
        told["threads"],
    )
    assert "\n# threads of loaders: exhausted: source 'rare': " in succeed("explain", "p.toml")
    assert run("run", "p.toml", "--steps=1").returncode == DONE, "steps come in one by one"


def test_python_has_a_process_for_each_thread_of_indexing(folder: Path) -> None:
    (folder / "tok.py").write_text("def encode(texts):\n    return [[1] for _ in texts]\n")
    function = '{ kind = "python", function = "tok:encode" }\nvocab = 9'
    change('tokenizer = "bytes"', f"tokenizer = {function}")
    told = workers()
    assert told["python_processes"] == told["indexing_threads"] == min(CORES, 5)
    change("[limits]", "[limits]\nworkers = 2")
    assert workers()["python_processes"] == 2
    text = succeed("explain", "p.toml")
    assert "\n# indexing: 2 threads, each with a process of Python\n" in text
