"""The executor in runs of smolagents, with a model that plays a script."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

from smolagents import CodeAgent, tool
from smolagents.models import ChatMessage, MessageRole, Model
from smolagents.utils import AgentError

import stockade
from stockade.adapters.smolagents import StockadeExecutor


class Script(Model):
    """Answers with one block of code after the other."""

    def __init__(self, *blocks: str) -> None:
        super().__init__()
        self._blocks = list(blocks)

    def generate(self, messages: Any, *_: Any, **__: Any) -> ChatMessage:
        text = f"Thought: work\n<code>\n{self._blocks.pop(0)}\n</code>"
        return ChatMessage(role=MessageRole.ASSISTANT, content=text)


@tool
def double(number: int) -> int:
    """Doubles a number.

    Args:
        number: The number.
    """
    return number * 2


class ExecutorTest(unittest.TestCase):
    def setUp(self) -> None:
        # Not below /tmp, which is private inside.
        directory = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(directory.cleanup)
        self.project = Path(directory.name) / "project"
        self.project.mkdir()
        self.outside = Path(directory.name) / "outside"
        self.box = stockade.Sandbox(str(self.project))
        self.addCleanup(self.box.close)

    def executor(self, **settings: Any) -> StockadeExecutor:
        return StockadeExecutor(self.box, python="/usr/bin/python3", **settings)

    def test_agent_keeps_state_and_answers(self) -> None:
        model = Script(
            "value = double(20)\nprint('value is', value)\nopen('file', 'w').write('text')",
            "import subprocess\nsubprocess.run(['echo', 'from a program'])\nvalue + extra",
            "try:\n    final_answer({'sum': (value + extra,), 'raw': b'\\xff', 1: None})\nexcept Exception: pass",
            "final_answer('again')",
        )
        agent = CodeAgent(tools=[double], model=model, executor=self.executor(), verbosity_level=0)
        answer = agent.run("work", additional_args={"extra": 2})
        self.assertEqual(answer, {"sum": (42,), "raw": b"\xff", 1: None})
        steps = [step for step in agent.memory.steps if hasattr(step, "observations")]
        self.assertIn("value is 40", str(steps[0].observations))
        self.assertIn("from a program", str(steps[1].observations))
        self.assertEqual(str(steps[1].action_output), "42")
        self.assertEqual((self.project / "file").read_text(), "text")
        self.assertEqual(agent.run("work once more"), "again")
        agent.cleanup()

    def test_the_policy_applies(self) -> None:
        attack = f"open({str(self.outside)!r}, 'w').write('x')"
        exec(attack)
        self.assertTrue(self.outside.exists())
        os.remove(self.outside)
        with self.assertRaises(AgentError) as caught:
            self.executor()(attack)
        self.assertIn("PermissionError", str(caught.exception))
        self.assertFalse(self.outside.exists())

    def test_errors_keep_the_state(self) -> None:
        run = self.executor()
        run("value = 1")
        with self.assertRaises(AgentError) as caught:
            run("print('before')\n1 / 0")
        self.assertIn("before", str(caught.exception))
        self.assertIn("ZeroDivisionError", str(caught.exception))
        with self.assertRaises(AgentError):
            run("this is no Python")
        self.assertEqual(run("value").output, "1")

    def test_a_block_that_hangs_or_exits_is_an_error_and_the_next_one_works(self) -> None:
        run = self.executor(timeout=10)
        run.send_tools({"double": double})
        run._timeout = 0.5
        with self.assertRaises(AgentError) as caught:
            run("value = 1\nwhile True: pass")
        self.assertIn("longer than", str(caught.exception))
        run._timeout = 10
        self.assertEqual(run("double(4)").output, "8")
        with self.assertRaises(AgentError) as caught:
            run("import os; os._exit(3)")
        self.assertIn("code 3", str(caught.exception))
        with self.assertRaises(AgentError):
            run("value")

    def test_large_output_and_forged_answers(self) -> None:
        run = self.executor(max_log_bytes=1000)
        self.assertEqual(len(run("print('x' * 5_000_000)").logs), 1000)
        # What the code writes where the answers go is an error, not an object of its choice.
        forge = "import os\n[os.write(fd, b'nonsense') for fd in range(3, 9) if os.path.exists(f'/proc/self/fd/{fd}')]"
        with self.assertRaises((AgentError, OSError)):
            run(forge)

    def test_a_package_that_is_missing_inside_is_an_error(self) -> None:
        with self.assertRaises(AgentError):
            self.executor(additional_imports=["no_such_package"])


if __name__ == "__main__":
    unittest.main()
