from __future__ import annotations

import pytest

from jp.config.positions import place_of, positions
from jp.config.schema import parse_key
from jp.config.toml import load_toml

FILE = r'''user.name = 'x'
# style = 1
  [assistant.model] # who
id = "a" # which
parameters = { top_k = 1, other.'a b' = [ 1, { x = 2 } ] }

[[assistant.instructions]]
title = """
a\""" ]"""""
[[assistant.instructions]]
items = [
  "a", # one
  # two
  "b"
  # end
]
[assistant.instructions.x]
y = 1979-05-27 07:32:00
[conversation]
attachments = { value = ["file:a", "file:b"], strategy = "replace" }
["odd \" name"]
'''


@pytest.mark.parametrize(
    ("key", "key_place", "value_place"),
    [
        ("user.name", (1, 1), (1, 13)),
        ("user", (1, 1), (1, 13)),
        ("user.other", (1, 1), (1, 13)),
        ("style", None, None),
        ("assistant.model", (3, 3), (3, 3)),
        ("assistant.model.id", (4, 1), (4, 6)),
        ("assistant.model.parameters.top_k", (5, 16), (5, 24)),
        ("assistant.modle", (3, 3), (3, 3)),
        ("assistant.model.parameters.other.'a b'.0", (5, 43), (5, 43)),
        ("assistant.model.parameters.other.'a b'.1.x", (5, 48), (5, 52)),
        ("assistant.instructions", (7, 1), (7, 1)),
        ("assistant.instructions.0.title", (8, 1), (8, 9)),
        ("assistant.instructions.1.items", (11, 1), (11, 9)),
        ("assistant.instructions.1.items.1", (14, 3), (14, 3)),
        ("assistant.instructions.1.x.y", (18, 1), (18, 5)),
        ("conversation.attachments.1", (20, 36), (20, 36)),
        ("conversation.attachments.7", (20, 1), (20, 15)),
        ("'odd \" name'", (21, 1), (21, 1)),
    ],
)
def test_keys_and_values_are_found(
    key: str, key_place: tuple[int, int] | None, value_place: tuple[int, int] | None
) -> None:
    path = parse_key(key)
    found = place_of(FILE, path), place_of(FILE, path, of_value=True)

    assert [place and (place.line, place.column) for place in found] == [key_place, value_place]


@pytest.mark.parametrize(
    "bad",
    ["= 1", "a", "a = ", "a = [1", "a = [", "a = {", "a = {b", "[a", "[a]]", "[[a]", 'a = "', '"\\q" = 1', "a = 1 2"],
)
def test_what_stands_before_a_line_that_makes_no_sense_is_found(bad: str) -> None:
    found = positions(f"x = 1\n{bad}\ny = 2")

    assert found["x",] == (0, 4)
    assert ("y",) not in found


def test_a_text_that_is_nested_without_end_is_given_up() -> None:
    assert next(iter(positions(f"x = 1\na = {'[' * 10_000}"))) == ("x",)


def test_lines_end_as_on_any_system() -> None:
    assert str(place_of("# a\r\n[['x'.y]]\r\nk = [\r\n 1,\r\n]", ("x", "y", "0", "k", "0"))) == "line 4, column 2"


def test_nothing_is_looked_for_in_a_text_that_takes_long() -> None:
    assert place_of("a = 1\n" + "#" * 100_000, ("a",)) is None


@pytest.mark.parametrize("key", ["a", '"a.b"', "'a'", "a "])
def test_a_long_key_is_refused_before_it_is_read(key: str) -> None:
    with pytest.raises(RecursionError):
        load_toml(f"[{'.'.join([key] * 100_000)}]\nx = 1")


@pytest.mark.parametrize("text", ["x = {a}", "x = [{a}]"])
def test_what_is_nested_too_deeply_is_refused(text: str) -> None:
    assert load_toml(text.format(a="[" * 100 + "]" * 100))
    with pytest.raises(RecursionError):
        load_toml(text.format(a="[" * 220 + "]" * 220))


def test_a_text_may_have_any_dots() -> None:
    text = "." * 5_000 + " and so on. " * 300
    assert load_toml(f'x = "{text}"') == {"x": text}
