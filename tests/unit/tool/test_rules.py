from __future__ import annotations

import posixpath
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.config.entries import RuleConfig, RunMode, ToolConfig
from jp.conversation.entries import JsonObject
from jp.conversation.thread import ToolDefinition
from jp.errors import ConfigurationError
from jp.tool import rules as readings
from jp.tool.rules import LONGEST_TEXT, Paths, check_rules, is_path, lasting_rules, run_mode

LINKS = {"/w/src/secret": "/w/keys", "/w/out": "/etc"}
SOURCES: tuple[RuleConfig, ...] = (
    RuleConfig(arguments={"path": "src/keep/*"}, run="skip"),
    RuleConfig(arguments={"path": "src/**"}, run="unattended"),
    RuleConfig(arguments={"path": "/etc/**"}, run="skip"),
)


def real(path: str) -> str:
    """What the links of an imagined disk make of a path, as far as `..` behind one is concerned, too."""
    if len(path) > 200:
        raise OSError
    done = "/"
    for name in path.split("/"):
        done = posixpath.normpath(posixpath.join(done, name))
        done = LINKS.get(done, done)
    return done


def mode(rules: tuple[RuleConfig, ...], *, run: RunMode | None = None, **arguments: Any) -> RunMode:
    return run_mode(ToolConfig(rules=rules, run=run), arguments, Paths(root="/w", real=real))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/a.py", "unattended"),
        ("src", "unattended"),
        ("./src/a.py", "unattended"),
        ("src//b/../a.py", "unattended"),
        ("/w/src/deep/a.py", "unattended"),
        ("docs/../src/a.py", "unattended"),
        ("SRC/a.py", "ask"),
        ("srcs/a.py", "ask"),
        ("docs/a.py", "ask"),
        ("src/../docs/a.py", "ask"),
        ("src/../../w/docs", "ask"),
        ("/elsewhere/src/a.py", "ask"),
        ("", "ask"),
        ("src/keep/a.py", "skip"),
        ("src/./keep/b/../a.py", "skip"),
        ("src/keep/deep/a.py", "unattended"),
        ("src/secret/a.py", "ask"),
        ("src/secret/../a.py", "ask"),
        ("out/passwd", "skip"),
        ("x/../../etc/passwd", "skip"),
        ("src/" + "a" * 300, "unattended"),
    ],
)
def test_a_path_counts_as_what_it_names_however_it_is_spelled(path: str, expected: RunMode) -> None:
    assert mode(SOURCES, path=path) == expected


def test_the_first_rule_that_matches_decides_and_else_the_tools_own_mode() -> None:
    rules = (
        RuleConfig(arguments={"name": "a*"}, run="skip"),
        RuleConfig(arguments={"name": "**", "size": "1"}, run="unattended"),
        RuleConfig(arguments={"name": "b"}, run="edit"),
    )

    assert mode(rules, name="a", size=1) == "skip"
    assert mode(rules, name="b", size=1) == "unattended"
    assert mode(rules, name="b", size=2) == "edit"
    assert mode(rules, name="c", size=2) == "ask"
    assert mode(rules, run="unattended", name="c", size=2) == "unattended"
    assert mode((), run="edit", name="a") == "edit"
    assert mode((RuleConfig(run="skip"),), name="anything") == "skip"


def test_a_rule_for_an_argument_that_is_omitted_does_not_match() -> None:
    rules = (RuleConfig(arguments={"path": "**"}, run="unattended"),)

    assert mode(rules, path="a") == "unattended"
    assert mode(rules) == "ask"


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["src/a", "src/b"], "unattended"),
        (["src/a", "docs/b"], "ask"),
        (["src/a", "docs/b", "keys/c"], "skip"),
        ([], "ask"),
        ({"from": "src/a"}, "ask"),
    ],
)
def test_of_a_list_every_element_counts(paths: object, expected: RunMode) -> None:
    rules = (
        RuleConfig(arguments={"paths": "keys/**"}, run="skip"),
        RuleConfig(arguments={"paths": "src/**"}, run="unattended"),
    )

    assert mode(rules, paths=paths) == expected


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("git status", "git status", "unattended"),
        ("git *", "git diff --stat", "unattended"),
        ("git *", "git diff src/a", "ask"),
        ("git **", "git diff src/a\nls", "unattended"),
        ("git **", "git diff a/../b", "ask"),
        ("git **", "xgit diff", "ask"),
        ("https://docs.org/**", "https://docs.org/a/", "unattended"),
        ("https://docs.org/open/**", "https://docs.org/open/../closed", "ask"),
        ("curl https://docs.org/*", "curl https://docs.org/a", "unattended"),
        ("3", 3, "unattended"),
        ("true", True, "unattended"),
        ("null", None, "unattended"),
        ('{"a":1,"b":2}', {"b": 2, "a": 1}, "unattended"),
        ("[a].c", "[a].c", "unattended"),
        ("[a].c", "a.c", "ask"),
    ],
)
def test_any_other_argument_is_compared_as_it_is_written(pattern: str, value: object, expected: RunMode) -> None:
    assert mode((RuleConfig(arguments={"text": pattern}, run="unattended"),), text=value) == expected


def test_an_absolute_pattern_and_one_of_the_root_itself_name_the_same_paths() -> None:
    assert mode((RuleConfig(arguments={"path": "/w/src/**"}, run="skip"),), path="src/a") == "skip"
    assert mode((RuleConfig(arguments={"path": "./src/**"}, run="skip"),), path="src/a") == "skip"
    assert mode((RuleConfig(arguments={"path": "."}, run="skip"),), path="/w") == "skip"


def test_of_a_call_with_too_many_readings_the_strictest_rule_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "MOST_READINGS", 1_000)
    many = [str(number) for number in range(1_000)]
    rules = (
        RuleConfig(arguments={"one": "**", "other": "**"}, run="unattended"),
        RuleConfig(arguments={"one": "never"}, run="edit"),
    )

    assert mode(rules, one=many, other=["a"]) == "unattended"
    assert mode(rules, one=many, other=["a", "b"]) == "edit"
    assert mode(rules, one=many, other=["a"], beside="x") == "unattended"
    monkeypatch.setattr(readings, "MOST_READINGS", 999)
    assert mode(rules, one=many, other=["a"]) == "edit"


@given(st.text("ab*", max_size=12), st.text("ab", max_size=12))
def test_a_star_is_any_text_in_any_pattern(pattern: str, text: str) -> None:
    found = mode((RuleConfig(arguments={"text": pattern}, run="skip"),), text=text)

    assert found == ("skip" if fnmatchcase(text, pattern) else "ask")


def test_of_a_text_that_is_too_long_to_compare_the_strictest_rule_counts() -> None:
    rules = (RuleConfig(arguments={"text": "**"}, run="unattended"), RuleConfig(arguments={"text": "b"}, run="skip"))

    assert mode(rules, text="a" * LONGEST_TEXT) == "unattended"
    assert mode(rules, text="a" * (LONGEST_TEXT + 1)) == "skip"


def test_no_text_makes_a_pattern_look_for_ever() -> None:
    pattern = "**a" * 12 + "**b"

    assert mode((RuleConfig(arguments={"text": pattern}, run="skip"),), text="a" * LONGEST_TEXT) == "ask"
    assert mode((RuleConfig(arguments={"text": pattern.replace("**", "*")}, run="skip"),), text="a" * 9999) == "ask"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("path", "y"), ("target_path", "y"), ("Paths", "y"), ("source-file", "y"), ("text", "n"), ("filed", "n")],
)
def test_the_name_of_an_argument_says_that_it_is_a_path(name: str, expected: str) -> None:
    assert is_path(name) == (expected == "y")


def test_a_rule_for_an_argument_that_a_tool_does_not_have_is_an_error_unless_it_takes_any() -> None:
    strict: JsonObject = {"properties": {"path": {}, "lines": {}}, "additionalProperties": False}
    rules = (RuleConfig(arguments={"path": "a"}), RuleConfig(arguments={"pth": "a"}, run="skip"))

    with pytest.raises(ConfigurationError, match="asks for an argument 'pth', which the tool does not have") as raised:
        check_rules(rules, ToolDefinition(name="read", description="", parameters=strict))
    assert raised.value.hint == "it has 'path', 'lines'"
    with pytest.raises(ConfigurationError) as raised:
        check_rules(rules, ToolDefinition(name="read", description="", parameters={"additionalProperties": False}))
    assert raised.value.hint == "it has none"
    check_rules(rules[:1], ToolDefinition(name="read", description="", parameters=strict))
    check_rules(rules, ToolDefinition(name="read", description="", parameters={"properties": {"path": {}}}))


@pytest.mark.parametrize("pattern", ["./**", "/w/**"])
def test_all_that_lies_in_the_root_is_nothing_outside_of_it(pattern: str) -> None:
    rules = (RuleConfig(arguments={"path": pattern}, run="unattended"),)

    assert [mode(rules, path=path) for path in ("a", "src/a", ".", "/w", "/w/x/../a")] == ["unattended"] * 5
    assert [mode(rules, path=path) for path in ("/", "/etc/passwd", "../a", "/wx", "src/../../x", "out/a")] == [
        "ask"
    ] * 6


def test_an_exact_rule_matches_no_call_with_other_arguments() -> None:
    rules = (RuleConfig(arguments={"path": "src/**"}, exact=True, run="unattended"),)

    assert mode(rules, path="src/a") == "unattended"
    assert mode(rules, path="src/a", mode="w") == "ask"
    assert mode(rules) == "ask"


def test_a_prefix_is_followed_by_nothing_or_by_plain_words() -> None:
    rules = (RuleConfig(prefix={"command": "git log"}, run="unattended"),)

    plain = ("git log", "git log -3 --format=%h HEAD~1", "git log main..topic", "git log src/a.py")
    assert [mode(rules, command=command) for command in plain] == ["unattended", "ask", "unattended", "unattended"]
    others = (
        "git",
        "git logs",
        "git  log",
        "git log; rm x",
        "git log\n",
        "git log\trm",
        "x git log",
        "git log $(rm x)",
    )
    assert {mode(rules, command=command) for command in others} == {"ask"}


def test_a_rule_for_an_argument_that_a_tool_does_not_have_is_an_error_in_a_prefix_too() -> None:
    definition = ToolDefinition(name="t", description="", parameters={"additionalProperties": False, "properties": {}})
    with pytest.raises(ConfigurationError, match="an argument 'command'"):
        check_rules([RuleConfig(prefix={"command": "git"})], definition)


def offered(name: str, settings: ToolConfig | None = None, **arguments: Any) -> list[RuleConfig | None]:
    schema = {"properties": {key: {"type": "string"} for key in arguments}, "required": list(arguments)}
    definition = ToolDefinition(name=name, description="", parameters=schema)
    paths = Paths(root="/w", real=real)
    is_own = name.startswith("fs_")
    ways = lasting_rules(definition, settings or ToolConfig(), arguments, paths, is_file_tool=is_own)
    return [way.rule for way in ways]


def exact(**arguments: str) -> RuleConfig:
    return RuleConfig(arguments=arguments, exact=True, run="unattended")


def below(directory: str) -> RuleConfig:
    return RuleConfig(arguments={"path": f"{directory}/**"}, run="unattended")


def test_the_narrowest_way_to_allow_a_call_comes_first() -> None:
    assert offered("fs_read_file", path="src/a.py") == [exact(path="/w/src/a.py"), below("/w/src"), None]
    assert offered("fs_create_file", path="a", content="x*") == [below("/w"), None]
    assert offered("run_command", command="git log -3", timeout_secs=5) == [
        exact(command="git log -3", timeout_secs="5"),
        RuleConfig(arguments={"timeout_secs": "5"}, prefix={"command": "git log"}, exact=True, run="unattended"),
        None,
    ]


def test_a_way_to_allow_a_call_is_offered_only_if_it_allows_this_call_and_not_everything() -> None:
    assert offered("fs_read_file", path="../x") == [exact(path="/x"), None]
    assert offered("fs_read_file", path="src/secret/a") == [None]  # a link leads elsewhere
    assert offered("fs_read_file", ToolConfig(rules=(RuleConfig(arguments={"path": "src/**"}),)), path="src/a") == [
        None
    ]
    assert offered("other", path="src/a") == [exact(path="/w/src/a"), None]
    assert offered("fs_move_file", path="src/a", target_path="src/b")[1:] == [None]
    assert offered("run_command", command="ls *") == offered("t", paths=["a", "b"]) == offered("t") == [None]


@pytest.mark.parametrize(
    "command", ["sudo make", "/usr/bin/env make", "python x.py", "A=1 make", "$HOME/x", "-x", "", "~/x", "make;rm x"]
)
def test_no_prefix_is_offered_that_could_run_any_other_program(command: str) -> None:
    assert [rule for rule in offered("run_command", command=command) if rule is not None and rule.prefix] == []


def test_the_page_shows_what_is_offered() -> None:
    page = (Path(__file__).parents[3] / "docs/tools.md").read_text(encoding="utf-8")
    schema = {"properties": {"command": {"type": "string"}}, "required": ["command"]}
    definition = ToolDefinition(name="run_command", description="", parameters=schema)
    paths = Paths(root="/w", real=real)
    ways = lasting_rules(definition, ToolConfig(), {"command": "git log -3"}, paths, is_file_tool=False)

    assert "".join(f"{number}  {way.covers}\n" for number, way in enumerate(ways, 1)) in page
