from __future__ import annotations

from artifacts import MemoryArtifacts
from jp.context.markers import Cutter, checksum_of
from jp.context.summary_source import Spoken, fold_spoken, spoken_in
from jp.context.types import Answered, Message, Meta, StoredBlock, TextBlock
from summaries import answer, cutter, user

PICTURE = StoredBlock(sha256="ab" * 32, size=9, mime_type="image/png", uri="file:a.png")


def test_only_what_the_person_said_and_attached_counts() -> None:
    rows = (
        user("look"),
        answer("yes"),
        Message(role="user", content="nudge", meta=Meta(kind="synthetic")),
        Message(role="user", content=(TextBlock(text="at this"), PICTURE, StoredBlock(sha256="cd" * 32, size=1))),
        user("x" * 5_000),
    )

    first, second, third = spoken_in(rows, cutter())

    assert first == "look"
    assert second == (
        "at this\n\n[attached: image/png file:a.png, 9 bytes, recall abababab]"
        "\n\n[attached: content, 1 bytes, recall cdcdcdcd]"
    )
    assert len(third) <= 4_000
    assert "[[cut:" in third


def test_an_attached_text_is_named_and_not_taken_for_words_of_the_person() -> None:
    artifacts = MemoryArtifacts()
    content = (TextBlock(text="print(1) # \ud800", uri="file:a.py"), TextBlock(text=""), TextBlock(text="why?"))

    (said,) = spoken_in((Message(role="user", content=content),), Cutter("5eed5eed", artifacts))

    handle = artifacts.handle(checksum_of("print(1) # \ud800"))
    assert said == f"why?\n\n[attached: text file:a.py, 14 bytes, recall {handle}]"
    assert artifacts.recall(handle) == "print(1) # \ud800"


def test_answers_to_tools_follow_the_request_that_is_worked_on() -> None:
    answered = Meta(said=(Answered(question="Which?", answer="this"), Answered(question="Sure?", answer="yes")))
    asked = Message(role="tool", call_id="c", content="thanks", meta=answered)

    assert spoken_in((user("choose"), asked, user("go on")), cutter()) == (
        "choose\n\n(asked: Which?) this\n(asked: Sure?) yes",
        "go on",
    )
    assert spoken_in((asked,), cutter()) == ("(asked: Which?) this\n(asked: Sure?) yes",)


def test_the_first_and_the_active_stay_and_the_oldest_of_the_others_go() -> None:
    said = ("first", "a" * 10, "b" * 10, "c" * 10, "active")

    found = fold_spoken(said, begins=True, is_active=True, limit=5 + 6 + 20)

    assert found.spoken == Spoken(first="first", later=("b" * 10, "c" * 10), active="active")
    assert found.evicted == ("a" * 10,)
    assert found.spoken.all() == ("first", "b" * 10, "c" * 10, "active")
    assert fold_spoken(said, begins=False, is_active=False).spoken == Spoken(later=said)
    assert fold_spoken(("one",), begins=True, is_active=True).spoken == Spoken(active="one")
    assert fold_spoken((), begins=True, is_active=True).spoken == Spoken()


def test_one_that_does_not_fit_is_not_omitted_in_favour_of_older_ones() -> None:
    found = fold_spoken(("old", "x" * 50, "new"), begins=False, is_active=False, limit=20)

    assert found.spoken.later == ("new",)
    assert found.evicted == ("old", "x" * 50)
