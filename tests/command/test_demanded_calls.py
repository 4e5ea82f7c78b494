from __future__ import annotations

from pathlib import Path

import pytest

from forked import run_jp
from stage import make_workspace

SETTINGS = """
[conversation.tools.fs_read_file]
enable = true
"""

NEVER = """
[[reply]]
when = { begun = true }
text = "Hello there."

[[reply]]
text = "Hello there."
"""

ONCE = """
[[reply]]
text = "Hello there."
"""


@pytest.mark.parametrize("form", ["text", "pretty"])
def test_the_answers_to_a_repeated_demand_are_messages_of_their_own(form: str, tmp_path: Path) -> None:
    make_workspace(tmp_path, NEVER, settings=SETTINGS)

    result = run_jp("query", "--format", form, "--cfg", "assistant.tool_choice=required", "Hi", cwd=tmp_path)

    said = "\n".join(["Hello there.\n"] * 4)
    assert (result.code, result.stdout) == (13, said)
    assert run_jp("conversation", "print", cwd=tmp_path).stdout.endswith(f"script/test\n{said}")


def test_a_scenario_that_does_not_answer_a_demand_is_told_what_was_asked(tmp_path: Path) -> None:
    make_workspace(tmp_path, ONCE, settings=SETTINGS)

    result = run_jp("query", "--cfg", "assistant.tool_choice=required", "Hi", cwd=tmp_path)

    assert (result.code, result.stdout) == (5, "Hello there.\n")
    assert (
        "fits: in turn 0 the answer 'Hello there.' called no tool, and the call was demanded again\n" in result.stderr
    )
    assert "hint: the replies want: reply[0] anything; one with `begun = true` answers the demand\n" in result.stderr
