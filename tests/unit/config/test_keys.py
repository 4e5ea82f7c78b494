from __future__ import annotations

import pytest

from jp.config.schema import KeyPath, is_index, key_text, parse_key
from jp.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("user", ("user",)),
        ("assistant.model.id", ("assistant", "model", "id")),
        ("assistant . model", ("assistant", "model")),
        ("conversation.tools.*.run", ("conversation", "tools", "*", "run")),
        ('providers.llm.aliases."gpt-4.1"', ("providers", "llm", "aliases", "gpt-4.1")),
        ("aliases.'say \"hi\"'", ("aliases", 'say "hi"')),
        ("conversation.attachments.0", ("conversation", "attachments", "0")),
    ],
)
def test_a_key_is_split_at_its_dots(text: str, path: KeyPath) -> None:
    assert parse_key(text) == path


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", 'a."b', "a b", "a=b", '"a"b'])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a key") as caught:
        parse_key(text)

    assert repr(text) in caught.value.message
    assert "assistant.model.id" in caught.value.hint


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("a", "b"), "a.b"),
        (("tools", "*"), "tools.*"),
        (("a", "gpt-4.1"), 'a."gpt-4.1"'),
        (("a", 'say "hi"'), "a.'say \"hi\"'"),
        ((), ""),
    ],
)
def test_a_name_stands_in_quotes_where_it_has_to(path: KeyPath, text: str) -> None:
    assert key_text(path) == text


@pytest.mark.parametrize(
    ("name", "expected"),
    [("0", True), ("12", True), ("", False), ("-1", False), ("x", False), ("1" * 10, False), ("٣", False)],
)
def test_an_index_is_a_short_number(name: str, *, expected: bool) -> None:
    assert is_index(name) is expected


def test_a_key_of_too_many_names_is_refused() -> None:
    assert len(parse_key(".".join(["a"] * 64))) == 64
    with pytest.raises(ConfigurationError, match="is nested too deeply") as refused:
        parse_key(".".join(["a"] * 65))

    assert len(refused.value.message) < 100
