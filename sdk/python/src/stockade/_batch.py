"""Many tasks, by `stockade batch`."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from ._program import no_program, program
from ._types import StockadeError

# 0: every task was run; 1: one could not be run, and its result says why.
_ENDED = (0, 1)


def batch(
    tasks: Iterable[Mapping[str, Any]],
    *,
    parallel: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    retries: int = 2,
) -> Iterator[dict[str, Any]]:
    """Runs each task in a sandbox of its own and yields results in the order in which tasks end.

    Tasks and results have the fields of docs/batch.md. Tasks are taken from the iterable as sandboxes
    become free. With a journal, a batch that was stopped goes on where it was. Whoever stops iterating
    and closes the generator kills what runs.
    """
    arguments = ["--quiet", "--retries", str(retries)]
    if parallel is not None:
        arguments += ["--parallel", str(parallel)]
    if journal is not None:
        arguments += ["--journal", os.fspath(journal)]
    name = program()
    try:
        process = subprocess.Popen(
            [name, "batch", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise no_program(f"can't start `{name}`: {error.strerror}") from None
    assert process.stdin and process.stdout and process.stderr
    failures: list[BaseException] = []
    feeder = threading.Thread(target=_feed, args=(process.stdin, tasks, failures), daemon=True)
    messages: list[bytes] = []
    listener = threading.Thread(target=lambda: messages.append(process.stderr.read()), daemon=True)  # type: ignore[union-attr]
    feeder.start()
    listener.start()
    is_whole = False
    try:
        for line in process.stdout:
            yield json.loads(line)
        is_whole = True
    finally:
        if not is_whole:
            process.terminate()
        process.wait()
        listener.join()
        process.stdout.close()
        process.stderr.close()
    if failures:
        raise failures[0]
    if process.returncode not in _ENDED:
        raise StockadeError("internal", b"".join(messages).decode(errors="replace").strip())


def _feed(stdin: BinaryIO, tasks: Iterable[Mapping[str, Any]], failures: list[BaseException]) -> None:
    try:
        for task in tasks:
            stdin.write(json.dumps(task).encode() + b"\n")
            stdin.flush()
    except BrokenPipeError:
        # The batch has ended, and its exit code says why.
        pass
    except BaseException as error:
        failures.append(error)
    finally:
        try:
            stdin.close()
        except BrokenPipeError:
            pass
