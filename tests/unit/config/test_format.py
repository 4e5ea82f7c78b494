from __future__ import annotations

import pytest

from jp.config import format as layout
from jp.config.format import UnformattableError, formatted
from jp.config.keys import KeyPath

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

[[assistant.instructions]]  # first
title = "x"
# more of the first

items = ['a', 'b']

[[assistant.instructions]]
title = "y"

[assistant.model.parameters.other]
list = [
  # one
  { a = [1, 2] },
  [
    # two
  ],
]

[conversation.attachments]
value = ["a"]
strategy = "replace"

[conversation.tools.zebra]
run = "ask"

[conversation.tools.ape]
enable = true

[providers.llm.aliases]
"my.fast" = "a/b"
other = "c/d"

[user]
# about the name
name = 'Ada'
# or Grace

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
        ("[assistant]\n[assistant.model]\n", "[assistant.model]\n"),
        ("[assistant] # a\n[assistant.model]\n", "[assistant]  # a\n\n[assistant.model]\n"),
        (
            'providers.llm.aliases={value={a="b/c"},strategy="replace"}',
            '[providers.llm]\naliases = { value = { a = "b/c" }, strategy = "replace" }\n',
        ),
        (
            'assistant.system_prompt={value="a",discard_when_merged=true}',
            '[assistant]\nsystem_prompt = { value = "a", discard_when_merged = true }\n',
        ),
        (
            "providers.llm={x={},a={},openrouter={},cerebras={}}",
            "[providers.llm]\ncerebras = {}\nopenrouter = {}\nx = {}\na = {}\n",
        ),
        ('extends=[{path="a.toml"},"b"]\ninherit=false', None),
        ("user={}", "user = {}\n"),
        ("[of.another.version]\nb=1\na=2", "[of.another.version]\nb = 1\na = 2\n"),
        ("user = {} # a\n# b", "user = {}  # a\n# b\n"),
        ('user = { name = "x" } # a\n# b\n\n[style]', '[style]\n\n[user]\nname = "x"  # a\n# b\n'),
        (f'extends = ["{"a" * 50}", "{"b" * 50}"]', f'extends = [\n  "{"a" * 50}",\n  "{"b" * 50}",\n]\n'),
        ('extends = ["""a\nb"""]', 'extends = [\n  """a\nb""",\n]\n'),
    ],
)
def test_what_a_file_may_hold_is_laid_out(text: str, new: str | None) -> None:
    assert formatted(text) == ('inherit = false\nextends = [{ path = "a.toml" }, "b"]\n' if new is None else new)


@pytest.mark.parametrize("key", ["=", "x"])
def test_a_layout_that_says_something_else_is_refused(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(_: KeyPath) -> str:
        return key

    monkeypatch.setattr(layout, "toml_key", wrong)

    with pytest.raises(UnformattableError):
        formatted("user.name = 'a'")
