# SPDX-License-Identifier: Apache-2.0
"""How far a pipeline runs ahead of those who read it."""

import subprocess
from pathlib import Path

import batchloom as bl
from conftest import COMMAND, Run

STEPS = 2_500
CHECKPOINT_EVERY = 1_000
LEAD = 32

PIPELINE = f"""
[store]
url = "./stream"
lead_steps = {LEAD}
[topology]
axes = "dp=1"
capacity = 64
[step]
samples = 2
max_sample_tokens = 32
[tokens]
tokenizer = "bytes"
[[source]]
name = "docs"
files = ["docs.jsonl"]
exhausted = "repeat"
"""


def test_a_checkpoint_every_thousand_steps_runs_through_with_a_lead_of_32(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "docs.jsonl").write_text('{"text": "some words"}\n' * 50, encoding="utf-8")
    (tmp_path / "p.toml").write_text(PIPELINE, encoding="utf-8")
    producer = subprocess.Popen(
        [COMMAND, "run", "p.toml", f"--steps={STEPS}", "--fsync=none"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    seen = []
    with bl.Consumer(tmp_path / "stream", rank=0, world_size=1, group="run-1") as data:
        for batch in data:
            seen.append(batch.step)
            if len(seen) % CHECKPOINT_EVERY == 0:
                data.pin(batch.state, name=f"step-{batch.step}", keep=1)
    _, said = producer.communicate(timeout=60)
    assert producer.returncode == 0, said
    assert seen == list(range(STEPS))
    run("store", "gc", tmp_path / "stream", "--yes")
    assert "first_step: 2000\n" in run("store", "show", tmp_path / "stream")
