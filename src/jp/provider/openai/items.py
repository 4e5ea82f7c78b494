"""The events of a thread as items of the Responses API. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import assert_never

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.resource import Block, Resource
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    Thread,
    ToolDefinition,
    UserResource,
    UserText,
)
from jp.provider.arrangement import (
    Answered,
    Arranged,
    Called,
    arguments_of,
    arranged,
    newest_request,
    plain_id,
    request_of,
)
from jp.provider.base import Abilities, Model
from jp.provider.models import is_made_by
from jp.provider.schemas import strict_answer, strict_schema
from jp.provider.showing import IMAGES, PDF, Media, Shown, Words, attachment, not_shown, not_taken, result, shown_of
from jp.provider.table.openai import is_own


def media_taken(abilities: Abilities) -> frozenset[str]:
    """The media types that a model takes besides text."""
    return frozenset({*(IMAGES if abilities.images else ()), *((PDF,) if abilities.documents else ())})


def text_part(text: str) -> JsonObject:
    """Text that goes in."""
    return {"type": "input_text", "text": text}


def _part(shown: Shown) -> JsonObject:
    match shown:
        case Words(text=text):
            return text_part(text)
        case Media(media_type=media_type) if media_type == PDF:
            name = shown.name.rpartition("/")[2] or "attachment"
            filename = name if name.lower().endswith(".pdf") else f"{name}.pdf"
            return {"type": "input_file", "filename": filename, "file_data": shown.data_url}
        case Media():
            return {"type": "input_image", "detail": "auto", "image_url": shown.data_url}
        case _:
            assert_never(shown)


def attachment_parts(resource: Resource, *, takes: Collection[str], provider: str, is_new: bool) -> list[JsonObject]:
    """A resource that the user attached: what it is, then its content.

    `is_new` says that it was attached by the request that is to be answered. What was attached before is in the log
    for good, perhaps for another provider: where the API does not take it, a note stands for it.

    Raises:
        ProviderError: it is new and the model takes no content of that type, of kind `unsupported`.
    """
    shown = attachment(resource, takes=takes)
    if shown is not None:
        return _parts(shown)
    if is_new:
        raise not_taken(resource, provider, _in_words(takes))
    return [text_part(not_shown(resource.uri, resource.mime_type, len(shown_of(resource))))]


def _in_words(takes: Collection[str]) -> str:
    names = ["text", *(["PDF"] if PDF in takes else []), *(["JPEG", "PNG", "GIF"] if IMAGES & set(takes) else [])]
    last = ["WebP"] if IMAGES & set(takes) else []
    return " and ".join([", ".join(names), *last])


def _parts(shown: Iterable[Shown]) -> list[JsonObject]:
    return [_part(piece) for piece in shown]


def output_of(content: Sequence[Block], *, takes: Collection[str], is_error: bool) -> str | list[JsonObject]:
    """What a call returned. The API knows no errors: it is said that it is one."""
    shown = result(content, takes=takes, is_error=is_error)
    if any(isinstance(piece, Media) for piece in shown):
        return _parts(shown)
    text = "\n".join(piece.text for piece in shown if isinstance(piece, Words))
    return f"Error: {text}" if is_error else text


ANSWER = "answer"
"""What the format of an answer is called."""


def answer_format(schema: JsonObject, model: Model) -> JsonObject | None:
    """What `text.format` has to be, None where the model cannot be held to the schema."""
    if not model.abilities.structured:
        return None
    strict = strict_answer(schema)
    return None if strict is None else {"type": "json_schema", "name": ANSWER, "strict": True, "schema": strict}


def tool_of(tool: ToolDefinition, model: Model) -> JsonObject:
    """A tool as the API takes it. Without `strict` it would be made strict in the API's own way."""
    wire: JsonObject = {"type": "function", "name": tool.name}
    if tool.description.strip():
        wire["description"] = tool.description
    parameters = tool.parameters if "type" in tool.parameters else {"type": "object", **tool.parameters}
    strict = strict_schema(parameters) if model.abilities.structured else None
    return {**wire, "parameters": parameters if strict is None else strict, "strict": strict is not None}


PROVIDER = "openai"

_LONGEST_ID = 56
"""The API takes 64 characters; a number may follow where ids repeat."""


class Items(msgspec.Struct, frozen=True, kw_only=True):
    """The items of a request. `last_resource` is the last part of what was attached last."""

    items: list[JsonObject]
    last_resource: JsonObject | None


def own_reasoning(event: AssistantReasoning, model: str, provider: str) -> JsonObject | None:
    """The item as the API gave it, None unless this provider and model made it.

    Without its encrypted content it would be looked up where nothing has been stored.
    """
    metadata = event.metadata or {}
    item_id, encrypted = metadata.get("item_id"), metadata.get("encrypted_content")
    if not is_made_by(metadata, provider, model) or not isinstance(item_id, str) or not isinstance(encrypted, str):
        return None
    summary = [{"type": "summary_text", "text": event.text}] if event.text else []
    return {"type": "reasoning", "id": item_id, "summary": summary, "encrypted_content": encrypted}


class _Builder:
    def __init__(self, provider: str, model: Model, thread: Thread) -> None:
        self._provider = provider
        self._model = model
        self._asked_model = thread.model
        self._newest = newest_request(thread.events)
        self._takes = media_taken(model.abilities)
        self._items: list[JsonObject] = []
        self._speaks: tuple[str, int] | None = None
        self._held: list[JsonObject] = []
        self._has_reasoned = False
        self._last_resource: JsonObject | None = None

    def add(self, event: Arranged) -> None:
        match event:
            case UserText():
                self._ask(event, [text_part(text) for text in (event.text, *self._rules(event)) if text.strip()])
            case UserResource(resource=resource):
                is_new = request_of(event) == self._newest
                parts = attachment_parts(resource, takes=self._takes, provider=self._provider, is_new=is_new)
                self._last_resource = parts[-1]
                self._ask(event, parts)
            case AssistantText() | AssistantData():
                self._answer(event)
            case AssistantReasoning():
                self._reason(event)
            case Called():
                self._say(_call(event))
            case Answered():
                takes = self._takes if is_own(self._asked_model) else ()
                self._end_answer()
                output = output_of(event.content, takes=takes, is_error=event.is_error)
                self._put({"type": "function_call_output", "call_id": event.wire_id, "output": output})
            case _:
                assert_never(event)

    def finish(self) -> Items:
        self._end_answer()
        return Items(items=self._items, last_resource=self._last_resource)

    def _put(self, item: JsonObject) -> None:
        self._speaks = None
        self._items.append(item)

    def _rules(self, request: UserText) -> tuple[str, ...]:
        """What has to be said of the answer's schema in words: wherever the request stands, as it was asked."""
        if request.schema is None:
            return ()

        from jp.provider.schemas import in_words

        return () if answer_format(request.schema, self._model) is not None else (in_words(request.schema),)

    def _ask(self, event: UserText | UserResource, parts: Sequence[JsonObject]) -> None:
        self._end_answer()
        if not parts:
            return
        if self._speaks == request_of(event):
            self._items[-1]["content"] += parts
            return
        self._put({"type": "message", "role": "user", "content": list(parts)})
        self._speaks = request_of(event)

    def _answer(self, event: AssistantText | AssistantData) -> None:
        if not event.text.strip():
            return
        metadata = event.metadata or {}
        self._release()
        mine = is_made_by(metadata, self._provider, self._asked_model)
        item: JsonObject = {"type": "message", "role": "assistant", "content": event.text}
        item_id, phase = metadata.get("item_id"), metadata.get("phase")
        if mine and self._has_reasoned and isinstance(item_id, str):
            # With its id a message stands or falls with the reasoning before it: where that is gone, so is the id.
            part: JsonObject = {"type": "output_text", "text": event.text, "annotations": []}
            item = {**item, "id": item_id, "status": "completed", "content": [part]}
        if mine and isinstance(phase, str):
            item["phase"] = phase
        self._put(item)

    def _reason(self, event: AssistantReasoning) -> None:
        own = own_reasoning(event, self._asked_model, self._provider)
        if own is not None:
            self._held.append(own)

    def _say(self, item: JsonObject) -> None:
        self._release()
        self._put(item)

    def _release(self) -> None:
        """Reasoning that something follows goes back as it is."""
        for item in self._held:
            self._put(item)
            self._has_reasoned = True
        self._held.clear()

    def _end_answer(self) -> None:
        """Drop reasoning that nothing follows: the API does not take it."""
        self._held.clear()
        self._has_reasoned = False


def _call(called: Called) -> JsonObject:
    arguments = msgspec.json.encode(arguments_of(called.call)).decode()
    return {"type": "function_call", "call_id": called.wire_id, "name": called.call.name, "arguments": arguments}


def _valid_id(call_id: str, number: int) -> str:
    return plain_id(call_id[:_LONGEST_ID], number)


def build_items(thread: Thread, model: Model, *, provider: str = PROVIDER) -> Items:
    """The items of `thread`, the system prompt aside. Each call is answered at once, and no reasoning stands alone.

    Raises:
        ProviderError: a new attachment is of a type that the model does not take, of kind `unsupported`.
    """
    builder = _Builder(provider, model, thread)
    for event in arranged(thread.events, valid_id=_valid_id):
        builder.add(event)
    return builder.finish()


_ITEM = re.compile(r"\brs_\w+")


def locate(thread: Thread, message: str, *, provider: str) -> tuple[str, ...]:
    """The origins of the reasoning in `thread` that an error's `message` names, none where it names none."""
    named = set(_ITEM.findall(message))
    reasoning = (event for event in thread.events if isinstance(event, AssistantReasoning))
    return tuple(
        event.origin
        for event in reasoning
        if (own := own_reasoning(event, thread.model, provider)) is not None and own["id"] in named
    )
