from __future__ import annotations

from pathlib import Path

import pytest

from file_calls import call, failure
from jp.conversation.entries import Facts
from jp.tool.toolbox import file_tool
from plain_names import PlainNames


@pytest.mark.parametrize(
    ("name", "kind", "arguments"),
    [
        ("fs_create_file", "write", {"path": "../f"}),
        ("fs_delete_file", "delete", {"path": "../f"}),
        ("fs_modify_file", "patch", {"path": "../f", "patterns": [{"old": "a", "new": "b"}]}),
        ("fs_move_file", "move", {"source": "a", "target": "../f"}),
        ("fs_read_file", "read", {"path": "../f"}),
        ("fs_grep_files", "search", {"pattern": "a", "paths": ["../f"]}),
        ("fs_list_files", "list", {"prefixes": ["../f"]}),
    ],
)
def test_a_failure_has_its_facts(tmp_path: Path, name: str, kind: str, arguments: dict[str, object]) -> None:
    output = call(file_tool(name, PlainNames()), tmp_path, **arguments)

    path = None if kind in {"search", "list"} else "../f"
    assert output.facts == Facts(kind=kind, path=path, first_error=failure(output))


def test_a_path_that_is_none_can_be_told(tmp_path: Path) -> None:
    output = call(file_tool("fs_read_file", PlainNames()), tmp_path, path="a\n\ud800\u00fc")

    assert output.facts is not None
    assert output.facts.path == "a\\n\ufffdü"
