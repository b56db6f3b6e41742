# SPDX-License-Identifier: Apache-2.0
"""Pipelines whose ids a function of Python makes, run by the command: what they cost once, what
they refuse, and how their processes end."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_test import COMMAND, DONE, FAILED, ROOT, run, succeed_rows

PIPELINE = """
[store]
url = "./stream"
lead_steps = "unlimited"
[topology]
capacity = 4096
[step]
tokens = 4096
max_sample_tokens = 4096
[tokens]
tokenizer = { kind = "python", function = "tok:encode" }
vocab = 900
end = [899]
[limits]
bad_records = 2
[[source]]
name = "docs"
files = "docs-*.jsonl"
exhausted = "drop"
"""
BYTES = "def encode(texts):\n    return [list(text.encode()) for text in texts]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "p.toml").write_text(PIPELINE, encoding="utf-8")
    (tmp_path / "tok.py").write_text(BYTES, encoding="utf-8")
    for shard in range(3):
        write_texts(tmp_path, shard, [f"text {i} of shard {shard}, é" for i in range(300)])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BATCHLOOM_PYTHON", sys.executable)
    return tmp_path


def write_texts(folder: Path, shard: int, texts: list[str]) -> None:
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / f"docs-{shard}.jsonl").write_text(lines, encoding="utf-8")


def write_function(folder: Path, body: str) -> None:
    (folder / "tok.py").write_text(f"def encode(texts):\n    {body}\n", encoding="utf-8")


def refusal(command: str = "run") -> str:
    done = run(command, "p.toml")
    assert (done.returncode, done.stdout) == (FAILED, "")
    return done.stderr


def source_row() -> dict:
    (row,) = [row for row in succeed_rows("index", "p.toml") if "source" in row]
    return row


def test_an_indexed_pipeline_needs_no_python(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = source_row()
    assert (row["records"], row["bad_records"]) == (900, 0)
    monkeypatch.setenv("BATCHLOOM_PYTHON", "/bin/false")
    assert run("run", "p.toml", "--steps=2").returncode == DONE
    assert run("run", "p.toml").returncode == DONE
    assert run("whatif", "--lengths=p.toml", "--steps=1").returncode == DONE
    write_texts(folder, 1, ["another"])
    assert "tokenizer tok:encode: docs-1.jsonl: its process: it ended with status 1" in refusal()


def test_whatif_and_explain_of_a_plan_index_by_themselves(folder: Path) -> None:
    assert run("whatif", "--lengths=p.toml", "--steps=1").returncode == DONE
    assert run("plan", "explain", "--lengths=p.toml").returncode == DONE


def test_another_function_source_or_file_is_another_stream(folder: Path) -> None:
    def files(names: str) -> None:
        text = PIPELINE.replace('"tok:encode"', f'"tok:encode", files = {names}')
        (folder / "p.toml").write_text(text, encoding="utf-8")

    (folder / "vocabulary").write_text("1")
    files('["vocabulary"]')
    assert run("run", "p.toml", "--steps=1").returncode == DONE
    (folder / "moved").mkdir()
    (folder / "vocabulary").rename(folder / "moved" / "vocabulary")
    files('["moved/vocabulary"]')
    assert run("run", "p.toml", "--steps=2").returncode == DONE, "the same, and lies elsewhere"
    (folder / "moved" / "vocabulary").write_text("2")
    assert "tokens.tokenizer.files: 1 file, 1 bytes, " in refusal()
    (folder / "moved" / "vocabulary").write_text("1")
    (folder / "tok.py").write_text(BYTES + "# other\n")
    assert "tokens.tokenizer.function: \"tok:encode\", " in refusal()
    (folder / "tok.py").write_text(BYTES)
    assert run("run", "p.toml", "--steps=3").returncode == DONE


def test_records_that_raise_are_bad_records(folder: Path) -> None:
    write_function(folder, "return [[{'word': 1}[text]] for text in texts]")
    write_texts(folder, 0, ["word"] * 300 + ["other"] + ["word"] * 10)
    for shard in (1, 2):
        write_texts(folder, shard, ["word"])
    row = source_row()
    assert (row["records"], row["bad_records"]) == (313, 1)
    assert "docs-0.jsonl: record 300 at offset " in row["first_bad"]
    assert "raises KeyError: 'other'" in row["first_bad"]
    assert run("run", "p.toml").returncode == DONE
    write_texts(folder, 0, ["word"] * 300 + ["other"] * 3)
    assert "docs' has 3 bad records of 305, and limits.bad_records allows 2" in refusal()


def test_a_function_that_raises_on_everything_refuses_the_shard(folder: Path) -> None:
    write_function(folder, "raise ValueError(f'no {len(texts)}')")
    told = refusal()
    assert "docs-0.jsonl: none of its 300 records can be used" in told
    assert "raises ValueError: no 1" in told


@pytest.mark.parametrize(("body", "told"), [
    ("return [[900] for text in texts]", "id 900 is outside of the vocabulary of 900 ids"),
    ("return [[-1] for text in texts]", "id -1 is outside of the vocabulary of 900 ids"),
])  # fmt: skip
def test_ids_outside_of_the_vocabulary_are_bad_records(
    folder: Path, body: str, told: str
) -> None:
    write_function(folder, body)
    assert told in refusal()


@pytest.mark.parametrize(("body", "told"), [
    ("return [[1]]", "records 0 to 255: it returns a list of 1 for 256 records"),
    ("return None", "it returns NoneType; expected a list with the ids of each of 256 records"),
    ("return ['ids' for text in texts]", "record 0: it returns str; expected a list of ids"),
    ("return [([1, 2], [1]) for text in texts]", "record 0: it returns 2 ids and a mask of 1"),
    ("return [([1], [1]) for text in texts]", 'it gives a mask, and loss_on is "all"'),
    ("import os; os._exit(7)", "its process: it ended with status 7"),
    ("import os; os.kill(os.getpid(), 9)", "its process: it was killed by SIGKILL"),
    ("import gone", "ModuleNotFoundError: No module named 'gone'"),
    ("open('/gone')", "FileNotFoundError"),
])  # fmt: skip
def test_what_a_function_must_not_do_is_named(folder: Path, body: str, told: str) -> None:
    write_function(folder, body)
    said = refusal("index")
    assert told in said
    assert ": indexing docs-" in said
    assert "tokenizer tok:encode: docs-" in said


def test_pairs_need_a_mask_or_a_loss_on_all(folder: Path) -> None:
    chats = "".join(json.dumps({"q": "why", "a": "so"}) + "\n" for _ in range(300))
    for shard in range(3):
        (folder / f"docs-{shard}.jsonl").write_text(chats)
    text = PIPELINE + 'fields = { prompt = "q", answer = "a" }\n'
    (folder / "p.toml").write_text(text, encoding="utf-8")
    write_function(folder, "return [[1, 2] for pair in texts]")
    assert 'it gives ids without a mask, and loss_on is "answer"' in refusal()
    (folder / "p.toml").write_text(text + 'loss_on = "all"\n', encoding="utf-8")
    assert source_row()["valid_labels"] == 900 * 2
    (folder / "p.toml").write_text(text, encoding="utf-8")
    write_function(folder, "return [([1, 2, 3], [0, 0, 1]) for pair in texts]")
    assert source_row()["valid_labels"] == 900 * 2, "the last one, and the end that follows it"


def test_a_function_that_hangs_ends_the_run(folder: Path) -> None:
    write_function(folder, "import time; time.sleep(600)")
    done = run("run", "p.toml", "--sample-timeout=1s")
    assert done.returncode == FAILED
    assert "tokenizer tok:encode: docs-" in done.stderr
    assert "its process: no answer within 1 s: does the function hang?" in done.stderr
    assert "--sample-timeout gives it more time" in done.stderr


def children_of(process: subprocess.Popen) -> list[int]:
    children = Path(f"/proc/{process.pid}/task").glob("*/children")
    return [int(id) for file in children for id in file.read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_command(folder: Path, number: signal.Signals) -> None:
    """Also those whose function never comes back, and lets no other thread of Python run."""
    ready = "import os, pathlib; pathlib.Path(f'ready-{os.getpid()}').touch(); "
    write_function(folder, ready + "sum(range(10**12))")
    process = subprocess.Popen([COMMAND, "index", "p.toml"], stderr=subprocess.DEVNULL)
    while not list(folder.glob("ready-*")):
        assert process.poll() is None
        time.sleep(0.02)
    workers = children_of(process)
    assert workers
    process.send_signal(number)
    process.wait(timeout=60)
    end = time.monotonic() + 20
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < end, "a worker outlives its command"
        time.sleep(0.02)


def test_ids_do_not_depend_on_workers(folder: Path) -> None:
    """A function that looks at its whole batch, which nobody should write, shows the cuts."""
    write_function(folder, "return [[len(texts), len(text)] for text in texts]")
    made = []
    for workers in (1, 3):
        text = PIPELINE.replace("bad_records = 2", f"workers = {workers}")
        (folder / "p.toml").write_text(text, encoding="utf-8")
        index = folder / f"index-{workers}"
        index.mkdir()
        stream = folder / f"stream-{workers}"
        options = (f"--index-folder={index}", f"--store={stream}", "--fsync=none")
        assert run("run", "p.toml", *options).returncode == DONE
        hashes = folder / f"hashes-{workers}"
        assert run("consume", stream, "--rank=0", f"--hashes={hashes}").returncode == DONE
        made.append(hashes.read_text())
    assert made[0] == made[1] != ""


def test_what_it_prints_is_passed_on(folder: Path) -> None:
    write_function(folder, "print('of the function'); return [[1] for text in texts]")
    done = run("index", "p.toml", "--json")
    assert done.returncode == DONE
    assert "tok:encode: of the function" in done.stderr
    assert "of the function" not in done.stdout
    assert all(json.loads(line) for line in done.stdout.splitlines())


def test_the_environment_chooses_the_python(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHLOOM_PYTHON", "/gone/python")
    assert "/gone/python: cannot run it: No such file or directory" in refusal()
    monkeypatch.delenv("BATCHLOOM_PYTHON")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    (folder / "python3").symlink_to(sys.executable)
    assert source_row()["records"] == 900


# Of the library's interface, what the example uses: an id a byte, and a template like ChatML.
FAKE_TRANSFORMERS = """
from pathlib import Path
__version__ = "5.1"
class AutoTokenizer:
    @staticmethod
    def from_pretrained(folder, local_files_only):
        assert local_files_only and (Path(folder) / "tokenizer.json").is_file()
        return AutoTokenizer()
    def apply_chat_template(self, chat, tokenize, add_generation_prompt=False):
        assert not tokenize
        text = "".join("<{role}>{content}<end>".format(**turn) for turn in chat)
        return text + "<assistant>" * add_generation_prompt
    def encode(self, text, add_special_tokens):
        assert not add_special_tokens
        return list(text.encode())
"""


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "example"
    shutil.copytree(ROOT / "examples" / "hugging_face", folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (folder / "tokenizer").mkdir(exist_ok=True)
        (folder / "tokenizer" / name).write_text("{}")
    (folder / "chats").mkdir()
    chat = {"question": "why?", "reply": "é"}
    (folder / "chats" / "a.jsonl").write_text(json.dumps(chat) + "\n", encoding="utf-8")
    (tmp_path / "fakes" / "transformers").mkdir(parents=True)
    (tmp_path / "fakes" / "transformers" / "__init__.py").write_text(FAKE_TRANSFORMERS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fakes"))
    monkeypatch.setenv("BATCHLOOM_PYTHON", sys.executable)
    monkeypatch.chdir(folder)
    return folder


def test_the_example_learns_what_the_template_makes_of_answers(example: Path) -> None:
    (row,) = [row for row in succeed_rows("index", "pipeline.toml") if "source" in row]
    question, answer = b"<user>why?<end><assistant>", "é<end>".encode()
    counts = (row["tokens"], row["valid_labels"], row["bad_records"])
    assert counts == (len(question) + len(answer), len(answer), 0)


def test_the_example_refuses_another_version_of_the_library(example: Path) -> None:
    package = example.parent / "fakes" / "transformers" / "__init__.py"
    package.write_text(FAKE_TRANSFORMERS.replace('"5.1"', '"6.0"'))
    done = run("index", "pipeline.toml")
    assert done.returncode == FAILED
    assert "ImportError: transformers 6.0: expected 5" in done.stderr
