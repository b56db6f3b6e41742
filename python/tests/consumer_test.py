# SPDX-License-Identifier: Apache-2.0
"""Where a consumer begins, how it goes on, and what it refuses."""

import json
import os
from pathlib import Path
from typing import Any

import batchloom as bl
import numpy as np
import pytest
from conftest import Run, produce


def steps_of(data: bl.Consumer) -> list[int]:
    return [batch.step for batch in data]


def pins_of(run: Run, stream: Path) -> list[str]:
    """NAME@STEP of each pin."""
    rows = map(json.loads, run("store", "pins", stream, "--json").splitlines())
    return sorted(f"{row['id']}@{row['step']}" for row in rows if row["kind"] == "pin")


def test_resuming_goes_on_exactly(stream: Path) -> None:
    with bl.Consumer(stream, rank=1, world_size=4, group="a") as data:
        batches = list(data)
    with bl.Consumer(stream, rank=1, world_size=4, group="b", resume=batches[4].state) as data:
        assert data.cursor == 5
        rest = list(data)
    assert [batch.step for batch in rest] == list(range(5, 12))
    assert [batch.state for batch in rest] == [batch.state for batch in batches[5:]]
    first = rest[0].micro_batches[0].tokens.tolist()
    assert first == batches[5].micro_batches[0].tokens.tolist()


def test_a_group_that_has_run_needs_its_state(stream: Path) -> None:
    data = bl.Consumer(stream, rank=0, world_size=4, group="job")
    state = next(data).state
    del data  # As a crash: the cursor stays open.
    with pytest.raises(bl.ResumeMissing, match="group job has run before"):
        bl.Consumer(stream, rank=0, world_size=4, group="job")
    assert issubclass(bl.ResumeMissing, bl.Invalid)
    with bl.Consumer(stream, rank=0, world_size=4, group="job", start=0) as data:
        assert data.cursor == 0
    with bl.Consumer(stream, rank=0, world_size=4, group="job", resume=state) as data:
        assert data.cursor == 1
    with bl.Consumer(stream, rank=0, world_size=4, group="job") as data:
        assert data.cursor == 0, "it was closed, and nothing pinned"
        data.pin(state, name="step-1")
    with pytest.raises(bl.ResumeMissing, match="pin step-1 at step 1"):
        bl.Consumer(stream, rank=2, world_size=4, group="job")


def test_an_error_in_the_loop_leaves_the_groups_cursor_open(stream: Path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        bl.Consumer(stream, rank=0, world_size=4, group="g") as data,
    ):
        print(1 / (next(data).step))
    with pytest.raises(bl.ResumeMissing):
        bl.Consumer(stream, rank=0, world_size=4, group="g")


def test_states_of_other_streams_are_refused(stream: Path, endless: Path) -> None:
    with bl.Consumer(endless, rank=0, world_size=2) as data:
        state = next(data).state
    with pytest.raises(bl.Invalid, match="state is of stream"):
        bl.Consumer(stream, rank=0, world_size=4, resume=state)
    for damaged in (b"", state[:-1], state + b"0", b"pickle"):
        with pytest.raises(bl.Invalid, match="not the state of a consumer"):
            bl.Consumer(endless, rank=0, world_size=2, resume=damaged)
    with pytest.raises(bl.Invalid, match="not both"):
        bl.Consumer(endless, rank=0, world_size=2, resume=state, start=0)


def test_seek_goes_back_and_forward(stream: Path) -> None:
    with bl.Consumer(stream, rank=0, world_size=4) as data:
        batches = list(data)
        data.seek(batches[2].state)
        assert data.cursor == 3
        assert next(data).step == 3
        data.seek(batches[9].state)
        assert steps_of(data) == [10, 11]
        with pytest.raises(bl.Invalid, match="not the state"):
            data.seek(b"x")


def test_pins_keep_the_newest_of_their_series(run: Run, stream: Path) -> None:
    with bl.Consumer(stream, rank=0, world_size=4, group="g") as data:
        for batch in data:
            if batch.step % 4 == 3:
                data.pin(batch.state, name=f"step-{batch.step}", keep=2)
            if batch.step == 3:
                data.pin(batch.state, name="best")
        assert pins_of(run, stream) == ["best@4", "step-11@12", "step-7@8"]
        assert data.unpin("best") == 1
        assert data.unpin("best") == 0
        with pytest.raises(bl.Invalid, match="keep=0"):
            data.pin(batch.state, name="x", keep=0)
        with pytest.raises(bl.Invalid, match="pin"):
            data.pin(batch.state, name="Not A Name")
    assert pins_of(run, stream) == ["step-11@12", "step-7@8"]


def test_the_first_rank_reports_the_groups_cursor(run: Run, stream: Path) -> None:
    with bl.Consumer(stream, rank=1, world_size=4, group="job") as second:
        next(second)
        assert "job" not in run("store", "pins", stream)
        with bl.Consumer(stream, rank=0, world_size=4, group="job") as first:
            for _ in range(3):
                next(first)
            assert "job" in run("store", "pins", stream)


def test_a_timeout_leaves_the_step_to_come(run: Run, endless: Path) -> None:
    with bl.Consumer(endless, rank=0, world_size=2) as data:
        for _ in range(3):
            next(data)
        with pytest.raises(bl.Unavailable, match="step 3"):
            data.next(timeout=0)
        produce(run, endless, "--ranks=2", "--steps=4", "--record-tokens=64", "--end")
        assert data.next(timeout=60).step == 3
        assert data.next(timeout=60) is None
        assert list(data) == []
        with pytest.raises(bl.Invalid, match="timeout=-1"):
            data.next(timeout=-1)


def test_a_closed_consumer_says_so(stream: Path) -> None:
    data = bl.Consumer(stream, rank=0, world_size=4)
    data.close()
    data.close()
    with pytest.raises(bl.Cancelled, match="closed"):
        next(data)
    assert data.cursor == 0


@pytest.mark.parametrize("world_size", [1, 2, 3, 8])
def test_other_world_sizes_get_the_same_samples(stream: Path, world_size: int) -> None:
    def samples_of(batches: list[bl.Batch]) -> list[set[tuple]]:
        return [{p.sample for mb in b.micro_batches for p in mb.stored.pieces} for b in batches]

    def read(rank: int, world: int) -> list[bl.Batch]:
        with bl.Consumer(stream, rank=rank, world_size=world) as data:
            return list(data)

    planned = [set.union(*step) for step in zip(*(samples_of(read(r, 4)) for r in range(4)))]
    ranks = [read(rank, world_size) for rank in range(world_size)]
    for number, batches in enumerate(zip(*ranks)):
        samples = samples_of(list(batches))
        assert set.union(*samples) == planned[number]
        assert sum(map(len, samples)) == len(planned[number]), "a sample is on two ranks"
        assert len({len(batch.micro_batches) for batch in batches}) == 1
    assert ranks[0][-1].state == read(0, 4)[-1].state


def test_a_sample_that_fits_nowhere_is_named(run: Run, tmp_path: Path) -> None:
    stream = produce(run, tmp_path / "s", "--ranks=4", "--steps=1", "--ring", "--records-per-run=1")
    with (
        pytest.raises(bl.DoesNotFit, match=r"of 2048 tokens.*holds 512 tokens"),
        bl.Consumer(stream, rank=0, world_size=2) as data,
    ):
        next(data)
    assert issubclass(bl.DoesNotFit, bl.Invalid)


def test_split_samples_must_be_wanted(run: Run, tmp_path: Path) -> None:
    stream = produce(run, tmp_path / "s", "--ranks=2", "--steps=1", "--ring", "--end")
    with (
        pytest.raises(bl.Invalid, match="step 0 has samples that lie on 2 ranks"),
        bl.Consumer(stream, rank=0, world_size=2) as data,
    ):
        next(data)
    with bl.Consumer(stream, rank=0, world_size=2, split_samples=True, start=0) as data:
        rings = [mb.stored.ring for mb in next(data).micro_batches]
    assert [0, 1] in rings


def test_what_cannot_be_is_invalid(stream: Path) -> None:
    for settings, what in (
        ({"rank": 4, "world_size": 4}, "rank 4 is none of 4 ranks"),
        ({"rank": -1, "world_size": 4}, "rank=-1"),
        ({"rank": 0}, "give world_size"),
        ({"rank": 0, "world_size": 0}, "world_size=0"),
        ({"rank": 0, "world_size": 4, "topology": "dp=2"}, "leave out world_size"),
        ({"rank": 0, "topology": "dp=2 xp=1"}, "xp"),
        ({"rank": 0, "world_size": 4, "framework": "jax"}, "framework='jax'"),
        ({"rank": 0, "world_size": 4, "group": "Job 7"}, "group"),
        ({"rank": 0, "world_size": 4, "start": -3}, "start=-3"),
        ({"rank": 2**70, "world_size": 4}, f"rank={2**70}: a whole number of 64 bits"),
        ({"rank": 0, "world_size": 4, "open_timeout": float("nan")}, "open_timeout"),
    ):
        with pytest.raises(bl.Invalid, match=what):
            bl.Consumer(stream, **settings)
    with pytest.raises(TypeError):
        bl.Consumer(stream, world_size=4)


def test_whole_numbers_of_numpy_are_numbers(stream: Path) -> None:
    one = np.int64(1)
    with bl.Consumer(
        stream, rank=one, world_size=np.uint8(4), start=one, min_slot=np.int32(0),
        prefetch_bytes=np.uint64(1 << 20),
    ) as data:
        batch = next(data)
        assert batch.step == 1
        data.pin(batch.state, name="a", keep=one)


@pytest.mark.parametrize("wrong", [True, "8", b"8", 2.0, np.True_, np.float32(2), [2], object()])
def test_what_is_no_whole_number_is_named(stream: Path, wrong: Any) -> None:
    right = {"rank": 0, "world_size": 4, "start": 0, "min_slot": 0, "prefetch_bytes": 1 << 20}
    kind = type(wrong).__name__
    for name in right:
        said = rf"^{name}=.*: a whole number is needed, not {kind}$"
        with pytest.raises(TypeError, match=said):
            bl.Consumer(stream, **(right | {name: wrong}))
    for name in ("rank", "min_slot", "prefetch_bytes"):
        with pytest.raises(TypeError, match=f"^{name}=None: a whole number is needed"):
            bl.Consumer(stream, **(right | {name: None}))
    with bl.Consumer(stream, **right) as data:
        state = next(data).state
        with pytest.raises(TypeError, match=rf"^keep=.*: a whole number is needed, not {kind}$"):
            data.pin(state, name="a", keep=wrong)


def test_what_is_no_state_is_named(stream: Path) -> None:
    said = "the bytes of a batch's state are needed, not str$"
    with pytest.raises(TypeError, match=f"^resume: {said}"):
        bl.Consumer(stream, rank=0, world_size=4, resume="batchloom-state 2 ...")
    with bl.Consumer(stream, rank=0, world_size=4) as data:
        with pytest.raises(TypeError, match=f"^state: {said}"):
            data.seek("batchloom-state 2 ...")
        with pytest.raises(TypeError, match=f"^state: {said}"):
            data.pin("batchloom-state 2 ...", name="a")


def test_a_stream_that_does_not_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(bl.NotFound) as raised:
        bl.Consumer(tmp_path / "none", rank=0, world_size=1, open_timeout=0)
    for part in (str(tmp_path / "none"), os.uname().nodename, "all hosts share", "s3://"):
        assert part in str(raised.value)
    with pytest.raises(bl.Invalid, match="did you mean ./none"):
        bl.Consumer("none", rank=0, world_size=1)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(bl.NotFound):
        bl.Consumer(Path("none"), rank=0, world_size=1, open_timeout=0)


def test_trimmed_and_damaged_steps_have_kinds_of_their_own(run: Run, stream: Path) -> None:
    run("store", "pin", stream, "--group=x", "--id=a", "--step=6")
    run("store", "gc", stream, "--yes")
    with pytest.raises(bl.NotFound, match="step 0 was trimmed: the stream begins at step 6"):
        bl.Consumer(stream, rank=0, world_size=4)
    for batch_object in stream.glob("d/*/*.tgb"):
        batch_object.write_bytes(batch_object.read_bytes()[:-1] + b"x")
    with bl.Consumer(stream, rank=0, world_size=2, start=6) as data:
        with pytest.raises(bl.Corruption, match="step 6"):
            next(data)
        assert data.cursor == 6
