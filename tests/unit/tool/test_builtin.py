from __future__ import annotations

import subprocess
import sys

import pytest

from jp.tool.rules import argument_problems
from jp.tool.toolbox import FILE_TOOLS, file_tool
from plain_names import PlainNames


@pytest.mark.parametrize("name", sorted(FILE_TOOLS))
def test_every_file_tool_has_the_name_it_is_found_by_and_a_closed_schema(name: str) -> None:
    definition = file_tool(name, PlainNames()).definition

    assert definition.name == name
    assert definition.description
    assert definition.parameters["additionalProperties"] is False
    assert all(parameter["type"] for parameter in definition.parameters["properties"].values())
    assert argument_problems(definition.parameters, {"nonsense": 1})


def test_only_what_is_used_is_imported() -> None:
    say = "print(*(name for name in sys.modules if name.startswith('jp.tool.')))"
    use = "jp.tool.toolbox.file_tool('fs_list_files', None).definition"
    program = f"import sys, jp.tool.toolbox; {say}; {use}; {say}"

    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, encoding="utf-8")

    before, after = ({name.removeprefix("jp.tool.") for name in line.split()} for line in said.stdout.splitlines())
    assert "toolbox" in before
    assert after >= {"toolbox", "base", "files", "files.read_tools"}
    assert {name for name in before | after if name.endswith("_tools")} == {"files.read_tools"}
    assert "files.read_tools" not in before
