# SPDX-License-Identifier: Apache-2.0
"""The Python of every guide that has some runs, block after block, in an empty folder."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT


def python_of(guide: Path) -> str:
    return "\n".join(
        re.findall(r"^```python\n(.*?)^```$", guide.read_text(encoding="utf-8"), re.M | re.S)
    )


GUIDES = sorted(filter(python_of, (ROOT / "docs" / "guides").glob("*.md")))


def test_there_are_guides() -> None:
    assert len(GUIDES) >= 4


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_its_python_runs(guide: Path, tmp_path: Path) -> None:
    code = python_of(guide)
    for package in ("torch", "pyarrow"):
        if f"import {package}" in code:
            pytest.importorskip(package)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "import batchloom" in code
