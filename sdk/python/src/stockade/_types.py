"""What the server answers, as objects."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ._output import Collected


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
    usage_scope: str = "waited"
    """Whose CPU time it is: `all` that the command started, or what was `waited` for."""
    stdout_bytes: bytes = b""
    stderr_bytes: bytes = b""
    truncated: bool = False
    """Whether output above `output_limit` was dropped."""

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


@dataclass(frozen=True)
class Allowed:
    """What adding grants did."""

    rebuilt: bool
    """Whether the sandbox was built again: then `/tmp` is empty and background processes are gone."""
    warnings: list[str]


@dataclass(frozen=True)
class Closed:
    """What belongs to no single command of a sandbox."""

    denials: list[Denial]
    """What processes in the background were refused."""
    network: list[Any]
    """Hosts that were asked for, and what was decided."""


@dataclass(eq=False)
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

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is pickled as its positional arguments, and this one may have none.
        return StockadeError, tuple(getattr(self, field.name) for field in fields(self))

    def copy(self) -> StockadeError:
        """The same error to raise once more, without the first one's traceback."""
        return replace(self)

    @classmethod
    def of(cls, error: dict[str, Any]) -> StockadeError:
        """The error of an answer."""
        data = error["data"]
        return cls(
            kind=data["kind"],
            message=error["message"],
            hint=data.get("hint"),
            errno=data.get("errno"),
            denials=denials_of(data.get("denials", [])),
            paths=data.get("paths", []),
        )


def result_of(waited: dict[str, Any], output: Collected) -> Result:
    """How a command ended."""
    return Result(
        exit_code=waited["exit_code"],
        ending=waited["ending"],
        signal=waited["signal"],
        denials=denials_of(waited["denials"]),
        wall_micros=waited["wall_micros"],
        cpu_micros=waited["cpu_micros"],
        peak_memory_kib=waited["peak_memory_kib"],
        usage_scope=waited["usage_scope"],
        stdout_bytes=output.stream("stdout", "terminal"),
        stderr_bytes=output.stream("stderr"),
        truncated=output.truncated,
    )


def denials_of(denials: list[dict[str, Any]]) -> list[Denial]:
    """Denials of an answer; what a newer server adds to them is left out."""
    return [Denial(**_known(Denial, denial)) for denial in denials]


def allowed_of(allowed: dict[str, Any]) -> Allowed:
    """What `allow` answered; a server that says nothing has built the sandbox again."""
    return Allowed(allowed.get("rebuilt", True), allowed.get("warnings", []))


def closed_of(closed: dict[str, Any]) -> Closed:
    """What a sandbox has to say at its end."""
    return Closed(denials_of(closed["denials"]), closed["network"])


def entry_of(entry: dict[str, Any]) -> Entry:
    """A directory's entry of an answer."""
    return Entry(**_known(Entry, entry))


def stat_of(stat: dict[str, Any]) -> Stat:
    """A file's description of an answer."""
    return Stat(**_known(Stat, stat))


def _known(kind: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in values.items() if name in names}


def change_of(change: dict[str, Any]) -> Change:
    """A change of an answer."""
    return Change(change["path"], change["kind"], change.get("from"), change.get("text"))


def encode(data: bytes) -> dict[str, str]:
    """Bytes as the protocol has them."""
    return {"base64": base64.b64encode(data).decode()}


def parts_of(data: str | bytes, size: int) -> Iterator[bytes]:
    """Bytes in parts of a size; an empty one if there are none."""
    raw = data.encode() if isinstance(data, str) else data
    for at in range(0, max(len(raw), 1), size):
        yield raw[at : at + size]


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
