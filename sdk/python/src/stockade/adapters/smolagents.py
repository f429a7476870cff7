"""An executor for smolagents: the code of a `CodeAgent` runs in a sandbox.

Variables stay between blocks of code; they live in one interpreter inside. Values cross the boundary
as JSON, never as pickles, which would let code inside run code outside. Packages are those of the
interpreter inside: nothing is installed.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smolagents.default_tools import FinalAnswerTool
from smolagents.local_python_executor import CodeOutput
from smolagents.monitoring import AgentLogger
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.tools import get_tools_definition_code
from smolagents.utils import AgentError

from stockade import Command, Sandbox

_INTERPRETER = Path(__file__).with_name("_interpreter.py").read_text(encoding="utf-8")


class StockadeExecutor(RemotePythonExecutor):
    """`CodeAgent(executor=StockadeExecutor(box))`; whoever opened the sandbox closes it.

    A block that takes longer than `timeout` seconds is an error and ends the interpreter. The next
    block begins with a new one, which has the tools but not the variables of the old one. Of what a
    block prints, the first `max_log_bytes` are kept.
    """

    def __init__(
        self,
        box: Sandbox,
        additional_imports: Sequence[str] = (),
        *,
        python: str = "python3",
        timeout: float | None = 30,
        max_log_bytes: int = 1 << 20,
        logger: AgentLogger | None = None,
    ) -> None:
        self._box = box
        self._python = python
        self._timeout = timeout
        self._max_log_bytes = max_log_bytes
        self._command: Command | None = None
        self._tools = ""
        super().__init__(list(additional_imports), logger or AgentLogger(), allow_pickle=False)
        for name in additional_imports:
            self.run_code_raise_errors(f"import {name}")

    def send_tools(self, tools: dict[str, Any]) -> None:
        """Defines the agent's tools inside."""
        # The interpreter has the usual `final_answer`, without the packages that smolagents' needs.
        own = {name: tool for name, tool in tools.items() if type(tool) is not FinalAnswerTool}
        super().send_tools(own)
        self._tools = get_tools_definition_code(own)

    def install_packages(self, additional_imports: list[str]) -> list[str]:
        """Installs nothing: a tool whose package is missing inside fails when it is called."""
        return additional_imports

    def _patch_final_answer_with_exception(self, final_answer_tool: Any) -> None:
        # An agent sends its tools before each run, and a tool can't be patched twice.
        if not hasattr(final_answer_tool, "_forward"):
            super()._patch_final_answer_with_exception(final_answer_tool)

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        """Runs a block of code."""
        command = self._interpreter()
        answer, logs = self._ask(command, code)
        if answer is None:
            self.cleanup()
            raise AgentError(f"{logs}\n{self._ending(command)}", self.logger)
        if "error" in answer:
            raise AgentError(f"{logs}\n{answer['error']}", self.logger)
        if "final" in answer:
            final = self._deserialize_final_answer(answer["final"], allow_pickle=False)
            return CodeOutput(output=final, logs=logs, is_final_answer=True)
        return CodeOutput(output=answer.get("value"), logs=logs, is_final_answer=False)

    def cleanup(self) -> None:
        """Ends the interpreter, which the next block starts again."""
        if self._command is not None:
            self._command.kill()
            self._command = None

    def _interpreter(self) -> Command:
        if self._command is None or not self._command.running:
            argv = [self._python, "-u", "-c", _INTERPRETER]
            self._command = self._box.start(argv, stdin=True)
            if self._tools:
                self._ask(self._command, self._tools)
        return self._command

    def _ask(self, command: Command, code: str) -> tuple[dict[str, Any] | None, str]:
        """The answer to a block, None if none came, and what the block printed."""
        mark = secrets.token_bytes(16).hex().encode()
        end = None if self._timeout is None else time.monotonic() + self._timeout
        logs, answer = bytearray(), bytearray()
        command.write(json.dumps({"code": code, "mark": mark.decode()}) + "\n")
        while not (logs.endswith(mark) and answer.endswith(b"\n")):
            left = None if end is None else max(0.0, end - time.monotonic())
            try:
                chunk = command.read_output(left)
            except TimeoutError:
                chunk = None
            if chunk is None:
                return None, self._text(logs)
            kept = logs if chunk[0] == "stdout" else answer
            kept += chunk[1]
            # The end is where the mark would be.
            excess = len(logs) - self._max_log_bytes - len(mark)
            if excess > 0:
                del logs[self._max_log_bytes : self._max_log_bytes + excess]
        return self._parse(bytes(answer)), self._text(logs[: -len(mark)])

    @staticmethod
    def _parse(answer: bytes) -> dict[str, Any]:
        try:
            parsed = json.loads(answer)
        except ValueError:
            parsed = None
        # The code inside can write what it likes.
        return parsed if isinstance(parsed, dict) else {"error": "the code broke its interpreter"}

    @staticmethod
    def _text(logs: bytes | bytearray) -> str:
        return bytes(logs).decode(errors="replace")

    def _ending(self, command: Command) -> str:
        if command.running:
            return f"the code took longer than {self._timeout} s; its variables are lost"
        result = command.wait()
        denials = "".join(f"; denied: {denial.operation} {denial.subject}" for denial in result.denials)
        return f"the code ended its interpreter with code {result.exit_code}; its variables are lost{denials}"
