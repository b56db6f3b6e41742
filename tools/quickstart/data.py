# SPDX-License-Identifier: Apache-2.0
"""Which data a quickstart runs on, and how much of it: Debian's packages, or what is at hand."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass

from quickstart import debian, machine
from quickstart.folder import Folder
from quickstart.gathering import Gathered
from quickstart.options import DEBIAN, MACHINE, PIPELINES, STEPS, Options
from quickstart.packages import Unavailable, unpack_all
from quickstart.weights import SHARE_BITS, Shares

# Sources have fewer tokens than are drawn of them, so that a second pass begins.
PASSES = 1.4
BYTES_OF_A_TOKEN = {DEBIAN: 3, MACHINE: 1}  # About, by the tokenizer that the pipeline names.


@dataclass(frozen=True)
class Prepared:
    data: str
    pipeline: dict
    gathered: list[Gathered]
    why_not_debian: str | None = None  # Where its packages were wanted.


def prepare(options: Options, folder: Folder, say: Callable[[str], None]) -> Prepared:
    """Puts pipeline and data into the folder."""
    if options.data == MACHINE:
        return of_machine(options, folder, say)
    say("fetches and unpacks packages of Debian 12; nothing is installed")
    try:
        roots = unpack_all(debian.PACKAGES, folder.packages)
    except Unavailable as unavailable:
        say(f"{unavailable}: takes texts and code of this machine instead")
        return of_machine(options, folder, say, str(unavailable))
    say("makes shards of them, and trains a tokenizer")
    pipeline = write_pipeline(options, folder, DEBIAN)
    writer = debian.Writer(roots, folder.data)
    writer.write(wanted_bytes(pipeline, options.steps, DEBIAN), pipeline["tokens"]["vocab"])
    return Prepared(DEBIAN, pipeline, writer.gathered)


def of_machine(
    options: Options, folder: Folder, say: Callable[[str], None], why_not: str | None = None
) -> Prepared:
    say("puts texts and code of this machine together")
    pipeline = write_pipeline(options, folder, MACHINE)
    wanted = wanted_bytes(pipeline, options.steps, MACHINE)
    return Prepared(MACHINE, pipeline, machine.write_sources(folder.data, wanted), why_not)


def write_pipeline(options: Options, folder: Folder, data: str) -> dict:
    """Where a file changes weights half of its steps on, so does this one, however many it has."""
    text = PIPELINES[data].read_text(encoding="utf-8")
    text = text.replace(f"step = {STEPS // 2},", f"step = {options.steps // 2},")
    folder.pipeline.write_text(text, encoding="utf-8")
    return tomllib.loads(text)


def wanted_bytes(pipeline: dict, steps: int, data: str) -> dict[str, int]:
    """By source."""
    shares = Shares([table["weight"] for table in pipeline["source"]])
    of_step = pipeline["step"]["tokens"] * BYTES_OF_A_TOKEN[data] / PASSES
    drawn = map(sum, zip(*(shares.at(step) for step in range(steps)), strict=True))
    names = [table["name"] for table in pipeline["source"]]
    return {
        name: int(of_step * share / (1 << SHARE_BITS))
        for name, share in zip(names, drawn, strict=True)
    }
