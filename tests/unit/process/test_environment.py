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


@pytest.mark.parametrize("name", ["SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"])
def test_no_agent_is_reached_unless_its_variable_is_named(name: str) -> None:
    assert scrubbed({name: "/run/user/1000/x"}) == {}
    assert scrubbed({name: "/run/user/1000/x"}, named=[name]) == {name: "/run/user/1000/x"}


@pytest.mark.parametrize(
    ("value", "passed"),
    [
        ("http://ada:s3cret@proxy:3128", "http://proxy:3128"),
        ("ada:s3/cr@et@proxy:3128", "proxy:3128"),
        ("http://ada:http://@proxy", "http://proxy"),
        ("socks5h://token@proxy/", "socks5h://proxy/"),
        ("http://proxy:3128", "http://proxy:3128"),
    ],
)
def test_a_proxy_loses_its_login(value: str, passed: str) -> None:
    assert scrubbed({"HTTPS_PROXY": value, "all_proxy": value}) == {"HTTPS_PROXY": passed, "all_proxy": passed}


@pytest.mark.parametrize(
    ("value", "passed"),
    [
        ("-x=https://ada:s3cret@host/go -mod=mod", {"GOFLAGS": "-x=https://host/go -mod=mod"}),
        ("https://ada:s3/cr@host", {}),
        ("https://host:80/a@b", {"GOFLAGS": "https://host:80/a@b"}),
        ("ssh://git@host", {"GOFLAGS": "ssh://git@host"}),
        ("sk-ant-api03-0123456789abcdefghij", {}),
        ("--token=0123456789abcdef0123456789abcdef", {}),
    ],
)
def test_a_value_that_looks_like_a_secret_is_not_passed_under_any_name(value: str, passed: dict[str, str]) -> None:
    assert scrubbed({"GOFLAGS": value}) == passed
