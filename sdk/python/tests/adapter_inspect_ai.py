"""The provider against the self-check of inspect-ai, and in an evaluation."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
import unittest
from collections.abc import Awaitable, Callable
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import bash
from inspect_ai.util import SandboxEnvironment, SandboxUnavailableError, SandboxUserUnsupportedError
from inspect_ai.util._sandbox import self_check

from stockade.adapters.inspect_ai import StockadeConfig, StockadeSandboxEnvironment

# There is one user in a sandbox: root can't add another one, and the provider refuses to run
# commands as somebody else with the error that is meant for this.
KNOWN_LIMITS = {"test_exec_as_user": AssertionError if os.geteuid() == 0 else SandboxUserUnsupportedError}

Check = Callable[[SandboxEnvironment], Awaitable[None]]


def leftovers() -> list[str]:
    return [name for name in os.listdir("/var/tmp") if name.startswith("stockade-inspect-")]


class ProviderTest(unittest.TestCase):
    def setUp(self) -> None:
        self.before = leftovers()

    def tearDown(self) -> None:
        # Other tests at the same time have such directories too, for a while.
        end = time.monotonic() + 60
        while left := [name for name in leftovers() if name not in self.before]:
            self.assertLess(time.monotonic(), end, left)
            time.sleep(0.05)

    def in_sandbox(self, work: Check, config: StockadeConfig | str | None = None) -> None:
        async def run() -> None:
            environments = await StockadeSandboxEnvironment.sample_init("task", config, {})
            try:
                await work(environments["default"])
            finally:
                await StockadeSandboxEnvironment.sample_cleanup("task", config, environments, False)

        asyncio.run(run())

    def test_self_check(self) -> None:
        checks: dict[str, Check] = {name: getattr(self_check, name) for name in self_check.__all__}
        self.assertGreater(len(checks), 35)

        async def all_of_them(box: SandboxEnvironment) -> None:
            for name, check in checks.items():
                with self.subTest(name):
                    limit = KNOWN_LIMITS.get(name)
                    if limit is None:
                        await check(box)
                    else:
                        with self.assertRaises(limit):
                            await check(box)

        self.in_sandbox(all_of_them)

    def test_evaluation_with_the_bash_tool(self) -> None:
        # With a usage; else tokens are counted, for which inspect-ai downloads a table.
        usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        outputs = [
            ModelOutput.for_tool_call("mockllm", "bash", {"command": "cat data; echo $((6*7)); ls ~/.ssh"}),
            ModelOutput.from_content("mockllm", "the answer is 42"),
        ]
        for output in outputs:
            output.usage = usage
        task = Task(
            dataset=[Sample(input="compute", target="42", files={"data": "from the sample\n"})],
            solver=[use_tools(bash(timeout=60)), generate()],
            scorer=includes(),
            sandbox="stockade",
        )
        model = get_model("mockllm/model", custom_outputs=outputs)
        # The samples of a log are read when they are used.
        with tempfile.TemporaryDirectory() as logs:
            [log] = eval(task, model=model, log_dir=logs, display="none")
            self.assertEqual(log.status, "success", log.error)
            assert log.samples is not None
            tool = next(message for message in log.samples[0].messages if message.role == "tool")
            self.assertIn("from the sample\n42\n", tool.text)

    def test_a_policy_applies(self) -> None:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
            secret = Path(directory) / "secret"
            secret.write_text("hidden")
            self.assertEqual(secret.read_text(), "hidden")

            async def read(box: SandboxEnvironment) -> None:
                self.assertFalse((await box.exec(["cat", str(secret)])).success)
                with self.assertRaises(OSError):
                    await box.read_file(str(secret))
                self.assertEqual((await box.exec(["printenv", "WORD"])).stdout, "given\n")

            self.in_sandbox(read, StockadeConfig(deny=(str(secret),), env={"WORD": "given"}))

    def test_a_sandbox_that_is_gone_is_unavailable(self) -> None:
        async def kill(box: SandboxEnvironment) -> None:
            box.as_type(StockadeSandboxEnvironment)._box._box._connection.server.kill()
            with self.assertRaises(SandboxUnavailableError):
                for _ in range(100):
                    await box.exec(["true"])

        self.in_sandbox(kill)


if __name__ == "__main__":
    unittest.main()
