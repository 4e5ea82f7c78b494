"""Servers under names of the user's own, and how an address and a path come together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from anthropic_wire import message
from jp.cli.terminal.wording import worded
from jp.config.assignment import read_partial
from jp.config.layers import config_of
from jp.conversation.thread import Thread, UserText
from jp.errors import AuthenticationError, ConfigurationError, ExitCode, JpError
from jp.provider.base import Provider, TextDelta
from jp.provider.errors import ProviderError
from jp.provider.keys import FoundKey
from jp.provider.registry import ModelId, create_provider
from loopback import JSON, Loopback, Reply
from provider_at import Ending, receive

HI = Thread(model="m", system=(), tools=(), events=(UserText(text="Hi", turn=0),))


def mine(environ: dict[str, str] | None = None, **settings: Any) -> Provider:
    config = config_of(read_partial({"providers": {"llm": {"mine": {"kind": "anthropic", **settings}}}}))
    return create_provider(config, ModelId("mine", "m"), environ=environ or {}, root=Path())


def asked(provider: Provider) -> Ending:
    return anyio.run(receive, provider, HI)


@pytest.mark.parametrize("address", ["", "/", "/v1", "/v1/", "/proxy/v1"])
def test_the_version_may_stand_in_the_address_or_not(address: str) -> None:
    with Loopback(Reply(body=message("Hello"))) as server:
        ending = asked(mine(base_url=server.url + address))

        assert TextDelta(0, "Hello") in ending.parts
        assert server.requests[0].target == f"{address.rstrip('/').removesuffix('/v1')}/v1/messages"


@pytest.mark.parametrize("address", ["/v1/chat/completions", "/v1/chat/completions/"])
def test_an_address_may_be_that_of_the_requests(address: str) -> None:
    with Loopback(Reply(status=500)) as server:
        asked(mine(kind="openai-compatible", base_url=server.url + address))

        assert server.requests[0].target == "/v1/chat/completions"


def test_a_server_without_a_key_is_sent_none_and_gets_the_users_headers() -> None:
    with Loopback(Reply(body=message("Hello"))) as server:
        asked(mine(base_url=server.url, headers={"x-team": "docs"}))

        assert "x-api-key" not in server.requests[0].headers
        assert server.requests[0].headers["x-team"] == "docs"


def test_a_server_with_a_variable_for_its_key_needs_one() -> None:
    with pytest.raises(AuthenticationError, match="no API key for 'mine': the environment variable 'MY_KEY'"):
        mine(base_url="http://127.0.0.1:1", api_key_env="MY_KEY")
    with Loopback(Reply(body=message("Hello"))) as server:
        asked(mine({"MY_KEY": "secret"}, base_url=server.url, api_key_env="MY_KEY"))

        assert server.requests[0].headers["x-api-key"] == "secret"


def test_a_server_that_wants_a_key_after_all_is_given_one_by_a_command() -> None:
    with Loopback(Reply(status=401, body=b"{}")) as server:
        ending = asked(mine(base_url=server.url))

    assert ending.error is not None
    assert ending.error.exit_code == ExitCode.AUTHENTICATION
    assert worded(ending.error.hint) == "it needs a key: store one with `jp keys set mine`"


def test_a_server_without_an_address_is_not_asked() -> None:
    with pytest.raises(ConfigurationError, match=r"'providers.llm.mine.base_url' is not set") as caught:
        mine()

    assert (
        worded(caught.value.hint)
        == "set it, such as `jp config set providers.llm.mine.base_url=http://127.0.0.1:8000/v1`"
    )


def test_whose_address_nobody_answers_at_may_not_be_running() -> None:
    with Loopback() as server:
        address = server.url
    error = asked(mine(base_url=address)).error

    assert isinstance(error, JpError)
    assert error.hint == "is the server running? `providers.llm.mine.base_url` sets its URL"


def test_its_errors_name_it_and_its_settings() -> None:
    body = b'{"type":"error","error":{"type":"not_found_error","message":"model: m"}}'
    html = (("content-type", "text/html"),)
    with Loopback(Reply(body=body, status=404), Reply(body=b"<title>Log in</title>", headers=html)) as server:
        missing, page = (asked(mine(base_url=server.url)).error for _ in range(2))

    assert isinstance(missing, JpError)
    assert isinstance(page, JpError)
    assert missing.message == "mine answered 404: model: m"
    assert "`providers.llm.mine.base_url`" in page.hint


class Hoard:
    """Stored keys, of which it is known that there are some, or none."""

    def __init__(self, *, known: bool) -> None:
        self._known = known

    def may_have(self, provider: str) -> bool:
        return self._known

    def find(self, provider: str) -> FoundKey | None:
        assert self._known
        return FoundKey(f"stored-{provider}", "keyring")


@pytest.mark.parametrize(("known", "sent"), [(True, "stored-mine"), (False, None)])
def test_whom_no_key_is_needed_for_is_only_asked_where_one_is_known_of(*, known: bool, sent: str | None) -> None:
    with Loopback(Reply(body=message("Hello"))) as server:
        config = config_of(
            read_partial({"providers": {"llm": {"mine": {"kind": "anthropic", "base_url": server.url}}}})
        )
        provider = create_provider(config, ModelId("mine", "m"), environ={}, root=Path(), stored=Hoard(known=known))
        asked(provider)

        assert server.requests[0].headers.get("x-api-key") == sent


SAID = b'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}\n\n'
TOO_LONG = (
    b'{"error":{"message":"This model\'s maximum context length is 4096 tokens.","code":"context_length_exceeded"}}'
)


@pytest.mark.parametrize("kind", ["openai-compatible", "llamacpp"])
def test_a_server_that_ends_a_stream_without_a_word_is_asked_for_its_reason(kind: str) -> None:
    with Loopback(Reply(), Reply(body=TOO_LONG, status=400, headers=JSON)) as server:
        ending = asked(mine(kind=kind, base_url=server.url))
        streamed, probed = (request.json() for request in server.requests)

    assert isinstance(ending.error, ProviderError)
    assert ending.error.kind == "context_too_long"
    streamed.pop("stream_options")
    assert probed == {**streamed, "stream": False, "max_tokens": 1}


def test_what_has_no_reason_and_what_broke_off_later_are_cut() -> None:
    whole = Reply(body=b'{"choices":[]}', headers=JSON)
    with Loopback(Reply(), whole, Reply(body=SAID)) as server:
        provider = mine(kind="openai-compatible", base_url=server.url)
        without_reason, later = asked(provider).error, asked(provider).error

        assert len(server.requests) == 3

    for error in (without_reason, later):
        assert isinstance(error, ProviderError)
        assert (error.kind, error.message) == ("cut", "mine ended the answer before it was complete")
