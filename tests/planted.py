"""Secrets of many kinds, generated from a seed and planted in texts; none of them was ever in use."""

from __future__ import annotations

import base64
import json
import random
import re
import shlex
import string
from collections.abc import Callable, Iterator
from functools import lru_cache
from urllib.parse import quote, unquote

import msgspec

LOWER_HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + string.digits
URL_SAFE = f"{ALNUM}-_"
BASE64 = f"{ALNUM}+/"
BASE32 = f"{string.ascii_uppercase}234567"

_WINDOW = 8
"""So many characters of a secret in a row are a leak."""


class Planted(msgspec.Struct, frozen=True, kw_only=True):
    """A text that holds `secret`. `kind` and `carrier` name what it is and where it is."""

    kind: str
    carrier: str
    secret: str
    text: str


class _Source:
    """Random characters, of which each secret has at least one digit and one letter."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def some(self, count: int, alphabet: str = ALNUM) -> str:
        middle = "".join(self._random.choice(alphabet) for _ in range(count - 2))
        letter = next(char for char in alphabet if char.isalpha())
        digit = next(char for char in alphabet if char.isdigit())
        return f"{letter}{middle}{digit}"

    def one_of(self, *choices: str) -> str:
        return self._random.choice(choices)

    def digits(self, count: int) -> str:
        return self.some(count + 2, string.digits + "a")[1:-1].replace("a", "7")

    def password(self) -> str:
        return f"{self.some(5)}{self.one_of('-', '_', '!', '%', '.')}{self.some(7)}"

    def blob(self, count: int) -> str:
        return base64.b64encode(self._random.randbytes(count)).decode()


Kind = Callable[[_Source], tuple[str, str]]
"""Gives the natural form of a secret, as a person or a program writes it, and the secret in it."""


def _armored(source: _Source, name: str) -> tuple[str, str]:
    body = source.blob(480)
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    return f"-----BEGIN {name}-----\n{lines}\n-----END {name}-----", lines


def _alone(prefix: str, count: int, alphabet: str = ALNUM) -> Kind:
    def make(source: _Source) -> tuple[str, str]:
        secret = source.some(count, alphabet)
        return f"{prefix}{secret}", secret

    return make


def _one_of(prefixes: tuple[str, ...], count: int, alphabet: str = ALNUM) -> Kind:
    def make(source: _Source) -> tuple[str, str]:
        secret = source.some(count, alphabet)
        return f"{source.one_of(*prefixes)}{secret}", secret

    return make


def _in_form(forms: tuple[str, ...], make: Callable[[_Source], str]) -> Kind:
    def plant(source: _Source) -> tuple[str, str]:
        secret = make(source)
        return source.one_of(*forms).replace("{}", secret), secret

    return plant


def _password(source: _Source) -> str:
    return source.password()


def _hex32(source: _Source) -> str:
    return source.some(32, LOWER_HEX)


def _service_account(source: _Source) -> tuple[str, str]:
    text, secret = _armored(source, "PRIVATE KEY")
    account = {"type": "service_account", "private_key_id": source.some(40, LOWER_HEX), "private_key": f"{text}\n"}
    return json.dumps(account, indent=2), secret


def _token(source: _Source) -> tuple[str, str]:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    head = part({"alg": "HS256", "typ": "JWT"})
    secret = f"{part({'sub': source.some(12), 'iat': 1790000000})}.{source.some(43, URL_SAFE)}"
    return f"{head}.{secret}", secret


def _login(source: _Source) -> tuple[str, str]:
    secret = source.password()
    return source.one_of(
        f"machine api.example.com login jane password {secret}",
        f"machine api.example.com\n  login jane\n  password {secret}",
        f"default login jane\npassword {secret}",
    ), secret


def _nested(source: _Source) -> tuple[str, str]:
    secret = source.some(24)
    return source.one_of(
        json.dumps({"tokens": {"access": secret, "expires": 3600}}),
        json.dumps({"tokens": {"github": {"value": secret}}, "n": 1}, indent=2),
        json.dumps({"credentials": {"prod": {"user": "jane", "pin": secret}}}),
        json.dumps({"secrets": [{"id": secret}]}),
    ), secret


KINDS: dict[str, Kind] = {
    "aws-access-key": _one_of(("AKIA", "ASIA"), 16, BASE32),
    "aws-secret-key": _in_form(
        (
            "aws_secret_access_key = {}",
            "AWS_SECRET_ACCESS_KEY={}",
            '"SecretAccessKey": "{}"',
            "the AWS secret key is {}",
        ),
        lambda source: source.some(40, BASE64),
    ),
    "aws-session-token": _in_form(
        ("export AWS_SESSION_TOKEN={}", "aws_session_token = {}", '"SessionToken": "{}"'),
        lambda source: f"IQoJb3JpZ2luX2Vj{source.some(200, BASE64)}==",
    ),
    "github-classic": _alone("ghp_", 36),
    "github-app": _one_of(("gho_", "ghs_", "ghu_", "ghr_"), 36),
    "github-fine-grained": _alone("github_pat_", 82, f"{ALNUM}_"),
    "gitlab": _one_of(("glpat-", "glrt-", "gldt-", "glcbt-", "glptt-"), 20, URL_SAFE),
    "slack-token": _one_of(("xoxb-", "xoxp-", "xoxe.xoxp-1-", "xapp-1-", "xoxc-"), 50, f"{ALNUM}-"),
    "slack-webhook": _in_form(
        (
            "https://hooks.slack.com/services/T0A1B2C3D/B0A1B2C3D/{}",
            "https://hooks.slack.com/workflows/T0A1/A0B1/1234/{}",
        ),
        lambda source: source.some(24),
    ),
    "discord-webhook": _in_form(
        ("https://discord.com/api/webhooks/1234567890/{}", "https://discordapp.com/api/v10/webhooks/1234567890/{}"),
        lambda source: source.some(68, URL_SAFE),
    ),
    "stripe": _one_of(("sk_live_", "rk_live_", "sk_test_"), 24),
    "stripe-webhook": _alone("whsec_", 32),
    "google-api-key": _alone("AIza", 35, URL_SAFE),
    "google-oauth": _alone("ya29.", 120, URL_SAFE),
    "google-client-secret": _alone("GOCSPX-", 28, URL_SAFE),
    "google-service-account": _service_account,
    "azure-storage": _in_form(
        ("DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};EndpointSuffix=core.windows.net",),
        lambda source: source.blob(64),
    ),
    "azure-shared-access": _in_form(
        (
            "https://x.blob.core.windows.net/c?sv=2024-11-04&se=2026-12-01&sr=c&sig={}",
            "?sv=2024-11-04&sig={}&se=2026-12-01",
            "SharedAccessSignature sr=x&sig={}&se=1790000000",
        ),
        lambda source: quote(source.blob(32), safe=""),
    ),
    "openai": _one_of(("sk-", "sk-proj-", "sk-svcacct-"), 48, URL_SAFE),
    "anthropic": _one_of(("sk-ant-api03-", "sk-ant-oat01-"), 95, URL_SAFE),
    "openrouter": _alone("sk-or-v1-", 64, LOWER_HEX),
    "hugging-face": _alone("hf_", 34),
    "npm": _alone("npm_", 36),
    "pypi": _alone("pypi-AgEIcHlwaS5vcmc", 120, URL_SAFE),
    "docker": _one_of(("dckr_pat_", "dckr_oat_"), 27, URL_SAFE),
    "telegram": _in_form(
        ("{}", "https://api.telegram.org/bot{}/getMe", "bot token {}"),
        lambda source: f"{source.digits(10)}:AA{source.some(33, URL_SAFE)}",
    ),
    "twilio-key": _alone("SK", 32, LOWER_HEX),
    "twilio-token": _in_form(
        ("TWILIO_AUTH_TOKEN={}", "curl -u AC00112233445566778899aabbccddeeff:{} https://api.twilio.com/"), _hex32
    ),
    "sendgrid": _in_form(("SG.{}",), lambda source: f"{source.some(22, URL_SAFE)}.{source.some(43, URL_SAFE)}"),
    "mailgun": _alone("key-", 32, LOWER_HEX),
    "digitalocean": _one_of(("dop_v1_", "doo_v1_", "dor_v1_"), 64, LOWER_HEX),
    "shopify": _one_of(("shpat_", "shpss_", "shpca_", "shppa_"), 32, LOWER_HEX),
    "square": _one_of(("EAAA", "sq0csp-", "sq0atp-"), 60, URL_SAFE),
    "json-web-token": _token,
    "private-key": lambda source: _armored(
        source, f"{source.one_of('RSA ', 'EC ', 'OPENSSH ', 'DSA ', '', 'ENCRYPTED ')}PRIVATE KEY"
    ),
    "pgp-private-key": lambda source: _armored(source, "PGP PRIVATE KEY BLOCK"),
    "age": _alone("AGE-SECRET-KEY-1", 58, f"{string.ascii_uppercase}0123456789"),
    "address": _in_form(
        (
            "https://jane:{}@example.com/x",
            "postgresql://app:{}@db:5432/main",
            "redis://:{}@cache:6379/0",
            "amqp://jane:{}@mq",
            "git clone https://oauth2:{}@gitlab.example.com/a/b.git",
        ),
        _password,
    ),
    "curl": _in_form(
        (
            "curl -u jane:{} https://example.com",
            "curl -sSu jane:{} https://example.com",
            "curl https://example.com --user jane:{}",
            "curl --user=jane:{} https://example.com",
            "curl -ujane:{} https://example.com",
            "wget --http-password={} https://example.com",
        ),
        _password,
    ),
    "mysql": _in_form(
        ("mysql -u root -p{} main", "mysqldump -h db -uroot -p{} main", "mysql --password={} main", "mariadb -p{}"),
        _password,
    ),
    "psql": _in_form(
        (
            'psql "host=db user=app password={} dbname=main"',
            "psql postgresql://app:{}@db/main",
            "PGPASSWORD={} psql -h db",
            "PGPASSWORD='{}' pg_dump main",
        ),
        _password,
    ),
    "sshpass": _in_form(
        (
            "sshpass -p {} ssh jane@host",
            "sshpass -p{} ssh jane@host",
            "sshpass -p '{}' scp a b:",
            "SSHPASS={} sshpass -e",
        ),
        _password,
    ),
    "basic": _in_form(("Authorization: Basic {}", "proxy-authorization: basic {}"), lambda source: source.blob(24)),
    "bearer": _in_form(
        ("Authorization: Bearer {}", 'curl -H "Authorization: Bearer {}" https://example.com', "use the bearer {}"),
        lambda source: source.some(40, URL_SAFE),
    ),
    "cookie": _in_form(
        (
            "Cookie: theme=dark; sid={}",
            "Set-Cookie: session={}; HttpOnly; Path=/",
            "curl -b 'sid={}' https://example.com",
        ),
        lambda source: source.some(32),
    ),
    "header": _in_form(
        ("X-Api-Key: {}", "x-auth-token: {}", "curl -H 'X-Api-Key: {}' https://example.com", "PRIVATE-TOKEN: {}"),
        lambda source: source.some(32),
    ),
    "named-by-a-word": _in_form(
        ("auth_token {}", "the api key {} does not work", "my token: {}", "api_key {}", "access token {}"),
        lambda source: source.some(28),
    ),
    "password-in-prose": _in_form(
        (
            "the password is {}",
            "my password: {}",
            "password {} is refused",
            "the passphrase is '{}'",
            "log in with password {}",
            "the root password was {}",
        ),
        _password,
    ),
    "netrc": _login,
    "nested": _nested,
    "variable": _in_form(
        (
            "export FOO_SECRET={}",
            'set DB_PASSWORD="{}"',
            "ENV API_TOKEN={}",
            "$env:DEPLOY_KEY = '{}'",
            "CLIENT_SECRET: {}",
        ),
        lambda source: source.some(30),
    ),
    "yaml": _in_form(
        (
            "db:\n  user: app\n  password: {}\n  port: 1",
            "secret:\n  {}\n",
            "api_token: >-\n  {}\n",
            "stringData:\n  token: {}",
        ),
        lambda source: source.some(20),
    ),
    "kubeconfig": _in_form(
        ("users:\n- name: me\n  user:\n    client-key-data: {}\n", '"client-key-data": "{}"'),
        lambda source: source.blob(300),
    ),
    "docker-config": _in_form(
        (
            '{"auths": {"https://docker.example.test/v1/": {"auth": "{}"}}}',
            '{"auths":{"ghcr.io":{"identitytoken":"{}"}}}',
        ),
        lambda source: source.blob(30),
    ),
    "npmrc": _in_form(
        ("//registry.example.com/:_authToken={}", "//registry.example.com/:_password={}", "_auth={}"),
        lambda source: source.some(36),
    ),
    "totp": _in_form(
        ("otpauth://totp/Example:jane?secret={}&issuer=Example", "otpauth://totp/x?issuer=Example&secret={}"),
        lambda source: source.some(32, BASE32),
    ),
}


def _in_question(text: str) -> str:
    return f"why does this fail: {text}"


def _in_file(text: str) -> str:
    return f"# notes of today\n\n{text}\n\nmore text\n"


def _in_output(text: str) -> str:
    return f"2026-11-02T10:00:00Z INFO start\n{text}\n[exit 0]\n"


def _in_json(text: str) -> str:
    return json.dumps({"n": 1, "output": f"{text}\n", "after": 'it is "x"'})


def _in_shell(text: str) -> str:
    return f"cd /srv && printf '%s' {shlex.quote(text)} > /tmp/x"


CARRIERS: dict[str, Callable[[str], str]] = {
    "question": _in_question,
    "file": _in_file,
    "output": _in_output,
    "json": _in_json,
    "shell": _in_shell,
}


def plant(kind: str, carrier: str, seed: object) -> Planted:
    """One secret of a kind in a carrier; another seed gives another one."""
    text, secret = KINDS[kind](_Source(f"{kind} {carrier} {seed}"))
    return Planted(kind=kind, carrier=carrier, secret=secret, text=CARRIERS[carrier](text))


def corpus(seed: object = 0) -> Iterator[Planted]:
    """A secret of each kind in each carrier."""
    return (plant(kind, carrier, seed) for kind in KINDS for carrier in CARRIERS)


def leaked(secret: str, text: str) -> str:
    """What `text` has of `secret`, in any case, however quoted, joined by anything; empty where it has nothing."""
    windows = _plain(secret)
    size = min(_WINDOW, len(windows))
    for form in _forms(text):
        for at in range(len(windows) - size + 1):
            if windows[at : at + size] in form:
                return windows[at : at + size]
    return ""


@lru_cache(maxsize=4)
def _forms(text: str) -> frozenset[str]:
    """Return a text that is searched for many secrets as it is compared with them, unquoted up to twice."""
    return frozenset({_plain(text), _plain(unquote(text)), _plain(unquote(unquote(text)))})


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", re.sub(r"\\+[nrt]", "", text).lower())
