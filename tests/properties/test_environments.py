"""What programs get of random environments."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jp.process.environment import child_environment, scrubbed

NAMES = (
    "PATH", "HOME", "LC_ALL", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "NIX_PATH", "NIX_CONFIG", "CARGO_HOME", "GOFLAGS",
    "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "no_proxy", "DOCKER_HOST", "GIT_DIR", "PYTHONPATH", "SSH_AUTH_SOCK",
    "SECRET_HOME", "XDG_TOKEN", "OPENAI_API_KEY", "GITHUB_TOKEN", "DATABASE_URL", "AWS_SECRET_ACCESS_KEY", "ZZ",
)  # fmt: skip
PROXIES = ("http_proxy", "HTTPS_PROXY", "ALL_PROXY")
CORE = "Zq7Rk2Vw9Xt4Lm8Np3Bs6Dy1"
SECRETS = (
    f"sk-ant-api03-{CORE}",
    f"ghp_{CORE}",
    f"xoxb-{CORE}",
    f"hf_{CORE}",
    f"Bearer {CORE}",
    f"--password={CORE}",
    f"api_key={CORE}",
    f'{{"auth_token": "{CORE}"}}',
    f"https://ada:{CORE}@host/path",
    f"https://{CORE}@host/path",
    f"postgres://ada:{CORE}@host:5432/db",
    f"-----BEGIN PRIVATE KEY-----\n{CORE}\n-----END PRIVATE KEY-----",
)
names = st.sampled_from(NAMES) | st.from_regex(r"[A-Z][A-Z_]{0,8}(?:_HOME|_PROXY)?", fullmatch=True)
fillers = st.sampled_from(("", " ", ":", ",", "/usr/bin", "-mod=mod ", "é", "\n", "x=1 ", "http://host:80/ "))
ends = st.sampled_from(("", " ", "\n", " /usr/bin", " x=1"))
secret_values = st.tuples(fillers, st.just(" "), st.sampled_from(SECRETS), ends).map("".join)
schemes = st.sampled_from(("", "http://", "socks5h://"))
users = st.text("abc.-%", max_size=4)
passwords = st.text("abc/@:?#%\\ é", max_size=6)
logins = st.tuples(schemes, users, st.just(f":{CORE}"), passwords, st.just("@proxy:3128")).map("".join)
harmless = st.lists(st.sampled_from(("/usr/bin", "/opt/a b/é", ":", "en_US.UTF-8", "1", "host:80", "~/x")), max_size=5)
settings = st.dictionaries(names, secret_values | harmless.map("".join))


@given(settings, st.dictionaries(st.sampled_from(PROXIES), logins), st.sets(names))
def test_no_secret_reaches_a_program_unless_the_variable_is_named(
    others: dict[str, str], proxies: dict[str, str], named: set[str]
) -> None:
    environment = others | proxies

    passed = child_environment(environment, cwd="/srv/below", directory="/srv", named=named)

    assert {name for name, value in passed.items() if CORE in value} <= named
    assert {name: passed[name] for name in named & environment.keys() if not name.startswith("GIT_")} == {
        name: environment[name] for name in named & environment.keys() if not name.startswith("GIT_")
    }


@given(st.dictionaries(st.sampled_from(("PATH", "HOME", "LC_ALL", "CARGO_HOME", "GOFLAGS")), harmless.map("".join)))
def test_what_is_harmless_passes_unchanged(environment: dict[str, str]) -> None:
    assert scrubbed(environment) == environment
