"""Commands in a sandbox: what the kinds for threads and for asyncio have in common."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from ._connection import Connection
from ._output import Chunk, Collected, Output
from ._types import Result, StockadeError, argv_of, milliseconds, result_of

# A command that nobody listens to stops after this much output, as at a full pipe.
WINDOW_BYTES = 1 << 20
INPUT_BYTES = 1 << 19
OUTPUT_LIMIT = 64 << 20

# What a command is told that ended without reading its input.
INPUT_IS_OVER = ("ended", "no_such_command")


def parameters(
    command: str | list[str],
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    stdin: bool = False,
    terminal: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """The parameters of `exec`."""
    size = None if terminal is None else {"rows": terminal[0], "cols": terminal[1]}
    return {
        "argv": argv_of(command),
        "cwd": cwd,
        "env": dict(env or {}),
        "timeout_ms": milliseconds(timeout),
        "stdin": stdin,
        "terminal": size,
    }


class Started:
    """A command that was started; `keep` is how much output is collected without a listener."""

    def __init__(self, connection: Connection, session: str, name: str, keep: Collected | None) -> None:
        self.connection = connection
        self.about = {"session": session, "command": name}
        self.output = Output()
        self.collected = keep or Collected(OUTPUT_LIMIT)
        self._taken = 0
        connection.attach(name, self.output.put if keep is None else keep.add)
        try:
            self.end: Future[Any] = connection.send("wait", **self.about)
        except StockadeError as error:
            self.end = Future()
            self.end.set_exception(error)
        self.end.add_done_callback(self._finish)

    def _finish(self, _: Future[Any]) -> None:
        self.connection.detach(self.about["command"])
        self.output.end()

    def take(self, chunk: Chunk) -> None:
        """Counts output that somebody took, and asks for more."""
        self.collected.add(chunk)
        self._taken += len(chunk[1])
        if self._taken >= WINDOW_BYTES // 2 and not self.end.done():
            self.send_quietly("credit", bytes=self._taken)
            self._taken = 0

    def send_quietly(self, method: str, **params: Any) -> None:
        """Sends a request of which a command that has ended needs no answer."""
        try:
            self.connection.send(method, **self.about, **params)
        except StockadeError:
            pass

    def result(self) -> Result:
        """How it ended; call it when it has."""
        return result_of(self.end.result(), self.collected)


def abandon(started: Future[Any], connection: Connection, session: str) -> None:
    """Kills a command whose start nobody waits for any more."""

    def kill(answer: Future[Any]) -> None:
        if answer.cancelled() or answer.exception() is not None:
            return
        name = answer.result()["command"]
        connection.attach(name, lambda _: None)
        # The reader, which calls this, must not wait for the server.
        threading.Thread(target=kill_and_forget, args=(name,), daemon=True).start()

    def kill_and_forget(name: str) -> None:
        try:
            connection.send("signal", session=session, command=name, signal=9)
            connection.call("wait", session=session, command=name)
        except StockadeError:
            pass
        connection.detach(name)

    started.add_done_callback(kill)
