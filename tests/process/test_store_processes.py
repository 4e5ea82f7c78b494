"""The store where the operating system sets the limits: sizes, permissions, other processes, terminals."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from forked import Forked, fork, run_jp
from jp.conversation.entries import ChatRequest, TurnStart
from jp.conversation.ids import ConversationId
from jp.workspace.workspace import find_workspace
from running import isolated_environment

DRIVER = Path(__file__).parent / "store_driver.py"


def driven(scenario: str, directory: Path, *, cwd: Path) -> Any:
    done = run_jp(scenario, str(directory), cwd=cwd, script=DRIVER)
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def test_a_limit_on_the_size_of_files_is_named_and_costs_nothing_that_was_there(tmp_path: Path) -> None:
    told = driven("limited", tmp_path, cwd=tmp_path)

    assert told["unchanged"]
    assert [failure is not None for failure in told["failures"]] == [True, True, True, True]
    assert all(failure["code"] == 1 for failure in told["failures"])
    assert all("ulimit -f" in failure["hint"] for failure in told["failures"])
    assert told["entries"] == 3
    assert told["conversations"] == 1


def test_a_read_only_workspace_is_read_and_refuses_to_be_written_in_words(tmp_path: Path) -> None:
    # Who has dropped its privileges has to reach the directory: pytest's own are closed to others.
    with TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)
        told = driven("read-only", Path(scratch), cwd=tmp_path)

    assert told["listed"] == ["A title"]
    assert told["entries"] == 1
    assert told["base_config"] == {"a": 1}
    for action in ("open", "create", "rename", "remove"):
        assert told[action]["code"] == 1, action
        assert "ermission denied" in told[action]["message"], action
        assert "--no-persist" in told[action]["hint"], action
    assert told["local"]
    assert told["active"]


def test_ten_processes_create_and_append_at_one_moment(tmp_path: Path) -> None:
    told = driven("concurrent", tmp_path, cwd=tmp_path)

    assert told["statuses"] == [0] * 10
    assert len(set(told["created"])) == 10
    workspace = find_workspace(tmp_path / "work", user_data=tmp_path / "user")
    assert workspace.ids() == {*told["created"], told["shared"]}
    stream = workspace.read(workspace.get(ConversationId(told["shared"])))
    assert stream.notices == ()
    assert len({entry.id for entry in stream.entries}) == len(stream.entries) == 101
    requests: list[str] = []
    for start, request in zip(stream.entries[1::2], stream.entries[2::2], strict=True):
        assert isinstance(start, TurnStart)
        assert isinstance(request, ChatRequest)
        text = stream.load(request.resources[0]).text or ""
        assert text.startswith(f"{request.content}.")
        requests.append(text.split()[0])
    assert sorted(requests) == sorted(f"{number}.{turn}" for number in range(10) for turn in range(5))


def keys_at_a_terminal(cwd: Path) -> list[dict[str, str]]:
    """The session of a process at a terminal of its own, and of another one there whose streams lead elsewhere."""
    ours, theirs = os.openpty()
    with (cwd / "told").open("wb") as told:
        status = fork(
            "sessions",
            str(cwd),
            cwd=cwd,
            env=isolated_environment(cwd, JP_SESSION="", TMUX_PANE="%1"),
            streams=(theirs, told.fileno(), theirs),
            script=DRIVER,
            terminal=os.ttyname(theirs),
        )
        assert Forked(status).wait() == 0
    os.close(ours)
    os.close(theirs)
    return json.loads((cwd / "told").read_text(encoding="utf-8"))


def test_what_runs_in_one_terminal_is_one_session_however_it_is_redirected(tmp_path: Path) -> None:
    keys: list[dict[str, str]] = []
    for name in ("one", "other"):
        place = tmp_path / name
        place.mkdir()
        first, second = keys_at_a_terminal(place)
        assert first == second
        keys.append(first)

    assert [key["source"] for key in keys] == ["terminal", "terminal"]
    assert keys[0]["value"] != keys[1]["value"]
    assert all(key["leader"] for key in keys)


def test_what_runs_without_a_terminal_is_no_session(tmp_path: Path) -> None:
    told = run_jp("sessions", str(tmp_path), cwd=tmp_path, env={"JP_SESSION": ""}, script=DRIVER)

    assert json.loads(told.stdout) == [None, None]
