from __future__ import annotations

import json

import pytest

from artifacts import MemoryArtifacts
from jp.context.leaves import Shrunk, shrink_json_string_leaves
from jp.context.markers import Cutter, contains_marker, marked_handles

NONCE = "5eed5eed"
LONG = "0123456789" * 100


def shrunk(text: str, *, max_leaf: int = 100, max_total: int | None = None) -> Shrunk:
    """The result, after what holds for every one: it is not longer, and doing it again changes nothing."""
    cutter = Cutter(NONCE, MemoryArtifacts())
    result = shrink_json_string_leaves(text, cutter, max_leaf=max_leaf, max_total=max_total)
    again = shrink_json_string_leaves(result.text, cutter, max_leaf=max_leaf, max_total=max_total)
    assert len(result.text) <= len(text)
    assert result.changed == (result.text is not text) == bool(result.cuts)
    assert again.text is result.text
    for cut in result.cuts:
        assert cut.handle in marked_handles(result.text, NONCE)
        assert cutter.artifacts.recall(cut.handle) is not None
    return result


def test_json_argument_shrinking_preserves_parseability() -> None:
    text = json.dumps({"path": "a.py", "content": LONG, "deep": [{"x": LONG}, 1, None], "flag": True})

    value = json.loads(shrunk(text).text)

    assert value["path"] == "a.py"
    assert value["deep"][1:] == [1, None]
    assert value["flag"] is True
    assert len(value["content"]) == len(value["deep"][0]["x"]) == 100
    assert contains_marker(value["content"], NONCE)


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf " + LONG,
        '{"content": "' + LONG,
        "{'content': '" + LONG + "'}",
        '{"content": "' + LONG + '",}',
        '[1, 2, "' + LONG + '",]',
        '\ufeff{"content": "' + LONG + '"}',
        '{"content": "' + LONG + '", "n": NaN}',
        '{"content": "' + LONG + '", "n": -Infinity}',
        '{"content": "' + LONG + '\n"}',
        '{"content": "' + LONG + '"} {}',
    ],
    ids=[
        "a command",
        "cut off",
        "single quotes",
        "a trailing comma",
        "a trailing comma in an array",
        "a byte order mark",
        "NaN",
        "Infinity",
        "a bare line break",
        "two values",
    ],
)
def test_non_json_argument_text_is_not_corrupted(text: str) -> None:
    assert shrunk(text).text is text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"n":' + "7" * 4_400 + ',"s":', "}"),
        ("[" * 20_000, "]" * 20_000),
        ('{"a":' * 5_000, "}" * 5_000),
        ("[1e400, -0.0, 1.50E+3, 0.1000000000000000055, ", "]"),
        ('{"k":1,"k":2, "s" :\t', ' ,"k":3}'),
        (r'["\ud800", "\/", "\u00e9", ', "]"),
        (" ", "\r\n"),
        ('{"' + "k" * 600 + '":', "}"),
    ],
    ids=[
        "an integer of 4,400 digits",
        "20,000 arrays in each other",
        "5,000 objects in each other",
        "numbers as they are spelled",
        "repeated names",
        "half a surrogate pair and needless escapes",
        "a string alone",
        "a name longer than the limit",
    ],
)
def test_every_byte_outside_of_the_string_that_is_cut_stays(before: str, after: str) -> None:
    result = shrunk(before + f'"{LONG}"' + after)

    assert result.text.startswith(before + '"0123')
    assert result.text.endswith('6789"' + after)
    assert len(result.text) == len(before) + 102 + len(after)
    assert [cut.start for cut in result.cuts] == [len(before)]


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("\\n\\t\\\\" * 100, "\n\t\\" * 100),
        ("\\u00fc" * 300, "ü" * 300),
        ("\\ud83d\\udc69" * 300, "\U0001f469" * 300),
        ("\\ud800" * 300, "\ud800" * 300),
        ("\U0001f469\u200d\U0001f4bb" * 100, "\U0001f469\u200d\U0001f4bb" * 100),
        ("e\u0301" * 200, "e\u0301" * 200),
        ("plain \\\\n " * 50, "plain \\n " * 50),
        ('say \\"a\\" ' * 50, 'say "a" ' * 50),
        ("\\\\" * 400, "\\" * 400),
        (("x" * 7 + "\\ud83d\\udc69\\\\") * 60, ("x" * 7 + "\U0001f469\\") * 60),
    ],
    ids=[
        "short escapes",
        "numbers",
        "pairs of numbers",
        "half pairs",
        "joined emoji",
        "combining marks",
        "an escaped backslash",
        "escaped quotes",
        "only backslashes",
        "pairs among plain text",
    ],
)
def test_a_cut_goes_between_code_points_and_what_stays_is_spelled_as_it_was(spelled: str, value: str) -> None:
    text = f'["{spelled}"]'

    result = shrunk(text)

    [shorter] = json.loads(result.text)
    before, after = shorter.split("[[cut:")[0], shorter.split("]]")[1]
    assert len(shorter) == 100
    assert value.startswith(before)
    assert value.endswith(after)
    assert text.startswith(result.text.split("[[cut:")[0])
    assert text.endswith(result.text.split("]]", 1)[1])


def test_json_in_a_string_is_a_string_like_any_other() -> None:
    inner = json.dumps({"content": LONG})

    [shorter] = json.loads(shrunk(json.dumps([inner])).text)

    assert len(shorter) == 100
    assert shorter.startswith('{"content": "0123')


def test_a_leaf_of_a_megabyte_is_cut_like_any_other() -> None:
    text = '{"content": "' + "line\\n\\u00fc" * 100_000 + '"}'

    assert len(json.loads(shrunk(text).text)["content"]) == 100


@pytest.mark.parametrize("max_leaf", [0, -1, 10, 43])
def test_a_limit_below_what_a_marker_takes_is_that(max_leaf: int) -> None:
    assert len(json.loads(shrunk(f'"{LONG}"', max_leaf=max_leaf).text)) == 44


@pytest.mark.parametrize("text", ["", '""', "{}", '"' + "a" * 100 + '"', "null", '{"s": "' + '\\"' * 100 + '"}'])
def test_what_has_no_string_above_the_limit_stays(text: str) -> None:
    assert shrunk(text).text is text


def test_many_strings_share_what_all_of_them_may_have() -> None:
    text = json.dumps(["a" * 90, "b" * 90, "c" * 20, "d" * 300])

    assert [len(value) for value in json.loads(shrunk(text, max_total=300).text)] == [90, 90, 20, 100]
    assert [len(value) for value in json.loads(shrunk(text, max_total=230).text)] == [70, 70, 20, 70]
    assert [len(value) for value in json.loads(shrunk(text, max_total=0).text)] == [44, 44, 20, 44]
    assert shrunk(text, max_leaf=300, max_total=500).text is text


def test_what_all_strings_may_have_counts_characters_and_not_their_spelling() -> None:
    text = json.dumps(["ü" * 90, "ü" * 90])

    assert shrunk(text, max_total=180).text is text
    assert len(json.loads(shrunk(text, max_total=179).text)[0]) == 89
    assert shrunk("not json " * 50, max_total=0).changed is False


def test_a_string_one_above_the_limit_does_not_get_longer_by_its_marker() -> None:
    text = '"' + "a" * 101 + '"'

    assert len(shrunk(text).text) == 102
