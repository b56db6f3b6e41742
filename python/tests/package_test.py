# SPDX-License-Identifier: Apache-2.0
"""The package as such: version, stubs, what it re-exports, and what importing it loads."""

import re
import subprocess
import sys
from pathlib import Path

import batchloom as bl
import pytest
from conftest import BUILD, ROOT

PACKAGE = ROOT / "python" / "batchloom"


def test_the_version_is_the_projects() -> None:
    project = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert re.search(r"project\(batchloom VERSION ([0-9.]+)", project)[1] == bl.__version__


def test_stubs_are_fresh() -> None:
    built = BUILD / "python" / "batchloom" / "_core.pyi"
    committed = PACKAGE / "_core.pyi"
    assert committed.read_text(encoding="utf-8") == built.read_text(encoding="utf-8"), (
        f"after a change of bindings: cp {built} {committed}"
    )


def test_everything_public_is_there_and_documented() -> None:
    for name in bl.__all__:
        assert hasattr(bl, name)
        if name != "__version__":
            assert getattr(bl, name).__doc__, name
    assert (PACKAGE / "py.typed").exists()


def test_torch_is_not_imported_unasked() -> None:
    code = "import sys, batchloom; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("Invalid", "Error"), ("DoesNotFit", "Invalid"), ("ResumeMissing", "Invalid"),
        ("NotFound", "Error"), ("Conflict", "Error"), ("Fenced", "Error"),
        ("Unavailable", "Error"), ("UnknownOutcome", "Error"), ("Corruption", "Error"),
        ("Exhausted", "Error"), ("Cancelled", "Error"), ("Internal", "Error"),
    ],
)  # fmt: skip
def test_there_is_an_exception_for_each_kind(name: str, base: str) -> None:
    assert getattr(bl, name).__bases__ == (getattr(bl, base),)
