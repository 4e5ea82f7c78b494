"""Answers that are no objects: the API makes them the property of one, and here they are taken out again. Pure."""

from __future__ import annotations

import re

from jp.conversation.entries import JsonObject

WRAPPED = "wrapped_answer"
"""The property that holds the answer."""

_OPENING = re.compile(rf'\s*\{{\s*"{WRAPPED}"\s*:\s*')
_BARE_OPENING = f'{{"{WRAPPED}":'
_CLOSING = "} \t\r\n"


def wrapped(schema: JsonObject) -> JsonObject:
    """The schema of an object with an answer of `schema`."""
    return {
        "type": "object",
        "properties": {WRAPPED: schema},
        "additionalProperties": False,
        "required": [WRAPPED],
    }


def is_wrapped(wanted: JsonObject) -> bool:
    """Whether the answer to a request with this `output_config.format` comes wrapped."""
    schema: JsonObject = wanted.get("schema", {})
    return list(schema.get("properties", ())) == [WRAPPED]


class Unwrapper:
    """Takes the wrapper off one text, as it streams. A text that has none comes out as it is."""

    def __init__(self) -> None:
        self._held = ""
        self._is_decided = False
        self._is_wrapped = False

    def feed(self, text: str) -> str:
        """Add to the text, and take what certainly belongs to the answer."""
        self._held += text
        if not self._is_decided and not self._decide():
            return ""
        if not self._is_wrapped:
            return self._take(len(self._held))
        return self._take(len(self._held.rstrip(_CLOSING)))

    def finish(self) -> str:
        """Take the rest. Where the wrapper is not closed, the answer was cut off, and this is all there is of it."""
        rest = self._take(len(self._held))
        if self._is_wrapped and "}" in rest:
            return rest[: rest.rindex("}")]
        return rest

    def _decide(self) -> bool:
        opening = _OPENING.match(self._held)
        if opening is not None:
            self._held = self._held[opening.end() :]
            self._is_decided = self._is_wrapped = True
        elif not _BARE_OPENING.startswith("".join(self._held.split())):
            self._is_decided = True
        return self._is_decided

    def _take(self, size: int) -> str:
        taken, self._held = self._held[:size], self._held[size:]
        return taken
