"""What holds for the request of any thread to Cerebras and to llama.cpp, and for the requests of one that grows."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chat_oracle import assert_accepted
from jp.provider.cerebras.request import CerebrasAdapter
from jp.provider.llamacpp.request import LlamacppAdapter
from threads import Vendor, rendered_by, requests_by, threads

FOREIGN = ("reasoning_format", "chat_template_kwargs", "top_k", "reasoning", "reasoning_content")
ADAPTERS = {"cerebras": CerebrasAdapter(), "llamacpp": LlamacppAdapter()}
THREADS = {
    "cerebras": threads(Vendor(provider="cerebras", models=("gpt-oss-120b", "gemma-4-31b", "brand-new"))),
    "llamacpp": threads(Vendor(provider="llamacpp", models=("qwen3.5:9b", "gpt-oss-20b"))),
}
vendors = pytest.mark.parametrize("name", ADAPTERS)


@vendors
@given(st.data())
def test_every_request_is_one_that_the_sdk_has_types_for(name: str, data: st.DataObject) -> None:
    for request in requests_by(ADAPTERS[name].render, data.draw(THREADS[name])[-1:]):
        assert_accepted(request.body, foreign=FOREIGN)


@vendors
@given(st.data())
def test_a_longer_thread_begins_with_the_messages_of_a_shorter_one(name: str, data: st.DataObject) -> None:
    # A plea for a tool belongs to one request only, and is a change of parameters.
    grown = [
        replace(thread, parameters=replace(thread.parameters, tool_choice="auto"))
        for thread in data.draw(THREADS[name])
    ]
    before: list[bytes] = []
    for request in requests_by(ADAPTERS[name].render, grown):
        found = request.sections
        blocks = [message[0] + block for message in found.messages for block in message[1:]]
        whole = [*found.tools, *found.system, *blocks]

        assert whole[: len(before)] == before
        before = whole


@vendors
@given(st.data())
def test_the_tools_are_the_same_whatever_is_demanded_of_them(name: str, data: st.DataObject) -> None:
    thread = data.draw(THREADS[name])[-1]
    found: list[object] = []
    for choice in ("auto", "required", "run", "none"):
        request = rendered_by(
            ADAPTERS[name].render, replace(thread, parameters=replace(thread.parameters, tool_choice=choice))
        )
        found.append(None if request is None else msgspec.json.encode(request.body.get("tools")))

    assert len(set(found)) == 1
