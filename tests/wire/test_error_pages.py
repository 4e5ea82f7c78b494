"""Errors that are no JSON, from whatever stands in front of a provider: each status, for each provider."""

from __future__ import annotations

import anyio
import pytest

from jp.conversation.thread import Thread, UserText
from jp.provider.registry import PROVIDERS
from loopback import HTML, Loopback, Reply
from provider_at import KEY, provider_at, receive

KINDS = {
    400: "invalid_request",
    401: "authentication",
    403: "authentication",
    404: "other",
    413: "context_too_long",
    429: "rate_limit",
    500: "transient",
    503: "transient",
    529: "transient",
}
ASKED = Thread(model="m", system=(), tools=(), events=(UserText(text="Hi", turn=0),))


def page(status: int) -> Reply:
    text = f"<html><head><title>{status}\nBusy</title></head><body>{KEY} <b>nginx</b></body></html>"
    pause = (("retry-after", "7"),) if status >= 429 else ()
    return Reply(status=status, headers=(*HTML, *pause), body=text.encode())


@pytest.mark.parametrize("provider", [*(name for name in PROVIDERS if name != "script"), "mine"])
def test_every_status_has_a_kind_and_a_sentence(provider: str) -> None:
    with Loopback(*map(page, KINDS)) as server:
        asked = provider_at(f"{server.url}/v1", provider=provider, model="m")
        errors = [anyio.run(receive, asked, ASKED).error for _ in KINDS]

    found = [error for error in errors if error is not None]
    assert {error.status: error.kind for error in found} == KINDS
    assert [error.message for error in found] == [f"{provider} answered {status}: {status} Busy" for status in KINDS]
    assert [error.status for error in found if error.is_retryable] == [429, 500, 503, 529]
    assert [error.status for error in found if error.retry_after == 7.0] == [429, 500, 503, 529]
    assert all(error.hint for error in found)
