"""What the official SDK says: whether a request is one, and what a stream says."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, cast

import msgspec
from google import genai
from google.genai import types
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from certificates import WITHOUT_CERTIFICATES
from jp.conversation.entries import Usage
from stories import Story, Told

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.genai.types import GenerateContentResponse, Part

Body = dict[str, Any]


class _Request(BaseModel):
    """The body of `streamGenerateContent`, of the SDK's own types. They refuse what they do not know."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64"
    )

    contents: list[types.Content]
    system_instruction: types.Content | None = None
    tools: list[types.Tool] | None = None
    tool_config: types.ToolConfig | None = None
    generation_config: types.GenerationConfig | None = None
    store: bool | None = None


def _same_bytes(value: object) -> object:
    """The value with base64 in one alphabet: the SDK writes the one that is safe in addresses."""
    if isinstance(value, dict):
        found = cast("Body", value)
        opaque = {name: found[name] for name in ("thoughtSignature", "data") if isinstance(found.get(name), str)}
        plain = {name: _same_bytes(item) for name, item in found.items() if name not in opaque}
        return {**plain, **{name: base64.urlsafe_b64decode(_safe(text)) for name, text in opaque.items()}}
    return [_same_bytes(item) for item in cast("list[object]", value)] if isinstance(value, list) else value


def _safe(text: str) -> str:
    return text.replace("+", "-").replace("/", "_")


def assert_accepted(body: Body) -> None:
    """The SDK's types have a place for everything in `body`, and what comes out equals what went in."""
    read = _Request.model_validate_json(msgspec.json.encode(body))

    assert _same_bytes(msgspec.json.decode(read.model_dump_json(by_alias=True, exclude_unset=True))) == _same_bytes(
        msgspec.to_builtins(body)
    )


def told_by_sdk(url: str, model: str) -> Story:
    """What the SDK reads of the answer that a server gives."""
    reaching = {"verify": WITHOUT_CERTIFICATES, "ssl": WITHOUT_CERTIFICATES}
    client = genai.Client(
        api_key="test",
        http_options={
            "base_url": url,
            "api_version": "v1beta",
            "client_args": reaching,
            "async_client_args": reaching,
        },
    )
    story = Story([])
    ask = cast("Any", client.models).generate_content_stream  # its own type is not wholly known
    responses: Iterable[GenerateContentResponse] = ask(model=model, contents="Hi")
    for response in responses:
        (candidate,) = response.candidates or [None]
        content = None if candidate is None else candidate.content
        for part in (content.parts if content is not None else None) or ():
            _add(story, part)
        if candidate is not None and candidate.finish_reason is not None:
            has_calls = any(block.kind == "tool_call" for block in story.blocks)
            story.finish = "tools" if has_calls else candidate.finish_reason.value.lower()
        if (usage := response.usage_metadata) is not None:
            thoughts = usage.thoughts_token_count or 0
            story.usage = Usage(
                input=usage.prompt_token_count or 0,
                output=(usage.candidates_token_count or 0) + thoughts,
                reasoning=thoughts,
            )
    return story


def _add(story: Story, part: Part) -> None:
    """Add a part: texts of one kind are one block, and a signature without a text belongs to the one before it."""
    signature = "" if part.thought_signature is None else base64.b64encode(part.thought_signature).decode()
    if (call := part.function_call) is not None:
        arguments = msgspec.json.encode(call.args).decode()
        story.blocks.append(Told("tool_call", arguments, signature, name=call.name or ""))
        return
    kind = "reasoning" if part.thought else "message"
    if not story.blocks or story.blocks[-1].kind != kind:
        story.blocks.append(Told(kind))
    story.blocks[-1].text += part.text or ""
    story.blocks[-1].opaque += signature
