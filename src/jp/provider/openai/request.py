"""Render a thread as a request of the Responses API. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from typing import Literal, assert_never, cast

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.resource import Block, Resource
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    CachePolicy,
    Effort,
    IncrementalMap,
    Parameters,
    Thread,
    ToolDefinition,
    UserResource,
    UserText,
)
from jp.provider.base import Abilities, Level, Model, Sections, SentMessage, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.models import canonical_name, is_made_by, model_for, model_table
from jp.provider.parameters import cache_not_sent, effort_of, is_off, merged, nearest_level, not_sent, sampling_of
from jp.provider.schemas import strict_answer, strict_schema
from jp.provider.transcript import (
    IMAGES,
    PDF,
    ContentPart,
    IncrementalMessages,
    Media,
    TextPart,
    WireCall,
    WireEvent,
    WireResult,
    arguments_of,
    attachment,
    newest_request,
    not_shown,
    not_taken,
    plain_id,
    request_of,
    result,
    shown_of,
)


def media_taken(abilities: Abilities) -> frozenset[str]:
    """Return the media types that a model accepts besides text."""
    return frozenset({*(IMAGES if abilities.images else ()), *((PDF,) if abilities.documents else ())})


def text_part(text: str) -> JsonObject:
    """Return an input part with text."""
    return {"type": "input_text", "text": text}


def _part(shown: ContentPart) -> JsonObject:
    match shown:
        case TextPart(text=text):
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
    """Return the parts of a resource that the user attached: its description, then its content.

    `is_new` means that it belongs to the request to be answered. An earlier attachment stays in the log, perhaps for
    another provider: if the API does not accept it, a note replaces it.

    Raises:
        ProviderError: it is new and the model does not accept its type (kind `unsupported`).
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


def _parts(shown: Iterable[ContentPart]) -> list[JsonObject]:
    return [_part(piece) for piece in shown]


def output_of(content: Sequence[Block], *, takes: Collection[str], is_error: bool) -> str | list[JsonObject]:
    """Return the output of a call. The API has no errors: the text says that it is one."""
    shown = result(content, takes=takes, is_error=is_error)
    if any(isinstance(piece, Media) for piece in shown):
        return _parts(shown)
    text = "\n".join(piece.text for piece in shown if isinstance(piece, TextPart))
    return f"Error: {text}" if is_error else text


ANSWER = "answer"
"""Name of the format of an answer."""


def answer_format(schema: JsonObject, model: Model) -> JsonObject | None:
    """Return `text.format`, None if the API cannot enforce the schema."""
    if not model.abilities.structured:
        return None
    strict = strict_answer(schema)
    return None if strict is None else {"type": "json_schema", "name": ANSWER, "strict": True, "schema": strict}


def tool_of(tool: ToolDefinition, model: Model) -> JsonObject:
    """Return the definition of a tool. Without `strict` the API would make it strict in its own way."""
    wire: JsonObject = {"type": "function", "name": tool.name}
    if tool.description.strip():
        wire["description"] = tool.description
    parameters = tool.parameters if "type" in tool.parameters else {"type": "object", **tool.parameters}
    strict = strict_schema(parameters) if model.abilities.structured else None
    return {**wire, "parameters": parameters if strict is None else strict, "strict": strict is not None}


PROVIDER = "openai"

PromptCache = Literal["automatic", "extended", "explicit"]
"""Modes of the prompt cache: no setting; kept for a day; or breakpoints, of which none turns it off."""

_EXTENDED = frozenset({"gpt-5.5", "gpt-5.5-pro", "gpt-5.4", "gpt-5.2", "gpt-5.1", "gpt-5", "gpt-4.1"})
"""Models before 5.6 that keep a prompt for a day where that is asked for."""

_GENERATION = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_FIRST_EXPLICIT = (5, 6)


def prompt_cache(name: str) -> PromptCache:
    """Return how a model's prompt cache is asked for; `name` is without the date of a snapshot."""
    found = _GENERATION.match(name)
    if found is not None and (int(found[1]), int(found[2] or 0)) >= _FIRST_EXPLICIT:
        return "explicit"
    return "extended" if name in _EXTENDED else "automatic"


_LONGEST_ID = 56
"""The API takes 64 characters; a number may follow where ids repeat."""


class Items(msgspec.Struct, frozen=True, kw_only=True):
    """The items of a request. Those before the last one can be shared with other requests.

    `last_resource` is the number of an item, and of the part of it that ends the newest attachment.
    """

    items: list[JsonObject]
    last_resource: tuple[int, int] | None


def own_reasoning(event: AssistantReasoning, model: str, provider: str) -> JsonObject | None:
    """Return the item as the API sent it, None unless this provider and model made it.

    Without its encrypted content, the API would look it up among stored items.
    """
    metadata = event.metadata or {}
    item_id, encrypted = metadata.get("item_id"), metadata.get("encrypted_content")
    if not is_made_by(metadata, provider, model) or not isinstance(item_id, str) or not isinstance(encrypted, str):
        return None
    summary = [{"type": "summary_text", "text": event.text}] if event.text else []
    return {"type": "reasoning", "id": item_id, "summary": summary, "encrypted_content": encrypted}


class Builder:
    """Adds events to items. Only a user's item at the end ever changes, which final events do not end with."""

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
        self._last_resource: tuple[int, int] | None = None

    def fork(self) -> Builder:
        """Return a builder that goes on from here; what is added to it is not added here."""
        found: Builder = copy(self)
        found._items, found._held = list(self._items), list(self._held)
        return found

    def add(self, event: WireEvent) -> None:
        """Add the next event.

        Raises:
            ProviderError: it is a new attachment of a type that the model does not take, of kind `unsupported`.
        """
        match event:
            case UserText():
                self._ask(event, [text_part(text) for text in (event.text, *self._rules(event)) if text.strip()])
            case UserResource(resource=resource):
                is_new = request_of(event) == self._newest
                parts = attachment_parts(resource, takes=self._takes, provider=self._provider, is_new=is_new)
                self._ask(event, parts)
                self._last_resource = (len(self._items) - 1, len(self._items[-1]["content"]) - 1)
            case AssistantText() | AssistantData():
                self._answer(event)
            case AssistantReasoning():
                self._reason(event)
            case WireCall():
                self._say(_call(event))
            case WireResult():
                takes = self._takes if model_table(PROVIDER).is_own(self._asked_model) else ()
                self._end_answer()
                output = output_of(event.content, takes=takes, is_error=event.is_error)
                self._put({"type": "function_call_output", "call_id": event.wire_id, "output": output})
            case _:
                assert_never(event)

    def finish(self) -> Items:
        """Return the items; nothing more is added."""
        self._end_answer()
        return Items(items=self._items, last_resource=self._last_resource)

    def _put(self, item: JsonObject) -> None:
        self._speaks = None
        self._items.append(item)

    def _rules(self, request: UserText) -> tuple[str, ...]:
        """Return the instruction about the answer's schema, at every position of the request, as it was asked."""
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


def _call(called: WireCall) -> JsonObject:
    arguments = msgspec.json.encode(arguments_of(called.call)).decode()
    return {"type": "function_call", "call_id": called.wire_id, "name": called.call.name, "arguments": arguments}


def _valid_id(call_id: str, number: int) -> str:
    return plain_id(call_id[:_LONGEST_ID], number)


_ITEM = re.compile(r"\brs_\w+")


def locate(thread: Thread, message: str, *, provider: str) -> tuple[str, ...]:
    """Return the origins of the reasoning in `thread` that an error's `message` names, none if it names none."""
    named = set(_ITEM.findall(message))
    reasoning = (event for event in thread.events if isinstance(event, AssistantReasoning))
    return tuple(
        event.origin
        for event in reasoning
        if (own := own_reasoning(event, thread.model, provider)) is not None and own["id"] in named
    )


_USUAL_OUTPUT = 128_000
"""Output limit that an effort is a share of, if that of the model is unknown."""

_LONGEST_KEY = 64

_OBEYED: dict[CachePolicy, PromptCache] = {"off": "explicit", "long": "extended"}
"""Modes of the prompt cache that support a policy."""

PROTECTED = frozenset({
    *("model", "input", "instructions", "tools", "stream", "store", "include", "background", "prompt"),
    *("previous_response_id", "conversation"),
})
"""Fields that `other` cannot set: the log would not say what was sent."""


Summary = Literal["auto", "concise", "detailed", "none"]


class Reasoning(msgspec.Struct, frozen=True, kw_only=True):
    """Reasoning on the wire. `is_active` says whether the model may reason."""

    wire: JsonObject | None = None
    is_active: bool = False
    effort: Level | None = None


def reasoning_of(parameters: Parameters, model: Model, *, summary: Summary = "auto") -> Reasoning:
    """Return the reasoning settings of a request, including the summary that is shown."""
    abilities, wanted = model.abilities, parameters.reasoning
    is_unasked = (wanted is None or is_off(parameters)) and not abilities.thinks_by_default
    if abilities.thinking == "none" or (is_unasked and "none" not in abilities.levels):
        return Reasoning()
    if is_unasked and wanted is None:
        return Reasoning()
    effort = abilities.levels[0] if is_off(parameters) else _level(parameters, model)
    wire: JsonObject = {} if effort is None else {"effort": effort}
    if effort != "none":
        wire |= _shown(model, summary)
    return Reasoning(wire=wire or None, is_active=effort != "none", effort=effort)


def _shown(model: Model, summary: Summary) -> JsonObject:
    """Return the settings that make reasoning visible and keep it in the prompt: dropping it would break the cache."""
    name = model.details.id
    if not model_table(PROVIDER).is_own(name):
        return {}
    shown = {} if summary == "none" else {"summary": summary}
    return {**shown, "context": "all_turns"} if prompt_cache(canonical_name(name)) == "explicit" else shown


def _level(parameters: Parameters, model: Model) -> Level | None:
    abilities = model.abilities
    if parameters.reasoning in {None, "auto"}:
        return None if abilities.thinks_by_default else nearest_level("medium", abilities.levels)
    longest = parameters.max_tokens or model.details.max_output or _USUAL_OUTPUT
    return nearest_level(cast("Effort", effort_of(parameters, longest)), abilities.levels)


def sampling_sent(parameters: Parameters, model: Model, reasoning: Reasoning) -> JsonObject:
    """Temperature and the like, as far as the model takes them."""
    abilities = model.abilities
    if not abilities.sampling or (reasoning.is_active and not abilities.sampling_while_thinking):
        return {}
    return {name: value for name, value in sampling_of(parameters).items() if name != "top_k"}


def choice_of(parameters: Parameters, tools: Sequence[ToolDefinition]) -> str | JsonObject | None:
    """Return the tool choice, None if the model decides. A name is one of `tools`."""
    match parameters.tool_choice:
        case "auto":
            return None
        case ("none" | "required") as choice:
            return choice if tools else None
        case name:
            return {"type": "function", "name": name} if tools else None


def caching_of(thread: Thread) -> JsonObject:
    """Return the settings of the prompt cache, without its breakpoints."""
    policy, kind = thread.parameters.cache, prompt_cache(canonical_name(thread.model))
    if policy == "off":
        return {"prompt_cache_options": {"mode": "explicit"}} if kind == "explicit" else {}
    caching: JsonObject = {"prompt_cache_key": thread.conversation[:_LONGEST_KEY]} if thread.conversation else {}
    return {**caching, "prompt_cache_retention": "24h"} if policy == "long" and kind == "extended" else caching


def omitted(parameters: Parameters, model: Model, reasoning: Reasoning) -> tuple[str, ...]:
    """Sentences about the parameters that are not sent as they were asked for."""
    return (*_sampling_omitted(parameters, model, reasoning), *_unmet(parameters, model, reasoning))


def _sampling_omitted(parameters: Parameters, model: Model, reasoning: Reasoning) -> Iterator[str]:
    name = model.details.id
    sent = sampling_sent(parameters, model, reasoning)
    lost = [wanted for wanted in sampling_of(parameters) if wanted not in sent]
    unknown = [wanted for wanted in lost if wanted == "top_k"]
    if untaken := [wanted for wanted in lost if wanted != "top_k"]:
        while_reasoning = " while it reasons" if model.abilities.sampling else ""
        yield not_sent(untaken, f"{name!r} takes none{while_reasoning}")
    if any(word.strip() for word in parameters.stop_words):
        unknown.append("stop_words")
    if unknown:
        yield not_sent(unknown, "the Responses API knows none")
    if prompt_cache(canonical_name(name)) != _OBEYED.get(parameters.cache):
        yield from cache_not_sent(parameters.cache, f"{name!r} keeps prompts for a while, as long as it wants")


def _unmet(parameters: Parameters, model: Model, reasoning: Reasoning) -> Iterator[str]:
    name, wanted = model.details.id, parameters.reasoning
    if wanted in {None, "auto"}:
        return
    if is_off(parameters):
        if reasoning.is_active:
            yield f"{name!r} cannot wholly be kept from reasoning"
    elif model.abilities.thinking == "none":
        yield f"reasoning {wanted!r} not sent: {name!r} does not reason"
    elif isinstance(wanted, int):
        yield f"reasoning {wanted} sent as {reasoning.effort!r}: {name!r} takes no number of tokens"
    elif wanted in {"xhigh", "max"} and reasoning.effort != wanted:
        yield f"reasoning {wanted!r} sent as {reasoning.effort!r}, the most that {name!r} knows"


_PATH = "/v1/responses"
_MARKER = "prompt_cache_breakpoint"


_MARK: JsonObject = {_MARKER: {"mode": "explicit"}}


class RenderCache:
    """State of the previous request, for a thread that grows."""

    def __init__(self) -> None:
        self.items = IncrementalMessages[Builder](_valid_id)
        self.sections = IncrementalMap[JsonObject, SentMessage](_sent)


def _sent(item: JsonObject) -> SentMessage:
    return SentMessage((_canonical(item.get("role", item["type"])), *_blocks(item)))


def render(
    thread: Thread,
    *,
    provider: str = PROVIDER,
    summary: Summary = "auto",
    store: bool = False,
    growth: RenderCache | None = None,
) -> WireRequest:
    """Return the request for `thread`. The same thread gives the same bytes, with any `growth`.

    Args:
        thread: The conversation and its settings.
        provider: Whose reasoning is its own.
        summary: How much reasoning is shown.
        store: Let the server keep the request and its answer; it makes no use of them.
        growth: Kept from one request to the next.

    Raises:
        ConfigurationError: a parameter is one that cannot be set.
        ProviderError: a new attachment is one that the model does not take (`unsupported`), or there is nothing to
            send (`invalid_request`).
    """
    model = model_for(PROVIDER, thread)
    model = msgspec.structs.replace(model, details=msgspec.structs.replace(model.details, id=thread.model))
    parameters = thread.parameters
    growth = RenderCache() if growth is None else growth
    conversation = growth.items.build(thread, lambda: Builder(provider, model, thread)).finish()
    if not conversation.items:
        raise ProviderError("there is no message to send", kind="invalid_request")
    system = [text_part(text) for text in thread.system if text.strip()]
    in_system, messages = tuple(map(_canonical, system)), tuple(growth.sections.map(conversation.items))
    items = conversation.items
    if parameters.cache != "off" and prompt_cache(canonical_name(thread.model)) == "explicit":
        system[-1:] = [{**part, **_MARK} for part in system[-1:]]
        items = _marked(conversation)
    reasoning = reasoning_of(parameters, model, summary=summary)
    wanted = None if thread.schema is None else answer_format(thread.schema, model)
    has_reasoning = model.abilities.thinking != "none" and model_table(PROVIDER).is_own(thread.model)
    optional: JsonObject = {
        "include": ["reasoning.encrypted_content"] if has_reasoning else None,
        "tools": [tool_of(tool, model) for tool in thread.tools],
        "tool_choice": choice_of(parameters, thread.tools),
        "reasoning": reasoning.wire,
        "text": None if wanted is None else {"format": wanted},
        "max_output_tokens": parameters.max_tokens,
        **sampling_sent(parameters, model, reasoning),
        **caching_of(thread),
    }
    body: JsonObject = {
        "model": thread.model,
        "stream": model.abilities.streams,
        "store": store,
        "truncation": "disabled",
        **{name: value for name, value in optional.items() if value not in (None, [])},
    }
    prompt: list[JsonObject] = [{"type": "message", "role": "system", "content": system}] if system else []
    body["input"] = [*prompt, *items]
    body = merged(body, parameters.other, protected=PROTECTED)
    is_bound = model.abilities.bound_thinking
    return WireRequest(
        path=_PATH,
        model=thread.model,
        body=body,
        sections=Sections(
            tools=tuple(map(_canonical, body.get("tools", ()))),
            system=in_system,
            messages=messages,
            settings=_bound_settings(body) if is_bound else (),
        ),
        framing="sse" if model.abilities.streams else "json",
        omitted=omitted(parameters, model, reasoning),
        prefix_bound=(thread.model, *model.abilities.reads) if is_bound else (),
    )


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _marked(conversation: Items) -> list[JsonObject]:
    """Return the items with the end of the newest attachment marked, in a copy: other requests have the same items."""
    items = conversation.items
    if conversation.last_resource is None:
        return items
    number, index = conversation.last_resource
    parts = list(items[number]["content"])
    parts[index] = {**parts[index], **_MARK}
    return [*items[:number], {**items[number], "content": parts}, *items[number + 1 :]]


def _blocks(item: JsonObject) -> tuple[bytes, ...]:
    return tuple(map(_canonical, item["content"])) if item.get("role") == "user" else (_canonical(item),)


def _bound_settings(body: JsonObject) -> tuple[bytes, ...]:
    """Return the parameters whose change invalidates reasoning (guides/keep-prefix-unchanged, 2026-11-22)."""
    reasoning: JsonObject = body.get("reasoning") or {}
    text: JsonObject = body.get("text") or {}
    return (_canonical(reasoning.get("effort")), _canonical(text.get("format")))
