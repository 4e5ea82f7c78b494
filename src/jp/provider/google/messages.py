"""The events of a thread as contents: the user's, the model's, and the answers to its calls. Pure.

Everything is decided by what comes before it, so that a longer thread begins with the contents of a shorter one.
"""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import AssistantData, AssistantReasoning, AssistantText, Thread, UserResource, UserText
from jp.provider.abilities import Model
from jp.provider.arrangement import (
    NOT_SHOWN,
    Answered,
    Arranged,
    Called,
    arguments_of,
    arranged,
    newest_request,
    request_of,
)
from jp.provider.google.content import attachment_parts, function_response, text_part
from jp.provider.google.parameters import held_schema
from jp.provider.models import find_model
from jp.provider.opaque import is_made_by

PROVIDER = "google"

UNSIGNED = "skip_thought_signature_validator"
"""In place of the signature of a call that the model did not make, or not in this form: Gemini refuses one without."""

_Speaker = Literal["user", "model", "results"]
"""Who speaks in a content. Answers to calls have one to themselves: the API counts them against the calls before."""


class Content(msgspec.Struct, kw_only=True):
    """A content as it grows."""

    speaker: _Speaker
    parts: list[JsonObject]

    @property
    def wire(self) -> JsonObject:
        """The content as the API takes it."""
        return {"role": "model" if self.speaker == "model" else "user", "parts": self.parts}


def signature_of(metadata: JsonObject | None) -> str | None:
    """The signature in the metadata of a part, where it has one."""
    signature = (metadata or {}).get("signature")
    return signature if isinstance(signature, str) and signature else None


class _Builder:
    def __init__(self, thread: Thread, provider: str) -> None:
        self._provider = provider
        self._name = thread.model
        self._model: Model = find_model(PROVIDER, thread.model)
        self._has_tools = bool(thread.tools)
        self._newest = newest_request(thread.events)
        self._contents: list[Content] = []
        self._beside: list[JsonObject] = []

    def add(self, event: Arranged) -> None:
        if self._beside and not isinstance(event, Answered):
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
            case Called():
                self._say("model", self._call(event))
            case Answered():
                response = function_response(event, self._model.abilities)
                self._say("results", response.part)
                self._beside += response.beside
            case _:
                assert_never(event)

    def finish(self) -> list[Content]:
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

    def _call(self, called: Called) -> JsonObject:
        call = called.call
        part: JsonObject = {
            "functionCall": {"id": called.wire_id, "name": call.name, "args": arguments_of(call)},
        }
        # Of calls that were made at once only the first is signed, and the others have to stay without.
        signature = signature_of(call.metadata) if self._is_own(call.metadata) else UNSIGNED
        return part if signature is None else {**part, "thoughtSignature": signature}

    def _rules(self, request: UserText) -> tuple[str, ...]:
        """What has to be said of the answer's schema in words: wherever the request stands, as it was asked."""
        if request.schema is None or held_schema(request.schema, self._model, has_tools=self._has_tools) is not None:
            return ()
        from jp.provider.structured import in_words

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


def build_contents(thread: Thread, *, provider: str = PROVIDER) -> list[Content]:
    """The contents of `thread`. The user speaks first, and each call is answered at once.

    Raises:
        ProviderError: a new attachment is of a type that the model does not take, of kind `unsupported`.
    """
    builder = _Builder(thread, provider)
    for event in arranged(thread.events):
        builder.add(event)
    return builder.finish()
