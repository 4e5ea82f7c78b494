from __future__ import annotations

from itertools import permutations

import pytest

from jp.context.cache_hints import PrefixError, PrefixKey, ToolSchema, compare_prefixes, static_prefix_key

SYSTEM = ("Be brief.", "Rules.")
RUN = ToolSchema(name="run", wire=b'{"name":"run","input":{"type":"object","required":["a","b"],"n":1}}')
LOOK = ToolSchema(name="look", wire=b'{"name":"look"}')
FIND = ToolSchema(name="find", wire=b'{"name":"find","enum":[1,2]}', kind="server")


def key(*tools: ToolSchema, system: tuple[str, ...] = SYSTEM, provider: str = "p", model: str = "m") -> PrefixKey:
    return static_prefix_key(system, tools, provider=provider, model=model)


def run(wire: bytes) -> PrefixKey:
    return key(ToolSchema(name="run", wire=wire))


def test_tool_order_does_not_change_static_prefix_cache_key() -> None:
    keys = {key(*tools).key for tools in permutations((RUN, LOOK, FIND))}
    digests = {key(*tools).wire_digest for tools in permutations((RUN, LOOK, FIND))}

    assert (len(keys), len(digests)) == (1, 6)


def test_the_order_of_members_does_not_change_the_key_and_a_provider_would_miss_it() -> None:
    one, other = run(b'{"a": {"x": 1, "y": 2}, "b": []}'), run(b'{"b":[],"a":{"y":2,"x":1}}')

    assert one.key == other.key
    assert compare_prefixes(one, other) == "reordered"
    assert compare_prefixes(one, one) == "same"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"required": ["a", "b"]}', b'{"required": ["b", "a"]}'),
        (b'{"n": 1}', b'{"n": 1.0}'),
        (b'{"n": 1}', b'{"n": "1"}'),
        (b'{"n": 1}', b'{"n": true}'),
        (b'{"n": null}', b'{"n": "None"}'),
        (b'{"n": 1e400}', b'{"n": 1e401}'),
        (b'{"n": 12345678901234567890123}', b'{"n": 12345678901234567890124}'),
        (b'{"n": [[1], []]}', b'{"n": [[1, []]]}'),
        (b'{"n": {"a": 1}}', b'{"n": ["a", 1]}'),
        (b'{"n": 1}', b'{"n": 1, "n": 1}'),
        (b'{"n": 1, "n": 2}', b'{"n": 2, "n": 1}'),
        ('{"n": "\u00e9"}'.encode(), '{"n": "e\u0301"}'.encode()),
        (b'{"n": "\\ud800"}', b'{"n": "\\ud801"}'),
    ],
)
def test_whatever_a_tool_says_else_changes_the_key(one: bytes, other: bytes) -> None:
    assert compare_prefixes(run(one), run(other)) == "changed"


def test_what_stands_around_the_tools_changes_the_key() -> None:
    keys = [
        key(RUN),
        key(RUN, provider="q"),
        key(RUN, model="n"),
        key(RUN, provider="pm", model=""),
        key(RUN, system=("Be brief.Rules.",)),
        key(RUN, system=("Be brief.", "Rules.", "")),
        key(RUN, system=("Rules.", "Be brief.")),
        key(ToolSchema(name="run", wire=RUN.wire, kind="server")),
        key(ToolSchema(name="ran", wire=RUN.wire)),
        key(),
        key(system=()),
        key(RUN, LOOK),
    ]

    assert len({one.key for one in keys}) == len({one.wire_digest for one in keys}) == len(keys)


def test_fields_cannot_run_into_each_other() -> None:
    one = key(ToolSchema(name="a", wire=b'{"s":"b"}'), ToolSchema(name="c", wire=b'"d"'))
    other = key(ToolSchema(name="a", wire=b'{"s":"bc"}'), ToolSchema(name="d", wire=b'""'))

    assert (one.key == other.key, one.wire_digest == other.wire_digest) == (False, False)


def test_the_key_is_the_same_in_every_version() -> None:
    assert key(RUN, LOOK) == PrefixKey(
        key="1c429048bf583c532bcd6d0b2e2e7f684e420c9d29be8b522cb8da99baf24e1f",
        wire_digest="17d6ae9605d22cae4d25fe28becd6de832674573433abf59b17d617883701da7",
    )


def test_two_tools_of_one_name_are_an_error() -> None:
    with pytest.raises(PrefixError, match="two tools called 'run'"):
        key(RUN, LOOK, ToolSchema(name="run", wire=b"{}", kind="server"))


@pytest.mark.parametrize("wire", [b"", b"{", b'{"a": NaN}', b'{"a": -Infinity}', b"\xff", b"[" * 200_000])
def test_what_is_not_json_is_an_error(wire: bytes) -> None:
    with pytest.raises(PrefixError, match="'run' does not send JSON"):
        run(wire)
