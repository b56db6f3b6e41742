# SPDX-License-Identifier: Apache-2.0
"""The rule about long functions."""

import ast
import re
from collections.abc import Iterator

from tidy_rules.tree import CPP, Finding, SourceFile, Tree

MAX_LINES = 60

# What opens a scope that holds functions, rather than a function.
SCOPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:inline\s+)?(?:namespace|class|struct|union|enum)\b")
EXTERN_C = re.compile(r'^extern\s*"[^"]*"\s*$')
DIRECTIVE = re.compile(r"^\s*#(?:.*\\\n)*.*$", re.MULTILINE)
ACCESS = re.compile(r"^(?:(?:public|protected|private)\s*:\s*)+")

Span = tuple[int, int]


def function_length(tree: Tree) -> Iterator[Finding]:
    for file in tree.of_kind(*CPP, "python"):
        spans = python_functions(file) if file.kind == "python" else cpp_functions(file)
        for first, last in spans:
            lines = last - first + 1
            if lines > MAX_LINES:
                message = f"a function of {lines} lines, at most {MAX_LINES}: extract its steps"
                yield Finding(file.path, first, message)


def python_functions(file: SourceFile) -> Iterator[Span]:
    for node in ast.walk(ast.parse(file.text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.end_lineno or node.lineno


def cpp_functions(file: SourceFile) -> Iterator[Span]:
    """First and last line of each outermost function: a brace at namespace or class scope whose
    head, the text since the statement before it, has a parameter list and names no scope."""
    code = DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), "\n".join(file.code_lines))
    scopes: list[bool] = []  # For each open brace: whether it is a function's or lies in one.
    head = start = 0
    for match in re.finditer(r"[{};]", code):
        inside = bool(scopes) and scopes[-1]
        if match[0] == "{":
            scopes.append(inside or is_function(code[head : match.start()]))
            if scopes[-1] and not inside:
                start = first_line(code, head)
        elif match[0] == "}" and scopes:
            if scopes.pop() and not (scopes and scopes[-1]):
                yield start, code.count("\n", 0, match.start()) + 1
        head = match.end()


def is_function(head: str) -> bool:
    text = ACCESS.sub("", head.strip())
    return "(" in text and not SCOPE.match(text) and not EXTERN_C.match(text)


def first_line(code: str, position: int) -> int:
    """The line of the first word at or after `position`."""
    skipped = len(code[position:]) - len(code[position:].lstrip())
    return code.count("\n", 0, position + skipped) + 1
