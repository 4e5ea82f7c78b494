from __future__ import annotations

import pytest

from jp.attachment.base import AttachmentError
from jp.attachment.conversation import CONTENTS, Selection, TurnRange, parse_selection

STANDING = (0, 1, 3, 4, 7)


@pytest.mark.parametrize(
    ("uri", "canonical"),
    [
        ("jp:jp-c17", "jp:jp-c17"),
        ("JP:JP-C17", "jp:jp-c17"),
        ("jp:17", "jp:jp-c17"),
        ("jp://jp-c17", "jp:jp-c17"),
        ("jp://jp-c17/", "jp:jp-c17"),
        ("jp:jp-c17?", "jp:jp-c17"),
        ("jp:jp-c17?select=a", "jp:jp-c17"),
        ("jp:jp-c17?select=a:-1", "jp:jp-c17"),
        ("jp:jp-c17?select=-1", "jp:jp-c17"),
        ("jp:jp-c17?select=assistant:-1..-1", "jp:jp-c17"),
        ("jp:jp-c17?select=u", "jp:jp-c17?select=u:-1"),
        ("jp:jp-c17?select=USER%2Ca,u", "jp:jp-c17?select=a,u:-1"),
        ("jp:jp-c17?select=t,r,u,a:0", "jp:jp-c17?select=*:0"),
        ("jp:jp-c17?select=all:0..", "jp:jp-c17?select=*:.."),
        ("jp:jp-c17?select=*:..-1", "jp:jp-c17?select=*:.."),
        ("jp:jp-c17?select=t,r:..", "jp:jp-c17?select=r,t:.."),
        ("jp:jp-c17?select=2..2", "jp:jp-c17?select=a:2"),
        ("jp:jp-c17?select=02..04", "jp:jp-c17?select=a:2..4"),
        ("jp:jp-c17?select=2..", "jp:jp-c17?select=a:2.."),
        ("jp:jp-c17?select=..2", "jp:jp-c17?select=a:..2"),
        ("jp:jp-c17?select=..0", "jp:jp-c17?select=a:0"),
        ("jp:jp-c17?select=-3..", "jp:jp-c17?select=a:-3"),
        ("jp:jp-c17?select=-3", "jp:jp-c17?select=a:-3"),
        ("jp:jp-c17?select=-3..-3", "jp:jp-c17?select=a:-3..-3"),
        ("jp:jp-c17?select=-3..-2", "jp:jp-c17?select=a:-3..-2"),
        ("jp:jp-c17?select=1..-2", "jp:jp-c17?select=a:1..-2"),
        ("jp:jp-c17?select=-2..5", "jp:jp-c17?select=a:-2..5"),
        ("jp:jp-c17?raw", "jp:jp-c17?raw"),
        ("jp:jp-c17?raw=&select=u:0", "jp:jp-c17?select=u:0&raw"),
        ("jp:jp-c17?raw=all&&select=a", "jp:jp-c17?raw=all"),
    ],
)
def test_two_spellings_of_one_selection_are_one(uri: str, canonical: str) -> None:
    assert parse_selection(uri).uri == canonical
    assert parse_selection(canonical).uri == canonical


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("jp:", "names no conversation"),
        ("jp:x", "names no conversation"),
        ("jp:jp-c", "names no conversation"),
        ("jp:jp-c1/2", "names no conversation"),
        ("jp:jp-c1#2", "names no conversation"),
        (f"jp:{'1' * 19}", "names no conversation"),
        ("jp:jp-c1?x=1", "has 'x=1', which is not supported"),
        ("jp:jp-c1?select", "has 'select', which is not supported"),
        ("jp:jp-c1?raw=yes", "has 'raw=yes', which is not supported"),
        ("jp:jp-c1?raw&raw", "has 'raw' twice"),
        ("jp:jp-c1?select=", "selects '', which no turn has"),
        ("jp:jp-c1?select=u,,a", "selects '', which no turn has"),
        ("jp:jp-c1?select=x:0", "selects 'x', which no turn has"),
        ("jp:jp-c1?select=:0", "selects '', which no turn has"),
        ("jp:jp-c1?select=a:", "has '' for its turns"),
        ("jp:jp-c1?select=a:b", "has 'b' for its turns"),
        ("jp:jp-c1?select=1.2", "has '1.2' for its turns"),
        ("jp:jp-c1?select=1..2..3", "has '1..2..3' for its turns"),
        ("jp:jp-c1?select=3..2", "ends before it begins: '3..2'"),
        ("jp:jp-c1?select=-2..-3", "ends before it begins: '-2..-3'"),
    ],
)
def test_what_is_malformed_is_said(uri: str, words: str) -> None:
    with pytest.raises(AttachmentError) as raised:
        parse_selection(uri)

    assert words in raised.value.message
    assert raised.value.message.startswith(repr(uri))
    assert raised.value.hint


def test_a_selection_has_its_parts() -> None:
    assert parse_selection("jp:jp-c17?select=*:1..-2&raw=all") == Selection(
        digits="17", contents=CONTENTS, turns=TurnRange(1, -2), raw="all"
    )


@pytest.mark.parametrize(
    ("select", "turns"),
    [
        ("-1", (7,)),
        ("-2", (4, 7)),
        ("-9", STANDING),
        ("0", (0,)),
        ("2", ()),
        ("9", ()),
        ("..", STANDING),
        ("1..3", (1, 3)),
        ("1..99", (1, 3, 4, 7)),
        ("-3..-2", (3, 4)),
        ("-2..-2", (4,)),
        ("..-5", (0,)),
        ("..-6", ()),
        ("5..-1", (7,)),
        ("-1..3", ()),
    ],
)
def test_turns_are_counted_from_0_and_from_the_end_over_those_that_stand(select: str, turns: tuple[int, ...]) -> None:
    assert parse_selection(f"jp:1?select={select}").turns.of(STANDING) == turns


def test_where_no_turn_stands_none_is_selected() -> None:
    assert TurnRange(-1, -1).of(()) == ()
