"""Runs the independent measurements of a table side by side, a process a core."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar, cast

_Task = TypeVar("_Task")
_Found = TypeVar("_Found")

FEW = 8
"""Tasks for which starting processes takes longer than they save."""

_running: list[Callable[[int], object]] = []


def spread(run: Callable[[_Task], _Found], tasks: Sequence[_Task]) -> list[_Found]:
    """Return the results of `run` for all `tasks`, in their order.

    Workers are forked, so that they have what `run` closes over; only results travel.
    """
    cores = os.cpu_count() or 1
    if cores == 1 or len(tasks) < FEW or "fork" not in multiprocessing.get_all_start_methods():
        return [run(task) for task in tasks]
    _running.append(lambda number: run(tasks[number]))
    try:
        with ProcessPoolExecutor(cores, mp_context=multiprocessing.get_context("fork")) as pool:
            return cast("list[_Found]", list(pool.map(_run_one, range(len(tasks)))))
    finally:
        _running.pop()


def _run_one(number: int) -> object:
    return _running[-1](number)
