from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from jp.app.query import composer
from jp.app.query.composer import TemplateError
from jp.app.query.question import Part
from jp.cli.terminal.wording import worded


def render(text: str, values: dict[str, Any], parts: Sequence[Part] = ()) -> str:
    return anyio.run(composer.render, text, values, parts)


def test_names_stand_for_their_values() -> None:
    text = "{% for file in files %}{{ loop.index }}: {{ file.name }}\n{% endfor %}{{ who | upper }}\n"

    assert render(text, {"files": [{"name": "a"}, {"name": "b"}], "who": "me"}) == "1: a\n2: b\nME\n"


def test_nothing_is_escaped_and_line_ends_stay() -> None:
    assert render("<{{ x }}>\n\n", {"x": "<&>"}) == "<<&>>\n\n"


@pytest.mark.parametrize(
    ("text", "values", "said"),
    [
        ("a\n{{ b }}", {"c": 1}, "line 2 ('{{ b }}'): 'b' is undefined"),
        ("{{ b.c }}", {"b": {}}, "line 1 ('{{ b.c }}'): 'dict object' has no attribute 'c'"),
        ("{% if b %}x{% endif %}", {}, "line 1 ('{% if b %}x{% endif %}'): 'b' is undefined"),
        ("\n\n{% if %}", {}, "line 3 ('{% if %}'): Expected an expression, got 'end of statement block'"),
        ("\n\n{{ 1 / 0 }}", {}, "line 3 ('{{ 1 / 0 }}'): division by zero"),
        ("{{ 'x' * 10 ** 13 }}", {}, "it needs too much memory"),
        ("{% include '/etc/passwd' %}", {}, "no loader for this environment specified"),
        ("{% import 'os' as os %}", {}, "no loader for this environment specified"),
        ("{{ ''.__class__ }}", {}, "access to attribute '__class__' of 'str' object is unsafe"),
        ("{{ b.append(1) }}", {"b": []}, "access to attribute 'append' of 'list' object is unsafe"),
        ("{{ lipsum() }}", {}, "'lipsum' is undefined"),
        ("{% for i in range(10 ** 9) %}{% endfor %}", {}, "Range too big"),
    ],
)
def test_what_cannot_be_rendered_names_the_line(text: str, values: dict[str, Any], said: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render(text, values)

    assert caught.value.message.startswith("the template cannot be rendered, line ")
    assert said in caught.value.message
    assert caught.value.hint


def test_an_error_in_a_file_names_the_file_and_its_own_line() -> None:
    parts = (Part(1, ""), Part(3, "tpl.md"), Part(6, ""))
    text = "words\n\na\n{{ b }}\n\nmore\n{{ c }}"

    with pytest.raises(
        TemplateError, match=r"^the template cannot be rendered in 'tpl\.md', line 2 \('\{\{ b \}\}'\): "
    ):
        render(text, {"c": 1}, parts)
    with pytest.raises(TemplateError, match=r"^the template cannot be rendered, line 7 "):
        render(text, {"b": 1}, parts)


def test_a_missing_name_is_told_which_names_there_are() -> None:
    with pytest.raises(TemplateError) as caught:
        render("{{ c }}", {"b": 1, "a": 2})
    assert worded(caught.value.hint) == "`template.values` has: a, b; set one with `--cfg template.values.c=VALUE`"

    with pytest.raises(TemplateError) as caught:
        render("{{ c }}", {})
    assert caught.value.hint.startswith("`template.values` has: none;")


def test_what_it_renders_to_is_bounded() -> None:
    text = "{% for i in range(99999) %}{% for j in range(99999) %}xxxxxxxxxx{% endfor %}{% endfor %}"

    with pytest.raises(TemplateError, match="more than 10,485,760 characters"):
        render(text, {})
