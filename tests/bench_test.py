# SPDX-License-Identifier: Apache-2.0
"""What benchmarks in Python share counts right, and they and the programs are found by name."""

import mmap
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "bench" / "processes"), str(ROOT / "bench" / "peers")]

import bars  # noqa: E402
import corpus  # noqa: E402
import job  # noqa: E402
import process_tree  # noqa: E402
from shards import megatron  # noqa: E402

MIB = 1 << 20
BURN = "import time; t = time.process_time()\nwhile time.process_time() < t + 0.3: pass"


@contextmanager
def child(code: str) -> Iterator[int]:
    """A Python that runs `code`, says so, and waits."""
    script = f"{code}\nprint(flush=True)\ninput()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script], **pipes) as process:
        assert process.stdin and process.stdout
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.stdin.close()


def test_benchmarks_are_found() -> None:
    done = subprocess.run([ROOT / "bench" / "run"], capture_output=True, text=True, check=True)
    names = done.stdout.split()
    assert {"pipeline", "peers", "memory", "start", "partition"} <= set(names)
    assert "pipeline_job" not in names
    assert "processes" not in names


def test_memory_of_a_tree_has_what_children_have() -> None:
    with child("kept = b'x' * (40 << 20)") as pid:
        alone = process_tree.memory_of(pid).total_mib
        assert 40 <= alone <= 80
        assert process_tree.memory(os.getpid()).total_mib >= alone


def test_what_is_shared_counts_once() -> None:
    """32 MiB in a parent that a forked child has, too."""
    code = (
        "import os\nkept = b'x' * (32 << 20)\npid = os.fork()\n"
        "if not pid: os.read(0, 1), os._exit(0)"
    )
    with child("") as pid:
        bare = process_tree.memory(pid).total_mib
    with child(code) as pid:
        both = process_tree.memory(pid)
    assert 30 <= both.total_mib - bare <= 50


def test_shared_memory_counts() -> None:
    with mmap.mmap(-1, 24 * MIB) as segment:
        before = process_tree.memory_of(os.getpid()).shared_kib
        segment.write(b"x" * (24 * MIB))
        assert process_tree.memory_of(os.getpid()).shared_kib - before >= 24 << 10


def test_cpu_of_a_tree_has_live_and_ended_children() -> None:
    begin = process_tree.cpu_s(os.getpid())
    with child(BURN):
        live = process_tree.cpu_s(os.getpid()) - begin
        assert live >= 0.28
    ended = process_tree.cpu_s(os.getpid()) - begin
    assert ended >= live


def test_a_process_that_is_gone_has_nothing() -> None:
    with subprocess.Popen(["true"]) as process:
        pass
    assert process_tree.memory_of(process.pid) == process_tree.Memory()
    assert process_tree.tree(process.pid) == [process.pid]


@pytest.fixture
def stubborn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> job.Pipeline:
    """The command is a program that says what it is told to, heeds no SIGTERM, and hangs."""
    command = tmp_path / "stubborn"
    script = ["#!/bin/sh", "trap '' TERM", "printf '%s' \"$1\"", "while :; do sleep 0.05; done", ""]
    command.write_text("\n".join(script))
    command.chmod(0o755)
    monkeypatch.setattr(job, "COMMAND", command)
    monkeypatch.setattr(job, "TIME_LIMIT_S", 0.3)
    monkeypatch.setattr(job, "END_LIMIT_S", 0.3)
    data = job.Data(tmp_path / "data", sources=1, files=1, records=1, text_bytes=9)
    return job.Pipeline(tmp_path / "pipeline", data, workers=1, step_tokens=10)


def test_a_process_that_hangs_ends_the_benchmark(stubborn: job.Pipeline) -> None:
    with pytest.raises(SystemExit, match="did not end within 0.3 s"):
        job.index(stubborn)
    with pytest.raises(SystemExit, match="went on for 0.3 s after SIGTERM, and was killed"):
        with job.started("line\n") as process:
            assert job.next_step(process) == "line\n"
    assert process.returncode == -9
    with pytest.raises(SystemExit, match="the producer made no stream within 0.3 s"):
        with job.started("") as process:
            job.wait_for_stream(stubborn, process)
    with pytest.raises(SystemExit, match="got no step within 0.3 s"):
        with job.started("no line") as process:
            job.next_step(process)


def test_a_process_that_ends_ends_the_benchmark(
    stubborn: job.Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "COMMAND", "/bin/true")
    with pytest.raises(SystemExit, match="ended before its next step"):
        with job.started() as process:
            job.next_step(process)
    with pytest.raises(SystemExit, match="the producer ended before there was a stream"):
        with job.started() as process:
            job.wait_for_stream(stubborn, process)


@pytest.mark.parametrize(("value", "missed"), [(2.0, 0), (1.9, 1), (3.0, 0), (3.1, 1)])
def test_bars(value: float, missed: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert bars.report([bars.Bar("figure", least=2, most=3)], {"figure": value}) == missed
    assert capsys.readouterr().err.endswith("MISSED\n" if missed else "reached\n")


def test_a_corpus_has_its_samples_and_their_digest(tmp_path: Path) -> None:
    written = corpus.Corpus(tmp_path / "corpus", samples=80_000, sources=2, sample_tokens=4)
    corpus.write(written)
    numbers = [corpus.numbers_of(written.tokens(source)).tolist() for source in range(2)]
    assert numbers[0] + numbers[1] == list(range(80_000))
    some = written.tokens(1)[:10]
    assert corpus.digest(some) == corpus.digest(some[::-1])
    assert corpus.digest(some) != corpus.digest(some[:9])
    changed = some.copy()
    changed[3, 3] ^= 1
    assert corpus.digest(some) != corpus.digest(changed)


def test_peers_read_what_others_write() -> None:
    """Its own writer, for environments that have NumPy and none of our tools."""
    assert corpus.megatron_index(5, 7) == megatron.index_of([7] * 5)


def test_torch_is_the_one_of_the_tests() -> None:
    wanted = re.search(
        r"^torch==.*$", (ROOT / "tools" / "requirements-torch.txt").read_text(), re.M
    )
    assert wanted
    for name in ("torch", "streaming", "webdataset"):
        pins = (ROOT / "bench" / "peers" / f"requirements-{name}.txt").read_text().splitlines()
        assert wanted[0] in pins, name
        assert all("==" in pin or pin.startswith("#") for pin in pins), name
