"""Finds the program `stockade`."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from ._types import StockadeError


def program() -> str:
    """The program: STOCKADE_BIN, else where the wheel puts it, else on PATH."""
    named = os.environ.get("STOCKADE_BIN")
    if named:
        return named
    for directory in _directories():
        candidate = directory / "stockade"
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    raise no_program("the program `stockade` was not found")


def no_program(message: str) -> StockadeError:
    """The error of a program that can't be started."""
    return StockadeError("no_program", message, "pip install --force-reinstall stockade, or set STOCKADE_BIN")


def _directories() -> Iterator[Path]:
    yield Path(sysconfig.get_path("scripts"))
    yield Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    # `pip install --target DIR` puts packages into DIR and programs into DIR/bin.
    yield Path(__file__).parent.parent / "bin"
    yield Path(sys.executable).parent
    for name in os.environ.get("PATH", "").split(os.pathsep):
        # A relative entry may lead into a project, where anybody puts programs.
        if os.path.isabs(name):
            yield Path(name)
