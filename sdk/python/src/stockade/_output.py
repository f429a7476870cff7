"""The output of a command, between the thread that reads the server and whoever takes it."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

Chunk = tuple[str, bytes]


class Collected:
    """Output that is kept up to a limit for each stream."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._streams: dict[str, bytearray] = {}
        self.truncated = False

    def add(self, chunk: Chunk) -> None:
        """Keeps output, or the part of it that is below the limit."""
        stream, data = chunk
        kept = self._streams.setdefault(stream, bytearray())
        if self._limit is not None and len(kept) + len(data) > self._limit:
            data = data[: self._limit - len(kept)]
            self.truncated = True
        kept.extend(data)

    def stream(self, *names: str) -> bytes:
        """What was kept of the first of these streams that has output."""
        for name in names:
            if name in self._streams:
                return bytes(self._streams[name])
        return b""


class Output:
    """A queue with an end that threads and event loops can wait for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._chunks: deque[Chunk] = deque()
        self._is_ended = False
        self._wake: list[Callable[[], None]] = []

    def put(self, chunk: Chunk) -> None:
        """Adds output."""
        with self._changed:
            self._chunks.append(chunk)
            self._notify()

    def end(self) -> None:
        """Says that no more output comes."""
        with self._changed:
            self._is_ended = True
            self._notify()

    def get(self, timeout: float | None = None) -> Chunk | None:
        """Waits for output; None is the end."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._chunks or self._is_ended, timeout):
                raise TimeoutError
            return self._chunks.popleft() if self._chunks else None

    async def get_async(self) -> Chunk | None:
        """Waits for output; None is the end."""
        loop = asyncio.get_running_loop()
        while True:
            with self._changed:
                if self._chunks:
                    return self._chunks.popleft()
                if self._is_ended:
                    return None
                ready = asyncio.Event()
                self._wake.append(lambda: _wake_up(loop, ready))
            await ready.wait()

    def _notify(self) -> None:
        self._changed.notify_all()
        wake, self._wake = self._wake, []
        for call in wake:
            call()


def _wake_up(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    try:
        loop.call_soon_threadsafe(event.set)
    except RuntimeError:
        # The loop is closed, and nobody waits in it any more.
        pass
