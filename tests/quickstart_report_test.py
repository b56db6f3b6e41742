# SPDX-License-Identifier: Apache-2.0
"""What a quickstart writes down: figures as their schema says, pictures, and a page with both."""

import copy
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from quickstart.balance import Balance, StepBalance, imbalance
from quickstart.data import Prepared
from quickstart.folder import Folder
from quickstart.live import LiveRun
from quickstart.options import parse
from quickstart.plots import text_of_bin
from quickstart.records import Record, Source
from quickstart.report import Findings, render
from quickstart.report_files import figures_of, write_report
from quickstart.report_md import PLOTS
from quickstart.schema import faults_of, report_schema
from quickstart.verdict import Verdict

STEPS = 40
MIB = 1 << 20


def source(name: str, weight: object) -> Source:
    """Of which a report asks no more than this."""
    made = Source.__new__(Source)
    made.name, made.weight = name, weight  # type: ignore[assignment]
    made.records = [Record(tokens=range(100), first_label=0)]  # type: ignore[arg-type]
    return made


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Findings:
    monkeypatch.delenv("BATCHLOOM_BUILD", raising=False)
    folder = Folder(tmp_path / "out")
    folder.make()
    steps = [
        StepBalance(step, [2.0, 1.0, 3.0], [2.1, 2.0, 1.9], lower_bound_ms=2.0, over_bound=1.05)
        for step in range(0, STEPS, 10)
    ]
    verdict = Verdict(
        tokens_of_step=[[60, 40]] * STEPS,
        tokens=[60 * STEPS, 40 * STEPS],
        quotas=[60.0 * STEPS, 40.0 * STEPS],
        parts_of_source=[2 * STEPS, STEPS],
        lengths_of_step=[[1, 59, 40]] * STEPS,
        apart_allowed=59,
        most_apart=7.5,
    )
    changing = [{"step": 0, "value": 0.6}, {"step": 20, "value": 0.3}]
    return Findings(
        options=parse([f"--out={folder.path}", f"--steps={STEPS}"]),
        folder=folder,
        prepared=Prepared("debian", {}, []),
        sources=[source("texts", changing), source("code", 0.4)],
        live=LiveRun(3, 2.0, 20, 21, 100 * MIB),
        stream_bytes=3 * MIB,
        rank_memory_bytes=50 * MIB,
        balance=Balance(steps, steps[2]),
        verdict=verdict,
        kept=False,
    )


def test_all_is_written(found: Findings) -> None:
    text = render(found)
    write_report(found, text)
    folder = found.folder
    assert folder.report.read_text() == text
    page = folder.report_md.read_text()
    assert text.strip("\n") in page
    assert "**Every step on every rank exactly once: yes**" in page
    assert "| imbalance as drawn | 1.50 |" in page
    assert re.findall(r"\]\((.*?)\)", page) == [f"plots/{name}.png" for name in PLOTS]
    assert json.loads(folder.report_json.read_text()) == figures_of(found)


def test_plots_are_pictures(found: Findings) -> None:
    write_report(found, "")
    plots = found.folder.plots
    assert sorted(one.name for one in plots.iterdir()) == sorted(f"{name}.png" for name in PLOTS)
    for one in plots.iterdir():
        with Image.open(one) as image:
            assert image.format == "PNG"
            assert 800 <= image.width <= 1000 and 400 <= image.height <= 600
            assert len(image.convert("RGB").getcolors(1 << 20) or []) > 20, "it is empty"
        assert one.stat().st_size < 200_000


def test_a_no_has_its_reasons(found: Findings) -> None:
    found.verdict.reasons.append("step 3: rank 1 has what the plan gives to no rank")
    write_report(found, render(found))
    page = found.folder.report_md.read_text()
    assert "exactly once: no**\n\n- step 3: rank 1 has what" in page
    figures = json.loads(found.folder.report_json.read_text())
    assert (figures["exactly_once"], figures["reasons"]) == (False, found.verdict.reasons)


def test_data_of_the_machine_is_said(found: Findings) -> None:
    why = "apt knows no packages of these names: rust-src"
    elsewhere = replace(found, prepared=Prepared("machine", {}, [], why))
    write_report(elsewhere, render(elsewhere))
    for file in (found.folder.report, found.folder.report_json):
        assert why in file.read_text()
    said = f"The data is this machine's own, and not that of Debian 12's packages: {why}.\n"
    assert said in found.folder.report_md.read_text()


def test_a_report_that_is_not_as_it_must_be_is_not_written(found: Findings) -> None:
    wrong = replace(found, stream_bytes=0)
    with pytest.raises(AssertionError, match=r"\$\.stream_bytes is 0; 1 is the least"):
        write_report(wrong, "")
    assert not found.folder.report_json.exists()


def test_every_key_is_asked_for(found: Findings) -> None:
    figures, schema = figures_of(found), report_schema()
    assert not list(faults_of(figures, schema))
    assert sorted(figures) == sorted(schema["required"]) == sorted(schema["properties"])
    for key in figures:
        without = {name: value for name, value in figures.items() if name != key}
        assert list(faults_of(without, schema)) == [f"$ has no {key}"]


@pytest.mark.parametrize(
    ("place", "value", "fault"),
    [
        (("steps",), "240", '$.steps is "240", and no integer'),
        (("steps",), True, "$.steps is true, and no integer"),
        (("steps",), 0, "$.steps is 0; 1 is the least"),
        (("exactly_once",), None, "$.exactly_once is null, and no boolean"),
        (("why_not_debian",), 1, "$.why_not_debian is 1, and no string or null"),
        (("data",), "other", "$.data is \"other\", and none of ['debian', 'machine']"),
        (("sources",), [], "$.sources has 0 items; 1 are the least"),
        (("sources", 1, "tokens"), 1.5, "$.sources[1].tokens is 1.5, and no integer"),
        (("sources", 0, "other"), 1, "$.sources[0].other is not in the schema"),
        (("loads", "after_ms", 2), "x", '$.loads.after_ms[2] is "x", and no number'),
        (("imbalance_after",), float("nan"), "$.imbalance_after is nan; 1 is the least"),
    ],
)
def test_other_values_are_refused(
    found: Findings, place: tuple, value: object, fault: str
) -> None:
    figures = copy.deepcopy(figures_of(found))
    inner = figures
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    assert list(faults_of(figures, report_schema())) == [fault]


def test_a_schema_that_is_not_understood_is_refused() -> None:
    with pytest.raises(ValueError, match="pattern"):
        list(faults_of("a", {"type": "string", "pattern": "b"}))
    with pytest.raises(ValueError, match="can only be false"):
        list(faults_of({}, {"properties": {}, "additionalProperties": True}))


def test_imbalance_and_bins() -> None:
    assert imbalance([2.0, 2.0]) == 1
    assert imbalance([1.0, 3.0]) == 1.5
    assert [text_of_bin(n) for n in (0, 1, 2, 11)] == ["1", "2", "3–4", "1,025–2,048"]
