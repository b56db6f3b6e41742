# SPDX-License-Identifier: Apache-2.0
"""What is asked for on the command line."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quickstart.tamper import BREAKS

ROOT = Path(__file__).resolve().parents[2]
DEBIAN, MACHINE = "debian", "machine"
PIPELINES = {
    DEBIAN: ROOT / "examples" / "quickstart" / "pipeline.toml",
    MACHINE: ROOT / "examples" / "quickstart" / "machine.toml",
}
STEPS = 240
# So that the producer, which is killed when rank 0 has half of the steps, has some to make yet.
LEAST_STEPS = 40
USAGE = 2


@dataclass(frozen=True)
class Options:
    out: Path
    steps: int
    keep: bool
    data: str
    how_to_break: str | None
    build: Path  # Where the command and the package are.
    is_built: bool

    @property
    def command(self) -> Path:
        return self.build / "batchloom"

    @property
    def break_at(self) -> int:
        """The step that is spoiled."""
        return self.steps // 3


def parse(arguments: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(
        prog="scripts/quickstart",
        description="From files to eight ranks, with a producer that is killed on "
        "the way; then whether every step reached every rank exactly once.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("quickstart-out"),
        metavar="FOLDER",
        help="where everything lies (default: ./quickstart-out); of a former quickstart, packages "
        "stay, and all else is replaced",
    )
    parser.add_argument(
        "--steps", type=int, default=STEPS, metavar="N", help=f"{LEAST_STEPS} at least ({STEPS})"
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep what ranks got, 16 bytes per token, as after a no"
    )
    parser.add_argument(
        "--data",
        choices=list(PIPELINES),
        default=DEBIAN,
        help="packages of Debian 12, fetched (180 MB) and unpacked into the folder, or, as where "
        f"there are none, texts and code of this machine ({DEBIAN})",
    )
    parser.add_argument(
        "--break",
        dest="how_to_break",
        choices=BREAKS,
        help="spoil what one rank got, to see that the verdict finds it",
    )
    options = parser.parse_args(arguments)
    if options.steps < LEAST_STEPS:
        parser.error(f"--steps={options.steps}: at least {LEAST_STEPS}")
    given = os.environ.get("BATCHLOOM_BUILD")
    if given and not (Path(given) / "batchloom").is_file():
        parser.error(f"BATCHLOOM_BUILD={given}: nothing is built there")
    return Options(
        out=options.out,
        steps=options.steps,
        keep=options.keep,
        data=options.data,
        how_to_break=options.how_to_break,
        build=Path(given).resolve() if given else ROOT / "build" / "dev",
        is_built=given is not None,
    )
