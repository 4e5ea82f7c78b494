"""The Responses API's events as parts; a response that comes as a whole is read in the same way. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

import msgspec

from jp.conversation.entries import JsonObject
from jp.provider.asking import object_at
from jp.provider.base import WireRequest
from jp.provider.errors import ProviderError
from jp.provider.openai import wire
from jp.provider.openai.items import PROVIDER
from jp.provider.openai.output import Call, Data, Output, Thought, Words
from jp.provider.openai.strictness import ANSWER
from jp.provider.parts import BlockEnd, Finished, InputReport, KeepAlive, Part, UsageReport
from jp.provider.reporting import reported
from jp.provider.strangers import UNREADABLE, CallStarts, input_changes, unreadable
from jp.provider.strict import StrictText

_POLICIES = frozenset({
    *("invalid_prompt", "bio_policy", "misalignment_policy_violation", "image_content_policy_violation"),
})
"""Failures that are refusals."""

_DELTAS = frozenset({
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_ITEM_EVENTS = frozenset({"response.output_item.added", "response.output_item.done"})
_SIGNS_OF_LIFE = frozenset({"response.created", "response.queued", "response.in_progress", "keepalive"})


def _strict_tools(body: JsonObject) -> Mapping[str, JsonObject]:
    tools: list[JsonObject] = body.get("tools", [])
    return {tool["name"]: tool["parameters"] for tool in tools if tool.get("strict")}


def _strict_format(body: JsonObject) -> JsonObject | None:
    given = object_at(object_at(body, "text"), "format")
    return object_at(given, "schema") if given.get("name") == ANSWER else None


class OpenaiDecoder:
    """Reads the response to one request, whose model is what reasoning is kept with."""

    def __init__(self, request: WireRequest, *, provider: str = PROVIDER) -> None:
        self._provider = provider
        self._model = request.model
        self._is_whole = request.framing == "json"
        self._tools = _strict_tools(request.body)
        self._format = _strict_format(request.body)
        self._open: dict[int, Output] = {}
        self._seen: set[int] = set()
        self._calls = CallStarts(provider)
        self._refusal = ""

    def feed(self, event: str, data: bytes) -> Sequence[Part]:
        """Read one event, or the whole response. Unknown events and items give nothing.

        Raises:
            ProviderError: it reports an error, or is not what it should be.
        """
        if data.strip() == b"[DONE]":
            return []
        try:
            if self._is_whole:
                return self._whole(data)
            kind = wire.kinds.decode(data).type or event
            return self._event(kind, data)
        except UNREADABLE as error:
            raise unreadable(self._provider) from error

    def close(self) -> Sequence[Part]:
        """Nothing: an answer is complete with the event that says so, and not without."""
        return ()

    def _whole(self, data: bytes) -> Sequence[Part]:
        response = wire.responses.decode(data)
        if response.status is None and not response.output:
            raise reported(data, self._provider, self._model)
        return self._ended(response)

    def _event(self, kind: str, data: bytes) -> Sequence[Part]:
        if kind in _DELTAS:
            return self._delta(kind, wire.events.decode(data))
        if kind in _ITEM_EVENTS:
            read = wire.events.decode(data)
            return self._item(read.output_index, read.item, is_done=kind == "response.output_item.done")
        if kind in _ENDS:
            response = wire.events.decode(data).response
            return self._ended(response or wire.Response(status=kind.removeprefix("response.")))
        if kind == "error":
            raise reported(data, self._provider, self._model)
        return [KeepAlive()] if kind in _SIGNS_OF_LIFE else []

    def _item(self, index: int, raw: msgspec.Raw, *, is_done: bool) -> Sequence[Part]:
        if wire.kinds.decode(raw).type not in wire.ITEMS:
            return []
        item = wire.items.decode(raw)
        parts = [] if index in self._seen else self._start(index, item)
        return [*parts, *self._end(index, item)] if is_done else parts

    def _start(self, index: int, item: wire.Item) -> list[Part]:
        self._seen.add(index)
        match item.type:
            case "reasoning":
                self._open[index] = Thought(index)
            case "message" if self._format is not None and item.phase != "commentary":
                self._open[index] = Data(index, StrictText(self._format, is_answer=True))
            case "message":
                self._open[index] = Words(index)
            case _:
                name = item.name or ""
                strict = self._tools.get(name)
                self._open[index] = Call(index, None if strict is None else StrictText(strict, is_answer=False))
                return [self._calls.start(index, given=item.call_id or item.id or "", name=name)]
        return []

    def _delta(self, kind: str, event: wire.Event) -> Sequence[Part]:
        output = self._open.get(event.output_index)
        if kind == "response.refusal.delta":
            self._refusal += event.delta
            return []
        if output is None:
            return []
        return output.grow(event.delta, place=(kind, event.content_index, event.summary_index))

    def _end(self, index: int, item: wire.Item) -> list[Part]:
        output = self._open.pop(index, None)
        if output is None:
            return []
        self._hear_refusal(item)
        if isinstance(output, Call) and item.status == "incomplete":
            return []  # half a call is none
        parts = list(output.finish(item))
        metadata = self._metadata(output, item)
        return [*parts, BlockEnd(index, metadata)] if output.has_begun else parts

    def _hear_refusal(self, item: wire.Item) -> None:
        if not self._refusal:
            self._refusal = "".join(part.refusal for part in item.content or ())

    def _metadata(self, output: Output, item: wire.Item) -> JsonObject | None:
        match output:
            case Thought():
                is_whole = item.status != "incomplete"
                found = {"item_id": item.id, "encrypted_content": item.encrypted_content if is_whole else None}
            case Words() | Data():
                found = {"item_id": item.id, "phase": item.phase}
            case Call():
                found = {}
            case _:
                assert_never(output)
        kept = {name: value for name, value in found.items() if value}
        return {"provider": self._provider, "model": self._model, **kept} if kept else None

    def _ended(self, response: wire.Response) -> Sequence[Part]:
        """What no event has told of, then how it ended."""
        if response.status in {"failed", "cancelled"}:
            try:
                return [self._refused_or_failed(response.error or wire.Failure())]
            except ProviderError as error:
                error.usage = wire.usage_of(response.usage)
                raise
        parts: list[Part] = []
        for index, raw in enumerate(response.output or ()):
            if index in self._open or index not in self._seen:
                parts += self._item(index, raw, is_done=True)
        for index in sorted(self._open):
            parts += self._end(index, wire.Item(type="", status=response.status))
        if (usage := wire.usage_of(response.usage)) is not None:
            parts.append(UsageReport(usage))
        if (changes := input_changes(response.input_transformations)) is not None:
            parts.append(InputReport(changes))
        return [*parts, self._finished(response)]

    def _finished(self, response: wire.Response) -> Finished:
        reason = (response.incomplete_details or wire.Incomplete()).reason
        if self._refusal or reason == "content_filter":
            return Finished("refused", self._refusal or "content_filter")
        if response.status == "incomplete":
            return Finished("length", "" if reason == "max_output_tokens" else reason or "")
        return Finished("tools" if self._calls else "stop")

    def _refused_or_failed(self, failure: wire.Failure) -> Finished:
        if failure.code in _POLICIES:
            return Finished("refused", failure.message or failure.code or "")
        code = failure.code or "server_error"
        body = msgspec.json.encode({"error": {"code": code, "message": failure.message or ""}})
        raise reported(body, self._provider, self._model)
