from __future__ import annotations

from jp.conversation.thread import Thread, UserText
from jp.provider.base import TextDelta
from jp.provider.chat.messages import Server
from jp.provider.chat.request import RENDERER, ChatAdapter, ServerOptions
from jp.provider.errors import ProviderError

SERVER = Server(provider="mine", kind="openai-compatible")
HI = Thread(model="m", system=(), tools=(), events=(UserText(text="Hi", turn=0),))


def test_an_adapter_renders_reads_and_names_itself() -> None:
    adapter = ChatAdapter(SERVER, lambda thread: ServerOptions(fields={"seed": len(thread.events)}), revision=2)
    request = adapter.render(HI)

    assert (adapter.id, adapter.renderer) == ("mine", RENDERER + 2)
    assert request.body["seed"] == 1
    assert request.sections.messages == ((b'"user"', b'{"text":"Hi","type":"text"}'),)
    assert adapter.decoder(request).feed("", b'{"choices":[{"delta":{"content":"a"}}]}') == [TextDelta(0, "a")]
    assert adapter.locate_rejected(HI, ProviderError("x", kind="rejected_reasoning")) == ()


def test_a_server_may_have_nothing_to_be_asked() -> None:
    assert "seed" not in ChatAdapter(SERVER).render(HI).body
