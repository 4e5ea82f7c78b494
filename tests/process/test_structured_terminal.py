"""Structured output and extraction as a person sees them: at a terminal, where stdout and stderr are one."""

from __future__ import annotations

from pathlib import Path

from stage import make_workspace
from terminal import jp_at_terminal

SCENARIO = """
[[reply]]
when = { contains = "who" }
reasoning = "Let me think."
text = '{"name": "Ann", "tags": []}'

[[reply]]
text = '''
Here:

```sh
echo hi
```
'''
"""


def test_at_a_terminal_the_value_is_indented_and_stands_alone_on_stdout(tmp_path: Path) -> None:
    make_workspace(tmp_path, SCENARIO)

    with jp_at_terminal("query", "-s", "name, tags [str]", "who?", cwd=tmp_path) as terminal:
        assert terminal.finish() == 0
    with (
        (tmp_path / "value").open("wb") as value,
        jp_at_terminal("query", "-s", "name", "who", cwd=tmp_path, stdout=value.fileno()) as beside,
    ):
        assert beside.finish() == 0

    assert '{\n  "name": "Ann",\n  "tags": []\n}\n' in terminal.shown.replace("\r", "")
    assert "think." in terminal.shown
    assert (tmp_path / "value").read_text(encoding="utf-8") == '{"name":"Ann","tags":[]}\n'


def test_at_a_terminal_only_the_code_is_shown(tmp_path: Path) -> None:
    make_workspace(tmp_path, SCENARIO)

    with jp_at_terminal("query", "-x", "write", cwd=tmp_path) as terminal:
        assert terminal.finish() == 0

    assert "echo hi" in terminal.stays
    assert "Here:" not in terminal.shown
    assert "```" not in terminal.shown
