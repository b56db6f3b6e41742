# SPDX-License-Identifier: Apache-2.0
"""What the README shows of Python runs."""

import re
import subprocess
import sys
from pathlib import Path

from conftest import ROOT, Run, produce


def test_the_readmes_python_runs(run: Run, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    assert blocks
    produce(run, tmp_path / "main", "--ranks=4", "--steps=3", "--end")
    code = "\n".join([*blocks, 'assert checkpoint.startswith(b"batchloom-state")'])
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)
