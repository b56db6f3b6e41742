# SPDX-License-Identifier: Apache-2.0
"""What `batchloom explain` foresees of a new stream's steps is what `batchloom run` then makes."""

import re
from pathlib import Path

import pytest
from cli_test import fail, run, succeed, succeed_json, succeed_rows
from pipeline_test import counted, folder, run_pipeline, write_pipeline

__all__ = ["folder"]  # A fixture.


@pytest.mark.parametrize(
    ("axes", "strategy"), [("dp=4", "two_level"), ("dp=2 cp=2", "hdp")], ids=["two_level", "hdp"]
)
@pytest.mark.parametrize("steps", [3, 1000], ids=["the first steps", "all"])
def test_explain_foresees_what_run_makes(
    folder: Path, axes: str, strategy: str, steps: int
) -> None:
    write_pipeline(folder, axes=axes, strategy=strategy)
    unknown = succeed_json("explain", "p.toml", f"--steps={steps}")
    assert unknown["forecast"] == "unknown until indexed"
    assert not list(folder.glob("*.blidx")), "explain makes no index"
    indexed = {row["source"]: row for row in succeed_rows("index", "p.toml") if "source" in row}
    told = succeed_json("explain", "p.toml", f"--steps={steps}")
    foreseen = told["forecast"]
    made = run_pipeline(f"--steps={steps}")
    for key in ("steps", "samples", "tokens"):
        assert foreseen[key] == made[key]
    assert foreseen["sources_stop"] == (made["end"] == "sources stop") == (steps == 1000)
    for key in ("imbalance_before", "imbalance_after"):
        assert round(foreseen[key]["mean"], 3) == pytest.approx(made[key], abs=0.0011)
    rows = {
        row["source"]: (row["samples"], row["tokens"], row["first_step"], row["last_step"])
        for row in foreseen["sources"]
    }
    assert rows == counted(made["steps"], folder)
    assert sum(band["samples"] for band in foreseen["lengths"]) == made["samples"]
    for source in told["sources"]:
        assert source["tokens"] == indexed[source["source"]]["tokens"]
        assert source["records"] == indexed[source["source"]]["records"]
        assert source["shuffle_window_records"] == source["records"]
        indexes = [Path(f"{file}.blidx") for file in source["files"]]
        assert source["index_bytes"] == sum(file.stat().st_size for file in indexes)


def test_explain_says_it_to_people(folder: Path) -> None:
    text = succeed("explain", "p.toml")
    assert "# what steps will hold: unknown until indexed: `batchloom index p.toml` indexes" in text
    succeed("index", "p.toml")
    text = succeed("explain", "p.toml")
    steps, samples = re.search(  # type: ignore[union-attr]
        r"\n# a new stream's first (\d+) steps, after which sources stop: (\d+) samples", text
    ).groups()
    made = run_pipeline()
    assert (int(steps), int(samples)) == (made["steps"], made["samples"])
    assert re.search(r"\n# docs +\d+ +\d+ +\d\d\.\d\d % +1\.00 ", text)
    assert re.search(r"\n# slowest rank over mean: 1\.\d{3} as drawn, 1\.\d{3} as planned", text)
    assert all(line.startswith("#") for line in text.split("\n# ranks: ")[1].split("\n")[1:-1])
    assert "\n# order: all records are shuffled at once, anew in each pass" in text
    mib = sum(file.stat().st_size for file in folder.glob("*.blidx")) / 2**20
    count = len(list(folder.glob("*.blidx")))
    assert f"\n# indexes: {mib:.1f} MiB in {count} file" in text
    again = folder / "again.toml"
    again.write_text(text, encoding="utf-8")
    assert succeed_json("explain", again)["forecast"]["samples"] == made["samples"]


def test_explain_tells_of_steps_that_are_larger_than_the_memory(folder: Path) -> None:
    pipeline = folder / "p.toml"
    record = "x" * 600_000  # 2 bytes an id: 1.1 MiB, of 0.5 that loaders may hold.
    (folder / "docs-0.jsonl").write_text(f'{{"text": "{record}"}}\n', encoding="utf-8")
    text = pipeline.read_text(encoding="utf-8")
    pipeline.write_text(
        re.sub(r"(?m)^(tokens|max_sample_tokens|capacity) = .*", r"\1 = 700_000", text)
        + '\n[limits]\nmemory = "1 MiB"\n',
        encoding="utf-8",
    )
    succeed("index", "p.toml")
    told = succeed_json("explain", "p.toml")["forecast"]
    assert told["longest_tokens"] > 600_000
    assert told["largest_step_bytes"] > 2 * told["longest_tokens"]
    assert re.search(
        r"\n# memory: loaders and constructors should hold up to 512 KiB each, "
        r"but steps take up to 1\.\d MiB: ",
        succeed("explain", "p.toml"),
    )
    assert run_pipeline()["samples"] == told["samples"]


def test_explain_says_where_there_is_no_first_step(folder: Path) -> None:
    for file in folder.glob("docs-*.jsonl"):
        file.write_text('{"text": ""}\n', encoding="utf-8")
    (folder / "chats.jsonl").write_text('{"q": "", "a": ""}\n', encoding="utf-8")
    pipeline = folder / "p.toml"
    text = pipeline.read_text(encoding="utf-8").replace('exhausted = "drop"', 'exhausted = "stop"')
    pipeline.write_text(text.replace("end = [299]", ""), encoding="utf-8")
    succeed("index", "p.toml")
    hint = "sources stop before the first step"
    assert f"\n# the {hint}: a run refuses that\n" in succeed("explain", "p.toml")
    assert hint in fail("run", "p.toml")


def test_explain_tells_in_which_order_records_come(folder: Path) -> None:
    pipeline = folder / "p.toml"
    text = pipeline.read_text(encoding="utf-8")
    pipeline.write_text(text.replace("[[source]]", '[[source]]\norder = "file"', 1))
    succeed("index", "p.toml")
    in_order, *shuffled = succeed_json("explain", "p.toml")["sources"]
    assert in_order["shuffle_window_records"] == 1
    assert all(source["shuffle_window_records"] == source["records"] for source in shuffled)
    lines = re.findall(r"\n# order: (.*)", succeed("explain", "p.toml"))
    assert [line.partition(" ")[0] for line in lines] == ["as", *["all"] * len(shuffled)]


def test_explain_shows_settings_where_nothing_can_be_foreseen(folder: Path) -> None:
    pipeline = folder / "p.toml"
    text = pipeline.read_text(encoding="utf-8").replace('exhausted = "drop"', 'exhausted = "error"')
    pipeline.write_text(text, encoding="utf-8")
    succeed("index", "p.toml")
    assert "exhausted" in run("run", "p.toml").stderr
    told = succeed_json("explain", "p.toml")
    assert told["settings"]
    assert re.match(r"exhausted: planning step \d+: ", told["forecast"])
    assert "\n# what steps will hold: exhausted: planning step " in succeed("explain", "p.toml")
    assert succeed_json("explain", "p.toml", "--steps=2")["forecast"]["steps"] == 2


def test_explain_foresees_no_steps_where_run_refuses_the_records(folder: Path) -> None:
    pipeline = folder / "p.toml"
    text = pipeline.read_text(encoding="utf-8")
    pipeline.write_text(f"{text}\n[limits]\nbad_records = 0\n", encoding="utf-8")
    with (folder / "docs-0.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"other": 1}\n')
    succeed("index", "p.toml")
    refused = run("run", "p.toml").stderr.splitlines()[-1]
    assert "limits.bad_records allows 0" in refused
    told = succeed_json("explain", "p.toml")
    assert refused == f"batchloom: {told['forecast']}"
    assert told["sources"][0]["bad_records"] == 1


def test_explain_and_run_agree_on_the_end_where_the_last_step_is_asked_for(folder: Path) -> None:
    succeed("index", "p.toml")
    steps = succeed_json("explain", "p.toml")["forecast"]["steps"]
    for asked in (steps - 1, steps):
        foreseen = succeed_json("explain", "p.toml", f"--steps={asked}")["forecast"]
        made = run_pipeline(f"--steps={asked}", f"--store=./to-{asked}")
        assert foreseen["steps"] == made["steps"] == asked
        assert foreseen["sources_stop"] == (made["end"] == "sources stop") == (asked == steps)


def test_explain_tells_of_a_split_alone(folder: Path) -> None:
    pipeline = folder / "p.toml"
    text = pipeline.read_text(encoding="utf-8").replace(
        'files = ["chats.jsonl"]', 'files = ["chats.jsonl"]\nsplit = { train = 1, valid = 1 }'
    )
    pipeline.write_text(text, encoding="utf-8")
    succeed("index", "p.toml")
    whole = succeed_json("explain", "p.toml", "--split=valid")["forecast"]["sources"]
    made = run_pipeline("--split=valid")
    assert sum(row["samples"] for row in whole) == made["samples"]
    assert "no source has a part 'x'" in fail("explain", "p.toml", "--split=x")
