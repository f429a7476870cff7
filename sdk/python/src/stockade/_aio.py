"""The same for asyncio. No call occupies a thread while it waits for the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from ._command import INPUT_BYTES, INPUT_IS_OVER, OUTPUT_LIMIT, WINDOW_BYTES, Started, abandon, parameters
from ._connection import Connection
from ._output import Chunk, Collected
from ._sync import FILE_BYTES, Sandbox, list_
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
    decode,
    encode,
    entry_of,
    parts_of,
    stat_of,
)


class AsyncCommand:
    """A command that was started in a sandbox."""

    def __init__(self, box: Sandbox, started: Started) -> None:
        self._box = box
        self._started = started
        self._draining = asyncio.Lock()

    async def output(self) -> AsyncIterator[Chunk]:
        """The output as it comes: the stream's name and bytes."""
        while (chunk := await self._started.output.get_async()) is not None:
            self._started.take(chunk)
            yield chunk

    async def write(self, data: str | bytes) -> None:
        """Writes to the command's input."""
        for part in parts_of(data, INPUT_BYTES):
            await self._call("stdin", data=encode(part))

    async def close_stdin(self) -> None:
        """Ends the command's input."""
        await self._call("stdin", eof=True)

    async def resize(self, rows: int, columns: int) -> None:
        """Changes the size of the command's terminal."""
        await self._call("resize", size={"rows": rows, "cols": columns})

    async def signal(self, signal: int) -> None:
        """Sends a signal; 9 kills everything that the command started."""
        await self._call("signal", signal=signal)

    async def kill(self) -> None:
        """Kills the command and everything that it started."""
        if self.running:
            self._started.send_quietly("signal", signal=9)

    @property
    def running(self) -> bool:
        """Whether the command runs."""
        return not self._started.end.done()

    async def wait(self) -> Result:
        """Waits for the end; a wait that is cancelled kills the command."""
        try:
            async with self._draining:
                while (chunk := await self._started.output.get_async()) is not None:
                    self._started.take(chunk)
        except asyncio.CancelledError:
            self._started.send_quietly("signal", signal=9)
            raise
        return self._started.result()

    async def _call(self, method: str, **params: Any) -> None:
        await call(self._started.connection, method, **self._started.about, **params)


class AsyncSandbox:
    """A sandbox that stays open; `async with` opens and closes it."""

    def __init__(self, workspace: str | None = None, **settings: Any) -> None:
        self._workspace = workspace
        self._settings = settings
        self._opened: Sandbox | None = None

    async def open(self) -> AsyncSandbox:
        """Opens the sandbox, as `async with` does."""
        if self._opened is None:
            self._adopt(await asyncio.to_thread(Sandbox, self._workspace, **self._settings))
        return self

    def _adopt(self, box: Sandbox) -> None:
        self._opened = box
        self._requests = asyncio.Semaphore(box._connection.max_requests)

    async def close(self) -> Closed | None:
        """Ends the sandbox and everything in it."""
        # To its end, also if the task is cancelled: nothing may be left.
        return await asyncio.shield(asyncio.to_thread(self._box.close))

    async def __aenter__(self) -> AsyncSandbox:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def _box(self) -> Sandbox:
        if self._opened is None:
            raise RuntimeError("the sandbox is not open; use `async with`")
        return self._opened

    @property
    def workspace(self) -> str:
        """The directory that commands start in."""
        return self._box.workspace

    @property
    def backend(self) -> str:
        """What builds the sandbox."""
        return self._box.backend

    @property
    def warnings(self) -> list[str]:
        """What the user should know."""
        return self._box.warnings

    async def start(
        self,
        command: str | list[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        stdin: bool = False,
        terminal: tuple[int, int] | None = None,
    ) -> AsyncCommand:
        """Starts a command; see `Sandbox.start`."""
        settings = parameters(command, cwd=cwd, env=env, timeout=timeout, stdin=stdin, terminal=terminal)
        return AsyncCommand(self._box, await self._start(settings, None))

    async def run(
        self,
        command: str | list[str],
        *,
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        output_limit: int | None = OUTPUT_LIMIT,
    ) -> Result:
        """Runs a command to its end; a run that is cancelled is killed."""
        has_input = input is not None
        settings = parameters(command, cwd=cwd, env=env, timeout=timeout, stdin=has_input)
        started = await self._start(settings, Collected(output_limit))
        try:
            if input is not None:
                await self._feed(started, input)
            await asyncio.shield(asyncio.wrap_future(started.end))
        except asyncio.CancelledError:
            started.send_quietly("signal", signal=9)
            raise
        return started.result()

    async def _start(self, settings: dict[str, Any], keep: Collected | None) -> Started:
        box = self._box
        box._check_open()
        credit = WINDOW_BYTES if keep is None else None
        about = {"session": box._session, "credit": credit, **settings}
        async with self._requests:
            sending = asyncio.ensure_future(send(box._connection, "exec", **about))
            try:
                answer = await asyncio.shield(sending)
                name = (await asyncio.shield(asyncio.wrap_future(answer)))["command"]
            except asyncio.CancelledError:
                # The command may start although nobody waits for it.
                sending.add_done_callback(lambda sent: _abandon_sent(sent, box))
                raise
        return Started(box._connection, box._session, name, keep)

    async def _feed(self, started: Started, input: str | bytes) -> None:
        connection = self._box._connection
        try:
            for part in parts_of(input, INPUT_BYTES):
                await call(connection, "stdin", **started.about, data=encode(part))
            await call(connection, "stdin", **started.about, eof=True)
        except StockadeError as error:
            if error.kind not in INPUT_IS_OVER:
                raise

    async def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """Reads a file, or a part of it, as the sandbox sees it."""
        content = bytearray()
        while length is None or len(content) < length:
            left = None if length is None else min(length - len(content), FILE_BYTES)
            part = await self._call("files.read", path=path, offset=offset + len(content), length=left)
            content += decode(part["data"])
            if part["eof"]:
                break
        return bytes(content)

    async def write(
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
            data_of = encode(part)
            await self._call("files.write", path=path, data=data_of, append=append, parents=parents, mode=mode)
            append = True

    async def list(self, path: str = ".") -> list[Entry]:
        """Lists a directory."""
        return [entry_of(entry) for entry in (await self._call("files.list", path=path))["entries"]]

    async def stat(self, path: str) -> Stat:
        """Describes a file."""
        return stat_of(await self._call("files.stat", path=path))

    async def diff(self, *, text: bool = False) -> Sequence[Change]:
        """What commands changed in the overlay."""
        return [change_of(change) for change in (await self._call("diff", text=text))["changes"]]

    async def commit(self, paths: Sequence[str] = (), *, conflicts: str = "refuse") -> dict[str, Any]:
        """Applies changes to the workspace; all of them if there are no paths."""
        done: dict[str, Any] = await self._call("commit", paths=[*paths], conflicts=conflicts)
        return done

    async def discard(self) -> None:
        """Drops all changes."""
        await self._call("discard")

    async def allow(
        self,
        *,
        hosts: Sequence[str] = (),
        sockets: Sequence[str] = (),
        read: Sequence[str] = (),
        write: Sequence[str] = (),
    ) -> Allowed:
        """Adds grants; see `Sandbox.allow`."""
        grants = {"hosts": [*hosts], "sockets": [*sockets], "read": [*read], "write": [*write]}
        return allowed_of(await self._call("allow", **grants))

    async def snapshot(self, name: str) -> None:
        """Keeps what the overlay has now under a name; no command may run meanwhile."""
        await self._call("snapshot", name=name)

    async def restore(self, name: str) -> None:
        """Returns the overlay to a snapshot; no command may run meanwhile."""
        await self._call("restore", name=name)

    async def snapshots(self) -> list_[str]:
        """The names of the overlay's snapshots."""
        names: list_[str] = (await self._call("snapshots.list"))["snapshots"]
        return names

    async def remove_snapshot(self, name: str) -> None:
        """Removes a snapshot."""
        await self._call("snapshots.remove", name=name)

    async def fork(self) -> AsyncSandbox:
        """A second sandbox, which is open; see `Sandbox.fork`."""
        other = AsyncSandbox(self._workspace, **self._settings)
        other._adopt(await asyncio.to_thread(self._box.fork))
        return other

    async def report(self) -> dict[str, Any]:
        """What the sandbox enforces, clause by clause."""
        report: dict[str, Any] = await self._call("report")
        return report

    async def _call(self, method: str, **params: Any) -> Any:
        self._box._check_open()
        async with self._requests:
            return await call(self._box._connection, method, session=self._box._session, **params)


def _abandon_sent(sent: asyncio.Future[Future[Any]], box: Sandbox) -> None:
    if not sent.cancelled() and sent.exception() is None:
        abandon(sent.result(), box._connection, box._session)


# Larger messages don't fit into the pipe, so that writing them can take a while.
_WRITES_AT_ONCE = 1 << 12


async def send(connection: Connection, method: str, **params: Any) -> Future[Any]:
    """Sends a request; the event loop never waits for the server to read it."""
    if _size(params) < _WRITES_AT_ONCE:
        return connection.send(method, **params)
    return await asyncio.to_thread(connection.send, method, **params)


async def call(connection: Connection, method: str, **params: Any) -> Any:
    """Sends a request and waits for its answer."""
    return await asyncio.wrap_future(await send(connection, method, **params))


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(_size(part) for part in value.values())
    return sum(map(_size, value)) if isinstance(value, list) else 0
