from __future__ import annotations

import pytest

from jp.app.targets import check_name, has_labels, label_text, parse_labels
from jp.errors import UsageError


def test_a_label_has_a_name_and_perhaps_a_value() -> None:
    assert parse_labels(["a=1", "b", "c=x = y", "ü=ö", "a=2"], option="--label") == {
        "a": "2",
        "b": "",
        "c": "x = y",
        "ü": "ö",
    }
    assert parse_labels([], option="--label") == {}


@pytest.mark.parametrize("text", ["", "=1", "a b=1", "@a", "a,b", "a:b", "a=\n", "a\x07", "a=\x1b[31m"])
def test_what_is_no_label_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--label cannot be") as caught:
        parse_labels([text], option="--label")

    assert "K=V" in caught.value.hint


def test_a_name_alone_has_no_value() -> None:
    assert check_name("area", option="--no-label") == "area"
    for text in ("area=x", "", "a\x07"):
        with pytest.raises(UsageError, match="--no-label cannot be"):
            check_name(text, option="--no-label")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [([], True), (["a"], True), (["a=1"], True), (["a=2"], False), (["b="], True), (["b", "a"], True), (["c"], False)],
)
def test_labels_are_looked_for_by_name_or_with_their_value(wanted: list[str], *, found: bool) -> None:
    assert has_labels({"a": "1", "b": ""}, wanted) is found


def test_a_label_is_shown_as_it_is_written() -> None:
    assert [label_text("a", "1"), label_text("b", "")] == ["a=1", "b"]
