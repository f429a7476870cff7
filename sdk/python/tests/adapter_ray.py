"""`stockade.map` on a cluster of two nodes on this machine."""

from __future__ import annotations

import logging
import os
import signal
import tempfile
import threading
import time
import unittest
import uuid
from pathlib import Path
from typing import Any

# Before Ray starts its processes, which hand it on to the workers and to what those start.
MARK = f"STOCKADE_TEST_MARK={uuid.uuid4()}"
os.environ["STOCKADE_TEST_MARK"] = MARK.split("=")[1]
# A short name: Ray's sockets are in it, and their paths have a limit.
RAY_DIRECTORY = tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp")
os.environ["RAY_TMPDIR"] = RAY_DIRECTORY.name
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
from ray.cluster_utils import Cluster

import stockade


def wait_until(what: str, condition: Any) -> Any:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within 60 s: {what}")


def processes(*words: str) -> list[int]:
    """Processes that the tests of this file started and whose command line has all words."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            is_ours = MARK.encode() in (entry / "environ").read_bytes().split(b"\0")
        except (OSError, NotADirectoryError):
            continue
        if entry.name.isdecimal() and is_ours and all(word in line for word in words):
            found.append(int(entry.name))
    return found


def directories() -> set[str]:
    return {name for name in os.listdir("/var/tmp") if name.startswith("stockade-task-")}


class MapTest(unittest.TestCase):
    cluster: Any

    @classmethod
    def setUpClass(cls) -> None:
        cls.addClassCleanup(RAY_DIRECTORY.cleanup)
        # Ray uses an address of this machine; nothing leaves it.
        node = {"num_cpus": 1}
        cls.cluster = Cluster(initialize_head=True, head_node_args=node)
        cls.cluster.add_node(**node)
        cls.cluster.wait_for_nodes()
        ray.init(address=cls.cluster.address, log_to_driver=False, logging_level=logging.ERROR)

    @classmethod
    def tearDownClass(cls) -> None:
        ray.shutdown()
        cls.cluster.shutdown()

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(directory.cleanup)
        self.shared = Path(directory.name)
        self.before = directories()

    def assert_nothing_is_left(self) -> None:
        wait_until("servers are gone", lambda: not processes("serve", "--stdio"))
        wait_until("removers are gone", lambda: not processes("stockade-remover"))
        # Other tests at the same time have such directories too, for a while.
        wait_until("directories are gone", lambda: not directories() - self.before)

    def test_files_and_results_travel_to_both_nodes(self) -> None:
        raw = bytes(range(256)) * 4096
        # Each task waits for the other one, so that they can't run on the same CPU.
        meet = "touch {shared}/$NAME; while ! test -e {shared}/$OTHER; do sleep 0.05; done; "
        command = meet.format(shared=self.shared) + "tr a-z A-Z < in > sub/out; cat; wc -c < raw; exit $CODE"
        tasks = [
            stockade.Task(
                command,
                files={"in": f"task {name}\n", "raw": raw, "sub/keep": ""},
                outputs=["sub/out", "raw", "missing"],
                settings={"write": [str(self.shared)]},
                input="typed\n",
                env={"NAME": name, "OTHER": other, "CODE": code},
                timeout=60,
            )
            for name, other, code in (("one", "two", "0"), ("two", "one", "3"))
        ]
        results = stockade.map(tasks)
        self.assertEqual([done.error for done in results], [None, None])
        self.assertEqual([done.ok for done in results], [True, False])
        self.assertEqual([done.result and done.result.exit_code for done in results], [0, 3])
        self.assertEqual([done.files["sub/out"] for done in results], [b"TASK ONE\n", b"TASK TWO\n"])
        self.assertTrue(all(done.files["raw"] == raw and "missing" not in done.files for done in results))
        self.assertEqual([done.result and done.result.stdout for done in results], [f"typed\n{len(raw)}\n"] * 2)
        self.assertEqual(len({done.host for done in results}), 2)
        self.assert_nothing_is_left()

    def test_policies_apply_and_errors_travel(self) -> None:
        (self.shared / "secret").write_text("hidden")
        read = stockade.Task(["cat", str(self.shared / "secret")], settings={"deny": [str(self.shared)]})
        bad = stockade.Task("true", settings={"limits": ["nonsense"]})
        missing = stockade.Task(["no-such-program"])
        plain = stockade.Task(["cat", str(self.shared / "secret")])
        denied, policy, started, allowed = stockade.map([read, bad, missing, plain], on="ray")
        self.assertEqual(allowed.result and allowed.result.stdout, "hidden")
        self.assertFalse(denied.ok)
        self.assertEqual(policy.error and policy.error.kind, "policy")
        self.assertEqual(started.error and started.error.kind, "not_started")
        self.assert_nothing_is_left()

    def test_a_task_whose_worker_is_killed_runs_again(self) -> None:
        first = self.shared / "first"
        command = f"if mkdir {first}; then echo $$ > {first}/ready; sleep 1000; else echo again; fi"
        task = stockade.Task(command, settings={"write": [str(self.shared)]}, timeout=120)
        results: list[stockade.TaskResult] = []
        work = threading.Thread(target=lambda: results.extend(stockade.map([task], on="ray")))
        work.start()
        wait_until("the command runs", (first / "ready").exists)
        [server] = processes("serve", "--stdio")
        worker = int(Path(f"/proc/{server}/stat").read_text().rsplit(")", 1)[1].split()[1])
        self.assertIn("ray::", Path(f"/proc/{worker}/cmdline").read_text())
        os.kill(worker, signal.SIGKILL)
        work.join(120)
        self.assertFalse(work.is_alive())
        self.assertEqual([done.result and done.result.stdout for done in results], ["again\n"])
        self.assert_nothing_is_left()

    def test_a_worker_that_always_dies_is_an_error(self) -> None:
        task = stockade.Task(f"echo x >> {self.shared}/count; sleep 1000", settings={"write": [str(self.shared)]})
        results: list[stockade.TaskResult] = []
        work = threading.Thread(target=lambda: results.extend(stockade.map([task], on="ray", retries=1)))
        work.start()
        count = self.shared / "count"
        for attempt in (1, 2):
            wait_until("it runs", lambda: count.exists() and len(count.read_text().split()) == attempt)
            for server in processes("serve", "--stdio"):
                os.kill(server, signal.SIGKILL)
        work.join(120)
        self.assertEqual([done.error and done.error.kind for done in results], ["worker_lost"])
        self.assert_nothing_is_left()

    def test_a_setting_that_there_is_not_is_raised(self) -> None:
        for on in ("ray", "local"):
            with self.assertRaises(TypeError):
                stockade.map([stockade.Task("true", settings={"nonsense": 1})], on=on)
        with self.assertRaises(ValueError):
            stockade.map([], on="nowhere")

    def test_the_local_pool_does_the_same(self) -> None:
        tasks = [stockade.Task("cat in; echo $N", files={"in": "text "}, env={"N": str(n)}) for n in range(6)]
        results = stockade.map(tasks, on="local", workers=3)
        self.assertEqual([done.result and done.result.stdout for done in results], [f"text {n}\n" for n in range(6)])
        self.assert_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
