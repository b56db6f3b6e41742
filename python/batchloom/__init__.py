# SPDX-License-Identifier: Apache-2.0
"""Batchloom: batches of a training run, published as transactions, read by every rank.

Consumer reads a stream, attach() has one produced, too, and Pipeline says of what; plan() says who
would compute what. batchloom.torch has a data set for PyTorch's DataLoader. Errors are the
exceptions of batchloom.errors, all of them an Error.
"""

from typing import Any

from . import pipeline
from ._core import (
    Batch,
    MicroBatch,
    Piece,
    Plan,
    StoredMicroBatch,
    StoredPiece,
    StoredTensor,
    Topology,
    __version__,
    strategies,
)
from .attach import Attached, ProducerFailed, attach
from .consumer import Consumer
from .errors import (
    Cancelled,
    Conflict,
    Corruption,
    DoesNotFit,
    Error,
    Exhausted,
    Fenced,
    Internal,
    Invalid,
    NotFound,
    ResumeMissing,
    Unavailable,
    UnknownOutcome,
)
from .pipeline import Pipeline, Source
from .planning import plan

__all__ = [
    "Attached",
    "Batch",
    "Cancelled",
    "Conflict",
    "Consumer",
    "Corruption",
    "DoesNotFit",
    "Error",
    "Exhausted",
    "Fenced",
    "Internal",
    "Invalid",
    "MicroBatch",
    "NotFound",
    "Piece",
    "Pipeline",
    "Plan",
    "ProducerFailed",
    "ResumeMissing",
    "Source",
    "StoredMicroBatch",
    "StoredPiece",
    "StoredTensor",
    "Topology",
    "Unavailable",
    "UnknownOutcome",
    "__version__",
    "attach",
    "pipeline",
    "plan",
    "strategies",
]


def __getattr__(name: str) -> Any:
    """batchloom.torch, which imports torch, comes with its first use."""
    if name == "torch":
        import importlib

        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
