# SPDX-License-Identifier: Apache-2.0
"""Trains the tokenizer, by sentencepiece's own `spm_train`.

The model reads a line's end as ids.NEWLINE, which is a piece of its own, keeps every other
character as it is (what it has no piece for becomes bytes), and has one id that no text has: for
pictures.
"""

import itertools
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from quickstart.gathering import Document
from quickstart.ids import NEWLINE

TRAINED_ON_BYTES = 4 << 20
LINE_BYTES = 2000  # Of what is trained on. spm_train passes over longer lines than 4192 bytes.
PICTURE = "<image>"  # Gets the first id after <unk>, <s> and </s>: 3.


class NoVocabulary(Exception):
    """Says why spm_train made none."""


def train(documents: Iterable[Sequence[Document]], vocab: int, folder: Path) -> None:
    """Writes tokenizer.model into `folder`, trained on a part of each collection."""
    trained_on, rules = folder / "trained-on.txt", folder / "normalization.tsv"
    trained_on.write_text("\n".join(lines_of(documents)) + "\n", encoding="utf-8")
    rules.write_text(f"{ord(chr(10)):X}\t{ord(NEWLINE):X}\n", encoding="ascii")
    settings = {
        "input": trained_on,
        "model_prefix": folder / "tokenizer",
        "vocab_size": vocab,
        "normalization_rule_tsv": rules,
        "remove_extra_whitespaces": "false",
        "allow_whitespace_only_pieces": "true",
        "byte_fallback": "true",
        "user_defined_symbols": NEWLINE,
        "control_symbols": PICTURE,
        "num_threads": os.cpu_count() or 1,
        "minloglevel": 1,
    }
    words = ["spm_train", *(f"--{name}={value}" for name, value in settings.items())]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoVocabulary(f"spm_train: {done.stderr.strip()[-400:]}")
    for path in (trained_on, rules, folder / "tokenizer.vocab"):
        path.unlink()


def lines_of(collections: Iterable[Sequence[Document]]) -> Iterator[str]:
    """A document of each collection in turn, until there is enough."""
    left = TRAINED_ON_BYTES
    for document in itertools.chain.from_iterable(itertools.zip_longest(*collections)):
        for line in cut(document.text) if document else ():
            if left <= 0:
                return
            left -= len(line.encode())
            yield line


def cut(text: str) -> Iterator[str]:
    """Lines of at most about LINE_BYTES, each of as many lines of the text as it has room for."""
    line, size = [], 0
    for one in text.split("\n"):
        if line and size + len(one.encode()) > LINE_BYTES:
            yield NEWLINE.join(line)
            line, size = [], 0
        line.append(one)
        size += len(one.encode())
    if any(line):
        yield NEWLINE.join(line)
