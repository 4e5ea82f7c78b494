from __future__ import annotations

from jp.app.targets import Candidate
from jp.cli.terminal.picker import (
    PickerState,
    append_filter,
    clear_filter,
    delete_character,
    delete_word,
    first_line,
    move_selection,
    open_list,
)
from jp.conversation.ids import ConversationId


def candidates(*titles: str) -> list[Candidate]:
    return [
        Candidate(id=ConversationId.at(number), title=title, labels={"area": f"a{number}"})
        for number, title in enumerate(titles, start=1)
    ]


def titles(state: PickerState) -> list[str]:
    return [state.candidates[index].title for index in state.shown]


def chosen(state: PickerState) -> str:
    return "" if state.choice is None else state.choice.title


FRUIT = open_list(candidates("Apple pie", "Banana", "Apple juice", "Cherry pie"))


def test_it_opens_with_all_and_the_first_selected() -> None:
    assert titles(FRUIT) == ["Apple pie", "Banana", "Apple juice", "Cherry pie"]
    assert chosen(FRUIT) == "Apple pie"
    assert chosen(open_list([])) == ""


def test_every_word_of_the_filter_has_to_be_in_title_id_or_labels() -> None:
    assert titles(append_filter(FRUIT, "PIE")) == ["Apple pie", "Cherry pie"]
    assert titles(append_filter(FRUIT, "pie app")) == ["Apple pie"]
    assert titles(append_filter(FRUIT, "jp-c2")) == ["Banana"]
    assert titles(append_filter(FRUIT, "area=a3")) == ["Apple juice"]
    assert titles(open_list(FRUIT.candidates, text="banana")) == ["Banana"]
    assert titles(append_filter(FRUIT, "zzz")) == []


def test_what_matches_by_its_title_comes_before_what_matches_by_its_id() -> None:
    state = append_filter(open_list(candidates("one", "two", "page 1")), "1")

    assert titles(state) == ["page 1", "one"]
    assert chosen(state) == "page 1"


def test_typing_narrows_and_erasing_widens() -> None:
    narrowed = append_filter(append_filter(FRUIT, "pie"), " c")

    assert titles(narrowed) == ["Cherry pie"]
    assert titles(delete_character(narrowed)) == ["Apple pie", "Cherry pie"]
    assert (delete_word(narrowed).filter, titles(delete_word(narrowed))) == ("pie ", ["Apple pie", "Cherry pie"])
    assert delete_word(delete_word(narrowed)).filter == ""
    assert titles(clear_filter(narrowed)) == titles(FRUIT)
    assert delete_character(FRUIT) == FRUIT


def test_what_is_selected_stays_selected_while_it_matches() -> None:
    selected = move_selection(FRUIT, 3)

    assert chosen(append_filter(selected, "pie")) == "Cherry pie"
    assert chosen(delete_character(append_filter(selected, "pie"))) == "Cherry pie"
    assert chosen(append_filter(selected, "apple")) == "Apple pie"
    assert chosen(append_filter(append_filter(selected, "zzz"), "z")) == ""


def test_moving_stops_at_the_ends() -> None:
    assert chosen(move_selection(FRUIT, -1)) == "Apple pie"
    assert chosen(move_selection(FRUIT, 1)) == "Banana"
    assert chosen(move_selection(FRUIT, 99)) == "Cherry pie"
    assert move_selection(append_filter(FRUIT, "zzz"), 1).selected == 0


def test_controls_and_line_breaks_of_a_paste_are_spaces() -> None:
    assert append_filter(FRUIT, "pie\napple\x1b").filter == "pie apple "


def test_the_window_follows_what_is_selected() -> None:
    state = open_list(candidates(*map(str, range(10))))

    assert first_line(state, 4, top=0) == 0
    assert first_line(move_selection(state, 3), 4, top=0) == 0
    assert first_line(move_selection(state, 4), 4, top=0) == 1
    assert first_line(move_selection(state, 4), 4, top=3) == 3
    assert first_line(move_selection(state, 2), 4, top=3) == 2
    assert first_line(move_selection(state, 9), 4, top=0) == 6
    assert first_line(move_selection(state, 9), 20, top=5) == 0
