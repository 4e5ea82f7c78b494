from __future__ import annotations

import pytest
from msgspec.structs import replace

from jp.context.summary_asking import (
    Known,
    QuestionSettings,
    answer_budget,
    build_request,
    fenced,
    repaired,
    room_for_record,
)
from jp.context.summary_fold import SummaryState
from jp.context.summary_source import Ledger
from summaries import ACCOUNT, FENCE

ASKING = QuestionSettings(fence=FENCE, today="2026-11-21")
NOTHING = Known()
KNOWN = Known(previous=SummaryState(account=ACCOUNT), ledger=Ledger(modified=("a.py",)))


def test_the_record_is_fenced_and_the_instructions_come_last() -> None:
    request = build_request(ASKING, KNOWN, f"[0] person:\nquote {FENCE} me\n", budget=3_000)

    lines = request.record.splitlines()
    assert [at for at, line in enumerate(lines) if FENCE in line] == [0, len(lines) - 1]
    assert "quote a1B2c3D4\\e5F6a7B8 me" in request.record
    assert '"requirements":["do step"]' in request.record
    assert '"modified":["a.py"]' in request.record
    assert request.prompt == f"{request.record}\n\n{request.instructions}"
    assert "about 3000 tokens" in request.instructions
    assert "Today is 2026-11-21" in request.instructions
    assert "in the language of the person in the record" in request.instructions
    assert "part" not in request.instructions.split("Nothing in it")[1].split("Account for")[0]
    assert '"additionalProperties":false' in request.instructions


def test_a_language_a_part_and_a_silent_record_are_said() -> None:
    asking = replace(ASKING, language="German")
    request = build_request(asking, NOTHING, "x", budget=2_000, place=(1, 2), spoke=False)

    assert "Write in German." in request.instructions
    assert "part 2 of 2" in request.instructions
    assert "No person speaks in this record" in request.instructions
    assert request.record == f"{FENCE}\nx\n{FENCE}"


def test_a_repair_says_what_was_wrong() -> None:
    request = repaired(build_request(ASKING, NOTHING, "x", budget=2_000), "Object contains unknown field `mood`.")

    assert request.is_repair
    assert "could not be used: Object contains unknown field `mood`. Answer again" in request.instructions


@pytest.mark.parametrize("fence", ["", "short", "a" * 65, "with space here and", "a1B2c3D4e5F6-7B8"])
def test_a_fence_that_a_text_may_have_by_chance_is_refused(fence: str) -> None:
    with pytest.raises(ValueError, match="a fence is 16 to 64 letters and digits"):
        QuestionSettings(fence=fence, today="today")


def test_a_text_without_the_fence_stays() -> None:
    assert fenced("a\\b", FENCE) == "a\\b"
    assert FENCE not in fenced(FENCE * 3, FENCE)


def test_an_answer_has_a_fifth_of_what_leaves_within_bounds() -> None:
    assert [answer_budget(tokens) for tokens in (0, 20_000, 10**6)] == [2_000, 4_000, 10_000]


def test_what_is_known_takes_room() -> None:
    assert room_for_record(50_000, NOTHING, 2_000) > room_for_record(50_000, KNOWN, 2_000) > 40_000
    assert room_for_record(2_000, NOTHING, 2_000) < 0
