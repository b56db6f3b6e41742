# SPDX-License-Identifier: Apache-2.0
"""Prometheus itself reads the metrics of a run. Its package is a part of `scripts/setup --full`."""

import json
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from metrics_test import LEAD, WEIGHTS, at_its_lead, folder, get, place_of, scrape_until, serving

__all__ = ["folder"]  # A fixture.

PROMTOOL = shutil.which("promtool")
PROMETHEUS = shutil.which("prometheus")
pytestmark = pytest.mark.skipif(
    PROMTOOL is None or PROMETHEUS is None,
    reason="no promtool and prometheus: scripts/setup --full installs them",
)

CONFIG = """
global: {{ scrape_interval: 250ms, scrape_timeout: 250ms }}
scrape_configs:
  - job_name: batchloom
    static_configs: [{{ targets: ["{target}"] }}]
"""


def check_metrics(text: str) -> subprocess.CompletedProcess[str]:
    assert PROMTOOL is not None
    command = [PROMTOOL, "check", "metrics"]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=60, check=False
    )


def test_promtool_finds_nothing(folder: Path) -> None:
    with serving("--steps=1000") as (_, url):
        early = get(url)  # It may still be indexing.
        scrape_until(url, at_its_lead)
        late = get(url)
    for text in (early, late):
        done = check_metrics(text)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert check_metrics(late.replace("_total", "_sum")).returncode != 0, "it would find that"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[str]:
    """The URL of a server of our own, which scrapes `target`, on loopback alone."""
    assert PROMETHEUS is not None
    config = folder / "prometheus.yml"
    config.write_text(CONFIG.format(target=target), encoding="utf-8")
    place = f"127.0.0.1:{free_port()}"
    command = [
        PROMETHEUS,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address={place}",
    ]
    log = folder / "prometheus.log"
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            until = time.monotonic() + 60
            while True:
                assert process.poll() is None, log.read_text(encoding="utf-8")
                assert time.monotonic() < until, log.read_text(encoding="utf-8")
                try:
                    with urllib.request.urlopen(f"http://{place}/-/ready", timeout=5) as answer:
                        if answer.status == 200:
                            break
                except OSError:
                    continue
            yield f"http://{place}"
        finally:
            process.kill()


def query(url: str, expression: str) -> dict[str, float]:
    """By the label `source`, or "": what the expression is, once it is something."""
    asked = f"{url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            told = json.load(answer)
        assert told["status"] == "success"
        if found := told["data"]["result"]:
            return {row["metric"].get("source", ""): float(row["value"][1]) for row in found}
    pytest.fail(f"no answer to {expression}")


def test_prometheus_scrapes_a_run_and_answers(folder: Path) -> None:
    with serving("--steps=1000") as (_, url):
        values = scrape_until(url, at_its_lead)
        with prometheus(folder, place_of(url)) as server:
            assert query(server, "batchloom_next_step") == {"": LEAD}
            assert query(server, "up") == {"": 1}
            tokens = query(server, "batchloom_source_tokens_total")
            assert tokens == {
                name: values["batchloom_source_tokens_total", name] for name in WEIGHTS
            }
            waited = 'rate(batchloom_wait_seconds_total{reason="consumer"}[5s]) > 0.5'
            assert query(server, waited)[""] == pytest.approx(1, abs=0.5)
