from __future__ import annotations

from pathlib import Path

from forked import run_jp
from stage import logs, make_workspace


def test_the_query_after_a_turn_that_was_killed_says_so_once(tmp_path: Path) -> None:
    make_workspace(tmp_path)
    run_jp("query", "one", cwd=tmp_path)
    (log,) = logs(tmp_path)
    *written, last = log.read_bytes().splitlines(keepends=True)
    assert b'"cycle_end"' in last
    log.write_bytes(b"".join(written))

    second = run_jp("query", "--id", ".", "two", cwd=tmp_path)

    assert second == (
        0,
        "You said: two\n",
        "note: the last turn was not finished: its answer is kept as far as it came\n",
    )
    assert log.read_bytes().startswith(b"".join(written))
    assert run_jp("query", "--id", ".", "three", cwd=tmp_path) == (0, "You said: three\n", "")
