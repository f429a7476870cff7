"""A server, and the messages between it and this program."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any

from ._output import Chunk
from ._program import no_program, program
from ._types import StockadeError, decode

Sink = Callable[[Chunk], None]

_READ_BYTES = 1 << 16
_CLOSE_SECONDS = 10.0


class Connection:
    """Requests are sent by any thread; one thread reads and hands out the answers."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        # Two locks: a thread that waits for the pipe must not keep the reader from reading.
        self._state = threading.Lock()
        self._writing = threading.Lock()
        self._pending: dict[int, Future[Any]] = {}
        self._sinks: dict[str, Sink] = {}
        self._early: dict[str, list[Chunk]] = {}
        self._ended: StockadeError | None = None
        self._is_foreign = False
        self._users = 1
        self._line_bytes = _READ_BYTES
        self._start()
        _connections.add(self)
        try:
            answer = self.call("initialize", protocol=1, client="python")
        except BaseException as error:
            self.close()
            if isinstance(error, StockadeError) and error.kind == "ended":
                raise no_program(f"`{self._program} serve --stdio` does not answer: {error.message}") from None
            raise
        self._line_bytes = answer["limits"]["line_bytes"]
        # Half of what the server works on at once: a request that was cancelled still counts there.
        self.max_requests: int = max(1, answer["limits"]["requests"] // 2)

    def _start(self) -> None:
        self._program = program()
        # Descriptors without file objects: a process that was forked closes them whatever
        # locks of a file object another thread held.
        theirs_in, self._to_server = os.pipe()
        self._from_server, theirs_out = os.pipe()
        try:
            # A session of its own, so that Ctrl-C interrupts this program only.
            self.server = subprocess.Popen(
                [self._program, "serve", "--stdio"],
                stdin=theirs_in,
                stdout=theirs_out,
                start_new_session=True,
            )
        except OSError as error:
            os.close(self._to_server)
            os.close(self._from_server)
            raise no_program(f"can't start `{self._program}`: {error.strerror}") from None
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self._reader = threading.Thread(target=self._read, name="stockade", daemon=True)
        self._reader.start()

    def send(self, method: str, **params: Any) -> Future[Any]:
        """Sends a request; parameters that are None are left out."""
        answer: Future[Any] = Future()
        identity = next(self._ids)
        given = {name: value for name, value in params.items() if value is not None}
        message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": given}
        line = json.dumps(message, ensure_ascii=False).encode() + b"\n"
        if len(line) > self._line_bytes:
            raise StockadeError("invalid_params", f"a message has at most {self._line_bytes} bytes")
        with self._state:
            if self._ended is not None:
                raise self._ended.copy()
            self._pending[identity] = answer
        with self._writing:
            self._write(line)
        return answer

    def call(self, method: str, **params: Any) -> Any:
        """Sends a request and waits for its answer."""
        return self.send(method, **params).result()

    def attach(self, command: str, sink: Sink) -> None:
        """Hands what a command writes to `sink`, in the thread that reads the server."""
        with self._state:
            for chunk in self._early.pop(command, ()):
                sink(chunk)
            self._sinks[command] = sink

    def detach(self, command: str) -> None:
        """Forgets a command."""
        with self._state:
            self._sinks.pop(command, None)

    def share(self) -> None:
        """Counts one more sandbox that uses the server."""
        with self._state:
            self._users += 1

    def release(self, session: str) -> None:
        """Ends a session, and the server with the last one."""
        with self._state:
            self._users -= 1
            is_last = self._users == 0
        if is_last:
            self.close()
            return
        try:
            self.send("close", session=session)
        except StockadeError:
            # It is closed already.
            pass

    def close(self) -> None:
        """Ends the server, and every session with it."""
        if self._is_foreign:
            return
        self._fail(StockadeError("ended", "the sandbox is closed"))
        # A thread that can't write to a server that hangs keeps the lock.
        if self._writing.acquire(timeout=_CLOSE_SECONDS):
            self._close_input()
            self._writing.release()
        try:
            self.server.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
        if threading.current_thread() is not self._reader:
            self._reader.join()

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._to_server, rest) :]
        except OSError:
            # The reader sees the end too, and fails the request with the reason.
            pass
        except BaseException:
            # An interrupt left half of a message behind, which nothing can follow.
            self._close_input()
            raise

    def _close_input(self) -> None:
        if self._to_server >= 0:
            os.close(self._to_server)
            self._to_server = -1

    def _read(self) -> None:
        rest = b""
        while True:
            try:
                data = os.read(self._from_server, _READ_BYTES)
            except OSError:
                data = b""
            if not data:
                break
            *lines, rest = (rest + data if rest else data).split(b"\n")
            try:
                for line in lines:
                    self._take(json.loads(line))
            except (AttributeError, KeyError, TypeError, ValueError):
                # No server of this protocol, or one that is out of step: nothing it says counts.
                self._fail(StockadeError("ended", "the answer was no message of the protocol"))
                self.server.kill()
                break
        os.close(self._from_server)
        code = self.server.wait()
        how = f"signal {-code}" if code < 0 else f"code {code}"
        self._fail(StockadeError("ended", f"stockade has ended with {how}"))

    def _take(self, message: dict[str, Any]) -> None:
        if message.get("method") == "output":
            params = message["params"]
            chunk = (params["stream"], decode(params["data"]))
            with self._state:
                sink = self._sinks.get(params["command"])
                if sink is None:
                    self._early.setdefault(params["command"], []).append(chunk)
                else:
                    sink(chunk)
            return
        with self._state:
            answer = self._pending.pop(message.get("id", 0), None)
        if answer is None:
            return
        if "error" in message:
            _settle(answer, StockadeError.of(message["error"]))
        else:
            _settle(answer, message["result"])

    def _fail(self, reason: StockadeError) -> None:
        with self._state:
            self._ended = self._ended or reason
            pending = list(self._pending.values())
            self._pending.clear()
        for answer in pending:
            _settle(answer, reason.copy())

    def leave_to_parent(self) -> None:
        """Lets go of a server that belongs to the process that this one was forked from."""
        self._is_foreign = True
        self._state = threading.Lock()
        self._writing = threading.Lock()
        self._ended = StockadeError("ended", "the sandbox belongs to the process that opened it")
        # The server ends when the last writer is gone, which must not be this process.
        self._close_input()
        os.close(self._from_server)


def _settle(answer: Future[Any], outcome: Any) -> None:
    try:
        if isinstance(outcome, StockadeError):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)
    except InvalidStateError:
        # Whoever asked does not want to know any more.
        pass


_connections: weakref.WeakSet[Connection] = weakref.WeakSet()


def _after_fork() -> None:
    for connection in list(_connections):
        connection.leave_to_parent()
    _connections.clear()


os.register_at_fork(after_in_child=_after_fork)
