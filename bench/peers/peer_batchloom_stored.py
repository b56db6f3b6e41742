# SPDX-License-Identifier: Apache-2.0
"""Batchloom's stream that is stored already, as a second job or a second reader finds it: no
producer, one rank that takes its steps."""

import os
import subprocess
import sys
from pathlib import Path

import batchloom as bl
import torch
from peer_batchloom import Loading, pipeline, reader_settings, run_options
from reading import Job, main


class StoredPeer:
    def write(self, job: Job) -> None:
        file = pipeline(job).write(Path(job.files) / "pipeline.toml")
        command = [os.environ["BATCHLOOM"], "run", str(file), "--lead=unlimited"]
        subprocess.run([*command, *run_options(job)], stdout=sys.stderr, check=True)

    def open(self, job: Job, state: bytes | None) -> Loading:
        group = f"reader-{os.getpid()}"
        data = bl.Consumer(f"{job.files}/stream", group=group, **reader_settings(job, state))
        return Loading(job, data)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(StoredPeer())
