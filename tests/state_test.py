# SPDX-License-Identifier: Apache-2.0
"""`batchloom state`: what it tells of a pipeline's steps and of saved states is what the stream and
a consumer have by themselves."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_test import COMMAND, DONE, FAILED, fail, run, succeed, succeed_json, succeed_rows
from pipeline_test import counted, edit, folder, run_pipeline
from shards.writers import write_megatron

__all__ = ["folder"]  # A fixture.

SAVE = """
import sys
from pathlib import Path
import batchloom as bl
stream, prefix, *steps = sys.argv[1:]
start, end = map(int, steps)
with bl.Consumer(stream, rank=0, world_size=1, group="g", start=start) as data:
    for step in range(start, end):
        Path(f"{prefix}-{step}").write_bytes(next(data).state)
"""


def save_states(stream: Path, prefix: str, end: int, start: int = 0) -> None:
    """What a trainer saves after each step before `end`, into prefix-STEP."""
    paths = [str(COMMAND.parent / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
    subprocess.run(
        [sys.executable, "-c", SAVE, str(stream), prefix, str(start), str(end)],
        check=True, timeout=120, env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )


def differ(*arguments: str | Path) -> dict:
    """What lies between, of two places that are not one."""
    done = run("state", "diff", *arguments, "--json")
    assert done.returncode == FAILED
    assert "differ: " in done.stderr
    found = json.loads(done.stdout)
    assert found["equal"] is False
    return found


def by_source(rows: list[dict]) -> dict[str, dict]:
    return {row["source"]: row for row in rows}


def test_show_tells_what_is_committed_with_a_step(folder: Path) -> None:
    steps = run_pipeline("--steps=3")["next_step"]
    shown = succeed_json("state", "show", "./stream")
    assert (shown["step"], shown["state_after_step"], shown["producer"]) == (2, 2, "main")
    entry = succeed_json("store", "show", "./stream", "--step=2")
    assert all(shown[name] == entry[name] for name in ("producer", "term", "seq", "key"))
    (recorded,) = (row for row in succeed_rows("store", "ls", "./stream") if "digest" in row)
    assert (shown["membership"], shown["membership_from_step"]) == (recorded["digest"], 0)
    assert (shown["ended"], shown["weights_version"], shown["struck"]) == (False, 0, [])
    sources = by_source(shown["sources"])
    assert list(sources) == ["docs", "chats"]
    assert [row["weight"] for row in sources.values()] == [0.7, 0.3]
    assert [row["share"] for row in sources.values()] == [0.7, 0.3]
    assert [row["gone"] for row in sources.values()] == [False, False]
    assert sum(row["credit"] for row in sources.values()) == pytest.approx(0, abs=0.01)
    before = counted(steps - 1, folder)
    for name, (samples, tokens, _, _) in counted(steps, folder).items():
        drawn = samples - before[name][0], tokens - before[name][1]
        assert (sources[name]["samples"], sources[name]["tokens"]) == drawn
        # Records are parts: what was drawn whole or begun of a pass is behind its place.
        assert 0 < sources[name]["place"] <= samples
    assert succeed("state", "show", "./stream").startswith("stream: ")


def test_quotas_are_what_was_drawn_and_credit(folder: Path) -> None:
    run_pipeline("--steps=3")
    drawn = by_source(differ("./stream", "start", "2")["sources"])
    shown = by_source(succeed_json("state", "show", "./stream", "--step=2")["sources"])
    tokens = sum(row["tokens"] for row in drawn.values())
    for name, weight in (("docs", 0.7), ("chats", 0.3)):
        quota = drawn[name]["tokens"] + shown[name]["credit"]
        assert quota == pytest.approx(weight * tokens, abs=0.7 * 256), "a part may be under way"


def test_diff_counts_what_was_drawn_between(folder: Path) -> None:
    edit(folder, 'weight = 0.3\nexhausted = "drop"', 'weight = 0.3\nexhausted = "repeat"')
    edit(folder, 'weight = 0.7\nexhausted = "drop"', 'weight = 0.7\nexhausted = "stop"')
    steps = run_pipeline()["next_step"]
    assert steps > 5
    first, last = differ("./stream", "start", "2"), differ("./stream", "2", str(steps - 1))
    whole = differ("./stream", str(steps - 1), "start")  # In the order of the stream all the same.
    assert (first["first_step"], first["end_step"], first["steps"]) == (0, 3, 3)
    assert (last["first_step"], last["end_step"]) == (3, steps)
    assert (whole["first_step"], whole["steps"]) == (0, steps)
    expected = counted(steps, folder)
    for name, (samples, tokens, _, _) in expected.items():
        row = by_source(whole["sources"])[name]
        assert (row["samples"], row["tokens"]) == (samples, tokens)
        parts = [by_source(found["sources"])[name] for found in (first, last)]
        assert sum(part["tokens"] for part in parts) == tokens
    assert whole["samples"] == sum(samples for samples, _, _, _ in expected.values())
    chats = by_source(whole["sources"])["chats"]
    epoch = by_source(succeed_json("state", "show", "./stream")["sources"])["chats"]["epoch"]
    assert chats["first_pass"] == 0
    assert chats["last_pass"] in {epoch, epoch - 1}, "the next pass may begin with the next sample"
    assert chats["last_pass"] > 0


def test_equal_places_are_equal(folder: Path) -> None:
    run_pipeline("--steps=3")
    save_states(folder / "stream", "saved", 3)
    for a, b in (("1", "1"), ("start", "start"), ("1", "saved-1"), ("saved-2", "saved-2")):
        equal = succeed_json("state", "diff", "./stream", a, b)
        assert (equal["equal"], equal["steps"]) == (True, 0)
    assert succeed("state", "diff", "./stream", "1", "saved-1").startswith("equal: yes")


def test_a_saved_state_says_what_it_is_of(folder: Path) -> None:
    run_pipeline("--steps=4")
    save_states(folder / "stream", "saved", 4)
    shown = succeed_json("state", "show", "./stream", "--saved=saved-2")
    plain = succeed_json("state", "show", "./stream", "--step=2")
    assert shown.items() > plain.items(), "all that is committed with the step"
    _, _, uuid, next_step, samples_hash, last, _ = Path("saved-2").read_text().split(" ")
    assert (shown["stream"], shown["saved_next_step"]) == (uuid, int(next_step))
    assert shown["samples_hash"] == samples_hash
    assert f"{shown['last_step']}:{shown['samples_digest']}" == last
    assert shown["same_samples"] == "yes: the stream has them"
    Path("saved-2").write_text(Path("saved-2").read_text() + "\n")  # As an editor leaves it.
    assert succeed_json("state", "show", "./stream", "--saved=saved-2") == shown
    found = differ("./stream", "saved-3", "saved-1")
    assert (found["first_step"], found["end_step"]) == (2, 4)


def test_states_of_jobs_that_began_elsewhere_differ(folder: Path) -> None:
    run_pipeline("--steps=4")
    save_states(folder / "stream", "all", 4)
    save_states(folder / "stream", "late", 4, start=2)
    found = differ("./stream", "all-3", "late-3")
    assert found["steps"] == 0
    assert "did not begin at one step" in found["samples_hash"]


def test_changed_settings_are_told(folder: Path) -> None:
    run_pipeline("--steps=2")
    edit(folder, "weight = 0.7", "weight = 2.7")
    run_pipeline("--steps=4", "--change-from=2")
    change = {"from_step": 2, "change": "source.docs.weight: 0.7 -> 2.7"}
    assert differ("./stream", "start", "3")["settings"] == [change]
    assert differ("./stream", "1", "2")["settings"] == [change]
    assert differ("./stream", "0", "1")["settings"] == []
    assert differ("./stream", "2", "3")["settings"] == [], "both were reached by the new ones"
    weights = [
        by_source(succeed_json("state", "show", "./stream", f"--step={step}")["sources"])["docs"]
        for step in (1, 2)
    ]
    assert [row["weight"] for row in weights] == [0.7, 2.7]
    assert weights[1]["share"] == pytest.approx(0.9)


def test_a_schedule_weighs_what_it_says_of_the_step(folder: Path) -> None:
    points = '[{ step = 0, value = 0.2 }, { step = 4, value = 1, ramp = "linear" }]'
    edit(folder, "weight = 0.7", f"weight = {points}")
    run_pipeline("--steps=4")
    for step, weight in ((0, 0.2), (1, 0.4), (3, 0.8)):
        shown = succeed_json("state", "show", "./stream", f"--step={step}")
        assert by_source(shown["sources"])["docs"]["weight"] == pytest.approx(weight)


def write_ids(folder: Path, records: list[list[int]]) -> None:
    """A Megatron data set x, and a pipeline of it in ids-p.toml."""
    write_megatron(folder / "x", records)
    text = (folder / "p.toml").read_text(encoding="utf-8").split("[[source]]")[0]
    text = text.replace('{ kind = "bytes" }', '"ids"').replace("tokens = 4096", "tokens = 512")
    text += '[[source]]\nname = "x"\nfiles = ["x.bin"]\norder = "file"\n'
    (folder / "p.toml").write_text(text, encoding="utf-8")


def test_struck_records_are_told_by_name(folder: Path) -> None:
    records = [[7] * 100 for _ in range(24)]
    records[13][5] = 400  # Above vocab, which reading it finds.
    write_ids(folder, records)
    run_pipeline("--fsync=none")
    drawn = {sample.split(":")[2] for step in range(4) for sample in samples_in(folder, step)}
    assert {"12", "14"} < drawn
    assert "13" not in drawn
    struck = [{"source": "x", "record": 13}]
    assert succeed_json("state", "show", "./stream")["struck"] == struck
    assert differ("./stream", "start", "3")["struck"] == struck
    assert differ("./stream", "3", "2")["struck"] == [], "it was struck out before"


def samples_in(folder: Path, step: int) -> list[str]:
    shown = succeed_json("store", "show", folder / "stream", f"--step={step}")
    return [piece["sample"] for piece in shown["pieces"]]


def test_a_state_that_was_reclaimed_is_not_made_up(folder: Path) -> None:
    run_pipeline("--steps=6")
    pin = ("--group=g", "--id=keep", "--step=2")
    succeed("store", "pin", "./stream", *pin)
    succeed("store", "gc", "./stream", "--yes", "--slots-kept=1")
    old = succeed_json("state", "show", "./stream", "--step=3")
    assert old["state"].startswith("removed: ")
    assert "struck" not in old
    docs = by_source(old["sources"])["docs"]
    assert docs["weight"] == 0.7
    assert docs["samples"] > 0
    assert "place" not in docs
    assert "state" not in succeed_json("state", "show", "./stream", "--step=5")
    found = differ("./stream", "2", "5")
    unknown = "unknown: the state before step 3, or its settings, were removed since"
    assert found["struck"] == unknown
    assert by_source(found["sources"])["docs"]["samples"] > 0
    for refused in (fail("state", "show", "./stream", "--step=1"),
                    fail("state", "diff", "./stream", "start", "4")):
        assert "was trimmed: the stream begins at step 2" in refused


def test_where_settings_are_trimmed_nobody_knows_what_was_struck(folder: Path) -> None:
    """The state itself may still be there; what its sources are called is not."""
    run_pipeline("--steps=6")
    succeed("store", "pin", "./stream", "--group=g", "--id=keep", "--step=2")
    succeed("store", "gc", "./stream", "--yes")
    assert differ("./stream", "1", "5")["struck"].startswith("unknown: the state before step 2, ")
    assert differ("./stream", "2", "5")["struck"] == []


def test_what_is_not_there_is_refused(folder: Path) -> None:
    run_pipeline("--steps=2")
    not_yet = "step 2 is not committed yet: "
    assert not_yet in fail("state", "show", "./stream", "--step=2")
    assert not_yet in fail("state", "diff", "./stream", "0", "2")
    last = str(2**64 - 1)
    assert f"step {last} is not committed yet" in fail("state", "diff", "./stream", "start", last)
    missing = fail("state", "diff", "./stream", "0", "no.state")
    assert "no.state: there is no such file" in missing
    (folder / "garbage").write_bytes(bytes(range(256)) * 4)
    refused = fail("state", "show", "./stream", "--saved=garbage")
    assert "garbage: " in refused
    assert "is not the state of a consumer" in refused
    assert "Path(...).write_bytes(batch.state)" in refused
    (folder / "checkpoint.pt").write_bytes(bytes(100_000))
    assert "write_bytes(batch.state)" in fail("state", "diff", "./stream", "0", "checkpoint.pt")
    assert run("store", "init", "./empty").returncode == DONE
    assert "nothing was committed" in fail("state", "show", "./empty")


def test_another_streams_state_is_refused(folder: Path) -> None:
    for stream in ("stream", "other"):
        run_pipeline("--steps=2", f"--store=./{stream}")
    save_states(folder / "other", "saved", 2)
    refused = fail("state", "show", "./stream", "--saved=saved-1")
    assert "saved-1: it is of stream " in refused
    assert all(part in refused for part in (uuid_of("stream"), uuid_of("other")))


def uuid_of(stream: str) -> str:
    return succeed_json("store", "init", f"./{stream}")["uuid"]


def test_a_state_of_a_step_that_was_set_back_is_refused(folder: Path) -> None:
    run_pipeline("--steps=2")
    shutil.copytree("stream", "copy")
    run_pipeline("--steps=3")
    save_states(folder / "stream", "saved", 3)
    edit(folder, "weight = 0.7", "weight = 7")
    run_pipeline("--steps=3", "--change-from=2", "--store=./copy")
    refused = fail("state", "diff", "./copy", "0", "saved-2")
    assert "saved-2: " in refused
    assert "has another history than the one the state is of" in refused


@pytest.mark.parametrize("producer", ["other", "main"])
def test_a_stream_of_no_pipeline_has_no_state(folder: Path, producer: str) -> None:
    options = ("--synthetic", f"--producer={producer}", "--steps=2", "--ranks=4")
    assert run("produce", "./stream", *options).returncode == DONE
    refused = fail("state", "show", "./stream")
    if producer == "other":
        assert "was committed by producer other, which is no pipeline" in refused
        assert "`batchloom store show --step=1`" in refused
    else:
        assert "did something else than a pipeline write this stream?" in refused
