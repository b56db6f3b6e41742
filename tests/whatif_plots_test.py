# SPDX-License-Identifier: Apache-2.0
"""What `batchloom whatif` writes into files: plots, and their targets."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from cli_test import DONE, FAILED, ROOT, fail, succeed
from whatif_test import BESIDE, LADDER, SMALL, cluster

__all__ = ["cluster"]  # A fixture.

def test_plots_are_drawn(cluster: Path, tmp_path: Path) -> None:
    folder = tmp_path / "plots"
    report = tmp_path / "report.json"
    succeed("whatif", *SMALL, f"--cluster={cluster}", f"--svg={folder}", f"--json={report}")
    names = {"step_time", "gap", *(f"timeline-{name}" for name in LADDER)}
    assert {path.name for path in folder.iterdir()} == {f"{name}.svg" for name in names}
    for path in folder.iterdir():
        root = ElementTree.parse(path).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "simulated" in "".join(root.itertext())
        assert not set(BESIDE) & set(root.itertext()), "their own groups would dwarf all others"
        assert len(root) > 10
    done = plot(report, f"--out={tmp_path / 'png'}")
    assert (done.returncode, done.stderr) == (DONE, "")
    written = list((tmp_path / "png").iterdir())
    assert {path.name for path in written} == {f"{name}.png" for name in names}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


def plot(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools" / "plot.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        ("{", "Expecting property name"),
        ("[]", "no contexts in it"),
        ('{"contexts": [{}]}', "not what `batchloom whatif --json` writes: KeyError"),
    ],
)
def test_plot_names_a_wrong_file(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "report.json"
    if content is not None:
        path.write_text(content)
    done = plot(path)
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert done.stderr.startswith(f"plot: {path}: ")
    assert message in done.stderr


def test_scripts_plot_calls_it() -> None:
    command = [ROOT / "scripts" / "plot", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (DONE, "")
    assert "--out" in done.stdout


def test_plots_that_cannot_be_written_are_an_error(cluster: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    targets = ("--svg=file", "--svg=no/plots", "--json=no/report.json", "--json=.", "--json=a/")
    for target in targets:
        option = target.replace("=", f"={tmp_path}/")
        # Before anything is planned, so that nothing is planned in vain: no table either.
        assert str(tmp_path) in fail("whatif", *SMALL, f"--cluster={cluster}", option)
    assert {path.name for path in tmp_path.iterdir()} == {"cluster.toml", "file"}


def test_trying_a_target_leaves_no_trace(cluster: Path, tmp_path: Path) -> None:
    kept = tmp_path / "report.json"
    kept.write_text("mine")
    options = (f"--json={kept}", f"--svg={tmp_path / 'plots'}", "--strategies=lpt")
    # No group holds a sample of 2M.
    fail("whatif", "--lengths=byted-like", "--context=2M", f"--cluster={cluster}", *options)
    assert kept.read_text() == "mine"
    assert not (tmp_path / "plots").exists()
    (tmp_path / "plots").mkdir()
    succeed("whatif", *SMALL, f"--cluster={cluster}", *options)
    assert kept.read_text().startswith('{"simulated"')


def test_a_cost_models_target_is_tried_first(tmp_path: Path) -> None:
    assert str(tmp_path / "no") in fail("calibrate", "nobody.csv", f"--out={tmp_path}/no/a.toml")
