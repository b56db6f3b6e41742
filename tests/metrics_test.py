# SPDX-License-Identifier: Apache-2.0
"""`batchloom run --metrics`: what a scrape says is what the stream holds, and nobody who asks, in
whatever manner, changes or stops the run."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_test import COMMAND, DONE, FAILED, ROOT, refuse, run, succeed_rows
from pipeline_test import all_hashes, counted

PIPELINE = """
[store]
url = "./stream"
lead_steps = {lead}
[topology]
axes = "dp=2"
capacity = 512
[step]
tokens = 1024
max_sample_tokens = 256
[tokens]
tokenizer = "bytes"
"""
SOURCE = """
[[source]]
name = {name}
files = ["{file}"]
weight = {weight}
exhausted = "repeat"
"""
WEIGHTS = {"docs": 0.75, "chats-2": 0.25}
LEAD = 3

SAMPLE = re.compile(r'(\w+)(?:\{(\w+)="((?:[^"\\]|\\.)*)"\})? (\S+)')
Scrape = dict[tuple[str, str], float]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for number, length in enumerate((90, 140)):
        lines = [json.dumps({"text": f"{n:04} " * (length // 5 + n % 7)}) for n in range(50)]
        (tmp_path / f"{number}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    write_pipeline(tmp_path, LEAD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_pipeline(folder: Path, lead: int | str) -> None:
    text = PIPELINE.format(lead=json.dumps(lead))
    for number, (name, weight) in enumerate(WEIGHTS.items()):
        text += SOURCE.format(name=json.dumps(name), file=f"{number}.jsonl", weight=weight)
    (folder / "p.toml").write_text(text, encoding="utf-8")


@contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A run in this folder, and the URL of its metrics."""
    command = [str(COMMAND), "run", "p.toml", "--metrics=127.0.0.1:0", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if found := re.search(r"metrics at (http://127\.0\.0\.1:\d+/metrics)$", line):
                    yield process, found[1]
                    break
            else:
                pytest.fail("".join(said))
        finally:
            process.kill()


def place_of(url: str) -> str:
    return url.removeprefix("http://").removesuffix("/metrics")


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        return answer.read().decode("utf-8")


def values_of(text: str) -> Scrape:
    """By name and the label's value, "" without one. Every line must be of the form."""
    values: Scrape = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            parts = SAMPLE.fullmatch(line)
            assert parts, line
            label = re.sub(
                r"\\(.)", lambda sign: "\n" if sign[1] == "n" else sign[1], parts[3] or ""
            )
            assert (parts[1], label) not in values, line
            values[parts[1], label] = float(parts[4])
    return values


def scrape_until(url: str, holds: Callable[[Scrape], bool]) -> Scrape:
    until = time.monotonic() + 60
    while not holds(values := values_of(get(url))):
        assert time.monotonic() < until, values
    return values


def at_its_lead(values: Scrape) -> bool:
    """It waits for a consumer: nothing changes any more. While it indexes there is less to see."""
    return values.get(("batchloom_waiting", "consumer")) == 1


def stop(process: subprocess.Popen[str]) -> tuple[str, str]:
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == DONE, err
    return out, err


def test_a_scrape_is_what_the_stream_holds(folder: Path) -> None:
    with serving("--steps=1000") as (process, url):
        values = scrape_until(url, at_its_lead)
        stop(process)
    of_source = counted(LEAD, folder)
    assert of_source.keys() == WEIGHTS.keys()
    tokens = sum(row[1] for row in of_source.values())
    for source, (samples, of_it, _, _) in of_source.items():
        assert values["batchloom_source_samples_total", source] == samples
        assert values["batchloom_source_tokens_total", source] == of_it
        assert values["batchloom_source_wanted_ratio", source] == pytest.approx(WEIGHTS[source])
        assert values["batchloom_source_drawn_ratio", source] == pytest.approx(of_it / tokens)
        assert values["batchloom_source_read_bytes_total", source] >= of_it
        assert values["batchloom_source_load_seconds_total", source] > 0
        assert values["batchloom_source_waiting", source] == 0
    rows = succeed_rows("store", "ls", "./stream")
    expected = {
        "committed_steps_total": LEAD,
        "next_step": LEAD,
        "wanted_steps": 1000,
        "committed_bytes_total": sum(row.get("bytes", 0) for row in rows),
        "samples_total": sum(row[0] for row in of_source.values()),
        "tokens_total": tokens,
        "lead_steps": LEAD,
        "lead_max_steps": LEAD,
        "struck_records": 0,
        "memory_bytes": 0,
        "memory_max_bytes": 2 << 30,
    }
    assert {name: values[f"batchloom_{name}", ""] for name in expected} == expected
    assert values["batchloom_wait_seconds_total", "consumer"] > 0
    assert values["batchloom_store_requests_total", "put"] >= LEAD * 2
    assert values["batchloom_store_written_bytes_total", ""] > expected["committed_bytes_total"]


def test_waiting_is_counted_while_it_lasts(folder: Path) -> None:
    waited = ("batchloom_wait_seconds_total", "consumer")
    with serving() as (_, url):
        first = scrape_until(url, at_its_lead)[waited]
        scrape_until(url, lambda values: values[waited] > first)


def test_a_second_run_counts_anew_and_goes_on(folder: Path) -> None:
    assert run("run", "p.toml", "--steps=2").returncode == DONE
    with serving() as (_, url):
        values = scrape_until(url, at_its_lead)
    assert values["batchloom_next_step", ""] == LEAD
    assert values["batchloom_committed_steps_total", ""] == LEAD - 2


def test_each_metric_is_on_the_page_and_the_other_way_round(folder: Path) -> None:
    page = (ROOT / "docs" / "formats" / "metrics.md").read_text(encoding="utf-8")
    row = re.compile(r"^\| `(\w+)` \| (\w+) \| (?:`(\w+)`)? ?\| \w.*\|$", re.MULTILINE)
    told = {name: (kind, label) for name, kind, label in row.findall(page)}
    with serving("--steps=1000") as (_, url):
        scrape_until(url, at_its_lead)
        text = get(url)
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    helps = dict(re.findall(r"^# HELP (\w+) (\S.*)$", text, re.MULTILINE))
    labels: dict[str, str] = {}
    for line in text.splitlines():
        if parts := SAMPLE.fullmatch(line):
            family = parts[1] if parts[1] in kinds else re.sub(r"_(sum|count)$", "", parts[1])
            labels[family] = labels.get(family) or parts[2] or ""
    assert helps.keys() == kinds.keys()
    assert {name: (kind, labels[name]) for name, kind in kinds.items()} == told


def nothing_was_written(folder: Path) -> bool:
    return sorted(path.name for path in folder.iterdir()) == ["0.jsonl", "1.jsonl", "p.toml"]


@pytest.mark.parametrize("place", ["", "9464", "localhost", "localhost:http", "[::1]:0", "a:65536"])
def test_what_is_no_place_is_wrong_usage(folder: Path, place: str) -> None:
    said = refuse("run", "p.toml", f"--metrics={place}")
    if place:
        assert f"--metrics: '{place}' is no HOST:PORT of IPv4, as 127.0.0.1:9464" in said
    assert nothing_was_written(folder)


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("no-such-host.invalid:0", "--metrics: host 'no-such-host.invalid': "),
        ("192.0.2.1:9464", "cannot listen at 192.0.2.1:9464: .*; it is no address of this host"),
    ],
)
def test_a_place_that_is_not_here_is_named(folder: Path, place: str, why: str) -> None:
    done = run("run", "p.toml", f"--metrics={place}")
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert re.search(why, done.stderr), done.stderr
    assert nothing_was_written(folder)


def test_a_port_that_is_taken_is_named(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run("run", "p.toml", f"--metrics={place}")
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert f"--metrics: cannot listen at {place}: Address already in use; choose" in done.stderr
    assert nothing_was_written(folder)


def test_a_port_that_is_not_allowed_is_named(folder: Path) -> None:
    first_free = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
    if not first_free.exists() or int(first_free.read_text(encoding="utf-8")) <= 80:
        pytest.skip("all ports are for everybody here")
    command = [str(COMMAND), "run", "p.toml", "--metrics=127.0.0.1:80"]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("no setpriv: root may take any port")
        command = ["setpriv", "--bounding-set=-net_bind_service", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert "cannot listen at 127.0.0.1:80: Permission denied; ports below 1024" in done.stderr
    assert nothing_was_written(folder)


def send(url: str, request: bytes) -> socket.socket:
    host, port = place_of(url).split(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.sendall(request)
    return connection


def test_many_may_ask_at_once(folder: Path) -> None:
    with serving() as (process, url):
        scrape_until(url, at_its_lead)
        with ThreadPoolExecutor(16) as pool:
            answers = [values_of(text) for text in pool.map(get, [url] * 64)]
        assert all(at_its_lead(values) for values in answers)
        stop(process)


def test_whatever_is_asked_it_answers_the_next(folder: Path) -> None:
    with serving() as (process, url):
        scrape_until(url, at_its_lead)
        for request in (
            b"\0\xff\xfe nonsense\r\n\r\n",
            b"GET /metrics\r\n\r\n",
            b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
            b"GET /../../etc/passwd HTTP/1.1\r\n\r\n",
            b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 100_000,
        ):
            with send(url, request) as connection:
                answer = b""
                try:
                    connection.shutdown(socket.SHUT_WR)
                    while part := connection.recv(65536):
                        answer += part
                except OSError:
                    pass  # It was hung up on already.
            assert b"root:" not in answer
            assert at_its_lead(values_of(get(url)))
        stop(process)


def test_who_says_nothing_and_who_does_not_listen_hold_nobody_up(folder: Path) -> None:
    """As many as the server has threads, and one more; it ends while they are connected, too."""
    with serving() as (process, url):
        scrape_until(url, at_its_lead)
        silent = [send(url, b"") for _ in range(2)] + [send(url, b"GET /metr")]
        assert at_its_lead(values_of(get(url)))
        silent += [send(url, b"GET /metrics HTTP/1.1\r\n\r\n" * 200) for _ in range(2)]
        out, _ = stop(process)
        for connection in silent:
            connection.close()
    assert "end: stopped" in out


def test_what_is_scraped_changes_nothing(folder: Path) -> None:
    write_pipeline(folder, "unlimited")
    options = ("--steps=300", "--reclaim-every=never")
    assert run("run", "p.toml", "--store=./alone", *options).returncode == DONE
    ended = threading.Event()
    answers = []

    def ask(url: str) -> None:
        while not ended.is_set():
            try:
                answers.append(get(url))
            except OSError:
                return  # It has ended.

    with serving(*options) as (process, url):
        asking = [threading.Thread(target=ask, args=(url,)) for _ in range(3)]
        for thread in asking:
            thread.start()
        _, err = process.communicate(timeout=120)
        ended.set()
        for thread in asking:
            thread.join()
    assert process.returncode == DONE, err
    assert len(answers) > 3
    assert all_hashes(folder / "stream", ranks=2) == all_hashes(folder / "alone", ranks=2)
