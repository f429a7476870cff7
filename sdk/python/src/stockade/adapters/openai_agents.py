"""Shell tools for openai-agents: what the model asks for runs in a sandbox.

`shell_tool(box)` is the package's `ShellTool`, which models of the Responses API know;
`command_tool(box)` is a function tool for every other model. Both see the same files and processes.
"""

from __future__ import annotations

import json
from typing import Any

from agents import (
    FunctionTool,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellCommandRequest,
    ShellResult,
    ShellTool,
    function_tool,
)

from stockade import AsyncSandbox, Result, StockadeError

# What a shell answers for a program that can't be started.
_NOT_STARTED = 127


def shell_tool(box: AsyncSandbox, *, timeout: float | None = 120, **options: Any) -> ShellTool:
    """The shell tool of an agent; `options` are those of `ShellTool`.

    `timeout` is for each command, in seconds; a shorter one that the model asks for applies.
    """

    async def execute(request: ShellCommandRequest) -> ShellResult:
        action = request.data.action
        seconds = _shorter(timeout, None if action.timeout_ms is None else action.timeout_ms / 1000)
        outputs = [await _run(box, command, seconds) for command in action.commands]
        return ShellResult(outputs, max_output_length=action.max_output_length)

    return ShellTool(executor=execute, **options)


def command_tool(box: AsyncSandbox, *, timeout: float | None = 120) -> FunctionTool:
    """A tool `run_command` that every model can call."""

    async def run_command(command: str) -> str:
        """Runs a shell command in a sandbox and returns its exit code and output as JSON.

        Args:
            command: The command, for `sh -c`.
        """
        output = await _run(box, command, timeout)
        timed_out = output.outcome.type == "timeout"
        answer = {"exit_code": output.exit_code, "stdout": output.stdout, "stderr": output.stderr}
        return json.dumps({**answer, "timed_out": timed_out})

    return function_tool(run_command)


async def _run(box: AsyncSandbox, command: str, timeout: float | None) -> ShellCommandOutput:
    try:
        result = await box.run(command, timeout=timeout)
    except StockadeError as error:
        if error.kind != "not_started":
            raise
        outcome = ShellCallOutcome("exit", _NOT_STARTED)
        return ShellCommandOutput(stderr=f"{error.message}\n", outcome=outcome, command=command)
    is_late = result.ending == "timed_out"
    return ShellCommandOutput(
        stdout=result.stdout,
        stderr=result.stderr + _explanation(result),
        outcome=ShellCallOutcome("timeout") if is_late else ShellCallOutcome("exit", result.exit_code),
        command=command,
    )


def _explanation(result: Result) -> str:
    """Why something was refused, so that the model does not try it in other ways."""
    denials = (f"stockade: denied: {denial.operation} {denial.subject}\n" for denial in result.denials)
    dropped = "stockade: some output was dropped\n" if result.truncated else ""
    return "".join(denials) + dropped


def _shorter(first: float | None, second: float | None) -> float | None:
    times = [time for time in (first, second) if time is not None]
    return min(times, default=None)
