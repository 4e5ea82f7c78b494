from __future__ import annotations

import pytest

from jp.process.environment import child_environment, scrubbed


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "LANG", "LC_ALL", "XDG_CACHE_HOME", "CARGO_HOME", "https_proxy", "NO_PROXY", "GIT_INDEX_FILE"],
)
def test_what_programs_need_is_passed(name: str) -> None:
    assert scrubbed({name: "x"}) == {name: "x"}


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DATABASE_URL",
        "GIT_CONFIG_VALUE_0",
        "GIT_ASKPASS",
        "XDG_TOKEN",
        "SECRET_HOME",
        "LD_PRELOAD",
        "JP_SESSION",
    ],
)
def test_everything_else_is_not(name: str) -> None:
    assert scrubbed({name: "x", "PATH": "/bin"}) == {"PATH": "/bin"}


def test_what_is_named_is_passed_whatever_it_says() -> None:
    assert scrubbed({"MY_TOKEN": "x", "OTHER_TOKEN": "y"}, named=["MY_TOKEN", "ABSENT"]) == {"MY_TOKEN": "x"}


def test_a_program_sees_the_repository_of_a_hook_from_where_it_runs() -> None:
    given = {"GIT_INDEX_FILE": ".git/index.lock", "GIT_DIR": "/elsewhere/.git", "MY_TOKEN": "x", "EDITOR": "vi"}

    assert child_environment(given, cwd="/srv/below", directory="/srv", named=["MY_TOKEN"]) == {
        "GIT_INDEX_FILE": "/srv/below/.git/index.lock",
        "GIT_DIR": "/elsewhere/.git",
        "MY_TOKEN": "x",
        "EDITOR": "vi",
        "PWD": "/srv",
        "GIT_TERMINAL_PROMPT": "0",
    }
