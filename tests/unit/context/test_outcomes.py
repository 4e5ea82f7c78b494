from __future__ import annotations

import pytest

from jp.context.digest_lines import ended, extent


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "exit 0"), (1, "exit 1"), (137, "exit 137 (SIGKILL)"), (-15, "exit -15 (SIGTERM)"), (200, "exit 200")],
)
def test_an_exit_code_names_its_signal(code: int, words: str) -> None:
    assert ended(code) == words


def test_one_line_is_one_line() -> None:
    assert [extent(9, lines) for lines in (None, 1, 2)] == ["9 bytes", "1 line, 9 bytes", "2 lines, 9 bytes"]
