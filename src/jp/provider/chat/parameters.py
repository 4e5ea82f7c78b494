"""How a request is asked for: the choice of tool, limits, and what only the server knows. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Parameters, ToolDefinition
from jp.provider.abilities import Model
from jp.provider.chat.quirks import Quirks

PROTECTED = frozenset({"model", "messages", "tools", "stream", "n", "response_format", "cache_control"})
"""What `other` cannot set: it would not be what the log says was sent, or not be read as what it is."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The choice of tool on the wire. `plea` says it in words, where the server or the model cannot be told."""

    wire: JsonObject | str | None = None
    forces: bool = False
    plea: str = ""


def choice_of(parameters: Parameters, tools: Sequence[ToolDefinition], model: Model, quirks: Quirks) -> Choice:
    """The choice of tool. A name is one of `tools`."""
    wanted = parameters.tool_choice
    if not tools or wanted == "auto":
        return Choice()
    if wanted == "none":
        return Choice(wire="none") if quirks.tool_choice else Choice(plea="Answer without calling a tool.")
    if not (quirks.tool_choice and model.abilities.forced_tools):
        return Choice(plea=_plea(wanted, [tool.name for tool in tools]))
    if wanted == "required":
        return Choice(wire="required", forces=True)
    return Choice(wire={"type": "function", "function": {"name": wanted}}, forces=True)


def _plea(wanted: str, names: Sequence[str]) -> str:
    if wanted == "required" and len(names) > 1:
        return "Call one of the tools now."
    return f"Call the tool {names[0] if wanted == 'required' else wanted!r} now."


def tool(definition: ToolDefinition) -> JsonObject:
    """A tool as it is offered."""
    parameters = definition.parameters
    function: JsonObject = {"name": definition.name}
    if definition.description.strip():
        function["description"] = definition.description
    function["parameters"] = parameters if "type" in parameters else {"type": "object", **parameters}
    return {"type": "function", "function": function}
