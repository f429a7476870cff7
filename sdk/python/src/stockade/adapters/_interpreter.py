"""Runs inside the sandbox: executes blocks of code in one namespace, as a notebook does.

Requests come on standard input, answers leave on standard error, each as a line of JSON. What the
code prints, and what programs print that it starts, goes to standard output; a mark ends it.
"""

from __future__ import annotations

import ast
import base64
import json
import os
import sys
import traceback
from typing import Any, NoReturn


def main() -> None:
    """Executes requests until there are no more."""
    answers = os.fdopen(os.dup(2), "w")
    os.dup2(1, 2)
    requests = os.fdopen(os.dup(0), "r")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    namespace: dict[str, Any] = {"__name__": "__main__", "final_answer": final_answer}
    for line in requests:
        request = json.loads(line)
        answer = execute(request["code"], namespace)
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(1, request["mark"].encode())
        print(json.dumps(answer), file=answers, flush=True)


def execute(code: str, namespace: dict[str, Any]) -> dict[str, str | None]:
    """What came of a block: a value, an error or the final answer."""
    try:
        tree = ast.parse(code)
        last = tree.body[-1] if tree.body else None
        if not isinstance(last, ast.Expr):
            exec(compile(tree, "<block>", "exec"), namespace)
            return {"value": None}
        tree.body.pop()
        exec(compile(tree, "<block>", "exec"), namespace)
        value = eval(compile(ast.Expression(last.value), "<block>", "eval"), namespace)
        return {"value": None if value is None else repr(value)}
    except BaseException as error:
        # By name: smolagents defines another one for tools that replace `final_answer`.
        if type(error).__name__ == "FinalAnswerException":
            return {"final": str(getattr(error, "value", ""))}
        return {"error": "".join(traceback.format_exception(error))}


class FinalAnswerException(BaseException):
    """Carries the final answer past every `except Exception`."""

    def __init__(self, value: str) -> None:
        self.value = value


def final_answer(answer: object = None) -> NoReturn:
    """Ends the agent's run with an answer."""
    raise FinalAnswerException("safe:" + json.dumps(plain(answer)))


def plain(value: object) -> Any:
    """A value as `SafeSerializer` of smolagents has it; one that has no such form as text."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: plain(part) for key, part in value.items()}
        return {
            "__type__": "dict_with_complex_keys",
            "data": [[plain(key), plain(part)] for key, part in value.items()],
        }
    if isinstance(value, (tuple, set, frozenset)):
        return {"__type__": type(value).__name__, "data": [plain(part) for part in value]}
    if isinstance(value, bytes):
        return {"__type__": "bytes", "data": base64.b64encode(value).decode()}
    return str(value)


if __name__ == "__main__":
    main()
