"""Many tasks at once, on this machine or on a cluster of Ray."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from ._task import Task, TaskResult, run_task


def map(
    tasks: Iterable[Task],
    *,
    on: str | None = None,
    workers: int | None = None,
    retries: int = 3,
) -> list[TaskResult]:
    """Runs tasks, each in a sandbox of its own, and returns their results in order.

    `on` is "ray" or "local"; by default Ray, if it is installed. Ray connects to the cluster that the
    program, or RAY_ADDRESS, names. Each node needs this package. A task whose worker or sandbox died
    runs again up to `retries` times, so it must not matter that a task ran in part before.

    `workers` bounds the tasks that run at once on this machine; Ray goes by the nodes' CPUs.
    """
    if on not in (None, "local", "ray"):
        raise ValueError(f'`on` is "local" or "ray", not {on!r}')
    if on == "ray" or (on is None and importlib.util.find_spec("ray") is not None):
        from .adapters.ray import map_on_ray

        return map_on_ray(list(tasks), retries)
    return _map_locally(list(tasks), workers, retries)


def _map_locally(tasks: list[Task], workers: int | None, retries: int) -> list[TaskResult]:
    is_over = False

    def run(task: Task) -> TaskResult:
        result = run_task(task)
        for _ in range(retries):
            if is_over or result.error is None or result.error.kind != "ended":
                break
            result = run_task(task)
        return result

    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        running = [pool.submit(run, task) for task in tasks]
        try:
            return [task.result() for task in running]
        except BaseException:
            # KeyboardInterrupt: no further task starts; those that run go on to their time limit.
            is_over = True
            pool.shutdown(wait=False, cancel_futures=True)
            raise
