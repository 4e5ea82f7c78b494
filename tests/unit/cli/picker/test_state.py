from __future__ import annotations

from jp.app.targets import Candidate
from jp.cli.terminal.picker import State, cleared, erased, first_line, moved, opened, typed, word_erased
from jp.conversation.ids import ConversationId


def candidates(*titles: str) -> list[Candidate]:
    return [
        Candidate(id=ConversationId.at(number), title=title, labels={"area": f"a{number}"})
        for number, title in enumerate(titles, start=1)
    ]


def titles(state: State) -> list[str]:
    return [state.candidates[index].title for index in state.shown]


def chosen(state: State) -> str:
    return "" if state.choice is None else state.choice.title


FRUIT = opened(candidates("Apple pie", "Banana", "Apple juice", "Cherry pie"))


def test_it_opens_with_all_and_the_first_selected() -> None:
    assert titles(FRUIT) == ["Apple pie", "Banana", "Apple juice", "Cherry pie"]
    assert chosen(FRUIT) == "Apple pie"
    assert chosen(opened([])) == ""


def test_every_word_of_the_filter_has_to_be_in_title_id_or_labels() -> None:
    assert titles(typed(FRUIT, "PIE")) == ["Apple pie", "Cherry pie"]
    assert titles(typed(FRUIT, "pie app")) == ["Apple pie"]
    assert titles(typed(FRUIT, "jp-c2")) == ["Banana"]
    assert titles(typed(FRUIT, "area=a3")) == ["Apple juice"]
    assert titles(opened(FRUIT.candidates, text="banana")) == ["Banana"]
    assert titles(typed(FRUIT, "zzz")) == []


def test_what_matches_by_its_title_comes_before_what_matches_by_its_id() -> None:
    state = typed(opened(candidates("one", "two", "page 1")), "1")

    assert titles(state) == ["page 1", "one"]
    assert chosen(state) == "page 1"


def test_typing_narrows_and_erasing_widens() -> None:
    narrowed = typed(typed(FRUIT, "pie"), " c")

    assert titles(narrowed) == ["Cherry pie"]
    assert titles(erased(narrowed)) == ["Apple pie", "Cherry pie"]
    assert (word_erased(narrowed).filter, titles(word_erased(narrowed))) == ("pie ", ["Apple pie", "Cherry pie"])
    assert word_erased(word_erased(narrowed)).filter == ""
    assert titles(cleared(narrowed)) == titles(FRUIT)
    assert erased(FRUIT) == FRUIT


def test_what_is_selected_stays_selected_while_it_matches() -> None:
    selected = moved(FRUIT, 3)

    assert chosen(typed(selected, "pie")) == "Cherry pie"
    assert chosen(erased(typed(selected, "pie"))) == "Cherry pie"
    assert chosen(typed(selected, "apple")) == "Apple pie"
    assert chosen(typed(typed(selected, "zzz"), "z")) == ""


def test_moving_stops_at_the_ends() -> None:
    assert chosen(moved(FRUIT, -1)) == "Apple pie"
    assert chosen(moved(FRUIT, 1)) == "Banana"
    assert chosen(moved(FRUIT, 99)) == "Cherry pie"
    assert moved(typed(FRUIT, "zzz"), 1).selected == 0


def test_controls_and_line_breaks_of_a_paste_are_spaces() -> None:
    assert typed(FRUIT, "pie\napple\x1b").filter == "pie apple "


def test_the_window_follows_what_is_selected() -> None:
    state = opened(candidates(*map(str, range(10))))

    assert first_line(state, 4, top=0) == 0
    assert first_line(moved(state, 3), 4, top=0) == 0
    assert first_line(moved(state, 4), 4, top=0) == 1
    assert first_line(moved(state, 4), 4, top=3) == 3
    assert first_line(moved(state, 2), 4, top=3) == 2
    assert first_line(moved(state, 9), 4, top=0) == 6
    assert first_line(moved(state, 9), 20, top=5) == 0
