# SPDX-License-Identifier: Apache-2.0
"""A pipeline of 1,024 sources: files that are open, memory and the time to start stay bounded."""

import json
import os
import resource
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli_test import COMMAND, DONE, succeed_json
from shards.writers import write_megatron

SOURCES = 1024
OPEN_FILES = 64
STEPS = 8
PIPELINE = """
seed = 3
[store]
url = "./stream"
lead_steps = "unlimited"
[topology]
axes = "dp=2"
capacity = 16384
[step]
tokens = 16384
max_sample_tokens = 64
[tokens]
tokenizer = "{tokenizer}"
vocab = 300
end = [299]
"""
SOURCE = """
[[source]]
name = "s{0}"
{1}
weight = 1
exhausted = "repeat"
"""


@dataclass
class Ran:
    stdout: str
    memory_kib: int
    cpu_s: float


def run_limited(folder: Path, arguments: Sequence[str]) -> Ran:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))

    process = subprocess.Popen(
        [COMMAND, *arguments], cwd=folder, preexec_fn=limit, stdout=subprocess.PIPE, text=True,
    )
    with process:
        assert process.stdout is not None
        stdout = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == DONE
    return Ran(stdout, usage.ru_maxrss, usage.ru_utime + usage.ru_stime)


def write_jsonl(folder: Path, source: int) -> None:
    lines = [json.dumps({"text": f"{source} {record} " + "x" * record}) for record in range(8)]
    (folder / f"{source}.jsonl").write_text("\n".join(lines), encoding="utf-8")


def write_ids(folder: Path, source: int) -> None:
    records = [[(source + i) % 299 for i in range(5 + record)] for record in range(8)]
    write_megatron(folder / f"{source}", records)


def write_sources(folder: Path, sources: int, kind: str) -> None:
    folder.mkdir()
    text = PIPELINE.format(tokenizer="bytes" if kind == "jsonl" else "ids")
    for source in range(sources):
        if kind == "jsonl":
            write_jsonl(folder, source)
            text += SOURCE.format(source, f'files = ["{source}.jsonl"]')
        else:
            write_ids(folder, source)
            text += SOURCE.format(source, f'files = ["{source}.bin"]')
    (folder / "p.toml").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("kind", ["jsonl", "megatron"])  # Read from indexes, and from shards.
def test_1024_sources_stay_within_bounds(tmp_path: Path, kind: str) -> None:
    few, many = tmp_path / "few", tmp_path / "many"
    ran = {}
    for folder, sources in ((few, 4), (many, SOURCES)):
        write_sources(folder, sources, kind)
        run_limited(folder, ("index", "p.toml"))
        ran[folder] = run_limited(folder, ("run", "p.toml", f"--steps={STEPS}", "--json"))
        assert json.loads(ran[folder].stdout)["steps"] == STEPS
    # As each has the same weight, each is read.
    drawn = set()
    for step in range(STEPS):
        shown = succeed_json("store", "show", many / "stream", f"--step={step}")
        drawn |= {piece["source"] for piece in shown["pieces"]}
    assert len(drawn) == SOURCES
    # Nothing is left to do: what it takes is the start.
    start = run_limited(many, ("run", "p.toml", f"--steps={STEPS}", "--json"))
    assert json.loads(start.stdout)["steps"] == 0
    print(ran[few].memory_kib, ran[many].memory_kib, start.memory_kib, start.cpu_s)
    assert start.cpu_s < 5
    assert ran[many].memory_kib - ran[few].memory_kib < 64 * SOURCES
