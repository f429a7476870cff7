"""What the server answers, as objects."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Denial:
    """Something that the policy refused."""

    operation: str
    subject: str
    rule: str
    grant: str
    errno: int
    host: str | None = None
    origin: str | None = None


@dataclass(frozen=True)
class Result:
    """How a command ended, and what it wrote."""

    exit_code: int
    ending: str
    signal: int | None
    denials: list[Denial]
    wall_micros: int
    cpu_micros: int
    peak_memory_kib: int
    stdout_bytes: bytes = b""
    stderr_bytes: bytes = b""

    @property
    def stdout(self) -> str:
        """Standard output as text."""
        return self.stdout_bytes.decode(errors="replace")

    @property
    def stderr(self) -> str:
        """Standard error as text."""
        return self.stderr_bytes.decode(errors="replace")

    @property
    def ok(self) -> bool:
        """Whether the command exited with 0."""
        return self.ending == "exited" and self.exit_code == 0


@dataclass(frozen=True)
class Change:
    """A file that differs from the workspace."""

    path: str
    kind: str
    old_path: str | None = None
    text: str | None = None


@dataclass(frozen=True)
class Entry:
    """A name in a directory."""

    name: str
    kind: str


@dataclass(frozen=True)
class Stat:
    """What a file is; a symbolic link is not followed."""

    kind: str
    size: int
    mode: int
    modified_ms: int
    target: str | None = None


@dataclass
class StockadeError(Exception):
    """Why something could not be done; `kind` is stable (docs/protocol.md)."""

    kind: str
    message: str
    hint: str | None = None
    errno: int | None = None
    denials: list[Denial] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} (hint: {self.hint})"

    @classmethod
    def of(cls, error: dict[str, Any]) -> StockadeError:
        """The error of an answer."""
        data = error["data"]
        return cls(
            kind=data["kind"],
            message=error["message"],
            hint=data.get("hint"),
            errno=data.get("errno"),
            denials=[Denial(**denial) for denial in data.get("denials", [])],
            paths=data.get("paths", []),
        )


def result_of(waited: dict[str, Any], stdout: bytes, stderr: bytes) -> Result:
    """How a command ended."""
    denials = [Denial(**denial) for denial in waited["denials"]]
    return Result(**{**waited, "denials": denials}, stdout_bytes=stdout, stderr_bytes=stderr)


def change_of(change: dict[str, Any]) -> Change:
    """A change of an answer."""
    return Change(change["path"], change["kind"], change.get("from"), change.get("text"))


def encode(data: str | bytes) -> dict[str, str]:
    """Bytes as the protocol has them."""
    if isinstance(data, str):
        return {"text": data}
    return {"base64": base64.b64encode(data).decode()}


def decode(data: dict[str, str]) -> bytes:
    """Bytes of the protocol."""
    if "text" in data:
        return data["text"].encode()
    return base64.b64decode(data["base64"])


def argv_of(command: str | list[str]) -> list[str]:
    """A string is for a shell, a list is what it is."""
    return ["sh", "-c", command] if isinstance(command, str) else command


def milliseconds(seconds: float | None) -> int | None:
    """A time of the protocol."""
    return None if seconds is None else max(1, round(seconds * 1000))
