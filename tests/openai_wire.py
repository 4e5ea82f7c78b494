"""Bodies of the Responses API, as its server streams them."""

from __future__ import annotations

from jp.conversation.entries import JsonObject
from loopback import sse

Event = JsonObject
Item = JsonObject

USAGE: Event = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 120,
}


def response(status: str, *items: Item, **more: object) -> Event:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "gpt-5.6-sol",
        "output": list(items),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": USAGE if status in {"completed", "incomplete"} else None,
        **more,
    }


def message(*texts: str, item_id: str = "msg_1", **more: object) -> Item:
    content: list[JsonObject] = [{"type": "output_text", "annotations": [], "text": text} for text in texts]
    return {
        "id": item_id,
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": content,
        **more,
    }


def refusal(text: str) -> Item:
    return {**message(), "content": [{"type": "refusal", "refusal": text}]}


def reasoning(*summary: str, item_id: str = "rs_1", encrypted: str | None = "sealed") -> Item:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"id": item_id, "type": "reasoning", "summary": parts, "content": [], "encrypted_content": encrypted}


def call(name: str, arguments: str, *, call_id: str = "call_1", **more: object) -> Item:
    return {
        "id": f"fc_{call_id}",
        "type": "function_call",
        "status": "completed",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        **more,
    }


def empty(item: Item) -> Item:
    """An item as it is announced, before anything of it has come."""
    blank: JsonObject = {"content": [], "summary": [], "arguments": ""}
    return {name: blank.get(name, value) for name, value in item.items()}


def delta(kind: str, index: int, text: str, **place: int) -> Event:
    return {"type": f"response.{kind}.delta", "output_index": index, "item_id": "i", "delta": text, **place}


def added(index: int, item: Item) -> Event:
    return {"type": "response.output_item.added", "output_index": index, "item": empty(item)}


def done(index: int, item: Item) -> Event:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def _deltas(index: int, item: Item) -> list[Event]:
    events: list[Event] = []
    for name, kind, place in (
        ("summary", "reasoning_summary_text", "summary_index"),
        ("content", "output_text", "content_index"),
    ):
        parts: list[JsonObject] = item.get(name) or []
        for number, found in enumerate(parts):
            told_as = "refusal" if found["type"] == "refusal" else kind
            text: str = found.get("text") or found.get("refusal") or ""
            events += [delta(told_as, index, piece, **{place: number}) for piece in (text[:3], text[3:])]
    arguments = item.get("arguments")
    if isinstance(arguments, str):
        events += [delta("function_call_arguments", index, piece) for piece in (arguments[:3], arguments[3:])]
    return events


def item(index: int, given: Item) -> list[Event]:
    """An item as it streams."""
    return [added(index, given), *_deltas(index, given), done(index, given)]


def start() -> list[Event]:
    return [
        {"type": "response.created", "response": response("in_progress")},
        {"type": "response.in_progress", "response": response("in_progress")},
    ]


def ending(status: str = "completed", *items: Item, **more: object) -> Event:
    return {"type": f"response.{status}", "response": response(status, *items, **more)}


def answer(*items: Item, status: str = "completed", end: str = "\n", **more: object) -> bytes:
    """A whole response, streamed."""
    streamed = [event for index, given in enumerate(items) for event in item(index, given)]
    return sse(*start(), *streamed, ending(status, *items, **more), end=end)


def incomplete(reason: str) -> JsonObject:
    return {"incomplete_details": {"reason": reason}}
