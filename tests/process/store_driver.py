"""What the tests of the store do in processes of their own: `python store_driver.py <what> <directory>`.

It forks, which the test runner with its threads had better not; each child does one thing and may be killed. The
last line of stdout is JSON.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from msgspec import to_builtins
from msgspec.structs import replace

from disk_faults import Fault, failing_disk, killed_after, killed_before, killed_within
from jp.cli.terminal.wording import worded
from jp.conversation.entries import ChatRequest, ToolCallRequest, ToolCallResponse, TurnStart
from jp.conversation.resource import Resource
from jp.errors import JpError
from jp.workspace import lifecycle
from jp.workspace import log as conversion
from jp.workspace.files import SYSTEM
from jp.workspace.importing import find_sources, import_conversations, read_source
from jp.workspace.listing import Metadata
from jp.workspace.session import SessionKey, session_key
from jp.workspace.trust import accept_owners
from jp.workspace.workspace import Workspace, find_workspace
from originals import BASE, current, write_original
from originals import ID as ORIGINAL
from workspaces import LARGE_TEXT, new_workspace, turn_entries

KEY = SessionKey(source="JP_SESSION", value="test")
KILLS: dict[str, Fault] = {"before": killed_before, "within": killed_within, "after": killed_after}
NOBODY = 65534
WRITERS = 10
TURNS = 5


# Imports on use would fail where the interpreter lies in a directory that only its owner may read.
NEEDED = (conversion, lifecycle, shutil)


def ignored(text: str) -> None:
    """For locks that are waited for."""


class Child:
    """A forked process that does `work` and tells what came of it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._pipe, writing = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            status = 1
            try:
                os.write(writing, json.dumps(work()).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(writing)

    def end(self) -> tuple[int, Any]:
        """Wait for it: its status as `waitpid` gives it, and what it told."""
        with os.fdopen(self._pipe, "rb") as pipe:
            told = pipe.read()
        _, status = os.waitpid(self._process, 0)
        return status, json.loads(told) if told else None


def existing(directory: Path) -> Workspace:
    """The workspace below `directory`."""
    return find_workspace(directory / "work", user_data=directory / "user")


def record(directory: Path) -> None:
    """A conversation from its creation to its end; what was acknowledged is told in a file outside of it."""
    workspace = existing(directory)
    acknowledged = os.open(directory.with_suffix(".acknowledged"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    info = workspace.create({"a": 1}, Metadata(title="A title"))
    os.write(acknowledged, b"created\n")
    workspace.session(KEY).activate(info.id)
    lock = workspace.lock(info)
    lock.acquire(patience=0, waiting=ignored)
    with lock, workspace.open(info, lock) as log:
        call = ""
        for entry in turn_entries():
            written = log.append(replace(entry, request=call) if isinstance(entry, ToolCallResponse) else entry)
            call = written.id if isinstance(written, ToolCallRequest) else call
            os.write(acknowledged, f"{written.id}\n".encode())
        workspace.update_metadata(info, lock, lambda before: replace(before, title="Another"))


def place_original(directory: Path) -> None:
    """A conversation of the original JP, in a workspace."""
    conversations = directory / "work/.jp/conversations"
    write_original(conversations / f"{ORIGINAL.digits}-a-title", current(), base=BASE)


def convert(directory: Path) -> None:
    """The first entries of a conversation of the original JP that is continued."""
    workspace = existing(directory)
    info = workspace.get(ORIGINAL)
    lock = workspace.lock(info)
    lock.acquire(patience=0, waiting=ignored)
    with lock, workspace.open(info, lock) as log:
        log.append(TurnStart())
        log.append(ChatRequest(content="more"))


def place_sources(directory: Path) -> None:
    """Two conversations that lie elsewhere, one of them with content of its own."""
    (directory / "work/.jp").mkdir(parents=True)
    elsewhere = directory.with_name("elsewhere")
    if not elsewhere.exists():
        write_original(elsewhere / "work/.jp/conversations" / ORIGINAL.digits, current(), base=BASE)
        record(elsewhere)


def bring_in(directory: Path) -> None:
    """Import them."""
    elsewhere = directory.with_name("elsewhere")
    sources = [read_source(found) for found in find_sources(elsewhere / "work")]
    import_conversations(existing(directory), sources, local=False)


def killed_recordings(directory: Path) -> list[dict[str, Any]]:
    """Record once for each call that changes the disk and each way to die at it."""
    return killed(directory, lambda place: (place / "work/.jp").mkdir(parents=True), record)


def killed(directory: Path, prepare: Callable[[Path], None], work: Callable[[Path], None]) -> list[dict[str, Any]]:
    """Do `work` once for each call that changes the disk and each way to die at it.

    To die after a call leaves what to die before the next one leaves.
    """
    # What is imported on use is imported here, and not in each child.
    for name in ("rehearsed", "counted"):
        prepare(directory / name)
    work(directory / "rehearsed")
    counted = directory / "counted"

    def count() -> list[str]:
        with failing_disk(counted) as disk:
            work(counted)
        return disk.calls

    _, calls = Child(count).end()
    outcomes: list[dict[str, Any]] = []
    for at, call in enumerate(calls, start=1):
        ways = [
            "before",
            *(["within"] if call in {"write", "pwrite"} else []),
            *(["after"] if at == len(calls) else []),
        ]
        for way in ways:
            place = directory / f"{at}-{way}"
            prepare(place)

            def run(place: Path = place, at: int = at, fault: Fault = KILLS[way]) -> None:
                with failing_disk(place, at=at, fault=fault):
                    work(place)

            status, _ = Child(run).end()
            outcomes.append({"place": str(place), "call": call, "killed": os.WTERMSIG(status) == signal.SIGKILL})
    return outcomes


def limited(directory: Path) -> dict[str, Any]:
    """Append under a limit on the size of files, which the operating system enforces."""
    workspace = new_workspace(directory, stamps=SYSTEM)
    info = workspace.create({}, Metadata())
    lock = workspace.lock(info)
    lock.acquire(patience=0, waiting=ignored)
    log_path = info.directory / "events.jsonl"
    with lock, workspace.open(info, lock) as log:
        log.append(TurnStart())
        before = log_path.read_bytes()
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, hard))
        failures = [
            failure_of(lambda: log.append(ChatRequest(content="x" * 20))),
            failure_of(lambda: log.append(ChatRequest(content="x" * 4000))),
        ]
        large = Resource(uri="file:///a", text=LARGE_TEXT)
        failures.append(failure_of(lambda: log.append(ChatRequest(content="x", resources=(large,)))))
        failures.append(failure_of(lambda: workspace.create({"a": "x" * 4000}, Metadata())))
        within = log_path.read_bytes() == before
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        log.append(ChatRequest(content="y", resources=(large,)))
    return {
        "failures": failures,
        "unchanged": within,
        "entries": len(workspace.read(info).entries),
        "conversations": len(workspace.conversations()),
    }


def failure_of(work: Callable[[], object]) -> dict[str, Any] | None:
    """What a person would be told, if anything."""
    try:
        work()
    except JpError as error:
        return {"message": error.message, "hint": worded(error.hint), "code": int(error.exit_code)}
    return None


def read_only(directory: Path) -> dict[str, Any]:
    """Use a workspace that may only be read, as a user that may not change that."""
    workspace = new_workspace(directory, stamps=SYSTEM)
    info = workspace.create({"a": 1}, Metadata(title="A title"))
    (directory / "work/.jp/.id").unlink()
    (directory / "user").mkdir(exist_ok=True)
    for path in [directory, *directory.rglob("*")]:
        mine = path.is_relative_to(directory / "user")
        path.chmod(0o777 if mine else 0o555 if path.is_dir() else 0o444)

    def work() -> dict[str, Any]:
        if os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        accept_owners(directory / "work", directory / "user")
        workspace = existing(directory)
        listed = workspace.conversations()
        entries = len(workspace.read(info).entries)
        local = workspace.create({}, Metadata(title="mine"), local=True)
        workspace.session(KEY).activate(info.id)
        with workspace.lock(info) as lock:
            lock.acquire(patience=0, waiting=ignored)
            return {
                "listed": [found.metadata.title for found in listed],
                "entries": entries,
                "base_config": workspace.base_config(info),
                "open": failure_of(lambda: workspace.open(info, lock)),
                "create": failure_of(lambda: workspace.create({}, Metadata())),
                "rename": failure_of(lambda: workspace.update_metadata(info, lock, lambda _: Metadata(title="x"))),
                "remove": failure_of(lambda: workspace.remove(info, lock)),
                "local": local.id in existing(directory).ids(),
                "active": existing(directory).session(KEY).active() == info.id,
            }

    _, told = Child(work).end()
    for path in [directory, *directory.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return told


def concurrent(directory: Path) -> dict[str, Any]:
    """Create conversations in many processes at one moment, and append to one of them in turns."""
    workspace = new_workspace(directory, stamps=SYSTEM)
    shared = workspace.create({}, Metadata(title="shared"))
    moment = SYSTEM.now()
    still = replace(SYSTEM, now=lambda: moment)
    ready, go = os.pipe(), os.pipe()

    def work(number: int) -> Any:
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        # All at the same decisecond, half of them in the other storage, with titles that differ.
        mine = find_workspace(directory / "work", user_data=directory / "user", stamps=still)
        created = mine.create({}, Metadata(title=f"writer {number}"), local=number % 2 == 0)
        for turn in range(TURNS):
            lock = mine.lock(shared)
            lock.acquire(patience=None, waiting=ignored)
            with lock, mine.open(shared, lock) as log:
                log.append(TurnStart())
                text = f"{number}.{turn} " * 500
                log.append(ChatRequest(content=str(number), resources=(Resource(uri="file:///a", text=text),)))
        return str(created.id)

    children = [Child(partial(work, number)) for number in range(WRITERS)]
    for _ in children:
        os.read(ready[0], 1)
    os.write(go[1], b"x" * WRITERS)
    ended = [child.end() for child in children]
    statuses, created = [status for status, _ in ended], [told for _, told in ended]
    return {"created": created, "statuses": statuses, "shared": str(shared.id)}


def sessions(_: Path) -> list[Any]:
    """The session that a process here belongs to, and that of another one whose streams all lead nowhere."""

    def redirected() -> Any:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        return to_builtins(session_key())

    return [Child(work).end()[1] for work in (lambda: to_builtins(session_key()), redirected)]


if __name__ == "__main__":
    scenarios: dict[str, Callable[[Path], Any]] = {
        "killed": killed_recordings,
        "converted": partial(killed, prepare=place_original, work=convert),
        "imported": partial(killed, prepare=place_sources, work=bring_in),
        "limited": limited,
        "read-only": read_only,
        "concurrent": concurrent,
        "sessions": sessions,
    }
    sys.stdout.write(json.dumps(scenarios[sys.argv[1]](Path(sys.argv[2]))) + "\n")
    sys.stdout.flush()
    os._exit(0)
