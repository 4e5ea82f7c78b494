from __future__ import annotations

from jp.conversation.thread import Thread, UserText
from jp.provider.errors import ProviderError
from jp.provider.ollama.vendor import OllamaAdapter
from provider_at import provider_at

ASKED = Thread(model="m", system=(), tools=(), events=(UserText(text="Hi", turn=0),))


def test_nothing_about_reasoning_can_be_rejected() -> None:
    error = ProviderError("odd", kind="rejected_reasoning")

    assert OllamaAdapter(context_window=9).locate_rejected(ASKED, error) == ()


def test_ollamas_own_cloud_is_not_told_how_much_to_hold() -> None:
    assert provider_at("https://ollama.com", provider="ollama").render(ASKED).body["options"] == {}


def test_a_server_of_the_users_own_holds_as_much_as_ollama_where_nothing_is_said() -> None:
    den = provider_at("http://127.0.0.1:1", provider="den", kind="ollama")

    assert den.render(ASKED).body["options"] == {"num_ctx": 16_384}


def test_a_cache_sees_the_messages() -> None:
    adapter = OllamaAdapter(context_window=9)

    assert adapter.render(ASKED).sections.messages == ((b'"user"', b'{"content":"Hi"}'),)
