"""What holds for the request of any thread to Ollama, and for the requests of a thread that grows."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import msgspec
from hypothesis import given
from msgspec.structs import replace

from jp.conversation.thread import Thread
from jp.provider.base import SentMessage, WireRequest
from jp.provider.ollama.request import Server, render
from ollama_oracle import assert_accepted
from threads import Vendor, rendered_by, requests_by, threads

SERVER = Server(context_window=4096, keep_alive="5m")
OLLAMA = Vendor(provider="ollama", models=("qwen3.5:9b", "llama3:latest", "gpt-oss:20b", "new"))


def check_calls(request: WireRequest) -> None:
    """Each call is answered directly after it, in order and by its name, before anybody else speaks."""
    due: list[str] = []
    for message in request.body["messages"]:
        if due:
            assert message["role"] == "tool"
            assert message["tool_name"] == due.pop(0)
        else:
            assert message["role"] != "tool"
        due += [call["function"]["name"] for call in message.get("tool_calls", ())]
    assert not due


@given(threads(OLLAMA))
def test_every_request_is_one_that_the_api_has_a_place_for(grown: list[Thread]) -> None:
    for request in requests_by(partial(render, server=SERVER), grown):
        assert_accepted(request.body)
        check_calls(request)


@given(threads(OLLAMA))
def test_nobody_says_nothing_and_no_two_answers_follow_each_other(grown: list[Thread]) -> None:
    for request in requests_by(partial(render, server=SERVER), grown):
        roles = [message["role"] for message in request.body["messages"]]
        for message in request.body["messages"]:
            said = [value for name, value in message.items() if name not in {"role", "tool_name"}]
            assert message["role"] == "tool" or any(said)
        assert ("assistant", "assistant") not in pairwise(roles)


@given(threads(OLLAMA))
def test_a_longer_thread_begins_with_the_messages_of_a_shorter_one(grown: list[Thread]) -> None:
    # A plea for a tool belongs to one request only, and is a change of parameters.
    grown = [replace(thread, parameters=replace(thread.parameters, tool_choice="auto")) for thread in grown]
    before: list[bytes | SentMessage] = []
    for request in requests_by(partial(render, server=SERVER), grown):
        found = request.sections
        whole = [*found.tools, *found.system, *found.messages]

        assert whole[: len(before)] == before
        before = whole


@given(threads(OLLAMA))
def test_the_same_thread_gives_the_same_bytes(grown: list[Thread]) -> None:
    assert msgspec.json.encode(rendered_by(partial(render, server=SERVER), grown[-1])) == msgspec.json.encode(
        rendered_by(partial(render, server=SERVER), grown[-1])
    )
