"""A reply → the parts of a response. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import asdict

from jp.context.estimate import estimate_tokens
from jp.conversation.entries import Usage
from jp.provider.parts import (
    BlockEnd,
    Finished,
    Part,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
)
from jp.provider.script.matching import Cue, filled, input_tokens
from jp.provider.script.request import Body, ModelCall
from jp.provider.script.scenario import Call, Reply


def response_to(body: Body, cue: Cue, *, failing: bool) -> Iterator[Part]:
    """The parts of the reply, from the anchor where the answer was cut off.

    `failing` ends them where the reply's error strikes: before everything, or in its text, whose block stays open.
    """
    reply = cue.reply
    text = filled(reply.text or "", cue.prompt, body)
    text = cue.anchor + text[len(cue.begun) :]
    reasoning = "" if cue.begun else filled(reply.reasoning, cue.prompt, body)
    calls = [_arguments(call, cue, body) for call in reply.calls]
    after = reply.error.after if failing and reply.error is not None else None
    if failing and after is None:
        return
    if reasoning:
        yield from (ReasoningDelta(0, piece) for piece in _pieces(reasoning, reply))
        yield BlockEnd(0)
    yield from (
        TextDelta(1, piece) for piece in _pieces(text if after is None else text[: len(cue.anchor) + after], reply)
    )
    if failing:
        return
    if text:
        yield BlockEnd(1)
    yield from _calls(body, reply, calls)
    yield UsageReport(_usage(body, reply, reasoning=reasoning, answer="".join((text, *calls))))
    yield Finished(reply.stop or ("tools" if calls else "stop"), reply.detail)


def _calls(body: Body, reply: Reply, calls: list[str]) -> Iterator[Part]:
    made = sum(isinstance(item, ModelCall) for message in body.messages for item in message.content)
    for number, (call, arguments) in enumerate(zip(reply.calls, calls, strict=True), start=1):
        index = number + 1
        yield ToolCallStart(index, f"call-{made + number}", call.name)
        yield from (ToolArgumentsDelta(index, piece) for piece in _pieces(arguments, reply))
        yield BlockEnd(index)


def _pieces(text: str, reply: Reply) -> Iterator[str]:
    for start in range(0, len(text), reply.chunk):
        yield text[start : start + reply.chunk]


def _arguments(call: Call, cue: Cue, body: Body) -> str:
    if isinstance(call.arguments, str):
        return filled(call.arguments, cue.prompt, body)
    text = msgspec.json.encode(call.arguments).decode()
    return filled(text, cue.prompt, body, quote=_inside_a_json_string)


def _inside_a_json_string(text: str) -> str:
    return msgspec.json.encode(text).decode()[1:-1]


def _usage(body: Body, reply: Reply, *, reasoning: str, answer: str) -> Usage:
    if reply.usage is not None:
        return Usage(**asdict(reply.usage))
    thought = estimate_tokens(reasoning)
    return Usage(
        input=input_tokens(body, len(body.messages)), output=thought + estimate_tokens(answer), reasoning=thought
    )
