"""Shares out the rewriting of assertions among the processes that run tests side by side.

pytest keeps what it has rewritten from run to run. Where it has kept nothing yet, to rewrite all modules takes longer
than all else that happens before the first test, and each process would do it by itself, in the same order. So each
rewrites its share of the modules first, and finds the others' when it collects them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Rewrite this process's share of what will be collected."""
    place: dict[str, str | int] | None = getattr(session.config, "workerinput", None)
    hooks = [finder for finder in sys.meta_path if isinstance(finder, rewrite.AssertionRewritingHook)]
    if place is None or not hooks or sys.dont_write_bytecode:
        return
    number, count = int(str(place["workerid"]).removeprefix("gw")), int(place["workercount"])
    _rewrite(sorted(_modules(session.config.args))[number::count], hooks[0])


def _modules(arguments: Iterable[str]) -> Iterator[Path]:
    """Return the test modules that the `arguments` of pytest name."""
    for argument in arguments:
        path = Path(argument.partition("::")[0]).absolute()
        if path.is_dir():
            yield from path.rglob("test_*.py")
        elif path.is_file():
            yield path


def _rewrite(modules: Iterable[Path], hook: rewrite.AssertionRewritingHook) -> None:
    rewrite.__dict__["exec"] = _leave  # the hook would run what it has rewritten
    try:
        for path in modules:
            # Collecting a module that is none tells what is wrong with it.
            with suppress(OSError, SyntaxError, ValueError):
                hook.exec_module(module_from_spec(ModuleSpec(path.stem, hook, origin=str(path))))
    finally:
        del rewrite.__dict__["exec"]


def _leave(code: object, namespace: object) -> None:
    """Run nothing."""
