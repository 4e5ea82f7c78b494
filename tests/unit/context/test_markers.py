from __future__ import annotations

import json

import pytest

from artifacts import MemoryArtifacts
from jp.compaction.fact_lines import KnownArtifacts
from jp.context.markers import Cutter, bounded, contains_marker, marked_handles, marker, shortest_limit

NONCE = "5eed5eed"


def cutter() -> Cutter:
    return Cutter(NONCE, MemoryArtifacts())


def test_a_text_that_fits_is_itself() -> None:
    text = "a" * 100

    assert bounded(text, 100, cutter()) is text


def test_a_text_that_does_not_fit_has_exactly_its_limit_with_a_marker_between_beginning_and_end() -> None:
    cut = cutter()
    text = "".join(map(str, range(400)))

    shorter = bounded(text, 100, cut)

    assert len(shorter) == 100
    before, _, rest = shorter.partition("[[cut:5eed5eed:")
    handle, _, rest = rest.partition(":+")
    omitted, _, after = rest.partition("]]")
    assert text.startswith(before)
    assert text.endswith(after)
    assert len(before) + int(omitted) + len(after) == len(text)
    assert cut.artifacts.recall(handle) == text
    assert marked_handles(shorter, NONCE) == (handle,)


@pytest.mark.parametrize("limit", [-5, 0, 10])
def test_a_limit_below_what_a_marker_takes_is_that(limit: int) -> None:
    assert len(bounded("a" * 200, limit, cutter())) == shortest_limit(NONCE)


def test_where_no_marker_fits_nothing_is_cut() -> None:
    text = "a" * (shortest_limit(NONCE) + 1)

    assert bounded(text, 0, Cutter(NONCE, KnownArtifacts({}))) is text


@pytest.mark.parametrize("length", [140, 141, 142, 1_000, 1_063, 1_064, 1_065, 1_066, 10_063, 10_065])
def test_the_count_in_the_marker_is_right_where_its_own_length_changes_it(length: int) -> None:
    found = bounded("a" * length, 100, cutter())

    assert len(found) == 100
    assert f":+{length - found.count('a', 0, found.index('[')) - len(found.partition(']]')[2])}]]" in found


@pytest.mark.parametrize("nonce", ["", "abc", 'a"bcd', "nönce", "a b c", "x" * 65])
def test_a_nonce_that_could_be_escaped_or_stand_in_a_text_by_chance_is_refused(nonce: str) -> None:
    with pytest.raises(ValueError, match="a nonce is"):
        Cutter(nonce, MemoryArtifacts())


MARKED = marker(NONCE, "0123abcd", 1834)


@pytest.mark.parametrize(
    ("arguments", "handles"),
    [
        (json.dumps({"content": f"x = 1\n{MARKED}"}), ("0123abcd",)),
        (json.dumps({MARKED: 1}), ("0123abcd",)),
        (json.dumps({"inner": json.dumps({"content": MARKED})}), ("0123abcd",)),
        (json.dumps({"a": MARKED, "b": MARKED, "c": marker(NONCE, "f" * 9, 1)}), ("0123abcd", "f" * 9)),
        (json.dumps({"content": MARKED}).replace("5eed", "\\u0035\\u0065ed"), ("0123abcd",)),
        (f'{{"broken": "{MARKED}', ("0123abcd",)),
        ('{"content": "[[cut:5eed5eed: and so on"}', ()),
    ],
    ids=["a value", "a name", "JSON in JSON", "several", "spelled by number", "not JSON", "mangled"],
)
def test_a_call_that_repeats_a_marker_is_found_before_it_writes_it_to_a_file(
    arguments: str, handles: tuple[str, ...]
) -> None:
    assert contains_marker(arguments, NONCE)
    assert marked_handles(arguments, NONCE) == handles


@pytest.mark.parametrize(
    "arguments", ["{}", '{"content": "[[cut:0ther0ne:0123abcd:+1834]]"}', '{"content": "\\u00fc ... [truncated]"}']
)
def test_what_merely_looks_like_a_marker_is_none(arguments: str) -> None:
    assert not contains_marker(arguments, NONCE)
    assert marked_handles(arguments, NONCE) == ()
