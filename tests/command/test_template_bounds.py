"""Templates that would compute for ever or take all memory: a query's, and those of a local tool's command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forked import run_jp
from stage import logs, make_workspace

ENDLESS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
GREEDY = (
    "{{ 'a' * 10 ** 10 }}",
    "{{ 'a' | center(10 ** 10) }}",
    "{{ '%10000000000d' | format(1) }}",
    "{{ '{:>10000000000}'.format(1) }}",
    "{{ ['a' * 10 ** 6] * 10 ** 9 }}",
    "{{ 1 | tojson(indent=10 ** 10) }}",
    "{% set a = namespace(x='a' * 99) %}{% for i in range(99) %}{% set a.x = a.x + a.x %}{% endfor %}",
    "{{ ('a' * 10 ** 6) | replace('a', 'a' * 10 ** 6) }}",
)
SLOW = (
    ENDLESS,
    "{{ 10 ** (10 ** 8) }}",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(99) }}",
)


@pytest.mark.parametrize("template", GREEDY)
def test_a_template_that_takes_all_memory_is_an_error(tmp_path: Path, template: str) -> None:
    root = make_workspace(tmp_path / "work")
    done = run_jp("query", "--template", template, cwd=root)

    assert done.code == 2, done.stderr
    assert "the template cannot be rendered" in done.stderr
    assert "hint: without --template the text is sent as it is" in done.stderr
    assert logs(root) == []


@pytest.mark.parametrize("template", SLOW)
def test_a_deadline_ends_a_template(tmp_path: Path, template: str) -> None:
    root = make_workspace(tmp_path / "work")
    done = run_jp("query", "--deadline", "1s", "--template", template, cwd=root)

    assert (done.code, done.stderr) == (124, "error: the deadline passed\nhint: allow it more time with `--deadline`\n")


HASTY = """
from jp.__main__ import main
from jp.process import worker

worker.COMPUTING_SECS = 0.2
main()
"""


@pytest.mark.parametrize("template", SLOW)
def test_a_template_computes_only_so_long(tmp_path: Path, template: str) -> None:
    root = make_workspace(tmp_path / "work")
    script = tmp_path / "hasty.py"
    script.write_text(HASTY, encoding="utf-8")
    done = run_jp("query", "--template", template, cwd=root, script=script)

    assert done.code == 2
    assert "the template cannot be rendered: it takes more than 0.2 s of computing" in done.stderr


def test_nesting_is_an_error_in_words(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "work")
    done = run_jp("query", "--template", "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}", cwd=root)

    assert done.code == 2
    assert "it is nested too deeply" in done.stderr


def test_a_tool_whose_template_takes_all_memory_fails_its_call(tmp_path: Path) -> None:
    scenario = """
[[reply]]
when = { contains = "look" }
calls = [{ name = "grow", arguments = { size = 10000000000 } }]
[[reply]]
text = "Noted."
"""
    settings = """
[conversation.tools.grow]
source = "local"
enable = true
command = "echo {{ 'a' * tool.arguments.size }}"
summary = "Grow."
[conversation.tools.grow.parameters.size]
type = "integer"
"""
    root = make_workspace(tmp_path / "work", scenario, settings=settings)
    run_jp("workspace", "trust", "--yes", cwd=root)
    done = run_jp("query", "--approve-all", "--format", "json", "look", cwd=root)

    assert done.code == 0, done.stderr
    (response,) = [
        entry for entry in map(json.loads, done.stdout.splitlines()) if entry["type"] == "tool_call_response"
    ]
    assert response["is_error"] is True
    assert "it needs too much memory" in json.dumps(response)
