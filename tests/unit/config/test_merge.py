from __future__ import annotations

import msgspec
import pytest

from jp.config.layers import (
    AddItems,
    Change,
    ChangeItem,
    ListChange,
    MapChange,
    Put,
    ReplaceItems,
    Separator,
    TextChange,
    TextStep,
    Unset,
    applied,
    merge,
    merge_all,
)
from jp.errors import ConfigurationError


def added(*items: object, front: bool = False, dedup: bool | None = None) -> ListChange:
    return ListChange(steps=(AddItems(items, front=front),), dedup=dedup)


def replaced(*items: object) -> ListChange:
    return ListChange(steps=(ReplaceItems(items),))


def appended(text: str, separator: Separator = "paragraph") -> TextChange:
    return TextChange((TextStep(text=text, strategy="append", separator=separator),))


def test_the_more_specific_value_replaces() -> None:
    assert merge(Put(1), Put(2)) == Put(2)
    assert merge(Put(1), Unset()) == Unset()


def test_tables_are_merged_key_by_key() -> None:
    lower = MapChange({"a": Put(1), "b": MapChange({"c": Put(2)})})
    upper = MapChange({"b": MapChange({"d": Put(3)}), "e": Put(4)})

    assert applied(merge(lower, upper)) == {"a": 1, "b": {"c": 2, "d": 3}, "e": 4}


def test_a_replacing_table_has_no_other_entries() -> None:
    lower = MapChange({"a": Put(1)})

    assert applied(merge(lower, MapChange({"b": Put(2)}, replace=True))) == {"b": 2}
    assert applied(merge(MapChange({"a": Put(1)}, replace=True), MapChange({"b": Put(2)})), {"c": 3}) == {
        "a": 1,
        "b": 2,
    }


@pytest.mark.parametrize("lower", [Put(1), Unset()])
def test_a_table_over_what_is_none_stands_alone(lower: Change) -> None:
    merged = merge(MapChange({"a": MapChange({"gone": Put(1)})}), MapChange({"a": lower}))

    assert applied(merge(merged, MapChange({"a": MapChange({"b": Put(2)})}))) == {"a": {"b": 2}}
    assert applied(merge(lower, MapChange({"b": Put(2)})), {"gone": 1}) == {"b": 2}
    assert applied(MapChange({"b": Put(2)}), 1) == {"b": 2}


def test_an_entry_that_is_unset_is_gone() -> None:
    lower = MapChange({"a": Put(1), "b": Put(2)})

    assert applied(merge(lower, MapChange({"a": Unset()}))) == {"b": 2}
    assert applied(MapChange({"a": Unset()})) == {}


def test_lists_add_up_in_the_order_of_the_layers() -> None:
    merged = merge_all(MapChange({"l": change}) for change in (added(1), added(2), added(0, front=True)))

    assert applied(merged) == {"l": [0, 1, 2]}


def test_a_replacing_list_forgets_what_is_below() -> None:
    merged = merge(merge(added(1), replaced(2)), added(3))

    assert merged == ListChange(steps=(ReplaceItems((2,)), AddItems((3,))))
    assert applied(merged, [0]) == [2, 3]
    assert applied(added(1), [0]) == [0, 1]


def test_a_list_over_what_was_unset_stands_alone() -> None:
    assert applied(merge(Unset(), added(1)), [0]) == [1]


def test_an_element_is_changed_where_it_stands() -> None:
    changes = (
        replaced({"title": "a", "items": ["x"]}, {"title": "b"}),
        ListChange(steps=(ChangeItem(0, MapChange({"items": added("y")})),)),
        ListChange(steps=(ChangeItem(1, Unset()),)),
    )

    assert applied(merge(merge(changes[0], changes[1]), changes[2])) == [{"title": "a", "items": ["x", "y"]}]


def test_an_element_that_does_not_exist_cannot_be_changed() -> None:
    change = MapChange({"a": MapChange({"l": merge(replaced(1), ListChange(steps=(ChangeItem(1, Put(2)),)))})})

    with pytest.raises(ConfigurationError, match=r"a\.l\.1 does not exist: the list has 1 elements"):
        applied(change)


@pytest.mark.parametrize(
    ("default", "layers", "expected"),
    [
        (False, [None, None], [1, 1, 2]),
        (True, [None, None], [1, 2]),
        (False, [True, None], [1, 2]),
        (True, [False, None], [1, 1, 2]),
        (False, [True, False], [1, 1, 2]),
        (True, [False, True], [1, 2]),
    ],
)
def test_the_last_layer_that_speaks_of_duplicates_decides(
    *, default: bool, layers: list[bool | None], expected: list[int]
) -> None:
    first = ListChange(steps=(AddItems((1, 1)),), dedup=layers[0], dedup_default=default)
    second = ListChange(steps=(AddItems((2,)),), dedup=layers[1], dedup_default=default)

    assert applied(merge(first, second)) == expected


def test_deduplication_keeps_the_first_and_takes_tables_too() -> None:
    assert applied(merge(added("a", "b"), added("b", "c", front=True, dedup=True))) == ["b", "c", "a"]
    assert applied(added({"a": 1}, {"a": 1}, {"a": 2}, dedup=True)) == [{"a": 1}, {"a": 2}]


def test_an_index_counts_elements_as_they_are_shown() -> None:
    lower = added("a", "a", "b", dedup=True)

    assert applied(merge(lower, ListChange(steps=(ChangeItem(1, Put("c")),)))) == ["a", "c"]


@pytest.mark.parametrize(
    ("separator", "expected"), [("none", "ab"), ("space", "a b"), ("line", "a\nb"), ("paragraph", "a\n\nb")]
)
def test_a_text_is_added_with_its_separator(separator: Separator, expected: str) -> None:
    assert applied(merge(TextChange((TextStep(text="a"),)), appended("b", separator))) == expected


def test_a_text_is_put_in_front() -> None:
    step = TextStep(text="b", strategy="prepend", separator="line")

    assert applied(TextChange((step,)), "a") == "b\na"


def test_a_text_that_is_added_to_nothing_has_no_separator() -> None:
    assert applied(appended("a")) == "a"
    assert applied(merge(Unset(), appended("a")), "below") == "a"


def test_a_replacing_text_forgets_what_is_below() -> None:
    merged = merge(merge(appended("a"), TextChange((TextStep(text="b"),))), appended("c", "line"))

    assert merged == TextChange((TextStep(text="b"), TextStep(text="c", strategy="append", separator="line")))
    assert applied(merged) == "b\nc"


def discarded(step: AddItems | ReplaceItems) -> ListChange:
    return ListChange(steps=(msgspec.structs.replace(step, discard_when_merged=True),))


def test_what_is_discarded_when_merged_holds_until_a_later_layer_speaks() -> None:
    lower, upper = added(1), added(3)

    for step, before in ((ReplaceItems((2,)), [2]), (AddItems((2,)), [1, 2]), (AddItems((2,), front=True), [2, 1])):
        middle = discarded(step)
        assert applied(merge(lower, middle)) == before
        assert applied(merge(merge(lower, middle), upper)) == applied(merge(lower, merge(middle, upper))) == [1, 3]
        assert merge(middle, upper) == upper
        assert merge(middle, Unset()) == Unset()


def test_a_text_that_is_discarded_when_merged_lets_what_is_below_show_again() -> None:
    middle = TextChange((TextStep(text="b", discard_when_merged=True),))

    assert applied(merge(appended("a"), middle)) == "b"
    assert applied(merge(merge(appended("a"), middle), appended("c"))) == "a\n\nc"
    assert applied(merge(middle, middle)) == "b"


def test_nothing_is_left_of_a_value_that_is_unset() -> None:
    assert applied(Unset(), 1) is msgspec.UNSET
