"""List the public functions of `jp.context` that no command enters: figures have to be of what users run.

A synthetic session with large arguments, repeated reads and reasoning becomes a conversation in a workspace, on which
commands run. Run it alone with `python benchmarks/entered.py`; it leaves with 1 where a function is not entered.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import NamedTuple

import jp.context

_NONCE = re.compile(r'"nonce": ?"([^"]+)"')

Place = tuple[str, int]
"""A function: its file, and its first line."""

CONFIG = """
[assistant]
system_prompt = "You help. It is 2026-11-20T12:00:00Z."

[assistant.model]
id = "script/main"

[providers.llm.script.models.main]
context_window = 24000
max_output = 1000

[conversation.compaction.auto]
enabled = true
profile = "heavy"

[conversation.tools."*"]
run = "unattended"

[conversation.tools.check]
enable = true
source = "local"
command = "cat error:password=hunter2-XYZ9"
parameters.note = { type = "string" }
"""
SCENARIO = """
[[reply]]
when = { contains = "one JSON object" }
text = '''{"goal": "mend src/part_0.py", "next_step": "go on with 4711", "requirements": ["Mend part 0"]}'''

[[reply]]
when = { exact = "check it" }
[[reply.calls]]
name = "check"
[[reply.calls]]
name = "check"
[reply.calls.arguments]
note = "[[cut:NONCE:01234567:+9]]"

[[reply]]
text = "It is done."
usage = { input = 9000, output = 5 }
"""
SECRETS = "The password is hunter2-XYZ9; curl -H 'Authorization: Bearer 0a1b2c3d' https://jane:b2c3d4@example.com"
COMMANDS = (
    "conversation context last",
    "conversation compact --dry-run last",
    "conversation compact last",
    "conversation compact --profile heavy --local --keep 2 last",
    "conversation compact --profile heavy --dry-run --keep 1 last",
    "conversation print --compacted last",
    "conversation usage last",
    "conversation compact --reset last",
    "conversation compact --tools=strip --keep 1 last",
    "conversation compact --reset last",
    "conversation compact --profile heavy --keep 1 last",
    "conversation compact --reset last",
    "query --id=last --no-tool continue",
    "query --id=last continue",
    "query --id=last continue",
    "query --id=last -- check it",
    "query --id=last --dry-run --model anthropic/claude-haiku-4-5 continue",
    "conversation recall HANDLE --id last",
    "conversation recall HANDLE --id last --lines 5 --format json",
    "conversation print --as-sent -1 last",
    "conversation show last",
)


class Function(NamedTuple):
    """A public function or method under its name."""

    name: str
    place: Place


class Watch:
    """Notes which functions of `jp.context` are entered."""

    def __init__(self) -> None:
        self._folder = f"{Path(jp.context.__file__ or '').parent}{os.sep}"
        self.entered: set[Place] = set()
        self._known: dict[CodeType, Place | None] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Take what `sys.setprofile` tells."""
        code = frame.f_code
        if event == "call" and code not in self._known:
            is_ours = code.co_filename.startswith(self._folder)
            self._known[code] = (code.co_filename, code.co_firstlineno) if is_ours else None
            if is_ours:
                self.entered.add((code.co_filename, code.co_firstlineno))

    def run(self, what: Callable[[], object]) -> None:
        """Run `what`, and threads that it starts."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            what()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def public_functions() -> list[Function]:
    """Return every public function and method of `jp.context`."""
    found: list[Function] = []
    for info in pkgutil.iter_modules(jp.context.__path__, "jp.context."):
        module = importlib.import_module(info.name)
        found += _functions_in(module, info.name.removeprefix("jp.context."))
    return found


def _functions_in(module: ModuleType, name: str) -> Iterator[Function]:
    for key, value in vars(module).items():
        if key.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if not inspect.isclass(value):
            yield from _function(f"{name}.{key}", value)
        elif not getattr(value, "_is_protocol", False):
            methods = [(method, inner) for method, inner in vars(value).items() if not method.startswith("_")]
            for method, inner in methods:
                yield from _function(f"{name}.{key}.{method}", inner)


def _function(name: str, value: object) -> Iterator[Function]:
    plain: object = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    plain = getattr(plain, "func", plain)  # of a cached property
    plain = inspect.unwrap(plain) if callable(plain) else plain
    if isinstance(plain, FunctionType):
        code = plain.__code__
        yield Function(name, (code.co_filename, code.co_firstlineno))


def entered_by_commands(report: Callable[[str], None]) -> set[Place]:
    """Run every command on a conversation of its own workspace, and return what they enter."""
    found: set[Place] = set()
    with TemporaryDirectory() as folder:
        root = Path(folder)
        handle = _make_conversation(root)
        for words in COMMANDS:
            report(f"entered by {words}")
            found |= _entered_by(words.replace("HANDLE", handle).split(), root)
    return found


def _make_conversation(root: Path) -> str:
    """Make a workspace with a conversation, and return the handle of a result in it."""
    from context.conversations import write_session
    from context.sessions import synthetic_session
    from jp.context.markers import SHORTEST, checksum_of
    from jp.context.types import texts_of
    from jp.workspace.workspace import create_workspace

    create_workspace(root / "work", commit_conversations=False)
    scenarios = root / "work" / ".jp" / "scenarios"
    scenarios.mkdir(exist_ok=True)
    settings = root / "home" / "config" / "jp" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(CONFIG, encoding="utf-8")
    session = synthetic_session(60)
    write_session(root / "work", root / "home" / "jp", session)
    (found,) = {nonce for log in root.rglob("*.jsonl") for nonce in _NONCE.findall(log.read_text(encoding="utf-8"))}
    (scenarios / "main.toml").write_text(SCENARIO.replace("NONCE", found), encoding="utf-8")
    (result,) = next(texts_of(message) for message in session if message.role == "tool")
    return checksum_of(result)[:SHORTEST]


def _entered_by(words: Sequence[str], root: Path) -> set[Place]:
    notes = root / "entered.json"
    environ = {
        **os.environ,
        "HOME": str(root / "home"),
        "XDG_DATA_HOME": str(root / "home"),
        "XDG_CONFIG_HOME": str(root / "home" / "config"),
        "XDG_CACHE_HOME": str(root / "home" / "cache"),
    }
    done = subprocess.run(
        [sys.executable, __file__, "--notes", str(notes), *words],
        cwd=root / "work",
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode not in {0, 12}:
        raise RuntimeError(f"jp {' '.join(words)}: {done.stderr.decode()}")
    return {(file, line) for file, line in json.loads(notes.read_bytes())}


def _run_noting(notes: Path, words: Sequence[str]) -> int:
    from jp.cli.app import run

    watch = Watch()
    codes: list[int] = []
    watch.run(lambda: codes.append(run(words)))
    notes.write_text(json.dumps(sorted(watch.entered)), encoding="utf-8")
    return codes[0]


def entered_by_benchmarks(report: Callable[[str], None]) -> set[Place]:
    """Return what compacting a session a few times, and carrying it on a small window, enter."""
    from context.automatic import product_bill
    from context.product import Product
    from context.sessions import synthetic_session
    from jp.context.budget import estimate_messages
    from jp.context.types import Message

    session = (*synthetic_session(40), Message(role="user", content=SECRETS), *synthetic_session(40)[1:])
    watch = Watch()

    def compact(percent: int) -> None:
        product = Product(facts=percent != 10)  # imported logs have none
        product.grow(session)
        product.compact(estimate_messages(session) * percent // 100)
        list(product.recallable())
        product.search(["which part failed"])

    for percent in (10, 25, 50):
        report(f"entered by a compaction to {percent} %")
        watch.run(lambda percent=percent: compact(percent))
    report("entered by automatic compaction")
    watch.run(lambda: product_bill(session, 20_000, "reliable", ()))
    watch.run(lambda: product_bill(session, 20_000, "failing", ()))
    return watch.entered


def missed(report: Callable[[str], None]) -> list[str]:
    """Return the names of the functions that nothing enters."""
    entered = entered_by_commands(report) | entered_by_benchmarks(report)
    return [function.name for function in public_functions() if function.place not in entered]


def rows(report: Callable[[str], None]) -> Iterator[str]:
    """The table."""
    names, count = missed(report), len(public_functions())
    yield f"{count - len(names)} of {count} public functions of jp.context are entered"
    yield from (f"not entered: {name}" for name in names)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--notes"]:
        raise SystemExit(_run_noting(Path(sys.argv[2]), sys.argv[3:]))
    table = list(rows(lambda _: None))
    print("\n".join(table))
    raise SystemExit(len(table) > 1)
