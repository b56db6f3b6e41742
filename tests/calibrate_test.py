# SPDX-License-Identifier: Apache-2.0
"""`batchloom calibrate`: from timings to a cost model that `whatif` takes."""

from pathlib import Path

import pytest
from cli_test import fail, succeed, succeed_json
from whatif_test import SMALL, whatif_json, write_cluster

ERRORS = [
    "residual",
    "left_out",
    "left_out_first_extrapolated",
    "left_out_last_extrapolated",
]


def errors_of(calibrated: dict) -> dict[tuple[str, str], dict]:
    return {(row["part"], row["error"]): row for row in calibrated["fit"]}


TIMINGS = """kind,tokens,forward_ms,backward_ms
attention,1024,0.1,0.25
attention,4096,0.8,2
attention,4096,0.9,2.1
linear,1024,0.3,0.6
linear,8192,2.4,4.8
"""


def test_timings_make_a_cost_model_that_a_cluster_names(tmp_path: Path) -> None:
    timings = tmp_path / "timings.csv"
    timings.write_text(TIMINGS)
    model = tmp_path / "ours.toml"
    fields = succeed_json("calibrate", timings, f"--out={model}", "--name=ours")
    points = [fields[f"{part}_points"] for part in ("attention", "linear", "encoder")]
    assert points == [2, 2, 0]
    errors = errors_of(fields)
    assert list(errors) == [(part, error) for part in ("attention", "linear") for error in ERRORS]
    residual = errors["attention", "residual"]
    assert (residual["rows"], residual["worst_line"]) == (3, 3)
    assert residual["worst_percent"] == pytest.approx(100 * 0.1 / 2.8, abs=0.01)
    between = {"part": "attention", "error": "left_out", "rows": 0}
    assert errors["attention", "left_out"] == between, "nothing lies between others"
    # The median at 4096 is 2.9 ms; squared growth from 0.35 ms at 1024 would make 5.6 of it.
    last = errors["attention", "left_out_last_extrapolated"]
    assert last["rows"] == 2
    assert last["worst_percent"] == pytest.approx(100 * (16 * 0.35 - 2.8) / 2.8, abs=0.01)
    cluster = write_cluster(tmp_path, costs="ours.toml")
    report = whatif_json(*SMALL, f"--cluster={cluster}", "--strategies=hdp")
    assert report["cluster"]["cost_model"] == "ours"
    assert "name: ours" in succeed("calibrate", timings, f"--base={model}", "--name=ours")


def test_a_curve_is_judged_by_what_it_was_not_made_of(tmp_path: Path) -> None:
    timings = tmp_path / "timings.csv"
    # 0.9 ms for 1024 tokens; in the middle 25 % more than by its neighbours.
    timings.write_text(TIMINGS + "linear,4096,1.5,3.0\n")
    fields = succeed_json("calibrate", timings)
    errors = errors_of(fields)
    residual = errors["linear", "residual"]
    assert residual["worst_percent"] == 0, "the curve goes through its points"
    left_out = errors["linear", "left_out"]
    assert (left_out["rows"], left_out["worst_line"]) == (1, 7)
    assert left_out["worst_percent"] == pytest.approx(100 * (4.5 - 3.6) / 4.5, abs=0.01)
    text = succeed("calibrate", timings)
    assert "part=linear error=left_out rows=1 mean_percent=20.00 worst_percent=20.00" in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("attention,1024,0.1", "attention,1024,-0.1", "line 2, column forward_ms: '-0.1' is"),
        ("linear", "encoder", "no row of kind linear"),
        (TIMINGS, "", "no line; the first is 'kind,tokens,forward_ms,backward_ms'"),
    ],
)
def test_timings_that_are_wrong_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    timings = tmp_path / "timings.csv"
    timings.write_text(TIMINGS.replace(old, new))
    out = tmp_path / "ours.toml"
    assert message in (error := fail("calibrate", timings, f"--out={out}"))
    assert str(timings) in error
    assert not out.exists()
