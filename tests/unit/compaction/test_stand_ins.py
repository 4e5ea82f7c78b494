from __future__ import annotations

import pytest

from jp.compaction.status_lines import PlainStatusFormatter
from logs import call, respond


@pytest.mark.parametrize(("is_error", "status"), [(False, "success"), (True, "error")])
def test_a_status_line_says_which_tool_it_was_and_how_it_ended(status: str, *, is_error: bool) -> None:
    line = PlainStatusFormatter().response(call("c", "cargo_test"), respond("c", is_error=is_error))

    assert line == f"[compacted] cargo_test: {status}"


def test_nothing_is_left_of_arguments() -> None:
    assert PlainStatusFormatter().arguments(call("c")) == {}
