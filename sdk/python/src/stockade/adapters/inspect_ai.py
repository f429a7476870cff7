"""A sandbox provider for inspect-ai: `Task(sandbox="stockade")`.

Each sample gets a sandbox and a directory of its own, which are gone when it ends. The provider's
configuration is a `StockadeConfig`, or the path of a policy file: `sandbox=("stockade", "policy.toml")`.

What it can't do: run commands as another user than the one who runs inspect (there is one user in a
sandbox), and `connection()` (the sandbox belongs to the process of the evaluation). Commands that
time out are not tried again. Samples share the host's programs; there are no images. Tools whose program
inspect-ai copies into /var/tmp (`bash_session`, `text_editor`, `exec_remote`) do not work: /var/tmp is that
of the host, and not writable.
"""

from __future__ import annotations

import errno
import os
import pwd
import shutil
import tempfile
from pathlib import Path
from typing import Any, Literal, NoReturn, overload

from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxEnvironmentLimits,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from pydantic import BaseModel, ConfigDict

from stockade import AsyncSandbox, StockadeError

_NOT_FOUND = 127


class StockadeConfig(BaseModel, frozen=True):
    """The policy of a sample's sandbox; the names are those of `stockade.Sandbox`."""

    model_config = ConfigDict(extra="forbid")

    policy: str | None = None
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    network: str | None = None
    env: dict[str, str] = {}
    keep_env: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    timeout: float | None = None

    def __hash__(self) -> int:
        # inspect-ai keeps configurations as keys, which a field that is a dict would forbid.
        return hash(self.model_dump_json())


@sandboxenv(name="stockade")
class StockadeSandboxEnvironment(SandboxEnvironment):
    """A sandbox that the Linux kernel enforces, for one sample."""

    def __init__(self, box: AsyncSandbox, directory: str) -> None:
        super().__init__()
        self._box = box
        self._directory = directory

    @classmethod
    async def sample_init(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        metadata: dict[str, str],
    ) -> dict[str, SandboxEnvironment]:
        """Opens a sandbox in a new directory."""
        # Not below /tmp, which is private inside.
        directory = tempfile.mkdtemp(prefix="stockade-inspect-", dir="/var/tmp")
        try:
            box = await AsyncSandbox(directory, user_files=False, **_settings(config)).open()
        except BaseException:
            shutil.rmtree(directory)
            raise
        return {"default": cls(box, directory)}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        """Ends the sample's sandbox and removes its directory."""
        for environment in environments.values():
            mine = environment.as_type(StockadeSandboxEnvironment)
            try:
                await mine._box.close()
            finally:
                _remove(mine._directory)

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        """The configuration of a log."""
        return StockadeConfig(**config)

    def default_polling_interval(self) -> float:
        """How often services look for requests."""
        return 0.2

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Runs a command."""
        if user is not None and not _is_current_user(user):
            raise SandboxUserUnsupportedError(f"a sandbox has one user, which is not {user!r}")
        limit = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        try:
            result = await self._box.run(
                cmd, input=input, cwd=cwd, env=env, timeout=timeout, output_limit=limit
            )
        except StockadeError as error:
            return await self._not_started(error, cmd[0])
        if result.ending == "timed_out":
            raise TimeoutError(f"`{cmd[0]}` took longer than {timeout} s")
        if result.truncated:
            text = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR
            raise OutputLimitExceededError(text, result.stdout + result.stderr)
        return ExecResult(result.ok, result.exit_code, result.stdout, result.stderr)

    async def _not_started(self, error: StockadeError, program: str) -> ExecResult[str]:
        if error.kind == "ended":
            raise SandboxUnavailableError(str(error)) from error
        if error.kind != "not_started":
            raise error
        # The contract of inspect-ai tells a program that is missing from one that can't be executed.
        if "/" in program and await self._exists(program):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), program) from error
        return ExecResult(False, _NOT_FOUND, "", f"{error.message}\n")

    async def _exists(self, path: str) -> bool:
        try:
            await self._box.stat(path)
        except StockadeError:
            return False
        return True

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Writes a file and the directories above it."""
        try:
            await self._box.write(file, contents, parents=True)
        except StockadeError as error:
            _raise_file_error(error, file)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Reads a file."""
        limit = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        try:
            content = await self._box.read(file, length=limit + 1)
        except StockadeError as error:
            _raise_file_error(error, file)
        if len(content) > limit:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
        return content.decode() if text else content


def _settings(config: SandboxEnvironmentConfigType | None) -> dict[str, Any]:
    if config is None:
        return {}
    if isinstance(config, str):
        return {"policy": str(Path(config).resolve())}
    if not isinstance(config, StockadeConfig):
        raise TypeError(f"the configuration of `stockade` is a StockadeConfig, not a {type(config).__name__}")
    return config.model_dump()


def _is_current_user(user: str) -> bool:
    try:
        uid = int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid
    except KeyError:
        return False
    return uid == os.geteuid()


def _raise_file_error(error: StockadeError, file: str) -> NoReturn:
    if error.kind == "ended":
        raise SandboxUnavailableError(str(error)) from error
    number = errno.EACCES if error.kind == "denied" else error.errno
    if number is None:
        raise error
    # The constructor picks the subclass that the number has.
    raise OSError(number, os.strerror(number), file) from error


def _remove(directory: str) -> None:
    def allow_and_retry(function: Any, path: str, _: Any) -> None:
        # A command may have left directories that can't be listed.
        os.chmod(os.path.dirname(path), 0o700)
        os.chmod(path, 0o700)
        function(path)

    shutil.rmtree(directory, onerror=allow_and_retry)
