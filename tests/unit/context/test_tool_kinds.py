from __future__ import annotations

import pytest

from jp.context.digest_lines import ToolRule, kind_of, shown, subject_of
from jp.context.types import Call, Facts


def call(arguments: str) -> Call:
    return Call(id="c", name="t", arguments=arguments)


def test_what_a_tool_recorded_wins_over_what_the_host_says_of_its_name() -> None:
    rule = ToolRule(kind="terminal")

    assert kind_of(Facts(kind="read"), rule) == "read"
    assert kind_of(Facts(kind="unheard of"), rule) == "terminal"
    assert kind_of(Facts(), rule) == "terminal"
    assert kind_of(None, ToolRule()) == "other"


@pytest.mark.parametrize(
    ("arguments", "subject"),
    [
        ('{"command": "ls   -l\\n /"}', "ls -l /"),
        ('{"command": ["ls", 1]}', '["ls",1]'),
        (
            '{"command": "curl -H \\"Authorization: Bearer abc123\\""}',
            'curl -H "Authorization: Bearer [redacted:authorization]"',
        ),
        ('{"other": 1}', ""),
        ('{"command": null}', ""),
        ("[1]", ""),
        ("not json", ""),
        ("[" * 100_000, ""),
        ('{"a": "\ud800"}', ""),
    ],
)
def test_the_argument_that_the_host_names_says_what_was_done(arguments: str, subject: str) -> None:
    assert subject_of(call(arguments), ToolRule(subject="command")) == subject


def test_without_a_rule_the_first_two_arguments_are_shown_and_no_secret() -> None:
    arguments = '{"password": "hunter2-XYZ", "path": "' + "p" * 60 + '", "third": 3}'

    assert subject_of(call(arguments), ToolRule()) == "password=[redacted:password], path=" + "p" * 34 + "…"


def test_what_is_shown_is_one_line_within_its_limit_and_secrets_go_before_the_cut() -> None:
    assert shown("a\n  b", 9) == "a b"
    assert shown("x" * 10, 5) == "xxxx…"
    assert shown("a ghp_16C7e42F292c6912E7710c838347Ae178B4a", 12) == "a [redacted…"
