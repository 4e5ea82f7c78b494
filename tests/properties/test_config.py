from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, TypeVar, assert_never, cast

import msgspec
from hypothesis import given, reject
from hypothesis import strategies as st

from choices import Choices, accepted
from jp.config.assignment import node_at, read_partial
from jp.config.explain import Explanation, as_toml, explain
from jp.config.layers import (
    DEFAULT,
    Change,
    Layer,
    ListChange,
    MapChange,
    Origin,
    Resolved,
    TextChange,
    Unset,
    applied,
    as_data,
    contributions,
    merge,
    merge_all,
    resolve,
)
from jp.config.positions import place_of, positions
from jp.config.schema import APP, Free, Items, KeyPath, MergedText, Names, Node, Scalar, Table, key_text, parse_key
from jp.config.sources import KEPT, conversation_layers, delta, frozen
from jp.config.toml import UnwritableError, formatted, rewritten, toml_key, toml_value

Raw = dict[str, Any]

COMMENT = re.compile(r"# \d+")
WORDS = ("a", "b", "c")
NAMES = ("x", "y", "value", "strategy", "*", "with.dot")
STRATEGIES = ("append", "prepend", "replace")
DISCARDING: Sequence[Raw] = ({}, {"discard_when_merged": True}, {"discard_when_merged": False})
SCALARS = (True, False, 0, -3, 3, 0.5, -0.0, 1e300, 5e-324, *WORDS)

Draw = Callable[[Choices], Any]
"""Makes a value of choices."""


def free(drawn: Choices) -> Any:
    match drawn.pick(("scalar", "scalar", "list", "table")):
        case "list":
            return drawn.some(SCALARS, most=2)
        case "table":
            return {drawn.pick(NAMES): drawn.pick((None, free(drawn))) for _ in range(drawn.below(4))}
        case _:
            return drawn.pick(SCALARS)


def one_of(values: Sequence[Any]) -> Draw:
    return lambda drawn: drawn.pick(values)


def nothing(_: Choices) -> None:
    return None


def perhaps(draw: Draw, *, otherwise: Draw = nothing) -> Draw:
    """`otherwise` once in four times."""
    return lambda drawn: otherwise(drawn) if drawn.one_in(4) else draw(drawn)


def scalar(annotation: Any) -> Draw:
    return one_of(accepted(annotation, (True, False, 1, 2, 0.5, "a", "b", "https://a", "https://b")))


def values(node: Node, *, plain: bool = False) -> Draw:
    """What a layer may say at `node`; `plain`: without null and long forms, as in the elements of a list."""
    match node:
        case Scalar(annotation=annotation):
            return scalar(annotation)
        case MergedText():
            return one_of(WORDS) if plain else perhaps(one_of(WORDS), otherwise=long_text)
        case Items():
            return items(node, plain=plain)
        case Table():
            return tables(node, plain=plain)
        case Names(value=below):
            return names(values(below, plain=plain))
        case Free():
            return free
        case _:
            assert_never(node)


def long_text(drawn: Choices) -> Raw:
    return {
        "value": drawn.pick(WORDS),
        **drawn.pick(({}, {"strategy": drawn.pick(STRATEGIES)})),
        **drawn.pick(({}, {"separator": drawn.pick(("none", "space", "line", "paragraph"))})),
        **drawn.pick(DISCARDING),
    }


def items(node: Items, *, plain: bool) -> Draw:
    element = values(node.element, plain=True)

    def short(drawn: Choices) -> list[Any]:
        return [element(drawn) for _ in range(drawn.below(4))]

    def long(drawn: Choices) -> Raw:
        return {
            "value": short(drawn),
            **drawn.pick(({}, {"strategy": drawn.pick(STRATEGIES)})),
            **drawn.pick(({}, {"dedup": drawn.pick((True, False, "inherit"))})),
            **drawn.pick(DISCARDING),
        }

    return short if plain else perhaps(short, otherwise=long)


def tables(node: Table, *, plain: bool) -> Draw:
    required = {name: values(field.node, plain=plain) for name, field in node.fields.items() if field.required}
    optional = {
        name: values(field.node, plain=True) if plain else perhaps(values(field.node))
        for name, field in node.fields.items()
        if not field.required
    }
    if node.others is not None:
        optional["x"] = values(node.others.value, plain=plain)
    known = list(optional)

    def draw(drawn: Choices) -> Raw:
        chosen = {**required, **{name: optional[name] for name in drawn.some(known, most=7)}}
        return {name: draw_value(drawn) for name, draw_value in chosen.items()}

    return draw


def names(below: Draw) -> Draw:
    value = perhaps(below)

    def short(drawn: Choices) -> Raw:
        return {drawn.pick(NAMES): value(drawn) for _ in range(drawn.below(4))}

    def long(drawn: Choices) -> Raw:
        return {"value": short(drawn), "strategy": drawn.pick(("merge", "replace"))}

    return perhaps(short, otherwise=long)


LAYER = tables(APP, plain=False)
LENGTH = 150
TAPES = st.binary(min_size=LENGTH, max_size=LENGTH)


def related(first: bytes, second: bytes, third: bytes, shared: int) -> tuple[Raw, Raw, Raw]:
    """Layers that begin with the same choices, so that most of them say something of the same keys."""
    tapes = (first, first[:shared] + second[shared:], first[:shared] + third[shared:])
    one, other, another = (LAYER(Choices(tape)) for tape in tapes)
    return one, other, another


RAWS = TAPES.map(Choices).map(LAYER)
RELATED = st.builds(related, TAPES, TAPES, TAPES, st.integers(0, 40))


def changes(raws: Iterable[Raw]) -> list[MapChange]:
    return [read_partial(raw) for raw in raws]


def resolved(*raws: Raw) -> Resolved:
    return resolve([
        Layer(origin=Origin(kind="cfg", where=str(index)), change=read_partial(raw)) for index, raw in enumerate(raws)
    ])


@given(RELATED)
def test_merging_is_associative(raws: Sequence[Raw]) -> None:
    first, second, third = changes(raws)

    assert merge(merge(first, second), third) == merge(first, merge(second, third))


@given(RAWS)
def test_merging_with_nothing_changes_nothing(raw: Raw) -> None:
    change = read_partial(raw)

    assert merge(MapChange(), change) == change == merge(change, MapChange())


@given(RELATED, st.integers(0, 3))
def test_layers_may_be_grouped_in_any_way(raws: Sequence[Raw], cut: int) -> None:
    all_of_them = changes(raws)

    assert merge(merge_all(all_of_them[:cut]), merge_all(all_of_them[cut:])) == merge_all(all_of_them)


@given(RELATED)
def test_one_change_does_what_two_do(raws: Sequence[Raw]) -> None:
    first, second, _ = map(keeping_all, changes(raws))

    assert applied(merge(first, second)) == applied(second, applied(first))


def keeping_all(change: MapChange) -> MapChange:
    entries = {name: _keeping(below) for name, below in change.entries.items()}
    return MapChange(entries, replace=change.replace)


def _keeping(change: Change) -> Change:
    match change:
        case MapChange():
            return keeping_all(change)
        case ListChange(steps=steps):
            return ListChange(steps=none_discarded(steps))
        case TextChange(steps=steps):
            return TextChange(none_discarded(steps))
        case _:
            return change


Step = TypeVar("Step", bound=msgspec.Struct)


def none_discarded(steps: Iterable[Step]) -> tuple[Step, ...]:
    return tuple(msgspec.structs.replace(step, discard_when_merged=False) for step in steps)


@given(RELATED)
def test_a_base_gives_the_same_over_any_other_layers(raws: Sequence[Raw]) -> None:
    created_with, later, _ = raws
    before = resolved(created_with)

    base = msgspec.json.decode(msgspec.json.encode(frozen(before)))
    stored = conversation_layers(base)
    after = resolve([*resolved(later).layers, *stored.layers])

    assert stored.ignored == ()
    assert kept(after) == kept(before)
    assert frozen(after) == base


@given(RELATED)
def test_a_delta_makes_the_new_of_the_old(raws: Sequence[Raw]) -> None:
    lower, old, new = raws
    before = resolved(lower, old)
    after = resolved(lower, old, new)

    difference = msgspec.json.decode(msgspec.json.encode(delta(before, after)))
    stored = conversation_layers(frozen(before), [("1", difference)])

    assert stored.ignored == ()
    assert frozen(resolve(stored.layers)) == frozen(after)
    assert delta(after, after) == {}


def kept(of: Resolved) -> Raw:
    data = as_data(of.config)
    return {name: data[name] for name in KEPT}


@given(RAWS)
def test_what_is_shown_is_what_holds(raw: Raw) -> None:
    of = resolved(raw)

    text = as_toml(of, with_origins=True)

    assert without_nothing(tomllib.loads(text)) == without_nothing(as_data(of.config))


def without_nothing(value: Any) -> Any:
    """Without null and empty tables, which TOML has no need to say."""
    match value:
        case dict():
            known = {name: below for name, below in cast("Raw", value).items() if below is not None}
            entries = {name: without_nothing(below) for name, below in known.items()}
            return {name: below for name, below in entries.items() if below != {}}
        case list():
            return [without_nothing(item) for item in cast("list[Any]", value)]
        case _:
            return value


@given(st.lists(st.text(min_size=1).filter(lambda name: not ("'" in name and '"' in name)), min_size=1))
def test_a_key_reads_back(names_: list[str]) -> None:
    assert parse_key(key_text(tuple(names_))) == tuple(names_)


@given(
    st.recursive(
        st.one_of(
            st.text(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)
        ),
        lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(st.text(), below, max_size=3)),
    )
)
def test_a_value_in_toml_reads_back(value: Any) -> None:
    assert tomllib.loads(f"a = {toml_value(value)}") == {"a": value}


def without_null(value: Any) -> Any:
    match value:
        case dict():
            entries = cast("Raw", value).items()
            return {name: without_null(below) for name, below in entries if below is not None}
        case list():
            return [without_null(item) for item in cast("list[Any]", value)]
        case _:
            return value


FILES = RAWS.map(without_null)


@given(FILES, FILES)
def test_a_file_is_rewritten_to_say_exactly_the_new_data(old: Raw, new: Raw) -> None:
    text = rewritten("", old)

    assert without_nothing(tomllib.loads(text)) == without_nothing(old)
    assert without_nothing(tomllib.loads(rewritten(text, new))) == without_nothing(new)


@given(FILES, st.randoms(use_true_random=False), st.sampled_from(("user", "style", "assistant")))
def test_a_file_that_a_person_wrote_keeps_its_comments_when_a_key_is_set(data: Raw, random: Random, table: str) -> None:
    text = Writer(random).text(data)
    new = {**data, table: {**data.get(table, {}), "new": "x"}}

    try:
        changed = rewritten(text, new)
    except UnwritableError:
        reject()

    assert without_nothing(plain(tomllib.loads(changed))) == without_nothing(plain(new))
    assert sorted(COMMENT.findall(changed)) == sorted(COMMENT.findall(text))


@given(FILES, FILES, st.randoms(use_true_random=False))
def test_a_file_that_a_person_wrote_is_changed_to_the_new_data_or_refused(old: Raw, new: Raw, random: Random) -> None:
    try:
        changed = rewritten(Writer(random).text(old), new)
    except UnwritableError:
        reject()

    assert without_nothing(plain(tomllib.loads(changed))) == without_nothing(plain(new))


@given(RELATED)
def test_the_origin_of_a_value_is_the_last_layer_that_gave_it(raws: Sequence[Raw]) -> None:
    of = resolved(*raws)

    for key, origin in of.origins.items():
        last = contributions(of.layers, parse_key(key))[-1]
        assert last.layer.origin == origin
        assert last.change != Unset()


@given(RELATED, st.integers(0, 3))
def test_an_explanation_comes_to_the_value_that_holds(raws: Sequence[Raw], count: int) -> None:
    of = resolved(*raws[:count])

    for name in APP.fields:
        _, explanations = explain(of, name, lambda _, __: False)
        for explanation in explanations:
            check_explanation(of, explanation)


def check_explanation(of: Resolved, explanation: Explanation) -> None:
    path = parse_key(explanation.key)
    node = node_at(path)
    if isinstance(node, Items):
        said = [element.value for element in explanation.elements]
        held: list[Any] = [] if explanation.value is msgspec.UNSET else explanation.value
        assert plain([with_known_keys(node.element, *both) for both in zip(said, held, strict=True)]) == plain(held)
        named = {source for element in explanation.elements for source in element.sources}
        assert all(explanation.statements[source].effect in {"in effect", "in part"} for source in named)
        return
    last = explanation.statements[-1]
    assert last.effect == "in effect"
    assert explanation.is_default or of.origin(path) in {last.origin, DEFAULT}
    match last.action:
        case "default" | "set":
            assert plain(explanation.value) == plain(last.value)
        case "append":
            assert explanation.value.endswith(last.value)
        case "prepend":
            assert explanation.value.startswith(last.value)
        case "unset":
            assert plain(explanation.value) == plain(explanation.statements[0].value)
        case _:
            raise AssertionError(last)


def with_known_keys(element: Node, said: Any, held: Any) -> Any:
    """An element as a layer said it, with the defaults that it holds for what was not said."""
    if not isinstance(held, dict):
        return said
    known = cast("Raw", held)
    spoken = {
        name: value
        for name, value in cast("Raw", said).items()
        if name in known or not is_omitted(element, name, value)
    }
    return known | spoken


def is_omitted(node: Node, name: str, value: Any) -> bool:
    """Whether `value` is what the data of a table lacks because it is the default."""
    return (
        isinstance(node, Table) and node.is_sparse and name in node.fields and value in ({}, node.fields[name].default)
    )


def plain(value: Any) -> Any:
    """What JSON makes of a value, null of none."""
    return None if value is msgspec.UNSET else msgspec.json.decode(msgspec.json.encode(value))


class Writer:
    """Writes data as people do: tables under headers, with dots or in braces, in any order, with comments anywhere."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._sections: list[list[str]] = []
        self._count = 0

    def text(self, data: Raw) -> str:
        root = self._pairs(data, (), ())
        self._random.shuffle(self._sections)
        lines = [line for section in (root, *self._sections) for line in section]
        newline = self._random.choice(["\n", "\n", "\r\n"])
        return newline.join([*lines, *self._trivia()]) + newline

    def _pairs(self, data: Raw, table: KeyPath, above: KeyPath) -> list[str]:
        lines: list[str] = []
        entries = list(data.items())
        self._random.shuffle(entries)
        for name, value in entries:
            path = (*above, name)
            style = self._random.choice(["header", "dots", "braces"]) if isinstance(value, dict) and value else ""
            if style == "header" and not above:
                header = (*table, name)
                section = [*self._trivia(), f"[{toml_key(header)}]{self._comment()}"]
                self._sections.append([*section, *self._pairs(cast("Raw", value), header, ())])
            elif style in {"header", "dots"}:
                lines += self._pairs(cast("Raw", value), table, path)
            else:
                lines += [*self._trivia(), f"{toml_key(path)}={self._value(value)}{self._comment()}"]
        return lines

    def _value(self, value: Any) -> str:
        if isinstance(value, list) and self._random.random() < 0.5:
            rows = [
                f"{row}\n   {toml_value(item)}\t,{self._comment()}"
                for item in cast("list[Any]", value)
                for row in self._rows()
            ]
            return f"[{''.join(rows)}{self._comment()}\n]"
        return toml_value(value)

    def _rows(self) -> list[str]:
        return [self._random.choice(["", f"\n {self._comment()}"])]

    def _comment(self) -> str:
        self._count += 1
        return self._random.choice(["", "", f" # {self._count}"])

    def _trivia(self) -> list[str]:
        return [
            self._random.choice(["", f"#{self._comment()}", "  "]) for _ in range(self._random.choice([0, 0, 1, 4]))
        ]


@given(FILES, st.randoms(use_true_random=False))
def test_a_formatted_file_says_the_same_in_one_layout(data: Raw, random: Random) -> None:
    text = Writer(random).text(data)
    said = tomllib.loads(text)

    try:
        new = formatted(text)
    except UnwritableError:
        reject()

    assert plain(tomllib.loads(new)) == plain(said)
    assert sorted(COMMENT.findall(new)) == sorted(COMMENT.findall(text))
    assert formatted(new) == new


@given(FILES, st.randoms(use_true_random=False))
def test_every_value_of_a_file_is_found_where_it_is_written(data: Raw, random: Random) -> None:
    text = Writer(random).text(data).replace("\r\n", "\n")
    lines = text.split("\n")

    for path in positions(text):
        place = place_of(text, path, of_value=True)
        assert value_below(data, path) is not None
        assert place is not None
        assert lines[place.line - 1][place.column - 1 :].strip()


def value_below(data: Any, path: KeyPath) -> Any:
    for name in path:
        data = cast("list[Any]", data)[int(name)] if isinstance(data, list) else data[name]
    return data
