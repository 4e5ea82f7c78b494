"""The events of a thread as messages of Ollama's chat API. Pure.

Everything is decided by what comes before it, so that a longer thread begins with the messages of a shorter one. What
the user says at different times stays in different messages, what the model says without anybody in between is one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import assert_never

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import AssistantData, AssistantReasoning, AssistantText, Thread, UserResource, UserText
from jp.provider.abilities import Model
from jp.provider.arrangement import (
    Answered,
    Arranged,
    Called,
    arguments_of,
    arranged,
    newest_request,
    request_of,
)
from jp.provider.opaque import is_made_by
from jp.provider.showing import Media, Words, attachment, not_shown, not_taken, result, shown_of
from jp.provider.structured import in_words

IMAGES = frozenset({"image/jpeg", "image/png", "image/webp"})
"""What the server decodes, for models that see."""

_SHOWN_WITH = "What the tools returned as images:"


class Messages(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of a request. `asked` is the one that holds what the user asked last."""

    messages: list[JsonObject]
    asked: JsonObject | None


class _Builder:
    def __init__(self, thread: Thread, model: Model, provider: str) -> None:
        self._model = thread.model
        self._provider = provider
        self._newest = newest_request(thread.events)
        self._takes: Collection[str] = IMAGES if model.abilities.images else ()
        self._messages: list[JsonObject] = []
        self._request: tuple[str, int] | None = None
        self._pictures: list[str] = []
        self._asked: JsonObject | None = None

    def add(self, event: Arranged) -> None:
        if not isinstance(event, Answered):
            self._show_pictures()
        match event:
            case UserText():
                self._ask_in_words(event)
            case UserResource():
                self._attach(event)
            case AssistantText(text=text) | AssistantData(text=text):
                self._say("content", text)
            case AssistantReasoning(text=text):
                self._think(event, text)
            case Called():
                self._call(event)
            case Answered():
                self._return(event)
            case _:
                assert_never(event)

    def finish(self) -> Messages:
        self._show_pictures()
        return Messages(messages=self._messages, asked=self._asked)

    def _ask_in_words(self, event: UserText) -> None:
        """What the user asks; and what the answer has to fit, which no grammar lets the model see."""
        self._ask(event, Words(event.text))
        if event.schema is not None:
            self._ask(event, Words(in_words(event.schema)))

    def _call(self, called: Called) -> None:
        function = {"name": called.call.name, "arguments": arguments_of(called.call)}
        self._answer().setdefault("tool_calls", []).append({"function": function})

    def _attach(self, event: UserResource) -> None:
        resource = event.resource
        shown = attachment(resource, takes=self._takes)
        if shown is None:
            if request_of(event) == self._newest:
                types = "text, JPEG, PNG and WebP" if self._takes else "text"
                raise not_taken(resource, f"this model of {self._provider}", types)
            shown = iter((Words(not_shown(resource.uri, resource.mime_type, len(shown_of(resource)))),))
        for piece in shown:
            self._ask(event, piece)

    def _ask(self, event: UserText | UserResource, piece: Words | Media) -> None:
        if isinstance(piece, Words) and not piece.text.strip():
            return
        request = request_of(event)
        if self._request != request or self._messages[-1]["role"] != "user":
            self._messages.append({"role": "user", "content": ""})
            self._request = request
        message = self._messages[-1]
        if isinstance(piece, Media):
            message.setdefault("images", []).append(piece.base64)
        else:
            message["content"] = joined(message["content"], piece.text)
        if request == self._newest:
            self._asked = message

    def _answer(self) -> JsonObject:
        """The answer that is being told."""
        if not self._messages or self._messages[-1]["role"] != "assistant":
            self._messages.append({"role": "assistant", "content": ""})
        return self._messages[-1]

    def _say(self, field: str, text: str) -> None:
        if text.strip():
            answer = self._answer()
            answer[field] = joined(answer.get(field, ""), text)

    def _think(self, event: AssistantReasoning, text: str) -> None:
        """Reasoning, as the model's own where it is: a template decides how much of it the model sees again."""
        if is_made_by(event.metadata, self._provider, self._model):
            self._say("thinking", text)

    def _return(self, answered: Answered) -> None:
        pieces = result(answered.content, takes=self._takes, is_error=answered.is_error)
        texts: list[str] = []
        for piece in pieces:
            if isinstance(piece, Media):
                self._pictures.append(piece.base64)
                texts.append(f"[image {piece.name}: shown below]")
            else:
                texts.append(piece.text)
        text = "\n".join(texts)
        content = f"Error: {text}" if answered.is_error else text
        self._messages.append({"role": "tool", "tool_name": answered.call.name, "content": content})

    def _show_pictures(self) -> None:
        """What the tools returned as images, where the model sees them: in a message of the user."""
        if self._pictures:
            self._messages.append({"role": "user", "content": _SHOWN_WITH, "images": self._pictures})
            self._request, self._pictures = None, []


def joined(text: str, more: str) -> str:
    """Two texts of one message, a blank line between them."""
    return f"{text}\n\n{more}" if text else more


def build_messages(thread: Thread, model: Model, *, provider: str) -> Messages:
    """The messages of `thread`, without the system prompt. Each call is answered at once.

    Raises:
        ProviderError: a new attachment is of a type that the model does not take, of kind `unsupported`.
    """
    builder = _Builder(thread, model, provider)
    for event in arranged(thread.events):
        builder.add(event)
    return builder.finish()
