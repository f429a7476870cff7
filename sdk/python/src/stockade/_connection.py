"""A server, and the messages between it and this program."""

from __future__ import annotations

import itertools
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from ._types import StockadeError, decode

Chunk = tuple[str, bytes]


def program() -> str:
    """The program: STOCKADE_BIN, else where the wheel puts it, else on PATH."""
    named = os.environ.get("STOCKADE_BIN")
    if named:
        return named
    beside = Path(sys.executable).parent / "stockade"
    if beside.is_file():
        return str(beside)
    found = shutil.which("stockade")
    if found is None:
        raise StockadeError("no_program", "the program `stockade` was not found", "set STOCKADE_BIN")
    return found


class Connection:
    """Requests are sent by any thread; one thread reads and hands out the answers."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [program(), "serve", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._pending: dict[int, Future[Any]] = {}
        self._outputs: dict[str, queue.SimpleQueue[Chunk | None]] = {}
        self._is_closed = False
        self._reader = threading.Thread(target=self._read, name="stockade", daemon=True)
        self._reader.start()
        self.call("initialize", protocol=1, client="python")

    def send(self, method: str, **params: Any) -> Future[Any]:
        """Sends a request; parameters that are None are left out."""
        answer: Future[Any] = Future()
        identity = next(self._ids)
        given = {name: value for name, value in params.items() if value is not None}
        message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": given}
        line = json.dumps(message).encode() + b"\n"
        assert self._server.stdin is not None
        with self._lock:
            if self._is_closed:
                raise StockadeError("ended", "the connection to stockade is closed")
            self._pending[identity] = answer
            try:
                self._server.stdin.write(line)
                self._server.stdin.flush()
            except BrokenPipeError:
                self._pending.pop(identity, None)
                raise StockadeError("ended", "stockade has ended") from None
        return answer

    def call(self, method: str, **params: Any) -> Any:
        """Sends a request and waits for its answer."""
        return self.send(method, **params).result()

    def output(self, command: str) -> queue.SimpleQueue[Chunk | None]:
        """What a command writes; None is the end."""
        with self._lock:
            return self._outputs.setdefault(command, queue.SimpleQueue())

    def forget(self, command: str) -> None:
        """Drops what a command wrote."""
        with self._lock:
            self._outputs.pop(command, None)

    def _read(self) -> None:
        assert self._server.stdout is not None
        for line in self._server.stdout:
            message = json.loads(line)
            if message.get("method") == "output":
                params = message["params"]
                chunk = (params["stream"], decode(params["data"]))
                self.output(params["command"]).put(chunk)
                continue
            with self._lock:
                answer = self._pending.pop(message.get("id"), None)
            if answer is None or not answer.set_running_or_notify_cancel():
                continue
            if "error" in message:
                answer.set_exception(StockadeError.of(message["error"]))
            else:
                answer.set_result(message["result"])
        with self._lock:
            self._is_closed = True
            pending = list(self._pending.values())
            outputs = list(self._outputs.values())
            self._pending.clear()
        for answer in pending:
            if answer.set_running_or_notify_cancel():
                answer.set_exception(StockadeError("ended", "stockade has ended"))
        for output in outputs:
            output.put(None)

    def close(self) -> None:
        """Ends the server, and every session with it."""
        assert self._server.stdin is not None and self._server.stdout is not None
        with self._lock:
            self._is_closed = True
            try:
                self._server.stdin.close()
            except BrokenPipeError:
                pass
        self._server.wait()
        self._reader.join()
        self._server.stdout.close()
