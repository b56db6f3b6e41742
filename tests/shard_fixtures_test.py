# SPDX-License-Identifier: Apache-2.0
"""The shards of tests/fixtures are what their writer writes."""

import subprocess
import sys
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent / "fixtures"


def test_shards_are_fresh(tmp_path: Path) -> None:
    subprocess.run([sys.executable, FIXTURES / "write_shards.py", tmp_path], check=True)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    stored = {path.name: path.read_bytes() for path in (FIXTURES / "shards").iterdir()}
    assert stored == written, "run python3 tests/fixtures/write_shards.py"
