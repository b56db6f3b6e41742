# SPDX-License-Identifier: Apache-2.0
"""The quickstart says yes where all is well, and no where anything at all was changed."""

import json
import os
import shutil
import subprocess
import time
import tomllib
from array import array
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from cli_test import COMMAND, succeed_json
from quickstart.balance import balance_of, imbalance, step_balance
from quickstart.delivered import MicroBatch, RankFile, Step
from quickstart.draws import permutation
from quickstart.folder import Folder
from quickstart.records import PartId, Source
from quickstart.report_md import PLOTS
from quickstart.schema import faults_of, report_schema
from quickstart.stream import Stream
from quickstart.tamper import BREAKS, rewrite
from quickstart.verdict import Judge, Verdict
from quickstart.weights import shares_of

ROOT = Path(__file__).resolve().parent.parent
STEPS = 40
RANKS = 8
SPOILED = 9  # The step that tests change.
RANKS_WAIT_S = 120  # For a stream, if nobody tells that there will be none.
VERDICT = "every step on every rank exactly once: "

Reasons = list[str]


def quickstart(
    out: Path, *options: str, build: Path = COMMAND.parent
) -> tuple[int, list[str], str]:
    """Its exit code, its report, and what it says on stderr."""
    done = subprocess.run(
        [
            ROOT / "scripts" / "quickstart",
            f"--out={out}",
            f"--steps={STEPS}",
            "--data=machine",
            *options,
        ],
        env=os.environ | {"BATCHLOOM_BUILD": str(build)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """The folder of a quickstart that ended with yes, with all that ranks got."""
    out = tmp_path_factory.mktemp("quickstart") / "out"
    code, report, said = quickstart(out, "--keep")
    assert (code, report[-1]) == (0, VERDICT + "yes"), "\n".join([*report, said])
    assert (out / "report.txt").read_text().splitlines() == report
    return Folder(out)


def check_files(folder: Folder, *, is_yes: bool) -> None:
    figures = json.loads(folder.report_json.read_text())
    assert not list(faults_of(figures, report_schema()))
    assert figures["exactly_once"] == is_yes
    assert folder.report.read_text().strip("\n") in folder.report_md.read_text()
    for name in PLOTS:
        assert (folder.plots / f"{name}.png").is_file()


def test_all_is_written_down(kept: Folder) -> None:
    check_files(kept, is_yes=True)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("skip-step", "rank 3: 1 steps are missing, the first is step 13"),
        ("dup-step", "rank 3: step 13 came 2 times"),
        ("flip-byte", "step 13: rank 3 has part "),
        ("swap-rank", "step 13: rank 3 has what the plan gives to rank 5"),
    ],
)
def test_what_was_spoiled_is_found(tmp_path: Path, how: str, reason: str) -> None:
    assert how in BREAKS
    code, report, _ = quickstart(tmp_path / "out", f"--break={how}")
    assert (code, report[-1]) == (1, VERDICT + "no")
    assert [line for line in report if reason in line], "\n".join(report)
    assert (tmp_path / "out" / "delivered" / "rank-3").is_file(), "the evidence is kept"
    check_files(Folder(tmp_path / "out"), is_yes=False)


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    code, _, said = quickstart(tmp_path)
    assert code == 2
    assert "not empty, and no quickstart's" in said
    (tmp_path / ".quickstart").touch()
    code, _, said = quickstart(tmp_path)
    assert code == 2
    assert "mine is no quickstart's" in said
    assert (tmp_path / "mine").read_text() == "kept"
    (tmp_path / "mine").unlink()
    assert quickstart(tmp_path)[0] == 0, "a former one's is replaced"
    assert not (tmp_path / "delivered").exists(), "what ranks got is large"


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    code, report, said = quickstart(tmp_path / "file")
    assert (code, report) == (2, [])
    assert f"{tmp_path}/file is no folder: name another --out" in said
    code, report, said = quickstart(tmp_path / "file" / "below")
    assert (code, report) == (1, [])
    assert said == f"quickstart: {tmp_path}/file/below: Not a directory\n"


def build_with(folder: Path, command: str = "", python: str = "") -> Path:
    """A build whose command first does `command`, a line of shell, and whose Python `python`."""
    (folder / "python").mkdir(parents=True)
    script = folder / "batchloom"
    script.write_text(f'#!/bin/sh\n{command}\nexec "{COMMAND}" "$@"\n')
    script.chmod(0o755)
    (folder / "python" / "batchloom").symlink_to(COMMAND.parent / "python" / "batchloom")
    (folder / "python" / "sitecustomize.py").write_text(python)
    return folder


@pytest.mark.parametrize(
    ("command", "who"),
    [
        ('echo "it is too late" >&2; exit 3', "producer 1 ended with 3 before it was killed"),
        ('[ ! -e stream ] || { echo "it is too late" >&2; exit 3; }', "producer 2 ended with 3"),
    ],
)
def test_a_producer_that_fails_is_named(tmp_path: Path, command: str, who: str) -> None:
    build = build_with(tmp_path / "build", command)
    began = time.monotonic()
    code, report, said = quickstart(tmp_path / "out", build=build)
    assert (code, report) == (1, [VERDICT + "no"])
    assert f"quickstart: {who}:\n  it is too late\nlogs: " in said
    assert "rank" not in said.replace("8 ranks", "")
    assert time.monotonic() - began < RANKS_WAIT_S


def test_code_that_has_other_ids_than_its_texts_is_found(tmp_path: Path) -> None:
    other = "echo '{\"text\": \"other\"}' | zstd -q > data/code-python.jsonl.zst"
    build = build_with(tmp_path / "build", f"[ ! -e data ] || {other}")
    code, report, _ = quickstart(tmp_path / "out", build=build)
    assert (code, report[-1]) == (1, VERDICT + "no")
    assert [line for line in report if "documents, made of 1 texts" in line], "\n".join(report)


# By the words of a rank's process: python -m quickstart.rank STREAM RANK ...
DIES = """
import atexit, os, signal, sys
if sys.orig_argv[1:3] == ["-m", "quickstart.rank"] and sys.orig_argv[4] == "{rank}":
    {what}
"""
SAYS = "print('there is no place for me', file=sys.stderr, flush=True)"


@pytest.mark.parametrize(
    ("when", "how", "status"),
    [
        ("{what}", "os._exit(7)", 7),
        ("{what}", "os.kill(os.getpid(), signal.SIGKILL)", -9),
        ("atexit.register(lambda: {what})", "os._exit(7)", 7),  # It has got all.
    ],
)
def test_a_rank_that_ends_badly_is_named(tmp_path: Path, when: str, how: str, status: int) -> None:
    what = f"{SAYS}; " + when.format(what=how)
    build = build_with(tmp_path / "build", python=DIES.format(rank=3, what=what))
    began = time.monotonic()
    code, report, said = quickstart(tmp_path / "out", build=build)
    assert (code, report) == (1, [VERDICT + "no"])
    assert f"quickstart: rank 3 ended with {status}:\n  there is no place for me\nlogs: " in said
    assert time.monotonic() - began < RANKS_WAIT_S


def test_a_first_rank_that_fails_at_its_start_is_named(tmp_path: Path) -> None:
    python = DIES.format(rank=0, what="sys.exit('there is no place for me')")
    build = build_with(tmp_path / "build", python=python)
    code, report, said = quickstart(tmp_path / "out", build=build)
    assert (code, report) == (1, [VERDICT + "no"])
    assert "quickstart: rank 0 ended with 1 before it had half of the steps:\n" in said
    assert "there is no place for me\n" in said


class Replay:
    """Judges again what ranks got in a run that was good, after it was changed."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.pipeline = tomllib.loads(folder.pipeline.read_text())
        tables = self.pipeline["source"]
        self.sources = [Source(folder.path, self.pipeline, table) for table in tables]
        self.plan_of = cache(Stream(COMMAND, folder.stream, RANKS).plan_of)

    def judge(self, files: list[Path]) -> Verdict:
        judge = Judge(self.pipeline, self.sources, self.plan_of)
        return judge.judge([RankFile(file) for file in files], STEPS)

    def after(
        self, folder: Path, change: Callable[[list[Step]], None], ranks: Iterable[int] = (3,)
    ) -> Reasons:
        """Why not, where `change` was made to the steps of these ranks."""
        files = [self.folder.of_rank(number) for number in range(RANKS)]
        for rank in ranks:
            steps = RankFile(files[rank]).load_all()
            change(steps)
            changed = Path(shutil.copy(files[rank], folder))
            rewrite(changed, steps)
            files[rank] = changed
        return self.judge(files).reasons


@pytest.fixture(scope="module")
def replay(kept: Folder) -> Replay:
    return Replay(kept)


def changed(what: str, code: str, place: int, by: int) -> Callable[[list[Step]], None]:
    """Adds `by` to one element of an array of the first micro-batch of one step."""

    def change(steps: list[Step]) -> None:
        micro_batch = steps[SPOILED].micro_batches[0]
        values = array(code, getattr(micro_batch, what))
        values[place] += by
        steps[SPOILED].micro_batches[0] = replace(micro_batch, **{what: values.tobytes()})

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (changed("tokens", "i", 7, 1), "with 1 wrong tokens"),
        (changed("labels", "q", 7, 1), "with 1 wrong labels"),
        (changed("positions", "i", 7, 1), "with 1 wrong positions"),
        (changed("cu_seqlens", "i", 0, 1), "cu_seqlens does not ascend from 0"),
        (changed("cu_seqlens", "i", -1, -1), "cu_seqlens does not ascend from 0"),
    ],
)
def test_every_array_counts(
    replay: Replay, tmp_path: Path, change: Callable[[list[Step]], None], reason: str
) -> None:
    reasons = replay.after(tmp_path, change)
    assert all(one.startswith(f"step {SPOILED}: ") for one in reasons)
    assert [one for one in reasons if reason in one], reasons


def swap_steps(steps: list[Step]) -> None:
    steps[4], steps[5] = steps[5], steps[4]


def swap_contents(steps: list[Step]) -> None:
    a, b = steps[4], steps[5]
    a.micro_batches, b.micro_batches = b.micro_batches, a.micro_batches


def swap_micro_batches(steps: list[Step]) -> None:
    steps[SPOILED].micro_batches.reverse()


def lose_micro_batch(steps: list[Step]) -> None:
    steps[SPOILED].micro_batches.pop()


def change_labels(steps: list[Step]) -> None:
    steps[SPOILED].global_valid_labels += 1


def change_state(steps: list[Step]) -> None:
    steps[SPOILED].state += "0"


def empty_filler(steps: list[Step]) -> None:
    """Nothing but a filler has one token: the texts and code of a machine are longer."""
    fillers = ((step, n) for step in steps for n, m in enumerate(step.micro_batches) if len(m) == 1)
    step, number = next(fillers)
    no_bounds = array("i", [0]).tobytes()
    step.micro_batches[number] = MicroBatch(b"", b"", b"", cu_seqlens=no_bounds)


def one_more(steps: list[Step]) -> None:
    steps.append(replace(steps[-1], step=STEPS))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (swap_steps, "rank 3: the steps came out of order"),
        (swap_contents, "step 4: rank 3 has a sequence of"),
        (swap_micro_batches, "step 9: rank 3 has what the plan gives to no rank"),
        (lose_micro_batch, "step 9: ranks have different numbers of micro-batches"),
        (change_labels, "step 9: ranks were told of"),
        (change_state, "step 9: ranks have different states"),
        (one_more, "rank 3: step 40 came, and the last is step 39"),
        (list.clear, "rank 3: 40 steps are missing, the first is step 0"),
    ],
)
def test_every_change_is_found(
    replay: Replay, tmp_path: Path, change: Callable[[list[Step]], None], reason: str
) -> None:
    reasons = replay.after(tmp_path, change)
    assert [one for one in reasons if one.startswith(reason)], reasons


def test_a_filler_without_its_token_is_found(replay: Replay, tmp_path: Path) -> None:
    (reason,) = replay.after(tmp_path, empty_filler)
    assert reason.endswith(": rank 3 has a micro-batch without tokens: a filler has one")


def test_a_state_that_stays_is_found(replay: Replay, tmp_path: Path) -> None:
    """Also where all ranks have the same."""

    def stay(steps: list[Step]) -> None:
        steps[SPOILED].state = steps[4].state

    reasons = replay.after(tmp_path, stay, ranks=range(RANKS))
    assert reasons == [f"step {SPOILED}: its state is that of step 4"]


def test_a_rank_that_was_killed_is_not_enough(replay: Replay, tmp_path: Path) -> None:
    files = [replay.folder.of_rank(rank) for rank in range(RANKS)]
    cut = tmp_path / "cut"
    cut.write_bytes(files[7].read_bytes()[:-70_000])
    assert "rank 7: its process did not come to its end" in replay.judge([*files[:7], cut]).reasons
    nowhere = replay.judge([*files[:7], tmp_path / "nowhere"]).reasons
    assert "rank 7: 40 steps are missing, the first is step 0" in nowhere


def test_a_plan_with_other_parts_is_found(kept: Folder) -> None:
    replay = Replay(kept)
    plan_of = replay.plan_of

    def with_a_part_twice(step: int) -> list[list[list[PartId]]]:
        plan = plan_of(step)
        return [*plan[:-1], [*plan[-1], *plan[0]]] if step == 3 else plan

    replay.plan_of = with_a_part_twice
    files = [kept.of_rank(rank) for rank in range(RANKS)]
    (reason,) = replay.judge(files).reasons
    assert reason.startswith("step 3: the plan in the stream has other parts: ")


def test_the_oracle_counts_what_was_drawn(replay: Replay) -> None:
    """A verdict of yes is about all of the tokens, and about both sources."""
    verdict = replay.judge([replay.folder.of_rank(rank) for rank in range(RANKS)])
    assert verdict.is_yes, verdict.reasons
    tokens = sum(verdict.tokens)
    step_tokens = replay.pipeline["step"]["tokens"]
    assert (STEPS - 1) * step_tokens < tokens + STEPS * 4096 <= STEPS * (step_tokens + 4096)
    shares = [of_source / tokens for of_source in verdict.tokens]
    assert shares == pytest.approx([0.6, 0.4], abs=4096 / tokens)
    passes = [
        of_source / sum(len(record.tokens) for record in source.records)
        for source, of_source in zip(replay.sources, verdict.tokens, strict=True)
    ]
    assert min(passes) > 1, "no source has begun a second pass"


def test_loads_are_those_of_the_parts_as_drawn_and_as_planned(
    replay: Replay, tmp_path: Path
) -> None:
    stream = Stream(COMMAND, replay.folder.stream, RANKS)
    verdict = replay.judge([replay.folder.of_rank(rank) for rank in range(RANKS)])
    found = balance_of(stream, 4096, verdict.lengths_of_step, shown=SPOILED)
    assert (found.shown.step, [one.step for one in found.steps]) == (SPOILED, list(range(STEPS)))
    assert found.before > found.after >= 1
    words = (f"--store={stream.path}", f"--step={SPOILED}")
    told = succeed_json("plan", "explain", *words)
    assert found.shown.after == pytest.approx(told["imbalance_after"], abs=1e-3)
    assert max(found.shown.after_ms) >= told["lower_bound_ms"] == found.shown.lower_bound_ms
    # The ninth part is the first rank's again.
    loads = step_balance(stream, 4096, SPOILED, [4096, *[64] * 7, 4096, 64], tmp_path).before_ms
    assert loads[0] > 4 * max(loads[1:])
    assert imbalance(loads[2:]) == 1


def test_an_order_is_a_permutation() -> None:
    for records in (1, 2, 5, 64, 65, 1000):
        orders = [list(permutation(17, 1, epoch, records)) for epoch in range(3)]
        assert all(sorted(order) == list(range(records)) for order in orders)
        assert records < 64 or orders[0] != orders[1] != orders[2]


def test_shares_add_up() -> None:
    assert shares_of([1, 1]) == [1 << 34, 1 << 34]
    assert sum(shares_of([0.3, 0.3, 0.4])) == 1 << 35
    assert shares_of([0.6, 0.4])[1] == (4 << 35) // 10
