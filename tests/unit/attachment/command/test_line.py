from __future__ import annotations

import pytest

from jp.attachment.base import AttachmentError
from jp.attachment.command import CommandLine, parse_command

CANONICAL = {
    "cmd:date": "cmd://date",
    "cmd:git diff --cached": "cmd://git?arg=diff&arg=--cached",
    "cmd: git   diff ": "cmd://git?arg=diff",
    "CMD:git?arg=diff&arg=--cached": "cmd://git?arg=diff&arg=--cached",
    "cmd://git?arg=diff&arg=--cached": "cmd://git?arg=diff&arg=--cached",
    "cmd:sh -c 'a | b > \"c d\"'": "cmd://sh?arg=-c&arg=a%20%7C%20b%20%3E%20%22c%20d%22",
    "cmd:a\\ b 'c'\"d\" ''": "cmd://a%20b?arg=cd&arg=",
    "cmd://a+b?arg=a+b%2Bc": "cmd://a+b?arg=a%20b%2Bc",
    "cmd:date +%H%M": "cmd://date?arg=%2B%25H%25M",
    "cmd:git log --format=%ad": "cmd://git?arg=log&arg=--format=%25ad",
    "cmd:./x.sh a/b=c&d?e#f": "cmd://./x.sh?arg=a/b=c%26d%3Fe%23f",
    "cmd:/usr/bin/env": "cmd:///usr/bin/env",
    "cmd:///usr/bin/env": "cmd:///usr/bin/env",
    "cmd:make test?description=What fails & why": "cmd://make?arg=test&description=What%20fails%20%26%20why",
    "cmd://make?description=x+y&arg=test&": "cmd://make?arg=test&description=x%20y",
    "cmd:x?description=": "cmd://x",
    "cmd:größe ä": "cmd://gr%C3%B6%C3%9Fe?arg=%C3%A4",
    "cmd:x \udcff": "cmd://x?arg=%FF",
    "cmd:echo '?arg=x'": "cmd://echo?arg=%3Farg=x",
}


@pytest.mark.parametrize("uri", CANONICAL)
def test_a_command_has_one_spelling(uri: str) -> None:
    command = parse_command(uri)

    assert command.declared == CANONICAL[uri]
    assert parse_command(command.declared) == command


def test_a_description_is_no_part_of_what_is_run() -> None:
    command = parse_command("cmd:make test?description=The tests")

    assert command == CommandLine(program="make", arguments=("test",), description="The tests")
    assert command.uri == "cmd://make?arg=test"


def test_a_command_is_shown_as_one_types_it() -> None:
    assert parse_command("cmd://git?arg=log&arg=two+words&arg=%FF&arg=").typed == "git log 'two words' '\ufffd' ''"


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("cmd:", "'cmd:' names no program"),
        ("cmd:  ", "names no program"),
        ("cmd://?arg=x", "names no program"),
        ("cmd:''", "names no program"),
        ("cmd:a 'b", "has a quote that is not closed"),
        ("cmd://a?arg=%00", "has a zero byte"),
        ("cmd://a?exclude=x", "has the parameter 'exclude'"),
        ("cmd+x://a", "'cmd+x://a' is not a command"),
    ],
)
def test_what_is_no_command_is_refused(uri: str, said: str) -> None:
    with pytest.raises(AttachmentError) as raised:
        parse_command(uri)

    assert said in raised.value.message
    assert "'cmd:git diff --cached'" in raised.value.hint


@pytest.mark.parametrize("sign", ["|", "&&", ";", "end;", ">", "2>&1", "&"])
def test_what_only_a_shell_knows_is_refused(sign: str) -> None:
    with pytest.raises(AttachmentError) as raised:
        parse_command(f"cmd:a b {sign} c")

    assert f"has {sign!r}, but runs without a shell" in raised.value.message
    assert f"cmd:sh -c 'a b {sign} c'" in raised.value.hint
    assert parse_command(f"cmd:sh -c 'a b {sign} c'").arguments == ("-c", f"a b {sign} c")


def test_what_ends_with_a_semicolon_in_quotes_or_last_is_an_argument() -> None:
    assert parse_command("cmd:sed 's/a/b/;' x;").arguments == ("s/a/b/;", "x;")
