from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jp.context.digest_lines import Stripped, stand_in
from jp.context.types import Call, Facts

CALL = Call(id="c", name="run", arguments='{"command": "pytest -q"}')
KNOWN = Facts(path="src/ä.py", lines="1-9", exit_code=1, matches=3, first_error="error: token=hunter2-XYZ9 refused")


def test_it_says_on_one_line_whatever_is_known() -> None:
    stripped = Stripped(size=9_000, is_error=True, lines=90, handle="01234567")

    assert stand_in(CALL, KNOWN, stripped) == (
        "[compacted] run: error; src/ä.py; lines 1-9; exit 1; 3 matches; 90 lines, 9000 bytes; "
        "error: token=[redacted:token] refused; recall 01234567"
    )
    assert stand_in(CALL, None, Stripped(size=9_000)) == "[compacted] run: success; 9000 bytes"


def test_where_there_is_little_room_what_matters_most_is_said() -> None:
    stripped = Stripped(size=52, handle="01234567")

    assert stand_in(CALL, KNOWN, stripped) == "[compacted] run: success; exit 1; recall 01234567"


def test_a_result_that_is_no_longer_than_how_it_ended_stays() -> None:
    status = "[compacted] run: success"

    assert stand_in(CALL, KNOWN, Stripped(size=len(status))) is None
    assert stand_in(CALL, KNOWN, Stripped(size=len(status) + 1)) == status


@given(size=st.integers(0, 400), name=st.text(max_size=20), path=st.text(max_size=60), is_error=st.booleans())
def test_it_is_always_shorter_than_what_it_stands_for(size: int, name: str, path: str, *, is_error: bool) -> None:
    call = Call(id="c", name=name, arguments="{}")
    stripped = Stripped(size=size, is_error=is_error, handle="01234567")

    line = stand_in(call, Facts(path=path, exit_code=7), stripped)

    assert line is None or len(line.encode("utf-8", "surrogatepass")) < size
