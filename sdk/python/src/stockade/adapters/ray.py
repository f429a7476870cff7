"""Tasks on the nodes of a Ray cluster; `stockade.map` uses it."""

from __future__ import annotations

from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from stockade import StockadeError, Task, TaskResult
from stockade._task import run_task


def map_on_ray(tasks: list[Task], retries: int) -> list[TaskResult]:
    """Runs tasks on the cluster; see `stockade.map`."""
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    # Ray starts a task again if its worker or node dies, or if the sandbox died under it.
    options: dict[str, Any] = {"max_retries": retries, "retry_exceptions": [StockadeError]}
    remote = ray.remote(**options)(_run_on_node)
    running = [remote.remote(task) for task in tasks]
    try:
        return [_result(reference) for reference in running]
    except BaseException:
        # KeyboardInterrupt: nobody waits for the rest.
        for reference in running:
            ray.cancel(reference, force=True)
        raise


def _run_on_node(task: Task) -> TaskResult:
    done = run_task(task, ray.get_runtime_context().get_node_id())
    if done.error is not None and done.error.kind == "ended":
        raise done.error
    return done


def _result(reference: ray.ObjectRef[TaskResult]) -> TaskResult:
    try:
        done: TaskResult = ray.get(reference)
        return done
    except (RayError, StockadeError) as error:
        if isinstance(error, RayTaskError) and not isinstance(error, StockadeError):
            # A mistake of the caller, such as a setting that there is not.
            raise error.cause from None
        lost = StockadeError("worker_lost", f"the task's worker died each time: {error}")
        return TaskResult(None, {}, lost, "")
