"""Templates that are rendered in jp's own process put values in their places, and make no more of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from jinja2 import StrictUndefined, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from jp.process.worker import is_simple_template

PIECES = st.sampled_from([
    "{{ a }}", "{{ a.b }}", "{{ a['b'][1:] }}", "{% if a %}", "{% else %}", "{% endif %}", "{{ a | upper }}", "{{",
    "}}",
    "{{ a | default('x') }}", "{{ a * 999 }}", "{{ a ~ a }}", "{% for x in a %}", "{% endfor %}", "{{ range(9) }}",
    "{{ a | center(999) }}", "{{ a | tojson(indent=999) }}", "{{ a | tojson }}", "{{ a.b() }}", "{% set b = a %}",
    "{% macro m() %}", "{% endmacro %}", "{{ m() }}", "{{ '%999d' % a }}", "{{ a ** 9 }}", "{{ a is defined }}",
    "words",
    "{% filter upper %}", "{% endfilter %}", "{{ [a, a] }}", "{{ a if a else a }}", "{{ a | join(a) }}", "{{ -a }}",
])  # fmt: skip
GROWING = ("*", "range", "center", "indent", "()", "set", "macro", "%9", "filter", "join", "for", "[a", "-a", "~")


@given(st.lists(PIECES, max_size=8).map("".join))
def test_what_is_rendered_here_neither_loops_nor_computes(text: str) -> None:
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    try:
        placing = is_simple_template(environment, text)
    except TemplateSyntaxError:
        return
    if not placing:
        return

    assert not any(sign in text for sign in GROWING)
    value = "v" * 100
    rendered = "".join(environment.from_string(text).generate(a={"b": value, value: value}))
    assert len(rendered) <= 400 * len(text)
