"""Sandboxes for programs without an event loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from ._connection import Chunk, Connection
from ._types import (
    Change,
    Entry,
    Result,
    Stat,
    StockadeError,
    argv_of,
    change_of,
    decode,
    encode,
    milliseconds,
    result_of,
)


class Command:
    """A command that was started in a sandbox."""

    def __init__(self, connection: Connection, session: str, name: str) -> None:
        self._connection = connection
        self._about = {"session": session, "command": name}
        self._name = name
        self._queue = connection.output(name)
        self._end = connection.send("wait", **self._about)
        self._end.add_done_callback(lambda _: self._queue.put(None))
        self._result: Result | None = None
        self._seen: dict[str, bytearray] = {}
        self._is_over = False

    def output(self) -> Iterator[Chunk]:
        """The output as it comes: the stream's name and bytes."""
        while not self._is_over:
            chunk = self._queue.get()
            if chunk is None:
                self._is_over = True
                self._connection.forget(self._name)
                return
            self._seen.setdefault(chunk[0], bytearray()).extend(chunk[1])
            yield chunk

    def write(self, data: str | bytes) -> None:
        """Writes to the command's input."""
        self._connection.call("stdin", **self._about, data=encode(data))

    def close_stdin(self) -> None:
        """Ends the command's input."""
        self._connection.call("stdin", **self._about, eof=True)

    def signal(self, signal: int) -> None:
        """Sends a signal; 9 kills everything that the command started."""
        self._connection.call("signal", **self._about, signal=signal)

    def kill(self) -> None:
        """Kills the command and everything that it started."""
        try:
            self.signal(9)
        except StockadeError as error:
            if error.kind != "no_such_command":
                raise

    @property
    def running(self) -> bool:
        """Whether the command runs."""
        return not self._end.done()

    def wait(self) -> Result:
        """Waits for the end; the result has all output."""
        if self._result is None:
            for _ in self.output():
                pass
            seen = self._seen
            stdout = bytes(seen.get("stdout", b"") or seen.get("terminal", b""))
            self._result = result_of(self._end.result(), stdout, bytes(seen.get("stderr", b"")))
        return self._result


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
        self._connection = Connection()
        try:
            opened = self._connection.call(
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
            self._connection.close()
            raise
        self._session: str = opened["session"]
        self.workspace: str = opened["workspace"]
        self.warnings: list[str] = opened["warnings"]

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the sandbox and everything in it."""
        self._connection.close()

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
        """Starts a command; a string is for a shell. `terminal` is rows and columns."""
        size = None if terminal is None else {"rows": terminal[0], "cols": terminal[1]}
        started = self._call(
            "exec",
            argv=argv_of(command),
            cwd=cwd,
            env=dict(env or {}),
            timeout_ms=milliseconds(timeout),
            stdin=stdin,
            terminal=size,
        )
        return Command(self._connection, self._session, started["command"])

    def run(
        self,
        command: str | list[str],
        *,
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Result:
        """Runs a command to its end."""
        has_input = input is not None
        running = self.start(command, cwd=cwd, env=env, timeout=timeout, stdin=has_input)
        if input is not None:
            try:
                running.write(input)
                running.close_stdin()
            except StockadeError as error:
                # A command may end without reading its input.
                if error.kind not in ("ended", "no_such_command"):
                    raise
        return running.wait()

    def read(self, path: str) -> bytes:
        """Reads a file as the sandbox sees it."""
        content = b""
        while True:
            part = self._call("files.read", path=path, offset=len(content))
            content += decode(part["data"])
            if part["eof"]:
                return content

    def write(self, path: str, data: str | bytes, *, parents: bool = False) -> None:
        """Writes a file as a command would."""
        raw = data.encode() if isinstance(data, str) else data
        for at in range(0, max(len(raw), 1), _WRITE_BYTES):
            part = encode(raw[at : at + _WRITE_BYTES])
            self._call("files.write", path=path, data=part, append=at > 0, parents=parents)

    def list(self, path: str = ".") -> list[Entry]:
        """Lists a directory."""
        return [Entry(**entry) for entry in self._call("files.list", path=path)["entries"]]

    def stat(self, path: str) -> Stat:
        """Describes a file."""
        return Stat(**self._call("files.stat", path=path))

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
    ) -> None:
        """Adds grants for later commands; none may run meanwhile."""
        self._call("allow", hosts=[*hosts], sockets=[*sockets], read=[*read], write=[*write])

    def report(self) -> dict[str, Any]:
        """What the sandbox enforces, clause by clause."""
        report = self._call("report")
        assert isinstance(report, dict)
        return report

    def _call(self, method: str, **params: Any) -> Any:
        return self._connection.call(method, session=self._session, **params)


_WRITE_BYTES = 2 << 20
