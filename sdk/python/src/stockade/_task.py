"""A command with its files, that can run on another machine."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ._sync import Sandbox
from ._types import Result, StockadeError

# Everything that a command may have left goes, whatever its mode. The sandbox may end a moment later.
_REMOVER = """
cat > /dev/null
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    chmod -R u+rwX -- "$1" 2> /dev/null
    rm -rf -- "$1" 2> /dev/null && exit
    sleep 0.2
done
"""


@dataclass(frozen=True)
class Task:
    """A command, the files it begins with, the files to bring back, and its policy."""

    command: str | list[str]
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """Content by path, relative to the task's directory."""
    outputs: Sequence[str] = ()
    """Paths to bring back; one that does not exist is left out."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The policy: the arguments of `Sandbox`."""
    input: str | bytes | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None


@dataclass(frozen=True)
class TaskResult:
    """What came of a task: a result with files, or an error."""

    result: Result | None
    files: dict[str, bytes]
    error: StockadeError | None
    host: str
    """Which machine, or node of a cluster, ran it."""

    @property
    def ok(self) -> bool:
        """Whether the command exited with 0."""
        return self.result is not None and self.result.ok


def run_task(task: Task, host: str | None = None) -> TaskResult:
    """Runs a task in a sandbox and a directory that nothing is left of."""
    name = host or socket.gethostname()
    try:
        with _directory() as directory, Sandbox(directory, **task.settings) as box:
            for path, content in task.files.items():
                box.write(path, content, parents=True)
            result = box.run(task.command, input=task.input, env=task.env, timeout=task.timeout)
            return TaskResult(result, dict(_outputs(box, task.outputs)), None, name)
    except StockadeError as error:
        return TaskResult(None, {}, error, name)


def _outputs(box: Sandbox, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        try:
            yield path, box.read(path)
        except StockadeError as error:
            if error.kind != "io":
                raise


@contextmanager
def _directory() -> Iterator[str]:
    """A directory that is removed even if this process is killed."""
    # Not below /tmp, which is private inside.
    directory = tempfile.mkdtemp(prefix="stockade-task-", dir="/var/tmp")
    try:
        # In a session of its own: what kills this process and its group must not kill the remover.
        remover = subprocess.Popen(
            ["/bin/sh", "-c", _REMOVER, "stockade-remover", directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except BaseException:
        os.rmdir(directory)
        raise
    try:
        yield directory
    finally:
        remover.communicate()
