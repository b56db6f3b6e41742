# SPDX-License-Identifier: Apache-2.0
"""`batchloom run` where the storage of a source hangs: it says which, and ends."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_test import COMMAND, DONE, FAILED, run, succeed
from shards.writers import write_megatron

PIPELINE = """
seed = 5
[store]
url = "./stream"
lead_steps = 4
[topology]
axes = "dp=2"
capacity = 64
[step]
tokens = 64
max_sample_tokens = 16
[tokens]
tokenizer = "ids"
vocab = 300
[[source]]
name = "ids"
files = ["ids.bin"]
exhausted = "repeat"
"""
RECORDS = 500
ENDS_WITHIN_S = 30


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("shim") / "hung_reads.so"
    source = Path(__file__).with_name("hung_reads.c")
    command = ["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    return library


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ids = [i % 299 for i in range(8 * RECORDS)]
    write_megatron(tmp_path / "ids", [ids[8 * i : 8 * i + 8] for i in range(RECORDS)])
    (tmp_path / "p.toml").write_text(PIPELINE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def hanging_run(folder: Path, shim: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A run in which reads of the data hang as long as there is a file `hang`."""
    world = os.environ | {
        "LD_PRELOAD": str(shim), "HANG_FILES": "/ids.bin", "HANG_WHILE": str(folder / "hang"),
    }
    with subprocess.Popen(
        [COMMAND, "run", "p.toml", *options, "--json"],
        env=world, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:
        patience = threading.Timer(100, process.kill)
        patience.start()
        try:
            yield process
        finally:
            patience.cancel()
            process.kill()


def wait_for(process: subprocess.Popen[str], said: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if said in line:
            return line
    pytest.fail(f"it ended without saying: {said}")


def end_of(process: subprocess.Popen[str], folder: Path) -> tuple[int, str, str]:
    """How it ends once nothing hangs any more."""
    (folder / "hang").unlink()
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_a_file_that_hangs_while_it_is_opened_is_named(folder: Path, shim: Path) -> None:
    named = "source 'ids': reading ids.bin: for "
    for indexed in (False, True):
        (folder / "hang").touch()
        with hanging_run(folder, shim, "--sample-timeout=500ms") as process:
            line = wait_for(process, named)
            assert "no more than 0.5 s is waited; is its storage there?" in line
            code, out, err = end_of(process, folder)
        assert (code, out) == (FAILED, "")
        assert named in err
        assert not (folder / "stream").exists()
        if not indexed:
            succeed("index", "p.toml")


def test_a_sample_that_hangs_during_the_run_is_named(folder: Path, shim: Path) -> None:
    with hanging_run(folder, shim, "--sample-timeout=500ms") as process:
        wait_for(process, "waiting for a consumer of ./stream")
        (folder / "hang").touch()
        read = ("consume", "./stream", "--rank=0", "--group=g", "--report", "--report-every=1")
        assert run(*read, "--steps=3").returncode == DONE
        line = wait_for(process, "loading step 4: sample ")
        assert "of source 'ids', reading it with its neighbours for " in line
        code, out, err = end_of(process, folder)
    assert (code, out) == (FAILED, "")
    assert "loading step 4: sample " in err
    done = subprocess.run(
        [COMMAND, "run", "p.toml", "--steps=6", "--lead=unlimited", "--json"],
        capture_output=True, timeout=60, check=False,
    )
    assert done.returncode == DONE
    assert json.loads(done.stdout)["steps"] == 2


def test_one_sigterm_ends_it_whatever_hangs(folder: Path, shim: Path) -> None:
    (folder / "hang").touch()
    with hanging_run(folder, shim) as process:
        while "ids.bin" not in open_files(process):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        begin = time.monotonic()
        out, err = process.communicate(timeout=ENDS_WITHIN_S + 20)
        took = time.monotonic() - begin
    assert (process.returncode, out) == (FAILED, "")
    assert "something hangs, and is not waited for any longer" in err
    assert ENDS_WITHIN_S - 1 < took < ENDS_WITHIN_S + 10


def open_files(process: subprocess.Popen[str]) -> set[str]:
    files = set()
    for fd in Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            files.add(fd.readlink().name)
        except FileNotFoundError:  # Closed meanwhile.
            pass
    return files
