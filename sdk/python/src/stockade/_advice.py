"""Advice about code and text. Nothing is run."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from ._program import no_program, program
from ._types import StockadeError


def verify(code: str, language: str) -> dict[str, Any]:
    """What code would do: the document of `stockade verify --json`."""
    return _ask(["verify", "--json", "--lang", language, "-"], code)


def inspect(text: str) -> dict[str, Any]:
    """Prompt injection, secrets and data leaving: the document of `stockade inspect --json`."""
    return _ask(["inspect", "--json"], text)


def _ask(arguments: list[str], text: str) -> dict[str, Any]:
    name = program()
    try:
        ran = subprocess.run([name, *arguments], input=text.encode(), capture_output=True)
    except OSError as error:
        raise no_program(f"can't start `{name}`: {error.strerror}") from None
    try:
        document = json.loads(ran.stdout)
    except ValueError:
        raise StockadeError("invalid_params", ran.stderr.decode(errors="replace").strip()) from None
    assert isinstance(document, dict)
    return document
