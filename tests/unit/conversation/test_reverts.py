from __future__ import annotations

import pytest

from jp.conversation.entries import AnyEntry, Compaction, ConfigDelta, Revert, TurnStart, Unknown
from jp.conversation.turns import undone

C = Compaction(id="c", from_turn=0, to_turn=0)
D = ConfigDelta(id="d", delta={})
T = TurnStart(id="t")


def revert(identity: str, *entries: str) -> Revert:
    return Revert(id=identity, entries=entries)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], set[str]()),
        ([C, D, T], set[str]()),
        ([C, revert("r", "c")], {"c"}),
        ([C, D, T, revert("r", "c", "d", "t")], {"c", "d", "t"}),
        ([C, revert("r", "c"), revert("s", "r")], {"r"}),
        ([C, revert("r", "c"), revert("s", "r"), revert("u", "s")], {"s", "c"}),
        ([C, revert("r", "c"), revert("s", "r"), revert("u", "c")], {"r", "c"}),
        ([C, revert("r", "c"), revert("s", "c"), revert("u", "s")], {"s", "c"}),
        ([revert("r", "c"), C], set[str]()),
        ([C, revert("r", "r", "c")], {"c"}),
        ([C, revert("r", "s"), revert("s", "r", "c")], {"r", "c"}),
        ([C, revert("r", "nothing")], set[str]()),
        ([TurnStart(), revert("r", "")], set[str]()),
        ([C, revert("", "c")], {"c"}),
        ([Unknown(raw=b"{}", id="u"), revert("r", "u")], {"u"}),
    ],
    ids=[
        "nothing",
        "no revert",
        "one",
        "several kinds",
        "restored",
        "undone again through the revert",
        "undone again directly",
        "still undone by another",
        "named before it stands",
        "names itself",
        "names a later one",
        "names nothing",
        "no id",
        "a revert without an id",
        "unknown",
    ],
)
def test_a_revert_undoes_what_stands_before_it_unless_it_is_undone_itself(
    entries: list[AnyEntry], expected: set[str]
) -> None:
    assert undone(entries) == expected
