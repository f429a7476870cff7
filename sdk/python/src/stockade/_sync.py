"""Sandboxes for programs without an event loop."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from types import TracebackType
from typing import Any

from ._command import (
    INPUT_BYTES,
    INPUT_IS_OVER,
    OUTPUT_LIMIT,
    WINDOW_BYTES,
    Started,
    abandon,
    parameters,
)
from ._connection import Connection
from ._output import Chunk, Collected
from ._types import (
    Allowed,
    Change,
    Closed,
    Entry,
    Result,
    Stat,
    StockadeError,
    allowed_of,
    change_of,
    closed_of,
    decode,
    encode,
    entry_of,
    milliseconds,
    parts_of,
    stat_of,
)

# Inside the class `list` is the method.
list_ = list

FILE_BYTES = 2 << 20
_CLOSE_SECONDS = 10.0


class Command:
    """A command that was started in a sandbox."""

    def __init__(self, box: Sandbox, started: Started) -> None:
        # A sandbox that nobody holds is closed, and this command with it.
        self._box = box
        self._started = started
        self._draining = threading.Lock()

    def output(self) -> Iterator[Chunk]:
        """The output as it comes: the stream's name and bytes."""
        while (chunk := self.read_output()) is not None:
            yield chunk

    def read_output(self, timeout: float | None = None) -> Chunk | None:
        """Waits for output; None is its end. After `timeout` seconds: TimeoutError."""
        chunk = self._started.output.get(timeout)
        if chunk is not None:
            self._started.take(chunk)
        return chunk

    def write(self, data: str | bytes) -> None:
        """Writes to the command's input."""
        for part in parts_of(data, INPUT_BYTES):
            self._call("stdin", data=encode(part))

    def close_stdin(self) -> None:
        """Ends the command's input."""
        self._call("stdin", eof=True)

    def resize(self, rows: int, columns: int) -> None:
        """Changes the size of the command's terminal."""
        self._call("resize", size={"rows": rows, "cols": columns})

    def signal(self, signal: int) -> None:
        """Sends a signal; 9 kills everything that the command started."""
        self._call("signal", signal=signal)

    def kill(self) -> None:
        """Kills the command and everything that it started."""
        if self.running:
            self._started.send_quietly("signal", signal=9)

    @property
    def running(self) -> bool:
        """Whether the command runs."""
        return not self._started.end.done()

    def wait(self, timeout: float | None = None) -> Result:
        """Waits for the end; the result has the output. After `timeout` seconds: TimeoutError."""
        with self._draining:
            while (chunk := self._started.output.get(timeout)) is not None:
                self._started.take(chunk)
        return self._started.result()

    def _call(self, method: str, **params: Any) -> None:
        self._started.connection.call(method, **self._started.about, **params)


class Sandbox:
    """A sandbox that stays open; everything in it ends when it is closed."""

    def __init__(
        self,
        workspace: str | None = None,
        *,
        overlay: bool = False,
        read_only: bool = False,
        read: Sequence[str] = (),
        write: Sequence[str] = (),
        deny: Sequence[str] = (),
        deny_write: Sequence[str] = (),
        allow: Sequence[str] = (),
        block: Sequence[str] = (),
        resolve: Sequence[str] = (),
        sockets: Sequence[str] = (),
        network: str | None = None,
        env: Mapping[str, str] | None = None,
        keep_env: Sequence[str] = (),
        limits: Sequence[str] = (),
        timeout: float | None = None,
        policy: str | None = None,
        user_files: bool = True,
        best_effort: bool = False,
    ) -> None:
        connection = Connection()
        try:
            opened = connection.call(
                "open",
                workspace=workspace,
                overlay=overlay,
                read_only=read_only,
                read=list(read),
                write=list(write),
                deny=list(deny),
                deny_write=list(deny_write),
                allow=list(allow),
                block=list(block),
                resolve=list(resolve),
                sockets=list(sockets),
                network=network,
                env=dict(env or {}),
                keep_env=list(keep_env),
                limits=list(limits),
                timeout_ms=milliseconds(timeout),
                policy=policy,
                no_user_files=not user_files,
                best_effort=best_effort,
            )
        except BaseException:
            connection.close()
            raise
        self.workspace: str = opened["workspace"]
        self.backend: str = opened["backend"]
        self.warnings: list[str] = opened["warnings"]
        self._own(connection, opened["session"])

    def _own(self, connection: Connection, session: str) -> None:
        self._connection = connection
        self._session = session
        self._requests = threading.BoundedSemaphore(connection.max_requests)
        self._closed: Closed | None = None
        # Also when nobody holds the sandbox any more, and when the interpreter exits.
        self._finalizer = weakref.finalize(self, connection.release, session)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> Closed | None:
        """Ends the sandbox and everything in it; None if it had ended by itself."""
        if self._finalizer.alive:
            try:
                answer = self._connection.send("close", session=self._session)
                self._closed = closed_of(answer.result(_CLOSE_SECONDS))
            except (StockadeError, TimeoutError, FutureTimeoutError):
                # The server is gone, or does not answer and is killed.
                pass
            self._finalizer()
        return self._closed

    def start(
        self,
        command: str | list[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        stdin: bool = False,
        terminal: tuple[int, int] | None = None,
    ) -> Command:
        """Starts a command; a string is for a shell. `terminal` is rows and columns.

        A command whose output nobody takes stops after 1 MiB of it, as at a full pipe.
        """
        settings = parameters(command, cwd=cwd, env=env, timeout=timeout, stdin=stdin, terminal=terminal)
        return Command(self, self._start(settings, None))

    def run(
        self,
        command: str | list[str],
        *,
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        output_limit: int | None = OUTPUT_LIMIT,
    ) -> Result:
        """Runs a command to its end; what it writes above `output_limit` bytes a stream is dropped."""
        has_input = input is not None
        settings = parameters(command, cwd=cwd, env=env, timeout=timeout, stdin=has_input)
        started = self._start(settings, Collected(output_limit))
        try:
            if input is not None:
                self._feed(started, input)
            started.end.result()
        except BaseException:
            # KeyboardInterrupt: nobody else could kill the command.
            started.send_quietly("signal", signal=9)
            raise
        return started.result()

    def _start(self, settings: dict[str, Any], keep: Collected | None) -> Started:
        credit = WINDOW_BYTES if keep is None else None
        self._check_open()
        with self._requests:
            answer = self._connection.send("exec", session=self._session, credit=credit, **settings)
            try:
                name = answer.result()["command"]
            except KeyboardInterrupt:
                abandon(answer, self._connection, self._session)
                raise
        return Started(self._connection, self._session, name, keep)

    def _feed(self, started: Started, input: str | bytes) -> None:
        try:
            for part in parts_of(input, INPUT_BYTES):
                self._connection.call("stdin", **started.about, data=encode(part))
            self._connection.call("stdin", **started.about, eof=True)
        except StockadeError as error:
            if error.kind not in INPUT_IS_OVER:
                raise

    def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """Reads a file, or a part of it, as the sandbox sees it."""
        content = bytearray()
        while length is None or len(content) < length:
            left = None if length is None else min(length - len(content), FILE_BYTES)
            part = self._call("files.read", path=path, offset=offset + len(content), length=left)
            content += decode(part["data"])
            if part["eof"]:
                break
        return bytes(content)

    def write(
        self,
        path: str,
        data: str | bytes,
        *,
        parents: bool = False,
        append: bool = False,
        mode: int | None = None,
    ) -> None:
        """Writes a file as a command would; `mode` has the permission bits of a new file."""
        for part in parts_of(data, FILE_BYTES):
            self._call(
                "files.write", path=path, data=encode(part), append=append, parents=parents, mode=mode
            )
            append = True

    def list(self, path: str = ".") -> list[Entry]:
        """Lists a directory."""
        return [entry_of(entry) for entry in self._call("files.list", path=path)["entries"]]

    def stat(self, path: str) -> Stat:
        """Describes a file."""
        return stat_of(self._call("files.stat", path=path))

    def diff(self, *, text: bool = False) -> Sequence[Change]:
        """What commands changed in the overlay."""
        changes = self._call("diff", text=text)["changes"]
        return [change_of(change) for change in changes]

    def commit(self, paths: Sequence[str] = (), *, conflicts: str = "refuse") -> dict[str, Any]:
        """Applies changes to the workspace; all of them if there are no paths."""
        done = self._call("commit", paths=[*paths], conflicts=conflicts)
        assert isinstance(done, dict)
        return done

    def discard(self) -> None:
        """Drops all changes."""
        self._call("discard")

    def allow(
        self,
        *,
        hosts: Sequence[str] = (),
        sockets: Sequence[str] = (),
        read: Sequence[str] = (),
        write: Sequence[str] = (),
    ) -> Allowed:
        """Adds grants. For paths no command may run meanwhile, and the sandbox is built again."""
        grants = {"hosts": [*hosts], "sockets": [*sockets], "read": [*read], "write": [*write]}
        return allowed_of(self._call("allow", **grants))

    def snapshot(self, name: str) -> None:
        """Keeps what the overlay has now under a name; no command may run meanwhile."""
        self._call("snapshot", name=name)

    def restore(self, name: str) -> None:
        """Returns the overlay to a snapshot; no command may run meanwhile."""
        self._call("restore", name=name)

    def snapshots(self) -> list_[str]:
        """The names of the overlay's snapshots."""
        names: list_[str] = self._call("snapshots.list")["snapshots"]
        return names

    def remove_snapshot(self, name: str) -> None:
        """Removes a snapshot."""
        self._call("snapshots.remove", name=name)

    def fork(self) -> Sandbox:
        """A second sandbox with the same policy, whose overlay begins as a copy of this one's."""
        forked = self._call("fork")
        self._connection.share()
        other = Sandbox.__new__(Sandbox)
        other.workspace, other.backend, other.warnings = self.workspace, self.backend, self.warnings
        other._own(self._connection, forked["session"])
        return other

    def report(self) -> dict[str, Any]:
        """What the sandbox enforces, clause by clause."""
        report = self._call("report")
        assert isinstance(report, dict)
        return report

    def _call(self, method: str, **params: Any) -> Any:
        self._check_open()
        with self._requests:
            return self._connection.call(method, session=self._session, **params)

    def _check_open(self) -> None:
        # A sandbox and its forks share a connection, which may still be open.
        if not self._finalizer.alive:
            raise StockadeError("ended", "the sandbox is closed")

