from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process

from jp.app import drafts
from jp.app.drafts import Editor, find_editor
from jp.config.model import EditorConfig
from jp.errors import ConfigurationError

DEFAULT = EditorConfig()


@pytest.mark.parametrize(
    ("config", "environment", "expected"),
    [
        (DEFAULT, {}, None),
        (DEFAULT, {"EDITOR": "", "VISUAL": "  "}, None),
        (DEFAULT, {"EDITOR": "''"}, Editor(command=("",), source="EDITOR")),
        (DEFAULT, {"EDITOR": "# nothing"}, Editor(command=("#", "nothing"), source="EDITOR")),
        (DEFAULT, {"EDITOR": "vi", "VISUAL": "code --wait"}, Editor(command=("code", "--wait"), source="VISUAL")),
        (
            DEFAULT,
            {"VISUAL": "a", "JP_EDITOR": "'my editor' -x"},
            Editor(command=("my editor", "-x"), source="JP_EDITOR"),
        ),
        (EditorConfig(envs=("MY",)), {"EDITOR": "vi", "MY": "ed"}, Editor(command=("ed",), source="MY")),
        (EditorConfig(cmd="nano -w"), {"EDITOR": "vi"}, Editor(command=("nano", "-w"), source="editor.cmd")),
        (EditorConfig(cmd=" "), {"EDITOR": "vi"}, Editor(command=("vi",), source="EDITOR")),
    ],
)
def test_the_editor_is_what_is_configured_else_the_first_variable_that_is_set(
    config: EditorConfig, environment: dict[str, str], expected: Editor | None
) -> None:
    assert find_editor(config, environment) == expected


def test_a_command_that_no_shell_could_read_is_refused() -> None:
    with pytest.raises(ConfigurationError) as caught:
        find_editor(EditorConfig(cmd='vi "x'), {})

    assert caught.value.message == "editor.cmd is no command: 'vi \"x'"
    assert caught.value.hint == "it is read as a shell reads words: no closing quotation"


def test_an_editor_that_will_not_end_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(drafts, "_PATIENCE_SECS", 0.01)
    os.mkfifo(tmp_path / "ready")
    script = 'trap "" TERM; : >ready; while :; do read -r x <ready; done'

    async def run() -> Process:
        process = await anyio.open_process(["sh", "-c", script], cwd=tmp_path, stdin=None, stdout=None, stderr=None)
        await anyio.to_thread.run_sync((tmp_path / "ready").read_bytes)
        await drafts.end(process)
        return process

    assert anyio.run(run).returncode == -signal.SIGKILL
