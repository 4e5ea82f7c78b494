from __future__ import annotations

import pytest

from jp.context.live_zone import Edit, Zone, ZoneError, frozen_digest, prove_frozen, splice, zones_of

PAYLOAD = '{"system":"é","messages":["old","new"]}'.encode()
FROZEN = PAYLOAD.index(b'"new"')
ZONES = zones_of(PAYLOAD, [(0, FROZEN)])


def test_frozen_byte_ranges_are_left_for_adapters_to_splice_byte_identically() -> None:
    start = PAYLOAD.index(b"new")
    spliced = splice(PAYLOAD, ZONES, [Edit(start, start + 3, "ünd neu".encode())])

    assert spliced.payload == '{"system":"é","messages":["old","ünd neu"]}'.encode()
    assert spliced.payload[:FROZEN] == PAYLOAD[:FROZEN]
    assert spliced.zones == zones_of(spliced.payload, [(0, FROZEN)])
    assert spliced.frozen_digest == frozen_digest(PAYLOAD, ZONES) == frozen_digest(spliced.payload, spliced.zones)


def test_an_edit_that_changes_nothing_gives_the_same_object() -> None:
    start = PAYLOAD.index(b"new")

    assert splice(PAYLOAD, ZONES, []).payload is PAYLOAD
    assert splice(PAYLOAD, ZONES, [Edit(start, start + 3, b"new")]).payload is PAYLOAD


def test_edits_insert_remove_and_stand_at_the_edges_of_a_range() -> None:
    zones = zones_of(b"aabbcc", [(2, 4)])

    assert splice(
        b"aabbcc", zones, [Edit(0, 0, b"x"), Edit(1, 2, b""), Edit(4, 4, b"y"), Edit(6, 6, b"z")]
    ).payload == (b"xabbyccz")
    gone = splice(b"aabbcc", zones, [Edit(0, 2, b""), Edit(4, 6, b"")])
    assert (gone.payload, gone.zones) == (b"bb", (Zone(0, 2, is_frozen=True),))


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        ([Edit(0, 1, b"x")], "0 to 1 is not inside"),
        ([Edit(FROZEN - 1, FROZEN + 1, b"x")], "not inside"),
        ([Edit(FROZEN, FROZEN + 3, b"x"), Edit(FROZEN + 2, FROZEN + 4, b"y")], "not inside"),
        ([Edit(FROZEN + 3, FROZEN + 4, b"x"), Edit(FROZEN, FROZEN + 1, b"y")], "not inside"),
        ([Edit(FROZEN + 2, FROZEN + 1, b"x")], "not inside"),
        ([Edit(len(PAYLOAD), len(PAYLOAD) + 1, b"")], "not inside"),
        ([Edit(FROZEN, FROZEN + 1, b"\xff")], "not UTF-8"),
        ([Edit(FROZEN, FROZEN + 1, "é".encode()[:1])], "not UTF-8"),
    ],
)
def test_an_edit_has_to_lie_in_what_may_change(edits: list[Edit], reason: str) -> None:
    with pytest.raises(ZoneError, match=reason):
        splice(PAYLOAD, ZONES, edits)


@pytest.mark.parametrize("edit", [Edit(1, 2, b""), Edit(0, 1, b"")])
def test_an_edit_does_not_cut_a_character(edit: Edit) -> None:
    with pytest.raises(ZoneError, match="cuts a character"):
        splice("éa".encode(), zones_of("éa".encode(), []), [edit])


@pytest.mark.parametrize(
    ("frozen", "reason"),
    [
        ([(0, 0)], "does not follow"),
        ([(3, 2)], "does not follow"),
        ([(0, 4), (3, 6)], "does not follow"),
        ([(4, 6), (0, 2)], "does not follow"),
        ([(0, 99)], "ends behind the 6 bytes"),
        ([(0, 2)], "inside of a character"),
        ([(2, 6)], "inside of a character"),
    ],
)
def test_ranges_have_to_be_of_this_request(frozen: list[tuple[int, int]], reason: str) -> None:
    with pytest.raises(ZoneError, match=reason):
        zones_of("aébcd".encode(), frozen)


def test_ranges_cover_every_byte() -> None:
    with pytest.raises(ZoneError, match="end at 2, the request at 3"):
        splice(b"abc", [Zone(0, 2, is_frozen=False)], [])
    with pytest.raises(ZoneError, match="does not follow on 0"):
        splice(b"abc", [Zone(1, 3, is_frozen=False)], [])
    assert splice(b"", (), []).payload == b""


def test_other_frozen_bytes_than_those_that_were_sent_are_an_error() -> None:
    sent = frozen_digest(PAYLOAD, ZONES)
    changed = PAYLOAD.replace(b"old", b"bad")

    assert splice(PAYLOAD, ZONES, [], expected=sent).frozen_digest == sent
    with pytest.raises(ZoneError, match="not those that were sent"):
        splice(changed, ZONES, [], expected=sent)
    with pytest.raises(ZoneError, match="not those that were sent"):
        prove_frozen(changed, ZONES, sent)


def test_the_digest_tells_where_frozen_ranges_end() -> None:
    one, other = zones_of(b"abcd", [(0, 1), (1, 3)]), zones_of(b"abcd", [(0, 2), (2, 3)])

    assert frozen_digest(b"abcd", one) != frozen_digest(b"abcd", other)
