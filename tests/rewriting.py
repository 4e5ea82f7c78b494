"""Rewrites assertions ahead of pytest: where tests run side by side, in a fork while they are collected.

pytest keeps what it has rewritten from run to run. Where it has kept nothing yet, that takes longer than all else that
is done for a test before it runs, and is done for one module after the other, in the order in which they are collected.
The fork begins with the last one, until both meet.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Have a fork rewrite what is collected meanwhile."""
    hooks = [finder for finder in sys.meta_path if isinstance(finder, rewrite.AssertionRewritingHook)]
    if not hooks or not session.config.option.workers or sys.dont_write_bytecode:
        return (yield)
    modules = sorted(_modules(session.config.args), reverse=True)
    process = os.fork()
    if not process:
        try:
            _rewrite(modules, hooks[0])
        finally:
            os._exit(0)
    try:
        return (yield)
    finally:
        os.waitpid(process, 0)


def _modules(arguments: Iterable[str]) -> Iterator[Path]:
    """The test modules that the `arguments` of pytest are about."""
    for argument in arguments:
        path = Path(argument.partition("::")[0]).absolute()
        if path.is_dir():
            yield from path.rglob("test_*.py")
        elif path.is_file():
            yield path


def _rewrite(modules: Iterable[Path], hook: rewrite.AssertionRewritingHook) -> None:
    rewrite.__dict__["exec"] = _leave  # the hook would run what it has rewritten
    for path in modules:
        spec = spec_from_file_location(path.stem, path, loader=hook)
        # Who collects a module that is none tells what is wrong with it.
        with suppress(OSError, SyntaxError, ValueError):
            if spec:
                hook.exec_module(module_from_spec(spec))


def _leave(code: object, namespace: object) -> None:
    """What is only rewritten is not run."""
