from __future__ import annotations

import pytest

from jp.attachment.command.scrubbed import scrubbed


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
