"""What a model is asked that answers in place of a person what a tool asks, and what it has answered. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from jp.conversation.entries import AnyEntry, ChatRequest, Question, ToolCallRequest
from jp.conversation.json_text import JsonValue, find_json
from jp.conversation.thread import Parameters, Thread, UserText
from jp.tool.answers import ANSWER, answer_schema, expected

_LONGEST = 8_000
"""Of a text so many characters are told: its beginning and its end."""

_MOST_TOKENS = 2_000
_SYSTEM = (
    "A tool that you have called asks something while it runs. Answer as the user's request and your call suggest; "
    "where they do not tell, take the answer that changes and deletes the least. Say nothing but a JSON object with "
    f'the member "{ANSWER}".'
)


def inquiry_thread(model: str, question: Question, call: ToolCallRequest, entries: Sequence[AnyEntry]) -> Thread:
    """The request for an answer to what `call`, at the end of the stream `entries`, asks."""
    requests = (entry.content for entry in reversed(entries) if isinstance(entry, ChatRequest))
    arguments = call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()
    parts = [
        f"<request>\n{_excerpt(next(requests, ''))}\n</request>",
        f"<call>\n{call.name} {_excerpt(arguments)}\n</call>",
        f"<question>\n{_excerpt(question.text)}\n</question>",
        f"The answer is {expected(question)}{_proposed(question)}.",
    ]
    schema = answer_schema(question)
    return Thread(
        model=model,
        system=(_SYSTEM,),
        tools=(),
        events=(UserText(text="\n\n".join(parts), turn=0, schema=schema),),
        parameters=Parameters(max_tokens=_MOST_TOKENS, reasoning="off", cache="off"),
        schema=schema,
    )


def _proposed(question: Question) -> str:
    if question.default is None:
        return ""
    return f"; the tool proposes {msgspec.json.encode(question.default).decode()}"


def _excerpt(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters …]\n{text[-half:]}"


def value_in(text: str) -> Any:
    """What a model has answered, whatever it is; None where it is nothing."""
    found = find_json(text)
    value = found.value if isinstance(found, JsonValue) else None
    return cast("dict[str, Any]", value).get(ANSWER) if isinstance(value, dict) else None
