"""Rules for the arguments of calls: no spelling of a path gets around them."""

from __future__ import annotations

import posixpath
import re
import shlex
import shutil
import subprocess

from hypothesis import given
from hypothesis import strategies as st

from jp.config.entries import RuleConfig, RunMode, ToolConfig
from jp.conversation.entries import JsonObject
from jp.conversation.thread import ToolDefinition
from jp.tool.rules import LastingRule, Paths, glob_regex, lasting_rules, run_mode

NAMES = ("src", "docs", "keys", "a", "b.py")
ROOT = "/srv/app"
PATHS = Paths(root=ROOT, real=posixpath.normpath)
ORDER: list[RunMode] = ["unattended", "ask", "edit", "skip"]


def rule_for(path: str, run: RunMode) -> RuleConfig:
    return RuleConfig(arguments={"path": path}, run=run)


names = st.sampled_from(NAMES)
segments = st.lists(names, min_size=1, max_size=4)
modes = st.sampled_from(ORDER)
patterns = st.lists(st.sampled_from([*NAMES, "*", "**"]), min_size=1, max_size=3).map("/".join)
rules = st.lists(st.builds(rule_for, patterns, modes), max_size=4)


@st.composite
def spellings(draw: st.DrawFn, path: list[str]) -> str:
    """The same path, with detours."""
    parts: list[str] = []
    for segment in path:
        detour = draw(st.sampled_from(["", ".", "x/..", "src/../.", "a/b/../.."]))
        parts += [detour, segment] if detour else [segment]
    text = draw(st.sampled_from(["/", "//"])).join(parts)
    return draw(st.sampled_from(["", "./", f"{ROOT}/", f"{ROOT}/../app/"])) + text


def mode(path: object, listed: list[RuleConfig]) -> RunMode:
    return run_mode(ToolConfig(rules=tuple(listed)), {"path": path}, PATHS)


@given(data=st.data(), path=segments, listed=rules)
def test_every_spelling_of_a_path_has_the_same_rule(
    data: st.DataObject, path: list[str], listed: list[RuleConfig]
) -> None:
    assert mode(data.draw(spellings(path)), listed) == mode("/".join(path), listed)


@given(paths=st.lists(segments.map("/".join), min_size=1, max_size=4), listed=rules)
def test_a_list_is_let_through_as_its_strictest_element_is(paths: list[str], listed: list[RuleConfig]) -> None:
    assert ORDER.index(mode(paths, listed)) == max(ORDER.index(mode(path, listed)) for path in paths)


@given(path=segments.map("/".join), listed=rules, link=names, target=names)
def test_a_link_never_lets_through_what_its_target_would_not(
    path: str, listed: list[RuleConfig], link: str, target: str
) -> None:
    def real(text: str) -> str:
        return posixpath.normpath(text).replace(f"{ROOT}/{link}", f"{ROOT}/{target}", 1)

    followed = posixpath.relpath(real(f"{ROOT}/{path}"), ROOT)
    linked = run_mode(ToolConfig(rules=tuple(listed)), {"path": path}, Paths(root=ROOT, real=real))

    assert ORDER.index(linked) >= ORDER.index(mode(followed, listed))


def naive(pattern: str) -> str:
    """What a pattern means, said in the plainest way."""
    wildcards = {"**": ".*", "*": "[^/]*"}
    return "".join(wildcards.get(part, re.escape(part)) for part in re.split(r"(\*\*|\*)", pattern))


@given(pattern=st.text("ab/*", max_size=9), text=st.text("ab/", max_size=12))
def test_a_pattern_means_what_the_plainest_expression_for_it_means(pattern: str, text: str) -> None:
    expected = re.fullmatch(naive(pattern), text, re.DOTALL)

    assert bool(re.fullmatch(glob_regex(pattern), text, re.DOTALL)) == bool(expected)


# A remembered way to run calls: no text of a model widens it.

ANYTHING = st.text(max_size=14) | st.text("ab;&|<>$`(){}[]'\"\\\n\t\0*?~#!^./ -=é\u202e\xa0", max_size=14)
COMMANDS = st.sampled_from(["git log", "make", "ls src", "./run.sh all", "cargo test --all"]) | ANYTHING


def ways(tool: str, arguments: JsonObject, *, properties: JsonObject | None = None) -> list[LastingRule]:
    schema = {"properties": properties or {name: {} for name in arguments}, "required": list(arguments)}
    definition = ToolDefinition(name=tool, description="", parameters=schema)
    return lasting_rules(definition, ToolConfig(), arguments, PATHS, is_file_tool=tool.startswith("fs_"))


def runs(way: LastingRule, arguments: JsonObject) -> bool:
    assert way.rule is not None
    return run_mode(ToolConfig(rules=(way.rule,)), arguments, PATHS) == "unattended"


@given(command=COMMANDS, other=COMMANDS, more=ANYTHING, also=st.none() | ANYTHING)
def test_a_remembered_command_lets_only_plain_words_follow_its_prefix(
    command: str, other: str, more: str, also: str | None
) -> None:
    for way in ways("run_command", {"command": command})[:-1]:
        assert way.rule is not None
        assert runs(way, {"command": command})
        words = way.rule.prefix.get("command")
        for text in (other, command + more, f"{command} {more}", more + command):
            allowed = runs(way, {"command": text})
            assert allowed <= (text == command or (words is not None and is_plain(words, text)))
            assert not runs(way, {"command": text, "directory": also})
            assert not runs(way, {"command": [text, "x"]})


def is_plain(words: str, text: str) -> bool:
    """Return whether a shell would read `text` as these words and further ones, each as it is written."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        found = list(lexer)
    except ValueError:  # a quote that does not end
        return False
    return found == text.split() and found[: len(words.split())] == words.split()


def test_no_character_that_may_follow_a_prefix_means_anything_to_a_shell() -> None:
    rule = RuleConfig(prefix={"command": "say"}, exact=True, run="unattended")
    way = LastingRule(covers="", rule=rule)
    allowed = [chr(code) for code in range(0x3000) if runs(way, {"command": f"say a{chr(code)}b"})]
    assert "".join(allowed) == " %+,-./0123456789:=@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
    assert not any(runs(way, {"command": f"say{chr(code)}a"}) for code in range(0x3000) if chr(code) != " ")

    words = [f"a{character}b" for character in allowed if character != " "] + [*allowed[1:]]
    script = f'say() {{ for word; do printf "%s\\n" "$word"; done; }}\nsay {" ".join(words)}'
    for shell in filter(None, map(shutil.which, ("sh", "bash"))):
        done = subprocess.run([shell, "-c", script], capture_output=True, encoding="utf-8", check=True, cwd="/")
        assert done.stdout.splitlines() == words


@given(path=st.text("ab./*\0é ", max_size=10), other=st.text("ab./*\0é ", max_size=10), content=ANYTHING)
def test_a_remembered_directory_lets_nothing_outside_of_it(path: str, other: str, content: str) -> None:
    properties = {"path": {"type": "string"}, "content": {"type": "string"}}
    for way in ways("fs_create_file", {"path": path, "content": content}, properties=properties)[:-1]:
        assert way.rule is not None
        if runs(way, {"path": other, "content": content}):
            whole = posixpath.normpath(posixpath.join(ROOT, other))
            exact = posixpath.normpath(posixpath.join(ROOT, path))
            assert f"{whole}/".startswith(f"{posixpath.dirname(exact).rstrip('/')}/")
            assert f"{whole}/".startswith(f"{ROOT}/") or way.rule.exact
