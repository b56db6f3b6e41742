# SPDX-License-Identifier: Apache-2.0
"""Texts as ids, by nothing of Batchloom: bytes, or what sentencepiece's own command makes of them.

`spm_encode` takes a text a line. So the model that the quickstart trains (`vocabulary`) is one that
reads a line's end as NEWLINE, and texts are given to the command with that in place of it.
"""

from array import array
from collections.abc import Callable, Sequence
from pathlib import Path

from quickstart.commands import output_of

NEWLINE = "\u2424"  # A symbol for the end of a line, as Unicode has it.

Encode = Callable[[Sequence[str]], list[array]]


def encode_bytes(texts: Sequence[str]) -> list[array]:
    return [array("H", list(text.encode())) for text in texts]


def encode_by(model: Path) -> Encode:
    """What `spm_encode` with this model makes of texts."""

    def encode(texts: Sequence[str]) -> list[array]:
        if not texts:
            return []
        lines = "".join(text.replace("\n", NEWLINE) + "\n" for text in texts)
        words = ["spm_encode", f"--model={model}", "--output_format=id"]
        encoded = output_of(words, lines.encode()).decode().split("\n")
        assert len(encoded) == len(texts) + 1, f"{len(texts)} texts became {len(encoded) - 1}"
        return [array("H", map(int, line.split())) for line in encoded[:-1]]

    return encode


def encoder_of(folder: Path, pipeline: dict) -> Encode:
    tokenizer = pipeline["tokens"]["tokenizer"]
    if tokenizer == "bytes":
        return encode_bytes
    assert tokenizer["kind"] == "sentencepiece", f"{tokenizer} is not known here"
    return encode_by(folder / tokenizer["model"])
