"""What goes wrong around the package, with real processes; nothing may be left running."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import stockade
from stockade._command import WINDOW_BYTES

# Every process that these tests start has this in its environment, so that the rest is told apart.
MARK = "STOCKADE_TEST_MARK"


def wait_until(what: str, condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within 60 s: {what}")
        time.sleep(0.01)


def marked(value: str, *, name: str = "") -> list[int]:
    """Processes with this mark, but for this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            has_mark = f"{MARK}={value}".encode() in (entry / "environ").read_bytes().split(b"\0")
            if has_mark and name in (entry / "cmdline").read_text(errors="replace"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def resident_kib(pid: int | str) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS"))


def by_default() -> None:
    """What started the tests may ignore the signal, and a program inherits that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Interpreter(subprocess.Popen[str]):
    """Is killed at the end of a test, also of one that failed."""

    def __exit__(self, *details: object) -> None:
        self.kill()
        super().__exit__(*details)  # type: ignore[arg-type]


class RobustnessTest(unittest.TestCase):
    def setUp(self) -> None:
        self.mark = str(uuid.uuid4())
        directory = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(directory.cleanup)
        self.project = Path(directory.name) / "project"
        self.project.mkdir()
        (Path(directory.name) / "home").mkdir()
        patch = mock.patch.dict(os.environ, {MARK: self.mark, "HOME": f"{directory.name}/home"})
        patch.start()
        self.addCleanup(patch.stop)

    def tearDown(self) -> None:
        gc.collect()
        wait_until("nothing is left", lambda: not marked(self.mark))

    def box(self, **settings: object) -> stockade.Sandbox:
        # Commands inside have the mark too.
        return stockade.Sandbox(str(self.project), keep_env=[MARK], **settings)  # type: ignore[arg-type]

    def assert_kind(self, kind: str, work: Callable[[], object]) -> stockade.StockadeError:
        with self.assertRaises(stockade.StockadeError) as caught:
            work()
        self.assertEqual(caught.exception.kind, kind)
        return caught.exception

    def python(self, program: str, **settings: object) -> subprocess.Popen[str]:
        """Another interpreter, which prints when it is ready."""
        argv = [sys.executable, "-c", program, str(self.project)]
        return Interpreter(argv, stdout=subprocess.PIPE, text=True, preexec_fn=by_default, **settings)  # type: ignore[call-overload, no-any-return]

    def test_program_that_is_missing_or_something_else(self) -> None:
        silent = self.project / "silent"
        silent.write_text("#!/bin/sh\nexit 3\n")
        silent.chmod(stat.S_IRWXU)
        noisy = self.project / "noisy"
        noisy.write_text("#!/bin/sh\necho hello\nexec sleep 1000\n")
        noisy.chmod(stat.S_IRWXU)
        for program in ("/no/such/program", str(self.project), "/bin/true", str(silent), str(noisy)):
            with self.subTest(program), mock.patch.dict(os.environ, {"STOCKADE_BIN": program}):
                before = descriptors()
                error = self.assert_kind("no_program", self.box)
                self.assertIn(program, error.message)
                self.assertIn("STOCKADE_BIN", error.hint or "")
                self.assertEqual(descriptors(), before)
        with mock.patch.dict(os.environ, {"STOCKADE_BIN": "/no/such/program"}):
            self.assert_kind("no_program", lambda: stockade.inspect("text"))

    def test_path_with_relative_entries_is_not_used(self) -> None:
        planted = self.project / "stockade"
        planted.write_text("#!/bin/sh\necho > planted-ran\n")
        planted.chmod(stat.S_IRWXU)
        before = os.getcwd()
        os.chdir(self.project)
        self.addCleanup(os.chdir, before)
        with mock.patch.dict(os.environ, {"STOCKADE_BIN": "", "PATH": ".:bin:"}):
            self.assertEqual(subprocess.run("stockade", shell=True).returncode, 0)
            os.remove("planted-ran")
            self.assert_kind("no_program", self.box)
        self.assertFalse(Path("planted-ran").exists())

    def test_program_of_an_installation_into_a_directory_is_found(self) -> None:
        # As `pip install --target` lays it out.
        package = Path(stockade.__file__).parent
        target = self.project / "target"
        shutil.copytree(package, target / "stockade", ignore=shutil.ignore_patterns("__pycache__"))
        (target / "bin").mkdir()
        (target / "bin/stockade").symlink_to(os.environ["STOCKADE_BIN"])
        ask = "import stockade._program as p; print(p.program())"
        env = {"PYTHONPATH": str(target), "PATH": ""}
        ran = subprocess.run([sys.executable, "-B", "-c", ask], env=env, capture_output=True, text=True)
        self.assertEqual(ran.stdout.strip(), str(target / "bin/stockade"), ran.stderr)

    def test_bad_policies(self) -> None:
        self.assert_kind("policy", lambda: stockade.Sandbox("/no/such/directory"))
        self.assert_kind("policy", lambda: self.box(network="nonsense"))
        self.assert_kind("policy", lambda: self.box(policy="/no/such/file.toml"))
        self.assert_kind("invalid_params", lambda: self.box(timeout=1e300))
        with self.assertRaises(TypeError):
            self.box(nonsense=True)
        with self.assertRaises(UnicodeEncodeError):
            self.box(read=["\udcff"])

    def test_server_dies_while_many_wait(self) -> None:
        with self.box() as box:
            commands = [box.start("sleep 1000") for _ in range(5)]
            streaming = box.start("echo one; sleep 1000")
            chunks = streaming.output()
            self.assertEqual(next(chunks), ("stdout", b"one\n"))
            box._connection.server.kill()
            for command in commands:
                self.assertIn("signal 9", self.assert_kind("ended", command.wait).message)
            self.assertEqual(list(chunks), [])
            self.assert_kind("ended", lambda: box.run("true"))
            self.assert_kind("ended", lambda: box.read("file"))
            self.assertIsNone(box.close())

    def test_use_after_close(self) -> None:
        box = self.box()
        command = box.start("sleep 1000")
        closed = box.close()
        assert closed is not None
        self.assertEqual(closed.denials, [])
        self.assertEqual(box.close(), closed)
        self.assertFalse(command.running)
        command.kill()
        self.assertIn("closed", self.assert_kind("ended", lambda: box.run("true")).message)

    def test_sandbox_that_nobody_holds_ends(self) -> None:
        command = self.box().start("sleep 1000")
        gc.collect()
        self.assertTrue(command.running)
        del command
        gc.collect()
        wait_until("it ends", lambda: not marked(self.mark))

    def test_interpreter_exits_without_close(self) -> None:
        ends = {
            "return": "",
            "exception": "raise RuntimeError",
            "os._exit": "import os; os._exit(3)",
            "SIGKILL": "import os; os.kill(os.getpid(), 9)",
            "thread": "import threading; threading.Thread(target=box.run, args=('sleep 1',)).start()",
        }
        for name, end in ends.items():
            with self.subTest(name):
                program = (
                    "import stockade, sys\n"
                    f"box = stockade.Sandbox(sys.argv[1], keep_env=['{MARK}'])\n"
                    "command = box.start('sleep 1000')\n"
                    f"print('ready', flush=True)\n{end}\n"
                )
                with self.python(program, stderr=subprocess.DEVNULL) as process:
                    assert process.stdout is not None
                    self.assertEqual(process.stdout.readline(), "ready\n")
                    process.wait(60)
                wait_until("nothing is left", lambda: not marked(self.mark))

    def test_keyboard_interrupt_kills_the_command_and_not_the_sandbox(self) -> None:
        program = (
            "import stockade, sys\n"
            f"with stockade.Sandbox(sys.argv[1], keep_env=['{MARK}']) as box:\n"
            "    try:\n"
            "        box.run('echo > started; sleep 1000')\n"
            "    except KeyboardInterrupt:\n"
            "        print(box.run('while pgrep -x sleep > /dev/null; do :; done; echo alive').stdout, end='')\n"
        )
        with self.python(program, start_new_session=True) as process:
            wait_until("the command runs", (self.project / "started").exists)
            # As a terminal does it: to the whole group.
            os.killpg(process.pid, signal.SIGINT)
            output, _ = process.communicate(timeout=60)
            self.assertEqual((output, process.returncode), ("alive\n", 0))

    def test_keyboard_interrupt_of_an_event_loop_leaves_nothing(self) -> None:
        program = (
            "import asyncio, stockade, sys\n"
            "async def main():\n"
            f"    async with stockade.AsyncSandbox(sys.argv[1], keep_env=['{MARK}']) as box:\n"
            "        await asyncio.gather(*(box.run(f'echo > started-{n}; sleep 1000') for n in range(3)))\n"
            "asyncio.run(main())\n"
        )
        with self.python(program, start_new_session=True, stderr=subprocess.DEVNULL) as process:
            started = [self.project / f"started-{n}" for n in range(3)]
            wait_until("the commands run", lambda: all(path.exists() for path in started))
            os.killpg(process.pid, signal.SIGINT)
            self.assertIn(process.wait(60), (-signal.SIGINT, 1))
        wait_until("nothing is left", lambda: not marked(self.mark))

    def test_a_forked_process_lets_go(self) -> None:
        box = self.box()
        ready, done = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                box.run("true")
                os._exit(1)
            except stockade.StockadeError as error:
                box.close()
                # The server's descriptors are gone, and this process may have a sandbox of its own.
                with self.box() as own:
                    is_good = error.kind == "ended" and own.run("true").ok
                os.write(done, b"good" if is_good else b"bad")
                time.sleep(60)
            finally:
                os._exit(2)
        try:
            self.assertEqual(os.read(ready, 10), b"good")
            self.assertTrue(box.run("true").ok)
            before = time.monotonic()
            box.close()
            # It would wait for the other process if that still had the pipe.
            self.assertLess(time.monotonic() - before, 8)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(ready)
            os.close(done)

    def test_cancelled_tasks_kill_their_commands(self) -> None:
        async def work() -> None:
            async with stockade.AsyncSandbox(str(self.project), keep_env=[MARK]) as box:
                commands: list[tuple[str | list[str], str | None]] = [
                    ("sleep 1000", None),
                    ("sleep 1000", "x" * 3_000_000),
                    (["sh", "-c", "sleep 1000", *["x" * 60_000] * 4], None),
                ]
                for delay in (0, 0.001, 0.003, 0.01, 0.1):
                    for command, text in commands:
                        task = asyncio.ensure_future(box.run(command, input=text))
                        await asyncio.sleep(delay)
                        task.cancel()
                        with self.assertRaises(asyncio.CancelledError):
                            await task
                self.assertTrue((await box.run("true")).ok)
                end = time.monotonic() + 60
                while (await box.run(["pgrep", "-x", "sleep"])).ok:
                    self.assertLess(time.monotonic(), end)

        asyncio.run(work())

    def test_more_tasks_than_threads(self) -> None:
        async def work() -> None:
            async with stockade.AsyncSandbox(str(self.project), keep_env=[MARK]) as box:
                waiting = [asyncio.ensure_future(box.run("sleep 1000")) for _ in range(60)]
                results = await asyncio.gather(*(box.run(f"echo {n}") for n in range(60)))
                self.assertEqual([result.stdout for result in results], [f"{n}\n" for n in range(60)])
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)

        asyncio.run(work())

    def test_many_threads_use_one_sandbox(self) -> None:
        with self.box() as box:
            wrong: list[object] = []

            def work(name: int) -> None:
                for n in range(10):
                    text = f"{name} {n}"
                    box.write(f"file-{name}", text)
                    result = box.run(["cat", f"file-{name}"])
                    if result.stdout != text or box.read(f"file-{name}") != text.encode():
                        wrong.append(result)

            threads = [threading.Thread(target=work, args=(name,)) for name in range(16)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])
            # Two threads may wait for one command, and a third one kill it.
            command = box.start("sleep 1000")
            endings: list[str] = []
            waiting = [threading.Thread(target=lambda: endings.append(command.wait().ending)) for _ in range(2)]
            for thread in waiting:
                thread.start()
            command.kill()
            for thread in waiting:
                thread.join()
            self.assertEqual(endings, ["killed", "killed"])

    def test_a_thousand_commands_leave_no_growth(self) -> None:
        with self.box() as box:
            def run(count: int) -> None:
                for _ in range(count):
                    box.run(["/bin/echo", "x" * 1000])

            server = box._connection.server.pid

            def open_files() -> tuple[int, int]:
                return descriptors(), len(os.listdir(f"/proc/{server}/fd"))

            def memory() -> tuple[int, int]:
                gc.collect()
                return resident_kib("self"), resident_kib(server)

            run(200)
            files, before = open_files(), memory()
            run(1000)
            more_files, after = open_files(), memory()
            self.assertEqual(more_files[0], files[0])
            # The server keeps those of the last command, and closes them whenever it starts another one.
            self.assertLess(more_files[1] - files[1], 10, "descriptors of the server")
            self.assertLess(after[0] - before[0], 2048, "memory of this process, in KiB")
            self.assertLess(after[1] - before[1], 2048, "memory of the server, in KiB")
            connection = box._connection
            self.assertEqual((connection._pending, connection._sinks, connection._early), ({}, {}, {}))

    def test_output_above_the_limit_is_dropped(self) -> None:
        with self.box() as box:
            result = box.run("head -c 3000000 /dev/zero; head -c 100 /dev/zero >&2", output_limit=1000)
            self.assertEqual((len(result.stdout_bytes), len(result.stderr_bytes)), (1000, 100))
            self.assertTrue(result.truncated)
            self.assertEqual(result.exit_code, 0)
            exact = box.run("head -c 1000 /dev/zero", output_limit=1000)
            self.assertEqual((len(exact.stdout_bytes), exact.truncated), (1000, False))
            whole = box.run("head -c 30000000 /dev/zero", output_limit=None)
            self.assertEqual(len(whole.stdout_bytes), 30000000)

    def test_a_command_that_nobody_reads_stops(self) -> None:
        with self.box() as box:
            command = box.start("yes")
            chunks = command._started.output._chunks

            def arrived() -> int:
                return sum(len(data) for _, data in list(chunks))

            wait_until("the window is full", lambda: arrived() == WINDOW_BYTES)
            self.assertTrue(box.run("true").ok)
            self.assertEqual(arrived(), WINDOW_BYTES)
            seen = 0
            for _, data in command.output():
                seen += len(data)
                if seen > 10_000_000:
                    break
            command.kill()
            self.assertEqual(command.wait().ending, "killed")

    def test_bytes_that_are_no_text(self) -> None:
        raw = bytes(range(256))
        with self.box() as box:
            octal = "".join(f"\\{byte:03o}" for byte in raw)
            result = box.run(["printf", octal])
            self.assertEqual(result.stdout_bytes, raw)
            self.assertIn("\ufffd", result.stdout)
            self.assertEqual(box.run("cat", input=raw).stdout_bytes, raw)
            # A character that arrives in two parts.
            split = box.run(r"printf '\303'; sleep 0.1; printf '\251'")
            self.assertEqual(split.stdout, "é")

    def test_input(self) -> None:
        with self.box() as box:
            self.assertEqual(box.run(["wc", "-c"], input="é" * 2_000_000).stdout, "4000000\n")
            self.assertTrue(box.run("exec <&-; sleep 0.2", input="x" * 5_000_000).ok)
            self.assertEqual(box.run("sleep 1000", input="x" * 5_000_000, timeout=0.2).ending, "timed_out")
            self.assert_kind("invalid_params", lambda: box.run(["echo", "x" * (9 << 20)]))

    def test_waiting_with_a_time_limit(self) -> None:
        with self.box() as box:
            command = box.start("sleep 1000")
            with self.assertRaises(TimeoutError):
                command.wait(0.05)
            self.assertTrue(command.running)
            command.signal(signal.SIGTERM)
            result = command.wait(60)
            self.assertEqual((result.ending, result.signal, result.exit_code), ("signalled", 15, 143))

    def test_terminals_and_parts_of_files(self) -> None:
        with self.box() as box:
            command = box.start(
                "until test \"$(stty size)\" = '40 120'; do sleep 0.02; done; tty", terminal=(30, 100)
            )
            command.resize(40, 120)
            self.assertTrue(command.wait(60).stdout.startswith("/dev/pts/"))
            box.write("file", "0123456789", mode=0o600)
            box.write("file", "more", append=True)
            self.assertEqual(box.read("file", offset=8, length=4), b"89mo")
            self.assertEqual(stat.S_IMODE(box.stat("file").mode), 0o600)
            self.assertEqual(box.backend, "native")


if __name__ == "__main__":
    unittest.main()
