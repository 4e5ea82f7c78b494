from __future__ import annotations

from jp.provider.chat.messages import plain, short, wire_id


def test_an_id_is_left_as_it_is_unless_it_is_too_long() -> None:
    assert plain("call_abc", 1) == "call_abc"
    assert plain("x" * 40, 1) == "x" * 40
    assert plain("x" * 41, 1) == "x" * 32
    assert plain("x" * 41, 12) == "x" * 32 + "_12"


def test_a_short_id_is_the_same_for_the_same_call_and_another_for_every_other() -> None:
    given = ["call_1", "call_2", "", "\ud800", "é" * 9, "x" * 100]
    found = {short(call_id, number) for call_id in given for number in (1, 2, 3)}

    assert len(found) == 18
    assert all(len(call_id) == 9 and call_id.isascii() and call_id.isalnum() for call_id in found)
    assert short("call_1", 1) == short("call_1", 1) == "4kHuXjJZm"


def test_what_is_short_stays_as_it_is_unless_it_repeats() -> None:
    assert short("aB3456789", 1) == "aB3456789"
    assert short("aB3456789", 2) != "aB3456789"


def test_a_server_says_which_it_takes() -> None:
    assert wire_id("call_1", 1, kind="any") == "call_1"
    assert wire_id("call_1", 1, kind="short") == short("call_1", 1)
