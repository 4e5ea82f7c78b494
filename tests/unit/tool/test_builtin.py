from __future__ import annotations

import subprocess
import sys

import pytest

from jp.tool.arguments import argument_problems
from jp.tool.builtin import FILE_TOOLS
from plain_names import PlainNames


@pytest.mark.parametrize("name", sorted(FILE_TOOLS))
def test_every_file_tool_has_the_name_it_is_found_by_and_a_closed_schema(name: str) -> None:
    definition = FILE_TOOLS[name](PlainNames()).definition

    assert definition.name == name
    assert definition.description
    assert definition.parameters["additionalProperties"] is False
    assert all(parameter["type"] for parameter in definition.parameters["properties"].values())
    assert argument_problems(definition.parameters, {"nonsense": 1})


def test_what_lists_the_tools_imports_none_of_them() -> None:
    code = "import sys, jp.tool.builtin; print([name for name in sys.modules if name.startswith('jp.tool.')])"

    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, encoding="utf-8")

    assert said.stdout == "['jp.tool.builtin']\n"
