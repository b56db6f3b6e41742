# SPDX-License-Identifier: Apache-2.0
"""`batchloom run` where settings or sources have changed since the stream was begun."""

from pathlib import Path

import pytest
from cli_test import DONE, run, succeed, succeed_json
from pipeline_test import all_hashes, edit, folder, refusal, run_pipeline, write_pipeline

__all__ = ["folder"]  # A fixture.


def test_other_settings_are_refused_unless_they_are_to_change(folder: Path) -> None:
    run_pipeline("--steps=2")
    assert "no setting that decides" in refusal("--change-from=2")
    edit(folder, "weight = 0.7", "weight = 2.7")
    assert refusal().endswith(
        "the stream was made by other settings of what steps hold:\n"
        "  source.docs.weight: 0.7 -> 2.7\n"
        "go on with those, use another stream, or have the change hold from its next step on: "
        "--change-from=2\n"
    )
    assert "from the stream's next step on, which is 2, and not from step 4" in refusal(
        "--change-from=4"
    )
    before = all_hashes(folder / "stream")
    assert run_pipeline("--steps=3", "--change-from=2")["next_step"] == 3
    assert run_pipeline("--steps=5", "--change-from=2")["next_step"] == 5, "the same command again"
    after = all_hashes(folder / "stream")
    assert [hashes[:2] for hashes in after] == before, "what was committed stays"
    edit(folder, "weight = 2.7", "weight = 0.7")
    assert "source.docs.weight: 2.7 -> 0.7" in refusal()
    shares = []
    for steps in (range(2), range(2, 5)):
        of_step = [succeed_json("store", "show", folder / "stream", f"--step={n}") for n in steps]
        pieces = [piece for shown in of_step for piece in shown["pieces"]]
        docs = sum(p["hi"] - p["lo"] for p in pieces if p["source"] == "docs")
        shares.append(docs / sum(p["hi"] - p["lo"] for p in pieces))
    assert shares[0] == pytest.approx(0.7, abs=0.05)
    assert shares[1] == pytest.approx(0.9, abs=0.05)


def test_a_source_that_changed_is_another_stream(folder: Path) -> None:
    run_pipeline("--steps=3")
    with (folder / "docs-0.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"text": "one more"}\n')
    refused = refusal()
    assert 'source.docs.file."docs-0.jsonl": ' in refused
    assert "--change-from=3" in refused


def drawn_of(stream: Path, steps: range) -> dict[str, set[str]]:
    """The samples that steps hold, by source."""
    drawn: dict[str, set[str]] = {}
    for step in steps:
        for piece in succeed_json("store", "show", stream, f"--step={step}")["pieces"]:
            drawn.setdefault(piece["source"], set()).add(piece["sample"])
    return drawn


def test_a_source_that_grew_begins_anew_and_the_others_go_on(folder: Path) -> None:
    run_pipeline("--steps=3")
    before = drawn_of(folder / "stream", range(3))
    with (folder / "docs-2.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"text": "one more"}\n')
    (folder / "more.jsonl").write_text('{"text": "new"}\n' * 40, encoding="utf-8")
    with (folder / "p.toml").open("a", encoding="utf-8") as file:
        file.write('[[source]]\nname = "more"\nfiles = ["more.jsonl"]\nexhausted = "drop"\n')
    assert 'sources: ["docs", "chats"] -> ["docs", "chats", "more"]' in refusal()
    steps = run_pipeline("--change-from=3")["next_step"]
    after = drawn_of(folder / "stream", range(3, steps))
    assert before["docs"] < after["docs"]
    assert not before["chats"] & after["chats"]
    assert len(after["more"]) == 40
    succeed("store", "verify", folder / "stream", "--depth=payload")


def test_layout_may_change_freely(folder: Path) -> None:
    write_pipeline(folder, "dp=4", "two_level")
    run_pipeline("--steps=3")
    write_pipeline(folder, "dp=3", "kk")
    run_pipeline()
    write_pipeline(folder, "dp=2", "lpt")
    steps = run_pipeline("--store=./other")["next_step"]
    assert pieces_by_step(folder / "stream", steps) == pieces_by_step(folder / "other", steps)


def pieces_by_step(stream: Path, steps: int) -> list[set[str]]:
    shown = [succeed_json("store", "show", stream, f"--step={n}") for n in range(steps)]
    return [{piece["sample"] for piece in step["pieces"]} for step in shown]


def test_something_else_than_a_pipeline_is_not_gone_on_with(folder: Path) -> None:
    made = run("produce", "./stream", "--synthetic", "--producer=main", "--steps=2", "--ranks=4")
    assert made.returncode == DONE
    assert "did something else than a pipeline write this stream?" in refusal()
