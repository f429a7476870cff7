"""Runs the examples of README.md; `model` plays a script, where an example needs one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"

# What the examples leave to the reader, by a word of the example.
MODELS = {
    "inspect_ai": """
from inspect_ai.model import ModelOutput, ModelUsage, get_model
said = [ModelOutput.for_tool_call("mockllm", "bash", {"command": "cat data"}),
        ModelOutput.from_content("mockllm", "it is secret")]
for output in said:
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
model = get_model("mockllm/model", custom_outputs=said)
""",
    "openai_agents": """
from adapter_openai_agents import Script, says, shell
model = Script([shell("1", "echo fixed > file"), says("done")])
""",
    "smolagents": """
from adapter_smolagents import Script
model = Script("final_answer(6 * 7)")
""",
}

# What an example prints, by a word of the example.
PRINTED = {
    "overlay=True) as box:\n    result": "0 hello\n\nadded file\n",
    "http.server": "stdout hello world\n0 True\n",
    "stockade.batch": "one 0 hello\n",
    "gather": "['0\\n', '1\\n', '2\\n', '3\\n']\n",
    "verify": "False\nFalse\n",
    "map": "True 0 None\nTrue 1 None\nTrue 2 None\n",
    "shell_tool": "done [Change(path='file', kind='added', old_path=None, text=None)]\n",
    "CodeAgent": "42\n",
    "StockadeConfig": "",
}


class ReadmeTest(unittest.TestCase):
    def test_examples(self) -> None:
        examples = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        self.assertEqual(len(examples), len(PRINTED))
        for example in examples:
            [expected] = [text for word, text in PRINTED.items() if word in example]
            model = "".join(text for word, text in MODELS.items() if f"adapters.{word}" in example)
            with self.subTest(example), tempfile.TemporaryDirectory(dir="/var/tmp") as top:
                for name in ("project", "home"):
                    os.mkdir(f"{top}/{name}")
                here = Path(__file__).parent
                env = {**os.environ, "HOME": f"{top}/home", "PYTHONPATH": f"{here.parent / 'src'}:{here}"}
                argv = [sys.executable, "-W", "ignore", "-c", model + example]
                ran = subprocess.run(argv, cwd=f"{top}/project", env=env, capture_output=True, text=True)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                if expected:
                    self.assertIn(expected, ran.stdout)


if __name__ == "__main__":
    unittest.main()
