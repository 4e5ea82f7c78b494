"""The store where the operating system sets the limits: sizes, permissions, other processes, terminals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jp.conversation.entries import ChatRequest, TurnStart
from jp.conversation.ids import ConversationId
from jp.workspace.workspace import find_workspace

DRIVER = Path(__file__).parent / "store_driver.py"


def driven(scenario: str, directory: Path) -> Any:
    done = subprocess.run(
        [sys.executable, str(DRIVER), scenario, str(directory)],
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_limit_on_the_size_of_files_is_named_and_costs_nothing_that_was_there(tmp_path: Path) -> None:
    told = driven("limited", tmp_path)

    assert told["unchanged"]
    assert [failure is not None for failure in told["failures"]] == [True, True, True, True]
    assert all(failure["code"] == 1 for failure in told["failures"])
    assert all("ulimit -f" in failure["hint"] for failure in told["failures"])
    assert told["entries"] == 3
    assert told["conversations"] == 1


def test_a_read_only_workspace_is_read_and_refuses_to_be_written_in_words() -> None:
    # Who has dropped its privileges has to reach the directory: pytest's own are closed to others.
    with TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)
        told = driven("read-only", Path(scratch))

    assert told["listed"] == ["A title"]
    assert told["entries"] == 1
    assert told["base_config"] == {"a": 1}
    for action in ("open", "create", "rename", "remove"):
        assert told[action]["code"] == 1, action
        assert "ermission denied" in told[action]["message"], action
        assert "--no-persist" in told[action]["hint"], action
    assert told["local"]
    assert told["active"]


def test_twenty_processes_create_and_append_at_one_moment(tmp_path: Path) -> None:
    told = driven("concurrent", tmp_path)

    assert told["statuses"] == [0] * 20
    assert len(set(told["created"])) == 20
    workspace = find_workspace(tmp_path / "work", user_data=tmp_path / "user")
    assert workspace.ids() == {*told["created"], told["shared"]}
    stream = workspace.read(workspace.get(ConversationId(told["shared"])))
    assert stream.notices == ()
    assert len({entry.id for entry in stream.entries}) == len(stream.entries) == 201
    requests: list[str] = []
    for start, request in zip(stream.entries[1::2], stream.entries[2::2], strict=True):
        assert isinstance(start, TurnStart)
        assert isinstance(request, ChatRequest)
        text = stream.load(request.resources[0]).text or ""
        assert text.startswith(f"{request.content}.")
        requests.append(text.split()[0])
    assert sorted(requests) == sorted(f"{number}.{turn}" for number in range(20) for turn in range(5))


SHOW_KEY = (
    "from jp.workspace.session import session_key; import msgspec; print(msgspec.json.encode(session_key()).decode())"
)
# A shell of its own in a terminal of its own, in which jp runs twice: as it is, and with every stream redirected.
IN_A_TERMINAL = """
import os, pty, sys
command = 'python -c "$SHOW_KEY" > first; python -c "$SHOW_KEY" < /dev/null 2> /dev/null > second; true'
sys.exit(os.waitstatus_to_exitcode(pty.spawn(["/bin/sh", "-c", command], lambda descriptor: os.read(descriptor, 1024))))
"""


def test_what_runs_in_one_terminal_is_one_session_however_it_is_redirected(tmp_path: Path) -> None:
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "SHOW_KEY": SHOW_KEY,
        "TMUX_PANE": "%1",
    }
    keys: list[dict[str, str]] = []
    for name in ("one", "other"):
        place = tmp_path / name
        place.mkdir()
        subprocess.run(
            [sys.executable, "-c", IN_A_TERMINAL],
            check=True,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )
        first, second = (json.loads((place / file).read_text(encoding="utf-8")) for file in ("first", "second"))
        assert first == second
        keys.append(first)

    assert [key["source"] for key in keys] == ["terminal", "terminal"]
    assert keys[0]["value"] != keys[1]["value"]
    assert all(key["leader"] for key in keys)


def test_what_runs_without_a_terminal_is_no_session() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOW_KEY],
        check=True,
        env={"PATH": os.environ.get("PATH", os.defpath)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,
        timeout=60,
    )

    assert json.loads(done.stdout) is None
