# SPDX-License-Identifier: Apache-2.0
"""Prompts and answers by a Hugging Face tokenizer and its chat template; the loss counts what the
template makes of the answer, its end included."""

from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "tokenizer"
# Part of this file's bytes, and so of what makes a stream another one: an upgrade may change ids.
TRANSFORMERS = "5"


@cache
def tokenizer() -> Any:
    import transformers

    if transformers.__version__.split(".")[0] != TRANSFORMERS:
        raise ImportError(f"transformers {transformers.__version__}: expected {TRANSFORMERS}")
    return transformers.AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)


def encode(chats: list[dict[str, str]]) -> list[tuple[list[int], list[int]]]:
    return [encode_chat(chat["prompt"], chat["answer"]) for chat in chats]


def encode_chat(prompt: str, answer: str) -> tuple[list[int], list[int]]:
    asked = [{"role": "user", "content": prompt}]
    answered = [*asked, {"role": "assistant", "content": answer}]
    template = tokenizer().apply_chat_template
    question = template(asked, add_generation_prompt=True, tokenize=False)
    whole = template(answered, tokenize=False)
    if not whole.startswith(question):
        raise ValueError("the template changes the question once there is an answer to it")
    # Apart, so that no token has something of both; a template brings its own special tokens.
    encode_text = tokenizer().encode
    before = encode_text(question, add_special_tokens=False)
    after = encode_text(whole[len(question) :], add_special_tokens=False)
    return before + after, [0] * len(before) + [1] * len(after)
