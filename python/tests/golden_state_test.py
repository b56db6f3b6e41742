# SPDX-License-Identifier: Apache-2.0
"""States that builds of the day have put into checkpoints resume where they did, with the same
bytes. tests/golden/make.py made them."""

import json
import shutil
from pathlib import Path

import batchloom as bl
import pytest
from conftest import ROOT
from make import arrays_hash

GOLDEN = ROOT / "tests" / "golden" / "v1"
EXPECTED = json.loads((GOLDEN / "states.json").read_text(encoding="utf-8"))
STEPS = len(EXPECTED["arrays"][0])
VERSIONS = sorted(EXPECTED["states"])


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "pipeline" / "stream", tmp_path / "stream"))


def consumer(stream: Path, rank: int, state: str) -> bl.Consumer:
    return bl.Consumer(stream, rank=rank, world_size=2, group="golden", resume=state.encode())


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_state_resumes_at_its_step_with_the_same_bytes(
    golden: Path, version: str, rank: int
) -> None:
    for done in range(1, STEPS):  # After so many steps.
        with consumer(golden, rank, EXPECTED["states"][version][done - 1]) as data:
            for step in range(done, STEPS):
                batch = next(data)
                assert batch.step == step
                assert arrays_hash(batch) == EXPECTED["arrays"][rank][step]
                # What this build puts into checkpoints, once a step was delivered to it.
                assert batch.state.decode() == EXPECTED["states"]["2"][step]


def test_a_state_of_the_last_step_is_at_the_end(golden: Path) -> None:
    for version in VERSIONS:
        with consumer(golden, 1, EXPECTED["states"][version][-1]) as data:
            assert list(data) == []


def changed(state: str, field: int) -> str:
    """Another last digit of a field."""
    fields = state.split(" ")
    fields[field] = fields[field][:-1] + ("2" if fields[field].endswith("1") else "1")
    return " ".join(fields)


STATE = EXPECTED["states"]["2"][1]
OLD = EXPECTED["states"]["1"][1]


@pytest.mark.parametrize(
    ("mangled", "why"),
    [
        *((changed(STATE, field), "it was changed: its check is") for field in range(2, 7)),
        (STATE[:-1], "changed or cut short"),
        (STATE.rsplit(" ", 1)[0], "changed or cut short"),
        (STATE + "\n", "changed or cut short"),
        (STATE.replace("state 2", "state 1"), "changed or cut short"),
        (STATE.replace("state 2", "state 3"), "of version .*3.*newer"),
        (STATE.upper(), "does not begin with"),
        ("", "does not begin with"),
        (OLD[:-1], "changed or cut short"),
        (OLD.replace(" 2 ", " +2 "), "changed or cut short"),
        (changed(OLD, 2), "the state is of stream .* and this is stream"),
        (OLD.replace(" 2 ", " 7 "), "step 7 will not come: the stream has ended before step 3"),
    ],
)
def test_a_mangled_state_is_refused_by_name(golden: Path, mangled: str, why: str) -> None:
    with pytest.raises(bl.Invalid, match=why):
        consumer(golden, 0, mangled)
    assert not (golden / "pin" / "golden").exists(), "and nothing is left behind"
