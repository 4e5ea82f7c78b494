"""A thread as a request of `streamGenerateContent`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Literal, assert_never

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.resource import Resource
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    IncrementalMap,
    Parameters,
    Thread,
    ToolCall,
    ToolDefinition,
    UserResource,
    UserText,
    ViewEvent,
)
from jp.provider.base import Abilities, Model, Sections, SentMessage, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.grammar import open_schema
from jp.provider.models import is_made_by, model_for
from jp.provider.parameters import (
    SHARES,
    cache_not_sent,
    effort_of,
    is_off,
    merged,
    nearest_level,
    not_sent,
    sampling_of,
)
from jp.provider.transcript import (
    NOT_SHOWN,
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
    request_of,
    result,
    shown_of,
)

_DYNAMIC = -1
"""Budget that lets the model decide."""

_UNKNOWN_OUTPUT = 65_536
"""Output limit that an effort is a share of, for a model that the table does not have."""


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """Thinking settings on the wire, and whether the model may think."""

    wire: JsonObject | None = None
    is_active: bool = False


def longest_output(parameters: Parameters, model: Model) -> int:
    """Return the most tokens that the model may write, including reasoning."""
    return parameters.max_tokens or model.details.max_output or _UNKNOWN_OUTPUT


def thinking_of(parameters: Parameters, model: Model) -> Thinking:
    """Return the thinking settings of a request; reasoning that the model does by default is made visible."""
    abilities = model.abilities
    wanted = parameters.reasoning
    if abilities.thinking not in {"budget", "levels"}:
        return Thinking()
    if is_off(parameters):
        return _off(abilities)
    if wanted is None and not abilities.thinks_by_default:
        return Thinking()
    visible: JsonObject = {"includeThoughts": True}
    if abilities.thinking == "budget":
        budget = None if wanted is None else _budget(parameters, model)
        return Thinking(wire=visible if budget is None else {**visible, "thinkingBudget": budget}, is_active=True)
    effort = effort_of(parameters, longest_output(parameters, model))
    level = None if effort is None else nearest_level(effort, abilities.levels)
    return Thinking(wire=visible if level is None else {**visible, "thinkingLevel": level.upper()}, is_active=True)


def _off(abilities: Abilities) -> Thinking:
    """Return the least thinking that the model has: some cannot turn it off."""
    cannot = abilities.thinking_off == "never"
    if abilities.thinking == "budget":
        return Thinking(wire={"thinkingBudget": abilities.least_budget if cannot else 0}, is_active=cannot)
    least = next(iter(abilities.levels), None)
    return Thinking(wire=None if least is None else {"thinkingLevel": least.upper()}, is_active=True)


def _budget(parameters: Parameters, model: Model) -> int:
    """Return a number of tokens that the model accepts."""
    if parameters.reasoning == "auto":
        return _DYNAMIC
    longest = longest_output(parameters, model)
    if isinstance(parameters.reasoning, int):
        wanted = parameters.reasoning
    else:
        wanted = longest * SHARES[effort_of(parameters, longest) or "medium"] // 100
    abilities = model.abilities
    most = wanted if abilities.most_budget is None else min(wanted, abilities.most_budget)
    return max(abilities.least_budget, most)


def unmet(parameters: Parameters, model: Model, thinking: Thinking) -> Iterator[str]:
    """Return notes about reasoning settings that the model does not have."""
    name, wanted = model.details.id, parameters.reasoning
    if is_off(parameters):
        if thinking.is_active:
            yield f"{name!r} cannot wholly be kept from reasoning"
    elif wanted is not None and thinking.wire is None:
        yield f"reasoning {wanted!r} not sent: {name!r} goes on without it"
    elif isinstance(wanted, int):
        yield from _changed_number(wanted, thinking, name)
    elif wanted in {"xhigh", "max"}:
        level = str((thinking.wire or {}).get("thinkingLevel", wanted)).lower()
        if level != wanted:
            yield f"reasoning {wanted!r} sent as {level!r}, the most that {name!r} knows"


def _changed_number(wanted: int, thinking: Thinking, name: str) -> Iterator[str]:
    wire = thinking.wire or {}
    if "thinkingLevel" in wire:
        yield f"reasoning {wanted} sent as {wire['thinkingLevel'].lower()!r}: {name!r} takes no number of tokens"
        return
    sent: int = wire["thinkingBudget"]
    if sent != wanted:
        bound = "most" if sent < wanted else "least"
        yield f"reasoning {wanted} sent as {sent}, the {bound} that {name!r} takes"


PROTECTED = frozenset({
    *("contents", "model", "systemInstruction", "system_instruction", "store", "toolConfig", "tools"),
})
"""Fields that `other` cannot set: the log would not say what was sent, or they belong to the account."""

_MOST_STOP_WORDS = 5
_SAMPLING = {"temperature": "temperature", "top_p": "topP", "top_k": "topK"}


def tool_config(parameters: Parameters, tools: Sequence[ToolDefinition], model: Model) -> JsonObject | None:
    """Return the tools that the model may call; a name is one of `tools`.

    It is also sent without tools: a model that called some before would call them again.
    """
    wanted = parameters.tool_choice
    is_gemini = model.details.id.startswith("gemini-")
    if not tools:
        return _calling("NONE") if is_gemini else None
    match wanted:
        case "none":
            return _calling("NONE")
        case "auto":
            # The API enforces the schemas of the tools.
            return _calling("VALIDATED") if is_gemini else None
        case "required":
            return _calling("ANY")
        case name:
            return _calling("ANY", allowedFunctionNames=[name])


def _calling(mode: str, **further: object) -> JsonObject:
    return {"functionCallingConfig": {"mode": mode, **further}}


def takes_sampling(model: Model, thinking: Thinking) -> bool:
    """Return whether temperature and similar parameters have an effect."""
    abilities = model.abilities
    return abilities.sampling and (abilities.sampling_while_thinking or not thinking.is_active)


def held_schema(schema: JsonObject | None, model: Model, *, has_tools: bool) -> JsonObject | None:
    """Return the schema that the API enforces, None if there is none or the API cannot enforce it."""
    abilities = model.abilities
    if schema is None or not abilities.structured or (has_tools and not abilities.structured_with_tools):
        return None
    return open_schema(schema)


def generation_config(
    parameters: Parameters, model: Model, thinking: Thinking, schema: JsonObject | None
) -> JsonObject:
    """Return the settings of the answer; `schema` is the one that the API enforces."""
    config: JsonObject = {}
    if parameters.max_tokens is not None:
        config["maxOutputTokens"] = parameters.max_tokens
    if takes_sampling(model, thinking):
        config.update({_SAMPLING[name]: value for name, value in sampling_of(parameters).items()})
    if words := _stop_words(parameters)[:_MOST_STOP_WORDS]:
        config["stopSequences"] = words
    if thinking.wire is not None:
        config["thinkingConfig"] = thinking.wire
    if schema is not None:
        config.update({"responseMimeType": "application/json", "responseJsonSchema": schema})
    return config


def _stop_words(parameters: Parameters) -> list[str]:
    return [word for word in parameters.stop_words if word.strip()]


def omitted(parameters: Parameters, model: Model, thinking: Thinking) -> tuple[str, ...]:
    """Return notes about parameters that are not sent as configured."""
    name, sentences = model.details.id, list[str]()
    sampling = sampling_of(parameters)
    if sampling and not takes_sampling(model, thinking):
        sentences.append(not_sent(sampling, f"{name!r} takes none"))
    if further := _stop_words(parameters)[_MOST_STOP_WORDS:]:
        sentences.append(not_sent(further, f"the API takes {_MOST_STOP_WORDS} stop words"))
    sentences += cache_not_sent(parameters.cache, "the API keeps what it wants")
    return (*sentences, *unmet(parameters, model, thinking))


_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
_RECORDINGS = frozenset({
    *("audio/wav", "audio/x-wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"),
    *("video/mp4", "video/mpeg", "video/quicktime", "video/x-msvideo", "video/x-flv", "video/webm", "video/3gpp"),
})
_IN_RESULTS = frozenset({"image/png", "image/jpeg", "image/webp", PDF})
"""Media types that the API accepts beside the text of a function's response."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """The part that answers a call, and the parts that follow all answers because it cannot contain them."""

    part: JsonObject
    beside: tuple[JsonObject, ...] = ()


def text_part(text: str) -> JsonObject:
    """Return a text part; the caller must not pass an empty text, which the API rejects."""
    return {"text": text}


def _taken(abilities: Abilities) -> frozenset[str]:
    taken = _IMAGES if abilities.images else frozenset[str]()
    if abilities.documents:
        taken |= {PDF}
    return taken | _RECORDINGS if abilities.recordings else taken


def _inline(media: Media) -> JsonObject:
    return {"inlineData": {"mimeType": media.media_type, "data": media.base64}}


def _part(shown: ContentPart) -> JsonObject:
    match shown:
        case TextPart(text=text):
            return text_part(text)
        case Media():
            return _inline(shown)
        case _:
            assert_never(shown)


def _types(abilities: Abilities) -> str:
    kinds = ["text", *(["PDF"] if abilities.documents else []), *(["PNG, JPEG, WebP"] if abilities.images else [])]
    if abilities.recordings:
        kinds.append("the usual formats of audio and video")
    return ", ".join(kinds)


def attachment_parts(resource: Resource, abilities: Abilities, *, provider: str, is_new: bool) -> list[JsonObject]:
    """Return the parts of a resource that the user attached.

    `is_new` means that it belongs to the request to be answered. An earlier attachment stays in the log, perhaps for
    another provider: if the model does not accept it, a note replaces it.

    Raises:
        ProviderError: it is new and the model does not accept its type (kind `unsupported`).
    """
    shown = attachment(resource, takes=_taken(abilities))
    if shown is not None:
        return [_part(piece) for piece in shown]
    if is_new:
        raise not_taken(resource, provider, _types(abilities))
    return [text_part(not_shown(resource.uri, resource.mime_type, len(shown_of(resource))))]


def function_response(answered: WireResult, abilities: Abilities) -> Response:
    """Return the result of a call. The API requires the function's name again, and an object."""
    taken = _taken(abilities) & _IN_RESULTS
    pieces = result(answered.content, takes=taken, is_error=answered.is_error)
    text = "\n".join(piece.text for piece in pieces if isinstance(piece, TextPart))
    media = [piece for piece in pieces if isinstance(piece, Media)]
    response: JsonObject = {
        "id": answered.wire_id,
        "name": answered.call.name,
        "response": {"error" if answered.is_error else "output": text},
    }
    if not media or abilities.media_in_results:
        within: JsonObject = {"parts": [_inline(piece) for piece in media]} if media else {}
        return Response(part={"functionResponse": {**response, **within}})
    heading = text_part(f"What {answered.call.name!r} ({answered.wire_id}) returned besides text:")
    return Response(part={"functionResponse": response}, beside=(heading, *_all_inline(media)))


def _all_inline(media: Sequence[Media]) -> list[JsonObject]:
    return [_inline(piece) for piece in media]


PROVIDER = "google"

UNSIGNED = "skip_thought_signature_validator"
"""In place of the signature of a call that the model did not make, or not in this form: Gemini refuses one without."""

_Speaker = Literal["user", "model", "results"]
"""Role of a content. Tool results have a content of their own: the API counts them against the calls before."""


class Content(msgspec.Struct, kw_only=True):
    """A content as it grows."""

    speaker: _Speaker
    parts: list[JsonObject]

    @property
    def wire(self) -> JsonObject:
        """The content as the API takes it."""
        return {"role": "model" if self.speaker == "model" else "user", "parts": self.parts}


def signature_of(metadata: JsonObject | None) -> str | None:
    """Return the signature in the metadata of a part, if there is one."""
    signature = (metadata or {}).get("signature")
    return signature if isinstance(signature, str) and signature else None


class Builder:
    """Adds events to contents. Only the last content ever changes."""

    def __init__(self, thread: Thread, provider: str) -> None:
        self._provider = provider
        self._name = thread.model
        self._model: Model = model_for(PROVIDER, thread)
        self._has_tools = bool(thread.tools)
        self._newest = newest_request(thread.events)
        self._contents: list[Content] = []
        self._beside: list[JsonObject] = []

    def fork(self) -> Builder:
        """Return a builder that goes on from here; what is added to it is not added here."""
        found: Builder = copy(self)
        found._contents, found._beside = list(self._contents), list(self._beside)
        if self._contents:
            last = self._contents[-1]
            found._contents[-1] = Content(speaker=last.speaker, parts=list(last.parts))
        return found

    def add(self, event: WireEvent) -> None:
        """Add the next event.

        Raises:
            ProviderError: it is a new attachment of a type that the model does not take, of kind `unsupported`.
        """
        if self._beside and not isinstance(event, WireResult):
            self._show_beside()
        match event:
            case UserText():
                self._say("user", *(text_part(text) for text in (event.text, *self._rules(event)) if text.strip()))
            case UserResource(resource=resource):
                is_new = request_of(event) == self._newest
                abilities = self._model.abilities
                self._say("user", *attachment_parts(resource, abilities, provider=self._provider, is_new=is_new))
            case AssistantText(text=text, metadata=metadata) | AssistantData(text=text, metadata=metadata):
                self._say("model", *self._signed(text, metadata))
            case AssistantReasoning(text=text, metadata=metadata):
                self._say("model", *self._thought(text, metadata))
            case WireCall():
                self._say("model", self._call(event))
            case WireResult():
                response = function_response(event, self._model.abilities)
                self._say("results", response.part)
                self._beside += response.beside
            case _:
                assert_never(event)

    def finish(self) -> list[Content]:
        """Return the contents; nothing more is added."""
        self._show_beside()
        self._end_answer()
        return self._contents

    def _show_beside(self) -> None:
        self._say("user", *self._beside)
        self._beside.clear()

    def _is_own(self, metadata: JsonObject | None) -> bool:
        return is_made_by(metadata, self._provider, self._name)

    def _signed(self, text: str, metadata: JsonObject | None) -> list[JsonObject]:
        if not text.strip():
            return []
        signature = signature_of(metadata) if self._is_own(metadata) else None
        return [text_part(text) if signature is None else {"text": text, "thoughtSignature": signature}]

    def _thought(self, text: str, metadata: JsonObject | None) -> list[JsonObject]:
        """Return the model's own thought as it came, and nothing of any other."""
        if not self._is_own(metadata):
            return []
        signature = signature_of(metadata)
        if signature is None:
            return [{"text": text, "thought": True}] if text.strip() else []
        # A signature may come in a part that has nothing else, and is no thought.
        kind: JsonObject = {} if (metadata or {}).get("part") == "text" else {"thought": True}
        return [{"text": text, **kind, "thoughtSignature": signature}]

    def _call(self, called: WireCall) -> JsonObject:
        call = called.call
        part: JsonObject = {
            "functionCall": {"id": called.wire_id, "name": call.name, "args": arguments_of(call)},
        }
        # Of calls that were made at once only the first is signed, and the others have to stay without.
        signature = signature_of(call.metadata) if self._is_own(call.metadata) else UNSIGNED
        return part if signature is None else {**part, "thoughtSignature": signature}

    def _rules(self, request: UserText) -> tuple[str, ...]:
        """Return the instruction about the answer's schema, at every position of the request, as it was asked."""
        if request.schema is None or held_schema(request.schema, self._model, has_tools=self._has_tools) is not None:
            return ()
        from jp.provider.schemas import in_words

        return (in_words(request.schema),)

    def _say(self, speaker: _Speaker, *parts: JsonObject) -> None:
        if not parts:
            return
        if speaker != "model":
            self._end_answer()
        elif not self._contents:
            self._contents.append(Content(speaker="user", parts=[text_part(NOT_SHOWN)]))
        if not self._contents or self._contents[-1].speaker != speaker:
            self._contents.append(Content(speaker=speaker, parts=[]))
        self._contents[-1].parts += parts

    def _end_answer(self) -> None:
        """Close the last content where it is the model's: it does not end with a thought, nor is it empty."""
        if not self._contents or self._contents[-1].speaker != "model":
            return
        parts = self._contents[-1].parts
        end = len(parts)
        while end and (parts[end - 1].get("thought") or not parts[end - 1].get("text", "call").strip()):
            end -= 1
        del parts[end:]
        if not parts:
            self._contents.pop()


_FUNCTION = re.compile(r"function call\s+`(?:\w+:)?([^`]+)`", re.IGNORECASE)
"""Pattern of the API's name for a call without its signature, with the namespace of functions."""


def _current_turn(events: Sequence[ViewEvent]) -> Sequence[ViewEvent]:
    """Return the events after the user's last message: the API checks the signatures of these only."""
    for position in range(len(events) - 1, -1, -1):
        if isinstance(events[position], (UserText, UserResource)):
            return events[position + 1 :]
    return events


def locate(thread: Thread, message: str, *, provider: str) -> tuple[str, ...]:
    """Return the origins of the events in `thread` whose signatures an error's `message` can be about.

    Only the current turn is checked, and the API does not say which signature is corrupted; if it names a function, the
    calls of that function are meant.
    """
    signed = [
        event
        for event in _current_turn(thread.events)
        if not isinstance(event, (UserText, UserResource))
        and (metadata := getattr(event, "metadata", None)) is not None
        and is_made_by(metadata, provider, thread.model)
        and (signature_of(metadata) is not None or isinstance(event, ToolCall))
    ]
    named = _FUNCTION.search(message)
    meant = [event for event in signed if named and isinstance(event, ToolCall) and event.name == named[1]]
    return tuple(event.origin for event in meant or signed)


def _path(model: str) -> str:
    from urllib.parse import quote

    # A tuned model says itself among which it is found.
    collection, slash, name = model.partition("/")
    where = model if slash and collection in {"models", "tunedModels"} and name else f"models/{model}"
    collection, _, name = where.partition("/")
    return f"/{collection}/{quote(name, safe='')}:streamGenerateContent?alt=sse"


def _declaration(tool: ToolDefinition) -> JsonObject:
    declaration: JsonObject = {"name": tool.name}
    if tool.description.strip():
        declaration["description"] = tool.description
    schema = tool.parameters if "type" in tool.parameters else {"type": "object", **tool.parameters}
    if schema.keys() - {"type", "properties"} or schema.get("properties"):
        declaration["parametersJsonSchema"] = schema
    return declaration


class RenderCache:
    """State of the previous request, for a thread that grows."""

    def __init__(self) -> None:
        self.contents = IncrementalMessages[Builder]()
        self.wires = IncrementalMap[Content, JsonObject](lambda content: content.wire)
        self.sections = IncrementalMap[JsonObject, SentMessage](_sent)


def _sent(content: JsonObject) -> SentMessage:
    return SentMessage((_canonical(content["role"]), *map(_canonical, content["parts"])))


def render(
    thread: Thread, *, provider: str = PROVIDER, store: bool | None = None, growth: RenderCache | None = None
) -> WireRequest:
    """Return the request for `thread`. The same thread gives the same bytes, with any `growth`.

    Args:
        thread: The conversation and its settings.
        provider: Whose signatures are its own.
        store: Whether the server may keep the request and its answer, which new projects do unasked; None leaves that
            to the project.
        growth: Kept from one request to the next.

    Raises:
        ConfigurationError: a parameter is one that cannot be set.
        ProviderError: a new attachment is one that the model does not take (`unsupported`), or there is nothing to
            send (`invalid_request`).
    """
    model = model_for(PROVIDER, thread)
    parameters = thread.parameters
    growth = RenderCache() if growth is None else growth
    contents = growth.contents.build(thread, lambda: Builder(thread, provider)).finish()
    if not contents:
        raise ProviderError("there is no message to send", kind="invalid_request")
    thinking = thinking_of(parameters, model)
    schema = held_schema(thread.schema, model, has_tools=bool(thread.tools))
    system = [text_part(part) for part in thread.system if part.strip()]
    optional: JsonObject = {
        "systemInstruction": {"parts": system} if system else None,
        "tools": [{"functionDeclarations": [_declaration(tool) for tool in thread.tools]}] if thread.tools else None,
        "toolConfig": tool_config(parameters, thread.tools, model),
        "generationConfig": generation_config(parameters, model, thinking, schema),
    }
    body: JsonObject = {name: value for name, value in optional.items() if value}
    if store is not None:
        body["store"] = store
    wires = body["contents"] = growth.wires.map(contents)
    body = merged(body, parameters.other, protected=PROTECTED)
    return WireRequest(
        path=_path(thread.model),
        model=thread.model,
        body=body,
        sections=Sections(
            tools=tuple(
                _canonical(declared) for tool in body.get("tools", ()) for declared in tool["functionDeclarations"]
            ),
            system=tuple(map(_canonical, body.get("systemInstruction", {}).get("parts", ()))),
            messages=tuple(growth.sections.map(wires)),
        ),
        omitted=omitted(parameters, model, thinking),
    )


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value, order="deterministic")
