from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest

from jp.config.entries import CommandConfig
from jp.errors import ConfigurationError, JpError
from jp.tool.local import Optionals
from jp.tool.templates import CommandLine, check_script, command_of, plain, rendered_in_bounds, shown

ROOT = "/srv"


def values(**arguments: Any) -> dict[str, Any]:
    known = Optionals(arguments, ["optional", "items"])
    return {"tool": {"name": "t", "arguments": known, "options": {"a": 1}}, "context": {"root": ROOT}}


def rendered(command: CommandConfig, known: dict[str, Any]) -> CommandLine:
    return anyio.run(rendered_in_bounds, command, known)


def in_shell(program: str, *args: str) -> CommandConfig:
    return msgspec.convert({"program": program, "args": args, "shell": True}, CommandConfig)


def words(command: str | CommandConfig, **arguments: Any) -> tuple[str, ...]:
    return rendered(command_of("t", command), values(**arguments)).words


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("grep -rn 'a b' .", ("grep", "-rn", "a b", ".")),
        ("echo {{tool.arguments.path}}", ("echo", "x y; rm -rf /")),
        ("echo {{ tool.arguments.path | upper }}", ("echo", "X Y; RM -RF /")),
        ("echo --file={{ tool.arguments['path'] }}", ("echo", "--file=x y; rm -rf /")),
        ("echo '{{ tool.arguments.path }}'", ("echo", "x y; rm -rf /")),
        ("echo {{tool.arguments.numbers}}", ("echo", "[1,2]")),
        ("echo {{tool.arguments.flag}} {{tool.options.a}}", ("echo", "true", "1")),
        ("echo {{tool.arguments.optional}}", ("echo", "")),
        ("echo {% if tool.arguments.optional %}-v{% endif %} end", ("echo", "end")),
        ("echo {% if tool.arguments.flag %}-v{% endif %} end", ("echo", "-v", "end")),
        ("echo {{ tool.arguments.numbers | map('string') }}", ("echo", '["1","2"]')),
        ("echo {{tool.arguments.items}}", ("echo", "")),
        ("{{context.root}}/bin/x", ("/srv/bin/x",)),
    ],
)
def test_a_command_is_split_before_its_values_are_filled_in(command: str, expected: tuple[str, ...]) -> None:
    assert words(command, path="x y; rm -rf /", numbers=[1, 2], flag=True) == expected


def test_all_that_is_known_of_a_call_is_one_argument_as_json() -> None:
    assert words("serve {{context}} {{tool}}", path="a") == (
        "serve",
        '{"root":"/srv"}',
        '{"name":"t","arguments":{"path":"a"},"options":{"a":1}}',
    )


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{tool.arguments.unknown}}", "there is no 'unknown'; there are: none"),
        ("{{tool.argumens.x}}", "there is no 'argumens'; there are: name, arguments, options"),
        ("{{nothing}}", "'nothing' is undefined"),
        ("{% if %}", "rendered"),
        ("{{ ''.__class__ }}", "unsafe"),
        ("{{ tool.arguments.keys }}", "is no value"),
        ("{{ lipsum() }}", "undefined"),
        ("{% for i in range(9999) %}{{ tool.name * 9999 }}{% endfor %}", "more than 2,097,152 characters"),
    ],
)
@pytest.mark.parametrize("shell", [False, True])
def test_what_cannot_be_rendered_is_an_error(template: str, said: str, *, shell: bool) -> None:
    with pytest.raises(JpError) as raised:
        words(in_shell(template) if shell else CommandConfig(program=template))

    assert said in raised.value.message


def test_in_a_shell_values_are_variables() -> None:
    command = in_shell("grep -n {{tool.arguments.pattern}} | head", "{{tool.arguments.pattern}} b", "-v")

    line = rendered(command, values(pattern="$(rm)"))

    assert line == CommandLine(
        words=("/bin/sh", "-c", 'grep -n "${JP_VALUE_1}" | head "${JP_VALUE_2}" "${JP_VALUE_3}"'),
        variables={"JP_VALUE_1": "$(rm)", "JP_VALUE_2": "$(rm) b", "JP_VALUE_3": "-v"},
    )
    assert shown(line) == (
        "JP_VALUE_1='$(rm)'\nJP_VALUE_2='$(rm) b'\nJP_VALUE_3=-v\n"
        'grep -n "${JP_VALUE_1}" | head "${JP_VALUE_2}" "${JP_VALUE_3}"'
    )


def test_in_a_shell_no_block_lets_a_value_escape() -> None:
    captured = in_shell(
        "{% set x %}a {{tool.arguments.p}}{% endset %}{% macro m(y) %}<{{y}}>{% endmacro %}echo {{x}} {{m(1)}}"
    )
    filtered = in_shell("{% filter replace('a', tool.arguments.p) %}a{% endfilter %}")

    line = rendered(captured, values(p=";rm"))
    assert line.words[-1] == 'echo "${JP_VALUE_2}" "${JP_VALUE_4}"'
    assert [line.variables["JP_VALUE_2"], line.variables["JP_VALUE_4"]] == ["a ;rm", "<1>"]
    with pytest.raises(JpError, match="no filter"):
        rendered(filtered, values(p=";rm"))


def test_a_command_that_reads_json_is_taken_as_it_stands() -> None:
    assert plain(CommandConfig(program="cat", args=("{{x}}",))).words == ("cat", "{{x}}")
    assert plain(in_shell("cat |", "a b")).words == ("/bin/sh", "-c", "cat | 'a b'")


def test_a_command_is_shown_as_one_types_it() -> None:
    assert shown(CommandLine(words=("echo", "a b", "; rm"))) == "echo 'a b' '; rm'"


@pytest.mark.parametrize("command", [None, "", "  ", CommandConfig(program=" "), "echo 'a"])
def test_what_is_no_command_is_a_mistake_of_the_configuration(command: str | CommandConfig | None) -> None:
    with pytest.raises(ConfigurationError):
        command_of("t", command)


@pytest.mark.parametrize(
    "command", ["sh -c 'echo {{x}}'", "/bin/bash -ec \"echo '{{x}}'\"", "bash --login -c 'echo {{ x }}' sh"]
)
def test_a_value_in_a_script_that_is_an_argument_is_refused(command: str) -> None:
    with pytest.raises(ConfigurationError, match="would run as code") as raised:
        check_script("t", command_of("t", command))

    assert "shell = true" in raised.value.hint


@pytest.mark.parametrize("command", ["sh -c 'echo \"$1\"' sh {{x}}", "sh run.sh {{x}}", "grep -c {{x}}", "sh -c"])
def test_a_value_beside_a_script_is_none_of_its_code(command: str) -> None:
    check_script("t", command_of("t", command))


def test_a_script_of_ones_own_may_have_values() -> None:
    check_script("sh", in_shell("echo {{x}}"))
