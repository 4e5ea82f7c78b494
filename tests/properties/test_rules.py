"""Rules for the arguments of calls: no spelling of a path gets around them."""

from __future__ import annotations

import posixpath
import re

from hypothesis import given
from hypothesis import strategies as st

from jp.config.entries import RuleConfig, RunMode, ToolConfig
from jp.tool.rules import Paths, glob_regex, run_mode

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
