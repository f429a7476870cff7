"""Runs untrusted commands in a sandbox that the Linux kernel enforces."""

from ._advice import inspect, verify
from ._aio import AsyncCommand, AsyncSandbox
from ._batch import batch
from ._map import map
from ._sync import Command, Sandbox
from ._task import Task, TaskResult
from ._types import Allowed, Change, Closed, Denial, Entry, Result, Stat, StockadeError

__all__ = [
    "Allowed",
    "AsyncCommand",
    "AsyncSandbox",
    "Change",
    "Closed",
    "Command",
    "Denial",
    "Entry",
    "Result",
    "Sandbox",
    "Stat",
    "StockadeError",
    "Task",
    "TaskResult",
    "batch",
    "inspect",
    "map",
    "verify",
]
