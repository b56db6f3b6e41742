# SPDX-License-Identifier: Apache-2.0
"""What the README shows of Python runs, on what its first command makes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BUILD, ROOT

pytest.importorskip("torch")

# What the README says a trainer has.
GIVEN = """
import sys
from pathlib import Path
import torch

rank, world, steps = 0, 2, int(sys.argv[1])
torch.manual_seed(1)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.linear = torch.nn.Embedding(258, 8), torch.nn.Linear(8, 258)

    def forward(self, tokens, positions, cu_seqlens):
        assert len(tokens) == len(positions) == cu_seqlens[-1]
        return self.linear(self.embedding(tokens))

model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
checkpoint = {}
if Path("checkpoint.pt").exists():
    checkpoint = torch.load("checkpoint.pt", weights_only=True)
    model.load_state_dict(checkpoint["model"])
"""
AFTER = """
print(data.cursor, *(float(weight.detach().double().sum()) for weight in model.parameters()))
"""


def readmes_python() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    return block


def train(folder: Path, steps: int) -> str:
    """Runs `steps` steps more; the next step, and what was learned."""
    code = GIVEN + readmes_python() + AFTER
    done = subprocess.run(
        [sys.executable, "-c", code, str(steps)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """After the README's first command, in short."""
    subprocess.run(
        [ROOT / "scripts" / "quickstart", "--steps=40", "--data=machine"],
        cwd=tmp_path,
        env=os.environ | {"BATCHLOOM_BUILD": str(BUILD)},
        check=True,
        capture_output=True,
        timeout=300,
    )
    return tmp_path


def test_the_readmes_loop_trains_and_goes_on(folder: Path) -> None:
    at_once = train(folder, 12)
    assert at_once.split()[0] == "12"
    (folder / "checkpoint.pt").unlink()
    for which in ("--id=step-10", "--id=step-11", "--live"):  # Or it would ask for its checkpoint.
        unpin = ("store", "unpin", "./quickstart-out/stream", "--group=run-7", which)
        subprocess.run([BUILD / "batchloom", *unpin], cwd=folder, check=True)
    assert train(folder, 5).split()[0] == "5"
    assert train(folder, 7) == at_once
