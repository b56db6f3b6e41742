# SPDX-License-Identifier: Apache-2.0
"""A pipeline as values: each table of its file is a class of the same name, each key a field.

    pipeline = bl.Pipeline(
        store=Store(url="./stream"),
        step=Step(tokens=524_288, max_sample_tokens=16_384),
        tokens=Tokens(tokenizer="bytes", vocab=257, end=[256]),
        sources=[Source(name="docs", files=["data/docs-*.jsonl"])],
    )
    pipeline.write("pipeline.toml")

A field that is None is not written, and then has the default that `batchloom explain` tells. What
keys mean is told in docs/formats/pipeline_toml.md; what is wrong with them, by `batchloom explain`.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Run:
    """[run]"""

    steps: int | None = None
    split: str | None = None


@dataclass(frozen=True, kw_only=True)
class Retain:
    """store.retain"""

    max_bytes: str


@dataclass(frozen=True, kw_only=True)
class Store:
    """[store]"""

    url: str
    lead_steps: int | Literal["unlimited"] | None = None
    codec: Literal["raw"] | None = None
    retain: Retain | None = None
    endpoint: str | None = None
    region: str | None = None
    profile: str | None = None


@dataclass(frozen=True, kw_only=True)
class Topology:
    """[topology]"""

    axes: str | None = None
    capacity: int | None = None


@dataclass(frozen=True, kw_only=True)
class Step:
    """[step]: either tokens or samples."""

    max_sample_tokens: int
    tokens: int | None = None
    samples: int | None = None
    over_length: Literal["split", "truncate", "drop"] | None = None


@dataclass(frozen=True, kw_only=True)
class Tokenizer:
    """tokens.tokenizer, where its name is not enough."""

    kind: Literal["bytes", "ids", "sentencepiece", "python"]
    model: str | None = None
    function: str | None = None
    files: Sequence[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """[tokens]"""

    tokenizer: Tokenizer | Literal["bytes", "ids"]
    vocab: int | None = None
    begin: Sequence[int] | None = None
    end: Sequence[int] | None = None


@dataclass(frozen=True, kw_only=True)
class Image:
    """[image], where sources have pictures."""

    token: int
    patch: int | None = None
    merge: int | None = None
    max_patches: int | None = None


@dataclass(frozen=True, kw_only=True)
class Balance:
    """[balance]"""

    strategy: Literal["none", "lpt", "kk", "two_level", "hdp", "two_module"] | None = None
    cost_model: str | None = None
    min_share: int | None = None
    offload: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Limits:
    """[limits]"""

    memory: str | None = None
    workers: int | Literal["auto"] | None = None
    bad_records: int | None = None


@dataclass(frozen=True, kw_only=True)
class Fields:
    """source.fields"""

    text: str | None = None
    prompt: str | None = None
    answer: str | None = None
    tokens: str | None = None
    loss_mask: str | None = None
    image: str | None = None


@dataclass(frozen=True, kw_only=True)
class SplitBy:
    """source.split_by, of a field."""

    field: str


@dataclass(frozen=True, kw_only=True)
class WeightPoint:
    """source.weight, from a step on."""

    step: int
    value: float
    ramp: Literal["none", "linear", "cosine"] | None = None


@dataclass(frozen=True, kw_only=True)
class Source:
    """[[source]]"""

    name: str
    files: str | Sequence[str]
    format: Literal["jsonl", "megatron", "parquet", "tar", "text"] | None = None
    fields: Fields | None = None
    loss_on: Literal["all", "answer", "mask"] | None = None
    split: Mapping[str, int] | None = None
    split_by: SplitBy | Literal["content", "number"] | None = None
    weight: float | Sequence[WeightPoint] | None = None
    order: Literal["random", "file"] | None = None
    exhausted: Literal["repeat", "stop", "drop", "error"] | None = None
    epochs: int | None = None


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """All of it."""

    store: Store
    step: Step
    tokens: Tokens
    sources: Sequence[Source]
    seed: int | None = None
    run: Run | None = None
    topology: Topology | None = None
    image: Image | None = None
    balance: Balance | None = None
    limits: Limits | None = None

    def to_toml(self) -> str:
        """Its file. Relative paths are those of the folder that it is written to."""
        head = "" if self.seed is None else f"seed = {_toml(self.seed)}\n"
        tables = ("run", "store", "topology", "step", "tokens", "image", "balance", "limits")
        parts = [_section(f"[{name}]", getattr(self, name)) for name in tables]
        parts += [_section("[[source]]", source) for source in self.sources]
        return "\n".join(filter(None, [head, *parts]))

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Writes its file, and says where that is."""
        file = Path(path)
        file.write_text(self.to_toml(), encoding="utf-8")
        return file


def _section(head: str, table: Any) -> str:
    if table is None:
        return ""
    lines = [f"{key} = {_toml(value)}\n" for key, value in _items(table)]
    return f"{head}\n{''.join(lines)}"


def _items(table: Any) -> list[tuple[str, Any]]:
    """Keys and values, in their order, but for those that are not set."""
    if isinstance(table, Mapping):
        return list(table.items())
    pairs = [(field.name, getattr(table, field.name)) for field in fields(table)]
    return [(key, value) for key, value in pairs if value is not None]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str | os.PathLike):
        return _quoted(os.fspath(value))
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_toml, value))}]"
    inner = ", ".join(f"{_quoted(key)} = {_toml(item)}" for key, item in _items(value))
    return f"{{ {inner} }}"


def _quoted(text: str) -> str:
    # TOML's escapes are those of JSON, and it wants one for DEL, too.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
