# SPDX-License-Identifier: Apache-2.0
"""Sources of every format that vanish or change while a pipeline reads them, or that nobody can
read: what is said, and what is committed. Once they are mended, the run goes on exactly."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_test import COMMAND, DONE, FAILED, run, succeed, succeed_json, succeed_rows
from shards import every_format

PIPELINE = """
[store]
url = "./stream"
lead_steps = 2
[run]
steps = 8
[topology]
axes = "dp=1"
capacity = 16384
[step]
tokens = 16384
max_sample_tokens = 512
"""
STEPS = 8


def fault_free(folder: Path) -> list[dict]:
    """What each step must hold, by a stream beside."""
    whole = folder / "whole"
    made = run("run", folder / "p.toml", f"--store={whole}", "--lead=unlimited", "--fsync=none")
    assert made.returncode == DONE, made.stderr
    return hashes_of(whole)


def hashes_of(stream: Path, *options: str) -> list[dict]:
    return succeed_rows("consume", stream, "--rank=0", "--hashes=-", *options)[:-1]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict]]:
    """Indexed sources, and what a run of them gives."""
    folder = tmp_path_factory.mktemp("pristine")
    every_format.write_sources(folder / "data", seed=1)
    text = PIPELINE + every_format.to_toml("data", "bytes")
    (folder / "p.toml").write_text(text, encoding="utf-8")
    return folder, fault_free(folder)


@pytest.fixture
def folder(pristine: tuple[Path, list[dict]], tmp_path: Path) -> Path:
    copy = tmp_path / "sources"
    shutil.copytree(pristine[0], copy, symlinks=True)
    shutil.rmtree(copy / "whole")
    return copy


def shards_of(folder: Path, source: str) -> list[Path]:
    """Those whose content a run reads: of Megatron's data sets that is the file of ids."""
    pattern = every_format.SOURCES[source].files
    return [path for path in sorted((folder / "data").glob(pattern)) if path.is_file()]


def vanish(path: Path) -> None:
    path.unlink()


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def change_within(path: Path) -> None:
    """Another content of the same size."""
    content = path.read_bytes()
    path.write_bytes(bytes(byte ^ 1 for byte in content))


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "vanishes": (vanish, "there is no such file"),
    "grows": (grow, " grew from "),
    "is written anew": (change_within, "was modified: its time is "),
}


@contextmanager
def run_until_it_waits(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """For a consumer, with two steps committed. Afterwards it is gone."""
    process = subprocess.Popen(
        [COMMAND, "run", folder / "p.toml", "--fsync=none", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert any("waiting for a consumer of " in line for line in process.stderr)
        yield process
    finally:
        process.kill()
        process.wait()


def spoil_all(folder: Path, source: str, spoil: Callable[[Path], None]) -> dict[Path, Path]:
    """Of each shard, where it is kept as it was."""
    kept = {path: folder / f"kept-{path.name}" for path in shards_of(folder, source)}
    for path, copy in kept.items():
        shutil.copy2(path, copy)
        spoil(path)
    return kept


def goes_on_exactly(folder: Path, expected: list[dict]) -> None:
    done = run("run", folder / "p.toml", "--lead=unlimited", "--fsync=none")
    assert done.returncode == DONE, done.stderr
    assert hashes_of(folder / "stream") == expected
    succeed("store", "verify", folder / "stream", "--depth=payload")


def read_two_steps(folder: Path, expected: list[dict]) -> None:
    """And report it, so that the run may go on."""
    group = ("--group=g", "--report", "--report-every=1")
    assert hashes_of(folder / "stream", *group, "--steps=2") == expected[:2]


# What is open is read on: what has lost its name has the right bytes still.
OPEN_AND_GONE = ("ids", "vanishes")


@pytest.mark.parametrize(
    ("source", "change"),
    [
        (source, change)
        for source in every_format.SOURCES
        for change in CHANGES
        if (source, change) != OPEN_AND_GONE
    ],
)
def test_a_source_that_changes_during_the_run_ends_it_by_name(
    pristine: tuple[Path, list[dict]], folder: Path, source: str, change: str
) -> None:
    spoil, told = CHANGES[change]
    with run_until_it_waits(folder) as process:
        kept = spoil_all(folder, source, spoil)
        read_two_steps(folder, pristine[1])
        _, said = process.communicate(timeout=60)
    assert process.returncode == FAILED
    assert any(str(path) in said for path in kept), said
    assert told in said
    stream = folder / "stream"
    committed = succeed_json("store", "show", stream)["next_step"]
    assert 2 <= committed < STEPS
    assert hashes_of(stream, f"--steps={committed}") == pristine[1][:committed]
    for path, copy in kept.items():
        shutil.copy2(copy, path)
    goes_on_exactly(folder, pristine[1])


def test_a_data_set_that_is_open_is_read_on_though_it_has_vanished(
    pristine: tuple[Path, list[dict]], folder: Path
) -> None:
    with run_until_it_waits(folder) as process:
        ((path, copy),) = spoil_all(folder, OPEN_AND_GONE[0], vanish).items()
        read_two_steps(folder, pristine[1])
        assert process.stderr is not None
        assert any("waiting for a consumer of " in line for line in process.stderr)
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == DONE
    done = run("run", folder / "p.toml", "--lead=unlimited", "--fsync=none")
    assert done.returncode == FAILED
    assert str(path) in done.stderr
    shutil.copy2(copy, path)
    goes_on_exactly(folder, pristine[1])
