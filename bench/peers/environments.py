# SPDX-License-Identifier: Apache-2.0
"""A virtual environment for each peer, with pinned versions: build/peers/NAME, by uv."""

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDER = ROOT / "build" / "peers"
UV = ROOT / ".venv" / "bin" / "uv"

# Batchloom's own build is added by PYTHONPATH; it needs what the DataLoader needs.
ENVIRONMENT = {
    "batchloom": "torch",
    "batchloom_stored": "torch",
    "dataloader": "torch",
    "grain": "grain",
    "streaming": "streaming",
    "webdataset": "webdataset",
}


def python_of(peer: str) -> Path:
    """Its interpreter; made first where it is missing, or of other versions."""
    name = ENVIRONMENT[peer]
    folder, wanted = FOLDER / name, HERE / f"requirements-{name}.txt"
    made_from = folder / "requirements.txt"
    python = folder / "bin" / "python"
    if not made_from.is_file() or made_from.read_bytes() != wanted.read_bytes():
        print(f"making {folder.relative_to(ROOT)}", file=sys.stderr)
        run_uv("venv", "--clear", "--python", str(ROOT / ".venv" / "bin" / "python"), str(folder))
        run_uv("pip", "install", "--python", str(python), "-r", str(wanted))
        shutil.copyfile(wanted, made_from)
    return python


def run_uv(*arguments: str) -> None:
    subprocess.run([str(UV), *arguments, "--quiet"], stdout=sys.stderr, check=True)
