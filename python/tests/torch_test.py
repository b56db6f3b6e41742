# SPDX-License-Identifier: Apache-2.0
"""Tensors without a copy, and the data set for DataLoader."""

from pathlib import Path

import batchloom as bl
import pytest
from conftest import Run, produce

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
from torch.utils.data import DataLoader  # noqa: E402


def dataset(stream: Path, **settings: object) -> "bl.torch.Dataset":
    return bl.torch.Dataset(stream, **{"rank": 0, "world_size": 4, "group": "t"} | settings)


def loader(data: "bl.torch.Dataset", workers: int, **settings: object) -> DataLoader:
    context = "fork" if workers else None
    return DataLoader(
        data, batch_size=None, num_workers=workers, multiprocessing_context=context, **settings
    )


def tokens_of(batches: list) -> list[list[int]]:
    return [[t for mb in batch.micro_batches for t in mb.tokens.tolist()] for batch in batches]


def as_numpy(stream: Path, rank: int = 0, world_size: int = 4) -> list[bl.Batch]:
    with bl.Consumer(stream, rank=rank, world_size=world_size, group="numpy", start=0) as data:
        return list(data)


def test_tensors_are_views_of_the_same_buffer(stream: Path) -> None:
    with bl.Consumer(stream, rank=0, world_size=4, framework="torch") as data:
        mb = next(data).micro_batches[0]
    types = [t.dtype for t in (mb.tokens, mb.labels, mb.positions, mb.cu_seqlens)]
    assert types == [torch.int32, torch.int64, torch.int32, torch.int32]
    assert mb.labels.data_ptr() == mb.labels.data_ptr()
    mb.labels.fill_(7)
    assert (mb.labels == 7).all()
    expected = as_numpy(stream)[0].micro_batches[0]
    assert mb.tokens.tolist() == expected.tokens.tolist()
    assert mb.positions.tolist() == expected.positions.tolist()
    assert mb.cu_seqlens.tolist() == expected.cu_seqlens.tolist()


def test_a_step_trains(stream: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(1 << 16, 4), torch.nn.Linear(4, 1 << 10))
    with bl.Consumer(stream, rank=0, world_size=4, framework="torch") as data:
        batch = next(data)
    for mb in batch.micro_batches:
        labels = torch.where(mb.labels >= 0, mb.labels % (1 << 10), mb.labels)
        loss = torch.nn.functional.cross_entropy(model(mb.tokens), labels, reduction="sum")
        (loss / batch.global_valid_labels).backward()
    assert model[0].weight.grad.abs().sum() > 0


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_workers_deliver_every_step_in_order(stream: Path, workers: int) -> None:
    batches = list(loader(dataset(stream, start=0), workers))
    assert [batch.step for batch in batches] == list(range(12))
    expected = as_numpy(stream)
    assert tokens_of(batches) == tokens_of(expected)
    assert [b.global_valid_labels for b in batches] == [b.global_valid_labels for b in expected]
    if workers <= 1:
        assert [batch.state for batch in batches] == [batch.state for batch in expected]


@pytest.mark.parametrize("workers", [0, 2, 3])
def test_skipped_steps_keep_the_order(run: Run, stream: Path, workers: int) -> None:
    for step in (0, 4, 5, 11):
        run("store", "skip", stream, f"--step={step}")
    batches = list(loader(dataset(stream, start=0), workers))
    assert [batch.step for batch in batches] == [1, 2, 3, 6, 7, 8, 9, 10]


@pytest.mark.parametrize(("before", "after"), [(0, 0), (0, 2), (2, 0), (2, 3)])
def test_a_checkpoint_goes_on_with_any_number_of_workers(
    stream: Path, before: int, after: int
) -> None:
    data = dataset(stream)
    for batch in loader(data, before):
        if batch.step == 4:
            break
    checkpoint = data.state_dict() if before == 0 else {"state": batch.state}
    resumed = dataset(stream)
    with pytest.raises(bl.ResumeMissing):
        next(iter(resumed))
    resumed.load_state_dict(checkpoint)
    rest = list(loader(resumed, after))
    assert [batch.step for batch in rest] == list(range(5, 12))
    assert tokens_of(rest) == tokens_of(as_numpy(stream)[5:])


def test_a_state_stands_in_any_checkpoint(stream: Path, tmp_path: Path) -> None:
    with bl.Consumer(stream, rank=0, world_size=4) as data:
        state = next(data).state
    torch.save({"data": state}, tmp_path / "checkpoint.pt")
    loaded = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    with bl.Consumer(stream, rank=0, world_size=4, resume=loaded["data"]) as data:
        assert data.cursor == 1


def test_every_pass_of_workers_begins_alike(stream: Path) -> None:
    batches = loader(dataset(stream, start=3), 2, persistent_workers=True)
    for _ in range(2):
        assert [batch.step for batch in batches] == list(range(3, 12))


def test_state_dict_does_not_pretend_to_know_what_workers_delivered(stream: Path) -> None:
    data = dataset(stream)
    before = data.state_dict()
    for _ in loader(data, 2):
        with pytest.raises(bl.Invalid, match="batch.state"):
            data.state_dict()
    data.load_state_dict(before)
    assert data.state_dict() == before


def test_steps_are_read_by_their_worker_alone(
    stream: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = dataset(stream, start=0)
    fetched: list[int] = []
    open_consumer = data._open

    def counted(**settings: object) -> object:
        consumer = open_consumer(**settings)
        fetched.append(0)
        read = consumer.next

        class Counted:
            def __getattr__(self, name: str) -> object:
                return getattr(consumer, name)

            def next(self, timeout: float | None) -> object:
                batch = read(timeout)
                fetched[-1] = consumer.counters()["client_fetched_bytes"]
                return batch

        return Counted()

    monkeypatch.setattr(data, "_open", counted)
    steps = [[batch.step for batch in data._read_turns(worker, 3)] for worker in range(3)]
    assert steps == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]
    in_turns = sum(fetched)
    assert [batch.step for batch in data._read_all()] == list(range(12))
    assert in_turns == fetched[-1] > 0


def test_an_error_in_a_worker_has_its_kind(run: Run, tmp_path: Path) -> None:
    stream = produce(run, tmp_path / "s", "--ranks=2", "--steps=2", "--ring", "--end")
    with pytest.raises(bl.Invalid, match="lie on 2 ranks"):
        list(loader(dataset(stream, world_size=2), 1))


def test_numbers_are_whole_ones(stream: Path) -> None:
    four = torch.tensor(4)
    assert [batch.step for batch in bl.torch.Dataset(stream, rank=0, world_size=four)][:1] == [0]
    right = {"rank": 0, "world_size": 4, "start": 0, "min_slot": 0, "prefetch_bytes": 1 << 20}
    for name in right:
        for wrong in (True, "8"):
            with pytest.raises(TypeError, match=f"^{name}={wrong!r}: a whole number is needed"):
                bl.torch.Dataset(stream, **(right | {name: wrong}))


def test_lengths_may_be_a_tensor() -> None:
    assert bl.plan(torch.tensor([100, 20]), "dp=2").ranks == bl.plan([100, 20], "dp=2").ranks
    for wrong, place in ((torch.tensor([1.5]), "1.5"), (torch.tensor([True]), "True")):
        with pytest.raises(TypeError, match=rf"lengths\[0\]={place}:"):
            bl.plan(wrong, "dp=2")


def test_a_checkpoint_without_a_state_is_refused_by_name(stream: Path) -> None:
    data = bl.torch.Dataset(stream, rank=0, world_size=4)
    needed = "the bytes of a batch's state are needed, not"
    with pytest.raises(TypeError, match=rf'^state\["state"\]: {needed} NoneType$'):
        data.load_state_dict({})
    with pytest.raises(TypeError, match=f"^resume: {needed} str$"):
        bl.torch.Dataset(stream, rank=0, world_size=4, resume="x")
