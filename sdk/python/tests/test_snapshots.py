"""Snapshots, forks and grants at run time, where the program has them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import stockade
from stockade._program import program


def methods() -> str:
    ran = subprocess.run([program(), "serve", "--schema"], capture_output=True, check=True)
    return json.dumps(json.loads(ran.stdout)["methods"])


@unittest.skipUnless('"fork"' in methods(), "the protocol of this program has no `fork`")
class SnapshotTest(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(directory.cleanup)
        self.project = Path(directory.name) / "project"
        self.project.mkdir()
        (Path(directory.name) / "home").mkdir()
        patch = mock.patch.dict(os.environ, {"HOME": f"{directory.name}/home"})
        patch.start()
        self.addCleanup(patch.stop)

    def test_snapshot_and_restore(self) -> None:
        with stockade.Sandbox(str(self.project), overlay=True) as box:
            box.write("file", "first")
            box.snapshot("before")
            box.run("echo second > file; echo x > other")
            self.assertEqual(box.snapshots(), ["before"])
            box.restore("before")
            self.assertEqual(box.read("file"), b"first")
            self.assertEqual([change.path for change in box.diff()], ["file"])
            box.remove_snapshot("before")
            self.assertEqual(box.snapshots(), [])
            with self.assertRaises(stockade.StockadeError) as caught:
                box.restore("before")
            self.assertEqual(caught.exception.kind, "no_such_snapshot")
        self.assertEqual(list(self.project.iterdir()), [])

    def test_forks_are_apart_and_close_in_any_order(self) -> None:
        box = stockade.Sandbox(str(self.project), overlay=True)
        server = box._connection.server
        box.write("file", "common")
        with box.fork() as first, box.fork() as second:
            first.write("file", "first")
            self.assertEqual((box.read("file"), second.read("file")), (b"common", b"common"))
            running = second.start("sleep 1000")
            box.close()
            self.assertEqual(first.read("file"), b"first")
            first.close()
            with self.assertRaises(stockade.StockadeError) as caught:
                first.run("true")
            self.assertEqual(caught.exception.kind, "ended")
            self.assertTrue(running.running)
            self.assertTrue(second.run("true").ok)
            third = second.start("sleep 1000")
            third.kill()
            self.assertIsNone(server.poll())
        self.assertIsNotNone(server.poll())

    def test_asyncio(self) -> None:
        async def work() -> None:
            async with stockade.AsyncSandbox(str(self.project), overlay=True) as box:
                await box.write("file", "common")
                await box.snapshot("before")
                self.assertEqual(await box.snapshots(), ["before"])
                async with await box.fork() as other:
                    await other.write("file", "other")
                    self.assertEqual(await box.read("file"), b"common")
                await box.write("file", "changed")
                await box.restore("before")
                await box.remove_snapshot("before")
                self.assertEqual(await box.read("file"), b"common")

        asyncio.run(work())

    def test_grants_for_hosts_hold_at_once(self) -> None:
        settings = {"allow": ["one.invalid:80"], "user_files": False}
        with stockade.Sandbox(str(self.project), **settings) as box:  # type: ignore[arg-type]
            running = box.start("sleep 1000")
            self.assertFalse(box.allow(hosts=["two.invalid:80"]).rebuilt)
            self.assertTrue(running.running)
            running.kill()
            running.wait()
            self.assertTrue(box.allow(read=["/var/tmp"]).rebuilt)


if __name__ == "__main__":
    unittest.main()
