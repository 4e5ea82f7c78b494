from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import pytest

from context import availability as points
from context.availability import Measured, Way, measured, once
from context.gold import Fact, gold_of
from context.questions import questions_of
from context.sessions import Session, read_session
from jp.context.types import Transcript

RESULT = "Process exited with code 2\ncollected nine\nerror: no column total"


def session() -> Transcript:
    call = {"id": "t", "name": "bash", "arguments": {"command": "pytest tests"}}
    rows: list[dict[str, object]] = [
        {"role": "user", "text": "Please mend the parser of dates. It fails for leap years only!"},
        {"role": "assistant", "text": "Running the suite of the calendar first.", "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": "t",
            "text": "Process exited with code 2\ncollected nine\nerror: no column total",
        },
        {"role": "assistant", "text": "See #412 about the missing migration."},
    ]
    return read_session(msgspec.json.Encoder().encode_lines(rows))


SESSION = session()
QUESTIONS = questions_of(SESSION, gold_of(SESSION))


def test_a_query_has_the_class_of_a_fact_and_words_around_it() -> None:
    assert QUESTIONS[Fact("command", "pytest tests", 2)] == (
        "command exit calendar code collected column error exited first nine process running suite total"
    )
    assert QUESTIONS[Fact("identifier", "#412")] == "commit issue link about migration missing see"


def test_a_query_never_has_a_word_of_what_it_looks_for() -> None:
    assert len(QUESTIONS) == 5
    for fact, question in QUESTIONS.items():
        words = set(fact.text.casefold().split())
        assert not words & set(" ".join(question.casefold().split()[2:]).split())


class Found:
    """A conversation in whose view nothing is left, and whose search finds so many excerpts before the right one."""

    def __init__(self, before: int, excerpt: str) -> None:
        self.excerpts = [*["nothing"] * before, excerpt]

    def grow(self, part: Transcript) -> None:
        pass

    def compact(self, target: int) -> None:
        pass

    def view(self) -> Transcript:
        return ()

    def recallable(self) -> Iterator[str]:
        return iter(())

    def search(self, queries: Sequence[str]) -> list[Sequence[str]]:
        return [self.excerpts] * len(queries)


@pytest.mark.parametrize(
    ("before", "excerpt", "is_found"),
    [(4, "the #412 here", True), (5, "the #412 here", False), (0, f"{'x' * 9_000} #412", False), (0, "#4", False)],
    ids=["in the fifth", "in the sixth", "behind 2,000 tokens", "not at all"],
)
def test_five_excerpts_of_two_thousand_tokens_count(
    before: int, excerpt: str, *, is_found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    points.tokenizer.cache_clear()
    [whole] = measured([Session("s", SESSION)])
    fact = Fact("identifier", "#412")
    one = Measured(whole.session, (fact,), whole.questions)

    found = once(Way("found", lambda: Found(before, excerpt)), one, budget=10, chain=1)

    assert found.searched == (frozenset([fact]) if is_found else frozenset())
    assert not found.in_view | found.recalled
