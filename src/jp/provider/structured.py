"""A schema in words, for models that cannot be held to it. Pure."""

from __future__ import annotations

import msgspec

from jp.conversation.entries import JsonObject


def in_words(schema: JsonObject) -> str:
    """What stands behind a request whose answer has to fit `schema`."""
    text = msgspec.json.encode(schema).decode()
    return (
        "Your final answer to this has to be one JSON value that fits the JSON Schema below, with nothing around it: "
        f"no explanation, no code fence.\n\n{text}"
    )
