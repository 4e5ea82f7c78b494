from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from jp.context import redaction
from jp.context.redaction import Redacted, redact

VALUE = "hunter2-XYZ"

NAMED = (
    ("export OPENAI_API_KEY={}", "key"),
    ("OPENAI_API_KEY={}&;,x", "key"),
    ('{{"x-api-key": "{}"}}', "key"),
    ('{{"aws_secret_access_key":"{}","region":1}}', "secret"),
    (r'"{{\"api_key\": \"{}\", \"n\": 1}}"', "key"),
    ('{{"name": "DB_PASSWORD", "value": "{}"}}', "password"),
    ('{{"value": "{}", "name": "DB_PASSWORD"}}', "password"),
    ("- name: DB_PASSWORD\n  value: {}\n", "password"),
    ("password: {} horse battery", "password"),
    ('password: str = "{}"', "password"),
    ("db_pass = '{}'", "password"),
    ("psql --password {} --verbose", "password"),
    ("tool --api-key={} --verbose", "key"),
    ("psql --password '{}' --verbose", "password"),
    ("<password>{}</password>", "password"),
    ("https://user:{}@host/x", "password"),
    ("https://host/x?a=1&token={}&b=2", "token"),
    ("https://host/x?sig={}&b=2", "key"),
    ("Authorization: Basic {}", "authorization"),
    ('curl -H "Authorization: token {}" https://host', "authorization"),
    ('{{"Authorization": "Bearer {}"}}', "authorization"),
    ('> authorization: Digest username="a", response="{}"', "authorization"),
    ("Cookie: sid={}; a=b", "cookie"),
    ("Set-Cookie: sid={}; Path=/", "cookie"),
    ("AccountKey={}==;EndpointSuffix=x", "key"),
    ("machine x login y password {}", "password"),
    ('{{"token": "{}', "token"),
    ("session_id=a1b2c3d4e5{}", "session"),
    (r'{{"password": "a\"{}\"\\", "n": 1}}', "password"),
    (r'"{{\"password\": \"a\\\"{}\"}}"', "password"),
    ('{{"token": "{}\n"}}', "token"),
    ('TOKEN = """{}"""', "token"),
    ("api_key_value={}", "key"),
    ('see the key: API_KEY="{}"', "key"),
    ('{{"log": "started\\nAPI_TOKEN={}\\nready"}}', "token"),
)
ISSUED = (
    "sk-ant-api03-Th1sM4yN0tLeak",
    "sk_live_4eC39HqLyjWDarjtT1",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0aBcDeFgHiJkLmN",
    "gho_16C7e42F292c6912E7710c838347Ae178B4a",
    "xoxb-2345678901-abcDEF",
    "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    "hf_aBcDeFgHiJkLmNoPqR5",
    "npm_aBcDeFgHiJkLmNoPqR5sTuVwXyZ0123456",
    "pypi-AgEIcHlwaS5vcmcCJDU3",
    "glpat-aBcDeF1234567890xyZ9",
    "SG.aBcDeFgHiJkLmNoP5q.aBcDeFgHiJkLmNoP5qRsT",
    "rk_test_4eC39HqLyjWDarjtT1",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
)
HARMLESS = (
    "",
    "max_tokens: 4096",
    '{"token_count": 12, "primary_key": "abc12345678901", "keyboard": "qwerty123456"}',
    'for key, value in items: key = value.split(":")[0]',
    "sorted(x, key=len)",
    "SyntaxError: Unexpected token: identifier",
    "password = getpass()",
    'token = os.environ["TOKEN"]',
    "def f(password: str, token: Token = None) -> None",
    "self.password = password",
    "author: Jane",
    "KeyError: 'name'",
    "unknown key 'conversation.tools.t2.parametres'",
    "git@github.com:foo/bar.git",
    "https://example.com/a?page_token=abc&x=1",
    "passed: 12, failed: 3",
    "PASS: test_foo",
    "risk-management-framework2020",
    "public_key: abcdefgh12345678",
    "session: closed",
    '{"session_id": "79b891f0-6e3d-482c-ba5d-b9138744f17e"}',
    "PASSWORD=$DB_PASSWORD",
    '"token": {"type": "string"}',
    'cache_key = f"{a}:{b}"',
    "token_type: bearer",
    "api_key_env = 'FOO'",
    "usage <session-id> shows 1",
    "the user must give a --token or a key",
    "with `--session` it hangs",
    "login --password --verbose",
    "budget_tokens: config",
    '{"name": "max_tokens", "value": 4096}',
    '{"tokens": [1, 2], "total_tokens": "1834"}',
    "a <password> of 9 characters",
    "-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----",
    "bearer authentication",
    "https://jane@example.com/",
    "sk-learn-contrib-something",
    "raw_value=7",
    "password=" + " ;" * 5,
)


@pytest.mark.parametrize(("text", "kind"), NAMED)
def test_a_value_that_is_named_is_replaced_by_its_kind_and_its_surroundings_stay(text: str, kind: str) -> None:
    whole = text.format(VALUE)

    found = redact(whole)

    assert found.found == (kind,)
    assert VALUE not in found.text
    before, after = found.text.split(f"[redacted:{kind}]")
    assert whole.startswith(before)
    assert whole.endswith(after)


@pytest.mark.parametrize("key", ISSUED)
def test_what_a_vendor_issued_is_known_by_its_shape(key: str) -> None:
    found = redact(f"ran with {key}, twice\n{key}\\n{key}")

    kind = "token" if key.startswith("eyJ") else "api-key"
    assert found == Redacted(f"ran with [redacted:{kind}], twice\n[redacted:{kind}]\\n[redacted:{kind}]", (kind,) * 3)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_a_secret_stays_the_very_same_object(text: str) -> None:
    assert redact(text).text is text


def test_what_finds_secrets_is_loaded_for_the_first_text_that_may_have_one() -> None:
    spec = spec_from_file_location("fresh", redaction.__file__)
    assert spec is not None
    assert spec.loader is not None
    fresh = module_from_spec(spec)
    spec.loader.exec_module(fresh)

    assert fresh.redact("fix issue 42 of it").found == ()
    assert fresh.redact(f"fix API_KEY={VALUE}").text == "fix API_KEY=[redacted:key]"
    assert fresh.redact("fix issue 42 of it").found == ()


def test_every_string_of_a_list_goes() -> None:
    found = redact('{"tokens": ["one-1", "two\\"2"], "names": ["a"]}')

    assert found.text == '{"tokens": ["[redacted:token]", "[redacted:token]"], "names": ["a"]}'


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_a_value_ends_where_its_quote_does_however_often_it_is_quoted(depth: int) -> None:
    def quoted(value: str) -> str:
        text = json.dumps({"before": "x", "password": value, "after": 'y"\\'})
        for _ in range(depth - 1):
            text = json.dumps(text)
        return text

    for value in ('a "quoted" word', "\\", 'end\\"', "\\\\\\", "ü\n\t"):
        assert redact(quoted(value)).text == quoted("[redacted:password]")


def test_a_marker_is_not_taken_for_a_name() -> None:
    text = f"{ISSUED[2]}: A1b2C3d4E5f6G7h8I9"

    assert redact(text).text == "[redacted:api-key]: A1b2C3d4E5f6G7h8I9"
    assert redact(redact(text).text).found == ()


KEY = "MIIEpAIBAAKCAQEA7bq2\nu4xkq9sKQ0d1UoZ5r8mV3x\nQ2w=\n"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (f"a\n-----BEGIN RSA PRIVATE KEY-----\n{KEY}-----END RSA PRIVATE KEY-----\nb", "a\n[redacted:private-key]\nb"),
        (f"a\n-----BEGIN PRIVATE KEY-----\n{KEY}", "a\n[redacted:private-key]\n"),
        (f"{KEY}-----END OPENSSH PRIVATE KEY-----\nb", "[redacted:private-key]\nb"),
        (f"-----BEGIN PRIVATE KEY-----\n{KEY}-----BEGIN PRIVATE KEY-----\n{KEY}", "[redacted:private-key]\n" * 2),
        (
            f"-----BEGIN PRIVATE KEY-----\\n{KEY[:20]}\\n-----END PRIVATE KEY-----\\n",
            "[redacted:private-key]\\n",
        ),
    ],
)
def test_a_private_key_goes_whole_even_where_it_was_cut(text: str, redacted: str) -> None:
    assert redact(text).text == redacted


def test_a_key_in_a_value_that_is_named_is_replaced_once() -> None:
    assert redact(f'{{"auth_header": "Basic x {ISSUED[0]} y"}}').text.count("[redacted:") == 1
    assert redact(f"TOKEN={ISSUED[0]}").text == "TOKEN=[redacted:api-key]"


def test_an_address_that_has_only_a_token_before_its_host_loses_it() -> None:
    assert redact("https://a1b2c3d4e5f6a7b8c9@host/x").text == "https://[redacted:token]@host/x"


def test_however_a_text_is_made_up_four_times_as_much_takes_about_four_times_as_long() -> None:
    """What is not linear never ends."""
    units = ("key=", "cookie: a ", "eyJ", "xsk-", "sk-", "-----BEGIN PRIVATE KEY-----A", "A-----END PRIVATE KEY-----")
    for unit in (*units, 'key="\\"', 'value="', "://", "login a password ", "password: a ", 'key=["', "token=a;"):
        text = unit * (18_000 // len(unit)) + ";" * 2_000
        assert len(redact(text).text) > 0
