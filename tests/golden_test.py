# SPDX-License-Identifier: Apache-2.0
"""Format version 1 is frozen: what a build of the day has written is read by this one, and gone on
with as that build would have. tests/golden/make.py made it."""

import json
import os
import shutil
from pathlib import Path

import pytest
from cli_test import ROOT, keys_of, run, succeed, succeed_json, succeed_rows
from damage_test import KINDS, kind_of

GOLDEN = ROOT / "tests" / "golden" / "v1"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """A copy, whose files have the times that their indexes know."""
    copy = Path(shutil.copytree(GOLDEN, tmp_path / "v1"))
    for name, changed_ns in EXPECTED["pipeline"]["changed_ns"].items():
        os.utime(copy / "pipeline" / name, ns=(changed_ns, changed_ns))
    return copy


def assert_holds(actual: object, expected: object, where: str = "") -> None:
    """Later builds may say more, and nothing else."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict), where
        for name, value in expected.items():
            assert_holds(actual.get(name), value, f"{where}.{name}")
    elif isinstance(expected, list):
        assert isinstance(actual, list), where
        assert len(actual) == len(expected), where
        for i, value in enumerate(expected):
            assert_holds(actual[i], value, f"{where}[{i}]")
    else:
        assert actual == expected, where


def hash_lines(stream: Path, rank: int, steps: int) -> list[str]:
    out = succeed("consume", stream, f"--rank={rank}", f"--steps={steps}", "--hashes=-")
    return [line for line in out.splitlines() if line.startswith("step=")]


def test_every_kind_of_object_is_there() -> None:
    kinds = {kind_of(key) for key in keys_of(GOLDEN / "stream")}
    assert kinds == {*KINDS, ".tgb"}
    ours = {kind_of(key) for key in keys_of(GOLDEN / "pipeline" / "stream")}
    assert {".tgb", ".membership", "m"} <= ours
    assert len(list((GOLDEN / "pipeline").glob("*.blidx"))) == 2


@pytest.mark.parametrize("stream", ["stream", "pipeline/stream"])
def test_a_stream_is_sound(golden: Path, stream: str) -> None:
    succeed("store", "verify", golden / stream, "--depth=payload")


def test_a_stream_says_what_it_said(golden: Path) -> None:
    expected = EXPECTED["stream"]
    assert_holds(succeed_json("store", "show", golden / "stream"), expected["head"])
    assert_holds(succeed_rows("store", "ls", golden / "stream"), expected["objects"])


def test_ranks_get_what_they_got(golden: Path) -> None:
    for stream, expected in (("stream", "stream"), ("pipeline/stream", "pipeline")):
        for rank, lines in enumerate(EXPECTED[expected]["hashes"]):
            assert hash_lines(golden / stream, rank, len(lines)) == lines, (stream, rank)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_comes_to_the_states_that_it_came_to(golden: Path, rank: int) -> None:
    """python/tests/golden_state_test.py resumes from them."""
    stream = golden / "pipeline" / "stream"
    golden_states = json.loads((GOLDEN / "states.json").read_text(encoding="utf-8"))["states"]
    for states in golden_states.values():
        for steps, state in enumerate(states, 1):
            read = succeed_json("consume", stream, f"--rank={rank}", f"--steps={steps}")
            assert state.split(" ")[3:5] == [str(read["next_step"]), read["samples_hash"]]


def test_a_stream_goes_on(golden: Path) -> None:
    succeed("store", "gc", golden / "stream", "--yes")
    succeed("store", "fence", golden / "stream", "--producer=a")
    succeed("store", "verify", golden / "stream", "--depth=payload")


def test_an_index_is_not_made_again(golden: Path) -> None:
    def indexes() -> list[tuple[int, int]]:
        files = sorted((golden / "pipeline").glob("*.blidx"))
        return [(file.stat().st_ino, file.stat().st_mtime_ns) for file in files]

    before = indexes()
    succeed("index", golden / "pipeline" / "p.toml")
    assert indexes() == before
    (golden / "pipeline" / "docs.jsonl").touch()
    succeed("index", golden / "pipeline" / "p.toml")
    assert indexes()[0] != before[0], "here it is"
    assert indexes()[1] == before[1]


def test_a_pipeline_goes_on_with_its_states(golden: Path) -> None:
    folder = golden / "pipeline"
    samples = EXPECTED["pipeline"]["samples"]
    done = run("run", folder / "p.toml", "--store", folder / "stream", f"--steps={len(samples)}")
    assert done.returncode == 0, done.stderr
    for step, expected in enumerate(samples):
        shown = succeed_json("store", "show", folder / "stream", f"--step={step}")
        assert sorted({piece["sample"] for piece in shown["pieces"]}) == expected, step
