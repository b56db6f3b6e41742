# SPDX-License-Identifier: Apache-2.0
"""The samples that all peers read: sources of token ids, each sample with its number in it.

A corpus is a folder of Megatron pairs, one for each source. Sample n of all has n in its first two
ids; the rest is random. Ids are 16 bits, below 32,768.
"""

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TOKEN_BYTES = 2
VOCAB = 1 << 15
DIGIT_BITS = 15


@dataclass(frozen=True)
class Corpus:
    folder: Path
    samples: int
    sources: int
    sample_tokens: int

    @property
    def samples_per_source(self) -> int:
        return self.samples // self.sources

    def data(self, source: int) -> Path:
        return self.folder / f"source-{source:04}.bin"

    def tokens(self, source: int) -> np.ndarray:
        """[sample, token], mapped from the file."""
        shape = (self.samples_per_source, self.sample_tokens)
        return np.memmap(self.data(source), dtype=np.uint16, mode="r", shape=shape)


def write(corpus: Corpus) -> None:
    """Precondition: `sources` divides `samples`."""
    corpus.folder.mkdir(parents=True)
    for source in range(corpus.sources):
        numbers = np.arange(corpus.samples_per_source) + source * corpus.samples_per_source
        shape = (corpus.samples_per_source, corpus.sample_tokens)
        tokens = np.random.default_rng(source).integers(0, VOCAB, shape, dtype=np.uint16)
        tokens[:, 0] = numbers % VOCAB
        tokens[:, 1] = numbers >> DIGIT_BITS
        tokens.tofile(corpus.data(source))
        corpus.data(source).with_suffix(".idx").write_bytes(megatron_index(*shape))


def megatron_index(samples: int, sample_tokens: int) -> bytes:
    """As Megatron's IndexedDatasetBuilder writes it, of documents with one sequence each."""
    u16 = 8
    head = struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, u16, samples, samples + 1)
    sizes = np.full(samples, sample_tokens, "<i4")
    places = np.arange(samples, dtype="<i8") * (sample_tokens * TOKEN_BYTES)
    bounds = np.arange(samples + 1, dtype="<i8")
    return head + sizes.tobytes() + places.tobytes() + bounds.tobytes()


def numbers_of(tokens: np.ndarray) -> np.ndarray:
    """Of samples [sample, token]."""
    return tokens[:, 0].astype(np.int64) + (tokens[:, 1].astype(np.int64) << DIGIT_BITS)


def digest(tokens: np.ndarray) -> int:
    """Of the multiset of the samples: digests of several add up, whatever their order is."""
    rows = np.ascontiguousarray(tokens, dtype=np.uint16)
    hashes = (hashlib.blake2b(row, digest_size=8).digest() for row in rows)
    return sum(int.from_bytes(one, "little") for one in hashes) % (1 << 64)
