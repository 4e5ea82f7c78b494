"""The same conversations in the clouds: requests that the vendors' SDKs sign, answers that are read as any."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import anyio
import msgspec
import pytest
from anyio import to_thread

import anthropic_wire
import bedrock_wire
import google_wire
import openai_wire
from certificates import one_authority
from jp.cli.terminal.wording import worded
from jp.config.assignment import read_partial
from jp.config.layers import config_of
from jp.conversation.thread import Parameters, Thread, UserText
from jp.errors import AuthenticationError, ConfigurationError, JpError
from jp.provider.base import Finished, Part, Provider, TextDelta
from jp.provider.errors import ProviderError
from jp.provider.http import HttpProvider
from jp.provider.registry import ModelId, create_provider, vendor_of
from jp.provider.vendor import read_token_count
from loopback import HTML, JSON, Loopback, Received, Reply
from provider_at import KEY, provider_at, receive

pytestmark = pytest.mark.filterwarnings(r"ignore:'encoding' argument not specified:EncodingWarning:google\..*")
"""What Google's library opens is its own affair."""

BEDROCK_MODEL = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
MODELS = {
    "bedrock": BEDROCK_MODEL,
    "vertex": "claude-haiku-4-5@20251001",
    "foundry": "claude-haiku-4-5",
    "azure": "gpt-5.6",
    "gemini": "gemini-3.8-flash",
}
SAID = anthropic_wire.answer(
    anthropic_wire.thinking(0, "hm", signature="sealed"),
    anthropic_wire.text(1, "Hel", "lo"),
    anthropic_wire.tool_use(2, "look", '{"at":', '"x"}'),
    reason="tool_use",
)
BODIES = {"azure": openai_wire.answer(openai_wire.message("Hello")), "gemini": google_wire.message("Hello")}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return one_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, authority: Path) -> None:
    """Credentials of AWS, and none of anybody else."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    for name in ("AWS_PROFILE", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "aws-secret-0123456789")


@pytest.fixture(scope="module")
def google_key() -> str:
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - it keeps nothing secret
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.fixture
def google_credentials(google_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """A service account, and the server that gives it tokens."""
    token = msgspec.json.encode({"access_token": "token-of-google-0", "expires_in": 3600, "token_type": "Bearer"})
    with Loopback(otherwise=Reply(body=token, headers=JSON)) as server:
        account = {
            "type": "service_account",
            "project_id": "from-file",
            "private_key_id": "1",
            "private_key": google_key,
            "client_email": "jp@example.com",
            "client_id": "1",
            "token_uri": f"{server.url}/token",
        }
        path = tmp_path / "account.json"
        path.write_bytes(msgspec.json.encode(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        yield server


def cloud(
    name: str,
    endpoint: str,
    *,
    environ: Mapping[str, str] | None = None,
    request: Mapping[str, object] | None = None,
    **settings: Any,
) -> Provider:
    """A provider `work` in a cloud; `settings` are those of its account."""
    kind = {"azure": "openai", "gemini": "google"}.get(name, "anthropic")
    platform = "vertex" if name == "gemini" else name
    account = {"kind": kind, "transport": "sdk", "platform": platform, "endpoint": endpoint, **settings}
    values: dict[str, Any] = {"assistant": {"request": request or {}}, "providers": {"llm": {"work": account}}}
    keys = {"ANTHROPIC_FOUNDRY_API_KEY": KEY, "AZURE_OPENAI_API_KEY": KEY} if environ is None else environ
    return create_provider(config_of(read_partial(values)), ModelId("work", MODELS[name]), environ=keys, root=Path())


def asked(name: str, **parameters: object) -> Thread:
    return Thread(
        model=MODELS[name],
        system=("Be brief.",),
        tools=(),
        events=(UserText(text="Hi", turn=0),),
        parameters=msgspec.convert(parameters, Parameters),
    )


def bedrock(*replies: Reply, **settings: Any) -> list[Part] | JpError:
    """What came of one request, of which the last reply is the answer."""
    with Loopback(*replies) as server:
        provider = cloud("bedrock", server.url, region="us-east-1", **settings)
        ending = anyio.run(receive, provider, asked("bedrock"))
    return ending.parts if ending.error is None else ending.error


def failed(reply: Reply, **settings: Any) -> ProviderError:
    error = bedrock(reply, **settings)
    assert isinstance(error, ProviderError)
    return error


def plain(name: str) -> list[Part]:
    """The parts of the same answer from the vendor itself."""
    kind = {"azure": "openai", "gemini": "google"}.get(name, "anthropic")
    with Loopback(Reply(body=BODIES.get(name, SAID))) as server:
        provider = provider_at(server.url, provider="work", kind=kind, model=MODELS[name])
        ending = anyio.run(receive, provider, asked(name))
    assert ending.error is None
    assert isinstance(ending.parts[-1], Finished)
    return ending.parts


SETTINGS: dict[str, dict[str, Any]] = {
    "bedrock": {"region": "us-east-1"},
    "vertex": {"region": "europe-west1", "project": "p-1"},
    "foundry": {},
    "azure": {},
    "gemini": {"region": "europe-west1", "project": "p-1"},
}
_VERTEX = "/v1/projects/p-1/locations/europe-west1/publishers"
PATHS = {
    "bedrock": "/model/us.anthropic.claude-haiku-4-5-20251001-v1:0/invoke-with-response-stream",
    "vertex": f"{_VERTEX}/anthropic/models/claude-haiku-4-5@20251001:streamRawPredict",
    "foundry": "/anthropic/v1/messages",
    "azure": "/openai/v1/responses",
    "gemini": "/v1beta1/projects/p-1/locations/europe-west1/publishers/google/models/gemini-3.8-flash:"
    "streamGenerateContent?alt=sse",
}
CREDENTIALS = {
    "bedrock": r"AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/\d{8}/us-east-1/bedrock/aws4_request, .*Signature=\w{64}",
    "vertex": "Bearer token-of-google-0",
    "foundry": "",
    "azure": f"Bearer {KEY}",
    "gemini": "Bearer token-of-google-0",
}


@pytest.mark.usefixtures("google_credentials")
@pytest.mark.parametrize("name", MODELS)
def test_an_answer_from_a_cloud_is_read_as_the_vendor_s_own(name: str) -> None:
    body = BODIES.get(name, SAID)
    reply = Reply(body=body)
    if name == "bedrock":
        body = bedrock_wire.wrapped(SAID)
        reply = Reply(body=body, headers=bedrock_wire.EVENT_STREAM, cuts=tuple(range(5, len(body), 97)))
    with Loopback(reply) as server:
        provider = cloud(name, server.url, **SETTINGS[name])
        rendered = provider.render(asked(name)).body
        ending = anyio.run(receive, provider, asked(name))
        (sent,) = server.requests

    assert ending.error is None
    assert ending.parts == plain(name)
    assert sent.target.replace("%40", "@").replace("%3A", ":") == PATHS[name]
    assert re.fullmatch(CREDENTIALS[name], sent.headers.get("authorization", ""))
    assert sent.headers["user-agent"].startswith("jp/")
    assert sent.headers.get("anthropic-version") == ("2023-06-01" if name == "foundry" else None)
    assert sent.json() == expected_body(name, rendered)


def expected_body(name: str, rendered: Mapping[str, object]) -> dict[str, object]:
    """What a cloud is sent of what was rendered: it has the model in its address, and the version in the body."""
    body = dict(rendered)
    if name == "bedrock":
        del body["model"], body["stream"]
        body["anthropic_version"] = "bedrock-2023-05-31"
    if name == "vertex":
        del body["model"]
        body["anthropic_version"] = "vertex-2023-10-16"
    return body


def test_a_key_goes_to_foundry_and_to_azure_in_the_headers_that_they_want() -> None:
    with Loopback(Reply(body=SAID), Reply(body=BODIES["azure"])) as server:
        anyio.run(receive, cloud("foundry", server.url), asked("foundry"))
        anyio.run(receive, cloud("azure", server.url, api_version="2025-04-01-preview"), asked("azure"))
        foundry, azure = server.requests

    assert (foundry.headers["x-api-key"], foundry.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert azure.headers["api-key"] == KEY
    assert azure.target == "/openai/responses?api-version=2025-04-01-preview"


def test_headers_and_betas_of_the_user_are_sent() -> None:
    with Loopback(Reply(body=bedrock_wire.wrapped(SAID), headers=bedrock_wire.EVENT_STREAM)) as server:
        provider = cloud("bedrock", server.url, region="us-east-1", headers={"X-Team": "blue"})
        anyio.run(receive, provider, asked("bedrock"))
        (sent,) = server.requests

    assert sent.headers["x-team"] == "blue"
    assert "x-team" in sent.headers["authorization"]


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"message": "Input is too long for requested model."}, "context_too_long"),
        (400, {"message": "The provided model identifier is invalid."}, "model_not_found"),
        (400, {"message": "Malformed input request"}, "invalid_request"),
        (403, {"Message": "User is not authorized to perform: bedrock:InvokeModel"}, "authentication"),
        (403, {"message": "The security token included in the request is expired"}, "authentication"),
        (424, {"message": "The system encountered an unexpected error during processing."}, "transient"),
        (429, {"message": "Too many tokens, please wait before trying again."}, "rate_limit"),
        (503, {"message": "Bedrock is unable to process your request."}, "transient"),
    ],
)
def test_bedrock_s_errors_are_classified_as_any(status: int, body: Mapping[str, str], kind: str) -> None:
    error = failed(Reply(status=status, headers=JSON, body=msgspec.json.encode(body)))

    assert (error.kind, error.status) == (kind, status)
    assert error.message == f"work answered {status}: {next(iter(body.values()))}"
    if kind == "authentication":
        assert "aws sts get-caller-identity" in error.hint


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("throttlingException", "rate_limit"),
        ("modelStreamErrorException", "transient"),
        ("internalServerException", "transient"),
        ("serviceUnavailableException", "transient"),
        ("modelTimeoutException", "transient"),
        ("validationException", "invalid_request"),
    ],
)
def test_an_exception_in_a_stream_is_an_error_after_what_came(name: str, kind: str) -> None:
    events = [anthropic_wire.start(), *anthropic_wire.text(0, "Hel")[:2]]
    body = b"".join(bedrock_wire.chunk(msgspec.json.encode(event)) for event in events)
    with Loopback(
        Reply(body=body + bedrock_wire.exception(name, "went wrong"), headers=bedrock_wire.EVENT_STREAM)
    ) as server:
        ending = anyio.run(receive, cloud("bedrock", server.url, region="us-east-1"), asked("bedrock"))

    assert [part.text for part in ending.parts if isinstance(part, TextDelta)] == ["Hel"]
    assert ending.error is not None
    assert (ending.error.kind, ending.error.message) == (kind, "work reported an error: went wrong")


def test_a_stream_that_is_cut_or_damaged_is_worth_another_attempt() -> None:
    body = bedrock_wire.wrapped(SAID)
    damaged = body[:-20] + bytes(20)

    cut = failed(Reply(body=body[: len(body) // 2], headers=bedrock_wire.EVENT_STREAM))
    broken = failed(Reply(body=damaged, headers=bedrock_wire.EVENT_STREAM))
    dropped = failed(Reply(body=body[: len(body) // 2], headers=bedrock_wire.EVENT_STREAM, ends="reset"))

    assert (cut.kind, cut.message) == ("cut", "work ended the answer before it was complete")
    assert (broken.kind, broken.message) == ("transient", "the stream of Bedrock was damaged in transit")
    assert dropped.kind == "cut"


def test_unknown_messages_and_events_are_skipped() -> None:
    strange = bedrock_wire.message({":event-type": "metadata", ":message-type": "event"}, b"{}")
    unknown = bedrock_wire.chunk(b'{"type":"novelty"}')
    parts = bedrock(Reply(body=strange + unknown + bedrock_wire.wrapped(SAID), headers=bedrock_wire.EVENT_STREAM))

    assert parts == plain("bedrock")


def test_what_is_no_stream_is_refused_with_the_setting_that_mends_it() -> None:
    error = failed(Reply(body=b"<title>Sign in</title>", headers=HTML))

    assert "providers.llm.work.endpoint" in error.hint


def test_our_limits_hold() -> None:
    hanging = Reply(body=bedrock_wire.wrapped(SAID)[:400], headers=bedrock_wire.EVENT_STREAM, ends="hang")
    long = Reply(body=bedrock_wire.wrapped(SAID), headers=bedrock_wire.EVENT_STREAM)

    assert failed(hanging, request={"stream_idle_timeout_secs": 0.2}).kind == "timeout"
    assert failed(long, request={"max_response_bytes": 3}).kind == "output_limit"


def test_a_closed_port_is_a_connection_that_failed() -> None:
    with Loopback() as server:
        url = server.url
    provider = cloud("bedrock", url, region="us-east-1")

    ending = anyio.run(receive, provider, asked("bedrock"))

    assert ending.error is not None
    assert ending.error.kind == "connect"


def test_who_leaves_ends_the_request() -> None:
    async def leave(provider: Provider) -> None:
        async with aclosing(provider.stream(provider.render(asked("bedrock")))) as parts:
            await anext(parts)

    body = bedrock_wire.wrapped(SAID)
    with Loopback(Reply(body=body[: len(body) // 2], headers=bedrock_wire.EVENT_STREAM, ends="hang")) as server:
        anyio.run(leave, cloud("bedrock", server.url, region="us-east-1"))
        assert server.client_left.wait(20)


def test_who_leaves_while_credentials_are_waited_for_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the task nor the process is held up by the thread that asks for them."""
    asking, answered = threading.Event(), threading.Event()

    def ask(*_: object, **__: object) -> None:
        asking.set()
        answered.wait(20)

    monkeypatch.setattr("jp.provider.clouds.sign_request", ask)

    async def leave(provider: Provider) -> None:
        async with aclosing(provider.stream(provider.render(asked("bedrock")))) as parts:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(anext, parts)
                    await to_thread.run_sync(asking.wait, 20)
                    scope.cancel()
        assert scope.cancelled_caught

    before = set(threading.enumerate())
    anyio.run(leave, cloud("bedrock", "https://a.example", region="us-east-1"))
    waiting = [thread for thread in set(threading.enumerate()) - before if thread.name != "AnyIO worker thread"]
    answered.set()

    assert [thread.daemon for thread in waiting] == [True]


def test_credentials_that_are_missing_are_an_error_of_authentication(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with Loopback() as server:
        aws = anyio.run(receive, cloud("bedrock", server.url, region="eu-north-1"), asked("bedrock")).error
        google = anyio.run(receive, cloud("gemini", server.url, project="p", region="r"), asked("gemini")).error
        claude = anyio.run(receive, cloud("vertex", server.url, project="p", region="r"), asked("vertex")).error
        assert server.requests == []

    assert aws is not None
    assert google is not None
    assert claude is not None
    assert (aws.kind, aws.exit_code, aws.message) == (
        "authentication",
        4,
        "no credentials for Bedrock: Could not resolve AWS credentials from session",
    )
    assert (google.kind, claude.kind) == ("authentication", "authentication")
    assert "aws configure" in aws.hint
    assert "gcloud auth application-default login" in google.hint


def test_credentials_that_nobody_gives_now_are_worth_another_attempt(google_credentials: Loopback) -> None:
    google_credentials.__exit__(None, None, None)
    with Loopback() as server:
        error = anyio.run(receive, cloud("gemini", server.url, project="p", region="r"), asked("gemini")).error

    assert error is not None
    assert error.kind == "connect"


def test_a_profile_that_does_not_exist_is_an_error_of_authentication() -> None:
    error = failed(Reply(), profile="nobody")

    assert error.kind == "authentication"
    assert error.message == "no credentials for Bedrock: The config profile (nobody) could not be found"


@pytest.mark.parametrize("name", ["azure", "foundry"])
def test_without_a_key_and_another_way_to_sign_in_nothing_is_begun(name: str) -> None:
    with pytest.raises(AuthenticationError, match="no key for 'work' at") as raised:
        cloud(name, "https://a.example", environ={"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY})

    assert "jp keys set work" in worded(raised.value.hint)


@pytest.mark.parametrize(("name", "scope"), [("azure", "cognitiveservices.azure.com"), ("foundry", "ai.azure.com")])
def test_microsoft_s_sign_in_goes_before_no_key(name: str, scope: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Signed:
        def get_token(self, wanted: str) -> SimpleNamespace:
            return SimpleNamespace(token=f"token-for-{wanted}")

    identity = ModuleType("azure.identity")
    identity.__dict__["DefaultAzureCredential"] = Signed
    identity.__spec__ = __import__("importlib.machinery").machinery.ModuleSpec("azure.identity", None)
    package = ModuleType("azure")
    package.__path__ = []
    monkeypatch.setitem(sys.modules, "azure", package)
    monkeypatch.setitem(sys.modules, "azure.identity", identity)
    with Loopback(Reply(body=BODIES.get(name, SAID))) as server:
        ending = anyio.run(receive, cloud(name, server.url, environ={}), asked(name))
        (sent,) = server.requests

    assert ending.error is None
    assert sent.headers["authorization"] == f"Bearer token-for-https://{scope}/.default"
    assert "x-api-key" not in sent.headers


@pytest.mark.parametrize(
    ("name", "missing", "package"),
    [("bedrock", "boto3", "boto3"), ("vertex", "google.auth", "google.auth"), ("azure", "openai", "openai")],
)
def test_a_package_that_is_missing_is_named_before_anything_is_begun(
    name: str, missing: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)

    with pytest.raises(ConfigurationError) as raised:
        cloud(name, "https://a.example", region="r", project="p")

    assert f"the package {package!r}, which is not installed" in raised.value.message
    assert "pip install 'jp[clouds]'" in str(raised.value.hint)


def test_an_exception_without_words_is_named() -> None:
    body = bedrock_wire.message({":message-type": "error", ":error-code": "throttlingException"}, b"no json")
    error = failed(Reply(body=body, headers=bedrock_wire.EVENT_STREAM))

    assert (error.kind, error.message) == ("rate_limit", "work reported an error: throttlingException")


@pytest.mark.usefixtures("google_credentials")
@pytest.mark.parametrize(
    ("name", "answer", "target"),
    [
        ("vertex", b'{"input_tokens":12}', f"{_VERTEX}/anthropic/models/count-tokens:rawPredict"),
        ("foundry", b'{"input_tokens":12}', "/anthropic/v1/messages/count_tokens"),
        ("azure", b'{"input_tokens":12}', "/openai/v1/responses/input_tokens"),
        ("gemini", b'{"totalTokens":12}', f"{_VERTEX}/google/models/gemini-3.8-flash:countTokens"),
    ],
)
def test_a_cloud_counts_tokens_as_it_answers(name: str, answer: bytes, target: str) -> None:
    with Loopback(Reply(body=answer, headers=JSON)) as server:
        settings: dict[str, Any] = {**SETTINGS[name], "api_version": "v1" if name == "gemini" else None}
        provider = cloud(name, server.url, **settings)
        kind = {"azure": "openai", "gemini": "google"}.get(name, "anthropic")
        count = vendor_of(kind).count
        assert count is not None
        asking = count(provider.render(asked(name)), "vertex" if name == "gemini" else name)
        assert isinstance(provider, HttpProvider)
        counts = read_token_count("work", anyio.run(provider.ask, asking))
        (sent,) = server.requests

    assert counts == 12
    assert sent.target.replace("%40", "@") == target
    assert sent.headers.get("authorization", "") in {"", f"Bearer {KEY}", "Bearer token-of-google-0"}
    for part, value in sent.json().items():
        assert part == "anthropic_version" or value == asking.body[part]


def test_secrets_that_a_server_repeats_are_not_shown() -> None:
    def repeat(request: Received) -> Reply:
        said = {"message": f"bad signature: {request.headers['authorization']}"}
        return Reply(status=403, headers=JSON, body=msgspec.json.encode(said))

    with Loopback(repeat) as server:
        error = anyio.run(receive, cloud("bedrock", server.url, region="us-east-1"), asked("bedrock")).error
        (sent,) = server.requests

    assert error is not None
    assert error.message == "work answered 403: bad signature: [redacted]"
    assert "aws-secret" not in str(sent.headers)
