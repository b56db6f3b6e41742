# SPDX-License-Identifier: Apache-2.0
"""attach(): who starts the producer, what ends it, and what is told of one that fails."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import batchloom as bl
import pytest
from batchloom import pipeline as of
from batchloom.attach import SLICE_S

LIMIT_S = 60.0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = (json.dumps({"text": f"record {n} " * 9}) + "\n" for n in range(400))
    (tmp_path / "docs.jsonl").write_text("".join(lines))
    return tmp_path


def pipeline(**source: object) -> bl.Pipeline:
    return bl.Pipeline(
        store=of.Store(url="./stream", lead_steps=4),
        topology=of.Topology(axes="dp=2", capacity=512),
        step=of.Step(tokens=1024, max_sample_tokens=256),
        tokens=of.Tokens(tokenizer="bytes"),
        sources=[bl.Source(name="docs", files="docs.jsonl", **source)],
    )


def producers_of(folder: Path) -> list[int]:
    """Processes of the command that run there."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"run" in words[:2] and (entry / "cwd").resolve() == folder.resolve():
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found


def wait_until(true: object) -> None:
    ends_at = time.monotonic() + LIMIT_S
    while not true():  # type: ignore[operator]
        assert time.monotonic() < ends_at
        time.sleep(0.02)


def test_one_process_needs_no_more(folder: Path) -> None:
    steps = []
    with bl.attach(pipeline(), rank=0, world_size=1) as data:
        for batch in data:
            steps.append(batch.step)
    assert steps == list(range(len(steps)))
    assert len(steps) > 30
    assert producers_of(folder) == []


def test_a_file_is_read_where_it_lies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = pipeline().write(folder / "p.toml")
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    with bl.attach(file, rank=0, world_size=1) as data:
        assert next(data).step == 0
    assert (folder / "stream").is_dir()


def test_other_ranks_only_read(folder: Path) -> None:
    first = bl.attach(pipeline(), rank=0, world_size=2)
    second = bl.attach(pipeline(), rank=1, world_size=2)
    for step in range(12):
        assert next(first).step == next(second).step == step
    assert len(producers_of(folder)) == 1
    second.close()
    first.close()
    assert producers_of(folder) == []


def test_without_rank_0_the_others_end_at_their_deadline(folder: Path) -> None:
    with pytest.raises(bl.NotFound, match="stream"):
        bl.attach(pipeline(), rank=1, world_size=2, open_timeout=0.3)
    assert producers_of(folder) == []


def test_what_was_waited_for_the_stream_is_told_whole(folder: Path) -> None:
    timeout = 2 * SLICE_S + 0.2
    with pytest.raises(bl.NotFound, match="no stream at") as missing:
        bl.attach(pipeline(), rank=1, world_size=2, open_timeout=timeout)
    told = re.search(r"after (\d+\.\d) s ", str(missing.value))
    assert told
    assert float(told[1]) >= round(timeout, 1)


def test_a_second_job_takes_the_producer_that_there_is(folder: Path) -> None:
    first = bl.attach(pipeline(), rank=0, world_size=1, group="a")
    assert next(first).step == 0
    (producer,) = producers_of(folder)
    second = bl.attach(pipeline(), rank=0, world_size=1, group="b")
    assert next(second).step == 0
    # Beyond the lead: each waits for the other's report.
    for step in range(1, 10):
        assert next(first).step == next(second).step == step
    assert producers_of(folder) == [producer]
    assert second._producer._process is None
    second.close()
    first.close()


def test_it_goes_on_where_the_checkpoint_is(folder: Path) -> None:
    with bl.attach(pipeline(), rank=0, world_size=1) as data:
        states = [next(data).state for _ in range(3)]
    with bl.attach(pipeline(), rank=0, world_size=1, resume=states[-1]) as data:
        batch = next(data)
        assert batch.step == 3
        data.pin(batch.state, name="step-3")
    with pytest.raises(bl.ResumeMissing):
        bl.attach(pipeline(), rank=0, world_size=1)
    assert producers_of(folder) == []


def test_a_producer_that_fails_is_told_with_its_last_lines(folder: Path) -> None:
    (folder / "docs.jsonl").write_text("no JSON\n" * 200)
    with pytest.raises(bl.ProducerFailed, match=r"status 1:\n(.*\n)*.*docs.jsonl"):
        next(bl.attach(pipeline(), rank=0, world_size=1))


def test_a_function_of_python_takes_a_file(folder: Path) -> None:
    function = of.Tokenizer(kind="python", function="letters:ids_of")
    with_function = replace(pipeline(), tokens=of.Tokens(tokenizer=function, vocab=300))
    with pytest.raises(bl.Invalid, match=r"letters:ids_of is sought beside the pipeline's file"):
        bl.attach(with_function, rank=0, world_size=1)
    (folder / "letters.py").write_text(
        "def ids_of(texts):\n    return [list(text.encode()) for text in texts]\n"
    )
    with bl.attach(with_function.write(folder / "p.toml"), rank=0, world_size=1) as data:
        assert next(data).step == 0


def test_one_that_cannot_begin_is_told_before_the_stream_is_there(folder: Path) -> None:
    file = pipeline().write(folder / "p.toml")
    file.write_text(file.read_text().replace("capacity", "capacities"))
    with pytest.raises(bl.ProducerFailed, match=r"status 1:\n(.*\n)*.*did you mean 'capacity'"):
        bl.attach(file, rank=0, world_size=1)


def test_a_producer_that_is_killed_is_told(folder: Path) -> None:
    data = bl.attach(pipeline(exhausted="repeat"), rank=0, world_size=1)
    next(data)
    for pid in producers_of(folder):
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(bl.ProducerFailed, match="status 137"):
        for _ in data:
            pass
    data.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_parent(folder: Path, how: signal.Signals) -> None:
    pipeline(exhausted="repeat").write(folder / "p.toml")
    code = (
        "import batchloom as bl, time; data = bl.attach('p.toml', rank=0, world_size=1);"
        "next(data); print('reads', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "reads\n"
        assert len(producers_of(folder)) == 1
        job.send_signal(how)
        job.wait(LIMIT_S)
    wait_until(lambda: producers_of(folder) == [])


def test_without_a_command_it_says_how_to_name_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCHLOOM", "/nowhere/batchloom")
    with pytest.raises(bl.NotFound, match="BATCHLOOM='/nowhere/batchloom' is no program"):
        bl.attach(pipeline(), rank=0, world_size=1)
    monkeypatch.delenv("BATCHLOOM")
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(bl.NotFound, match="name the built command in \\$BATCHLOOM"):
        bl.attach(pipeline(), rank=0, world_size=1)
