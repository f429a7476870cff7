"""`stockade.batch` with the real program, which STOCKADE_BIN names."""

from __future__ import annotations

import os
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import stockade


class BatchTest(unittest.TestCase):
    def setUp(self) -> None:
        # Not below /tmp, which is private inside.
        self._dir = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(self._dir.cleanup)
        self.top = Path(self._dir.name)
        for name, value in (("HOME", self.top), ("TMPDIR", self.top)):
            before = os.environ.get(name, "")
            os.environ[name] = str(value)
            self.addCleanup(os.environ.__setitem__, name, before)

    def task(self, name: str, script: str) -> dict[str, Any]:
        policy = {"workspace": str(self.top)}
        return {"id": name, "argv": ["sh", "-c", script], "policy": policy}

    def test_results(self) -> None:
        tasks = [self.task(str(number), f"echo {number}; exit {number}") for number in range(20)]
        found = {result["id"]: result for result in stockade.batch(tasks, parallel=4)}
        self.assertEqual(len(found), 20)
        for number in range(20):
            result = found[str(number)]
            self.assertEqual(result["exit_code"], number)
            self.assertEqual(result["stdout"], {"text": f"{number}\n"})
        [missing] = stockade.batch([{"id": "a", "argv": ["no-such-program"]}])
        self.assertEqual(missing["error"]["code"], 127)

    def test_a_journal(self) -> None:
        journal = self.top / "journal"
        tasks = [self.task("a", "echo >> runs")]
        for _ in range(2):
            [result] = stockade.batch(tasks, journal=journal)
            self.assertEqual(result["exit_code"], 0)
        self.assertEqual((self.top / "runs").read_text(), "\n")
        with self.assertRaises(stockade.StockadeError) as caught:
            list(stockade.batch([self.task("a", "true")], journal=journal))
        self.assertIn("another task", str(caught.exception))

    def test_an_end_before_the_last_result(self) -> None:
        def tasks() -> Iterator[dict[str, Any]]:
            yield self.task("first", "true")
            for number in range(1000):
                yield self.task(str(number), "sleep 1000")

        results = stockade.batch(tasks(), parallel=2)
        self.assertEqual(next(iter(results))["id"], "first")
        results.close()  # type: ignore[attr-defined]
        self.assertEqual([path.name for path in self.top.glob("stockade-batch-*")], [])

    def test_tasks_that_can_not_be_made(self) -> None:
        def tasks() -> Iterator[dict[str, Any]]:
            yield self.task("first", "true")
            raise ValueError("no more tasks")

        with self.assertRaises(ValueError):
            list(stockade.batch(tasks()))


if __name__ == "__main__":
    unittest.main()
