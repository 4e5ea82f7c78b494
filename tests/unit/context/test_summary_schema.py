from __future__ import annotations

from typing import Any

import msgspec
import pytest

from jp.context.summary_schema import (
    NEXT_STEP_MEANS,
    Decision,
    MendedError,
    StructuredSummary,
    SummaryError,
    TouchedFiles,
    answer_schema,
    capped,
    distinct,
    read_answer,
    shortened,
)

LEAST = '{"goal": "g", "next_step": "n", "requirements": ["r"]}'


@pytest.mark.parametrize("text", [LEAST, f"```json\n{LEAST}\n```", f"\n```\n{LEAST}```  "])
def test_an_answer_is_read_with_or_without_a_fence(text: str) -> None:
    assert read_answer(text) == StructuredSummary(goal="g", next_step="n", requirements=("r",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Here is the account:\n\n```json\n{LEAST}\n```\nLet me know!", {}),
        (f"I looked at {{this}} and {{}}. {LEAST} \ud800", {}),
        ("```" + LEAST, {}),
        (LEAST.replace("}", ', "mood": "good"}'), {}),
        (LEAST.replace('["r"]', '"r"'), {}),
        (LEAST.replace('["r"]', '["r", null, "", 3]'), {"requirements": ("r", "3")}),
        (LEAST.replace('["r"]', "null"), {"requirements": ()}),
        ('{"goal": "g"}', {"next_step": "", "requirements": ()}),
        (LEAST.replace('"n"', "3"), {"next_step": "3"}),
        (LEAST.replace('"n"', '["n", "m", true]'), {"next_step": "n; m"}),
        (LEAST.replace('"n"', '"n\\ud800"'), {"next_step": "n?"}),
        (LEAST.replace('["r"]', '[{"who": "r", "why": "s"}]'), {"requirements": ("r; s",)}),
        (LEAST.replace("}", ', "decisions": "use tabs"}'), {"decisions": (Decision(what="use tabs"),)}),
        (
            LEAST.replace("}", ', "decisions": [{"what": "a", "why": ["b", "c"]}, {"what": ""}]}'),
            {"decisions": (Decision(what="a", why="b; c"),)},
        ),
        (
            LEAST.replace("}", ', "errors_and_fixes": [{"error": "e", "cause": "c"}, "f"]}'),
            {"errors_and_fixes": (MendedError(error="e"), MendedError(error="f"))},
        ),
        (
            LEAST.replace("}", ', "files": {"modified": "a.py", "written": []}}'),
            {"files": TouchedFiles(modified=("a.py",))},
        ),
        (LEAST.replace("}", ', "files": ["a.py"]}'), {}),
    ],
)
def test_plausible_answers_are_read_whatever_is_around_and_beside_the_account(
    text: str, expected: dict[str, Any]
) -> None:
    least = StructuredSummary(goal="g", next_step="n", requirements=("r",))

    assert read_answer(text) == msgspec.structs.replace(least, **expected)


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("", "empty", "blank"),
        (" \n", "empty", "blank"),
        ("{}", "malformed", "goal"),
        (LEAST.replace('"g"', '" "'), "malformed", "goal"),
        (LEAST.replace('"g"', "null"), "malformed", "goal"),
        ("I summarise: all is well.", "malformed", "JSON"),
        ("[" * 100_000, "malformed", "JSON"),
        ("{" * 100_000, "malformed", "JSON"),
        ('{"a":' * 100_000, "malformed", "JSON"),
        (LEAST[:-1], "malformed", "JSON"),
        (LEAST.replace('"g"', '"string"'), "malformed", "repeats"),
        (LEAST.replace('"n"', f'"{NEXT_STEP_MEANS.upper()}."'), "malformed", "repeats"),
        (LEAST.replace("}", ', "decisions": [{"what": "What was decided, and why."}]}'), "malformed", "repeats"),
        (msgspec.json.encode(answer_schema()).decode(), "malformed", "goal"),
        ('<tool_call>{"name": "run"}</tool_call>', "tool_markup", ""),
        ('{"tool_calls": []}', "tool_markup", ""),
        ("<invoke name='run'>", "tool_markup", ""),
    ],
)
def test_what_is_no_account_is_refused_by_what_it_is(text: str, kind: str, said: str) -> None:
    found = read_answer(text)

    assert isinstance(found, SummaryError)
    assert found.kind == kind
    assert said in found.detail


def test_an_answer_that_was_cut_off_is_none_even_if_it_reads() -> None:
    found = read_answer(LEAST, is_complete=False)

    assert isinstance(found, SummaryError)
    assert found.kind == "truncated"


def test_an_account_about_tool_calls_is_an_account() -> None:
    found = read_answer(LEAST.replace('"g"', '"parse <tool_call> markup"'))

    assert isinstance(found, StructuredSummary)


def test_an_account_is_held_within_bounds() -> None:
    long = StructuredSummary(
        goal="g" * 2_000,
        next_step="n",
        requirements=tuple(f"r{number}" for number in range(60)),
        done=("a", " A ", "", "b" * 900),
        decisions=tuple(Decision(what=f"d{number}") for number in range(20)),
    )

    found = capped(long)

    assert len(found.goal) == 800
    assert found.requirements == long.requirements[-40:]
    assert found.done == ("a", "b" * 399 + "…")
    assert found.decisions == long.decisions[-12:]
    assert capped(found) == found


def test_words_that_differ_in_spaces_and_capitals_are_the_same() -> None:
    assert distinct(["Keep  it", "keep it", "\n", "other"]) == ("Keep  it", "other")
    assert shortened("abc", 3) == "abc"


def test_the_schema_asks_for_what_is_required_and_nothing_else() -> None:
    text = msgspec.json.encode(answer_schema()).decode()

    assert '"required":["goal","next_step","requirements"]' in text
    assert text.count('"additionalProperties":false') == 4
