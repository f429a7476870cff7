"""The same for asyncio: each call waits in a thread of the loop's executor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Any

from ._connection import Chunk
from ._sync import Command, Sandbox
from ._types import Change, Entry, Result, Stat


class AsyncCommand:
    """A command that was started in a sandbox."""

    def __init__(self, command: Command) -> None:
        self._command = command

    async def output(self) -> AsyncIterator[Chunk]:
        """The output as it comes: the stream's name and bytes."""
        chunks = self._command.output()
        while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
            yield chunk

    async def write(self, data: str | bytes) -> None:
        """Writes to the command's input."""
        await asyncio.to_thread(self._command.write, data)

    async def close_stdin(self) -> None:
        """Ends the command's input."""
        await asyncio.to_thread(self._command.close_stdin)

    async def signal(self, signal: int) -> None:
        """Sends a signal; 9 kills everything that the command started."""
        await asyncio.to_thread(self._command.signal, signal)

    async def kill(self) -> None:
        """Kills the command and everything that it started."""
        await asyncio.to_thread(self._command.kill)

    async def wait(self) -> Result:
        """Waits for the end; a wait that is cancelled kills the command."""
        try:
            return await asyncio.to_thread(self._command.wait)
        except asyncio.CancelledError:
            self._command.kill()
            raise


class AsyncSandbox:
    """A sandbox that stays open; `async with` opens and closes it."""

    def __init__(self, workspace: str | None = None, **settings: Any) -> None:
        self._make: Callable[[], Sandbox] = lambda: Sandbox(workspace, **settings)
        self._opened: Sandbox | None = None

    async def __aenter__(self) -> AsyncSandbox:
        self._opened = await asyncio.to_thread(self._make)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self._box.close)

    @property
    def _box(self) -> Sandbox:
        if self._opened is None:
            raise RuntimeError("use `async with`")
        return self._opened

    async def start(self, command: str | list[str], **settings: Any) -> AsyncCommand:
        """Starts a command; see `Sandbox.start`."""
        box = self._box
        return AsyncCommand(await asyncio.to_thread(lambda: box.start(command, **settings)))

    async def run(
        self, command: str | list[str], *, input: str | bytes | None = None, **settings: Any
    ) -> Result:
        """Runs a command to its end; a run that is cancelled is killed."""
        running = await self.start(command, stdin=input is not None, **settings)
        if input is not None:
            await running.write(input)
            await running.close_stdin()
        return await running.wait()

    async def read(self, path: str) -> bytes:
        """Reads a file as the sandbox sees it."""
        return await asyncio.to_thread(self._box.read, path)

    async def write(self, path: str, data: str | bytes, *, parents: bool = False) -> None:
        """Writes a file as a command would."""
        box = self._box
        await asyncio.to_thread(lambda: box.write(path, data, parents=parents))

    async def list(self, path: str = ".") -> list[Entry]:
        """Lists a directory."""
        return await asyncio.to_thread(self._box.list, path)

    async def stat(self, path: str) -> Stat:
        """Describes a file."""
        return await asyncio.to_thread(self._box.stat, path)

    async def diff(self, *, text: bool = False) -> Sequence[Change]:
        """What commands changed in the overlay."""
        box = self._box
        return await asyncio.to_thread(lambda: box.diff(text=text))

    async def commit(self, paths: Sequence[str] = (), *, conflicts: str = "refuse") -> dict[str, Any]:
        """Applies changes to the workspace."""
        box = self._box
        return await asyncio.to_thread(lambda: box.commit(paths, conflicts=conflicts))

    async def discard(self) -> None:
        """Drops all changes."""
        await asyncio.to_thread(self._box.discard)

    async def allow(self, **grants: Sequence[str]) -> None:
        """Adds grants for later commands; see `Sandbox.allow`."""
        box = self._box
        await asyncio.to_thread(lambda: box.allow(**grants))

    async def report(self) -> dict[str, Any]:
        """What the sandbox enforces."""
        return await asyncio.to_thread(self._box.report)
