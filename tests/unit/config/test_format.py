from __future__ import annotations

import pytest

from jp.config.toml import UnwritableError, formatted

UNTIDY = """\
# About this file

# about the name
user.name = 'Ada'
# or Grace

[[assistant.instructions]]   # first
items=['a','b']

title="x"
# more of the first

[[assistant.instructions]]
title = "y"
[conversation.attachments]
value = ["a"]
strategy = "replace"
[providers.llm]
aliases = {"my.fast" = "a/b", other = "c/d"}
[conversation.tools]
zebra.run = "ask"
ape = { enable = true }
[assistant.model.parameters.other]
list = [ # one
  { a = [1,2] }, [ # two
  ]
]
[assistant]

# the end
"""
TIDY = """\
# About this file

# about the name
user.name = 'Ada'
# or Grace

[[assistant.instructions]]  # first
items = ['a','b']

title = "x"
# more of the first

[[assistant.instructions]]
title = "y"

[conversation.attachments]
value = ["a"]
strategy = "replace"

[providers.llm]
aliases = {"my.fast" = "a/b", other = "c/d"}

[conversation.tools]
zebra.run = "ask"
ape = { enable = true }

[assistant.model.parameters.other]
list = [ # one
  { a = [1,2] }, [ # two
  ]
]

[assistant]

# the end
"""


def test_a_file_has_one_layout() -> None:
    assert formatted(UNTIDY) == TIDY
    assert formatted(TIDY) == TIDY
    assert formatted(UNTIDY.replace("\n", "\r\n")) == TIDY.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("", ""),
        ("\n\n", ""),
        ("# a\n\n\n# b", "# a\n\n# b\n"),
        ("[user]", "[user]\n"),
        ("a=1\n[user]\n[style]", "a = 1\n\n[user]\n\n[style]\n"),
        ("[assistant] # a\n[assistant.model]\n", "[assistant]  # a\n\n[assistant.model]\n"),
        ("# a\n[user]\n  # b  \n[[c]]\n[[c]]", "# a\n[user]\n# b\n[[c]]\n\n[[c]]\n"),
        ("  user . name  =  1   # x  \n'b'.c   =2", "user .name = 1  # x\n'b'.c = 2\n"),
        ("[a.b]\nx=1\n[c]\n[a]\ny=2", "[a.b]\nx = 1\n\n[c]\n\n[a]\ny = 2\n"),
        ('a = """\n\n\n  x = 1  \n"""\n\n\n', 'a = """\n\n\n  x = 1  \n"""\n'),
        ("a = [ 1,2 ,  # one\n\n\n 3]", "a = [ 1,2 ,  # one\n\n\n 3]\n"),
    ],
)
def test_only_white_space_around_keys_tables_and_comments_changes(text: str, new: str) -> None:
    assert formatted(text) == new
    assert formatted(new) == new


def test_what_tomlkit_does_not_read_is_refused() -> None:
    with pytest.raises(UnwritableError):
        formatted("[a.b.c]\n[a.b]\n[a]\nf = 1\n[a.b.h]\ni = 1\n")


@pytest.mark.parametrize("wrong", ["", "a = 1", "user.name = 'b'", "user.name = ' a'", "# c\nuser.name = 'a'"])
def test_a_layout_that_says_something_else_is_refused(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def render(_: object) -> str:
        return wrong

    monkeypatch.setattr("tomlkit.toml_document.TOMLDocument.as_string", render)

    with pytest.raises(UnwritableError):
        formatted("user.name = 'a'")
