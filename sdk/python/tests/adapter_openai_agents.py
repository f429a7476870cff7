"""The tools in runs of openai-agents, with a model that plays a script."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import unittest
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from agents.items import TResponseStreamEvent
from openai.types.responses import (
    ResponseFunctionShellToolCall,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from openai.types.responses.response_function_shell_tool_call import Action

import stockade
from stockade.adapters.openai_agents import command_tool, shell_tool


class Script(Model):
    """Answers with one item after the other, and keeps what it was asked."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = list(items)
        self.inputs: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        self.inputs.append(input)
        return ModelResponse(output=[self._items.pop(0)], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[TResponseStreamEvent]:
        raise NotImplementedError


def says(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(annotations=[], text=text, type="output_text")
    return ResponseOutputMessage(
        id="m", content=[content], role="assistant", status="completed", type="message"
    )


def shell(identity: str, *commands: str, timeout_ms: int | None = None) -> ResponseFunctionShellToolCall:
    return ResponseFunctionShellToolCall(
        id=identity,
        call_id=identity,
        action=Action(commands=list(commands), timeout_ms=timeout_ms),
        status="completed",
        type="shell_call",
    )


class ToolsTest(unittest.TestCase):
    def setUp(self) -> None:
        # Not below /tmp, which is private inside.
        directory = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(directory.cleanup)
        self.project = Path(directory.name) / "project"
        self.project.mkdir()
        self.outside = Path(directory.name) / "outside"
        self.outside.write_text("untouched")

    def play(self, tool: Any, items: Sequence[Any]) -> tuple[str, list[Any]]:
        script = Script(items)

        async def work() -> str:
            async with stockade.AsyncSandbox(str(self.project)) as box:
                agent = Agent(name="worker", model=script, tools=[tool(box)])
                config = RunConfig(tracing_disabled=True)
                return str((await Runner.run(agent, "work", run_config=config)).final_output)

        answer = asyncio.run(work())
        outputs = [item for item in script.inputs[-1] if str(item.get("type", "")).endswith("_output")]
        return answer, outputs

    def test_shell_tool(self) -> None:
        # The attack works without a sandbox.
        os.system(f"echo changed >> {self.outside}")
        self.assertIn("changed", self.outside.read_text())
        before = self.outside.read_text()

        steps = [
            shell("1", "echo one > file; cat file", "exit 3"),
            shell("2", f"cat file; echo more >> {self.outside}"),
            shell("3", "sleep 1000", timeout_ms=200),
            says("done"),
        ]
        answer, outputs = self.play(shell_tool, steps)
        self.assertEqual(answer, "done")
        one, code = outputs[0]["output"]
        self.assertEqual((one["stdout"], one["outcome"]), ("one\n", {"type": "exit", "exit_code": 0}))
        self.assertEqual(code["outcome"], {"type": "exit", "exit_code": 3})
        [refused] = outputs[1]["output"]
        self.assertEqual(refused["stdout"], "one\n")
        self.assertIn(f"stockade: denied: open {self.outside}", refused["stderr"])
        self.assertEqual(outputs[2]["output"][0]["outcome"]["type"], "timeout")
        self.assertEqual(self.outside.read_text(), before)

    def test_command_tool(self) -> None:
        arguments = json.dumps({"command": "echo $((6*7)); echo err >&2; exit 4"})
        call = ResponseFunctionToolCall(
            arguments=arguments, call_id="1", name="run_command", type="function_call"
        )
        answer, [output] = self.play(command_tool, [call, says("done")])
        self.assertEqual(answer, "done")
        expected = {"exit_code": 4, "stdout": "42\n", "stderr": "err\n", "timed_out": False}
        self.assertEqual(json.loads(output["output"]), expected)


if __name__ == "__main__":
    unittest.main()
