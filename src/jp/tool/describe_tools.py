"""`describe_tools`: what there is to say of tools besides what every request says of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jp.config.tools import ParameterConfig, ToolConfig
from jp.conversation.entries import JsonObject
from jp.conversation.resource import TextBlock
from jp.conversation.thread import ToolDefinition
from jp.tool.base import ConfiguredTool, Toolbox, ToolInvocation, ToolOutput

NAME = "describe_tools"

_DEFINITION = ToolDefinition(
    name=NAME,
    description=(
        "Read more about tools before you use them: their full description, examples, and what their parameters mean. "
        "Also where a call was refused because its arguments did not fit."
    ),
    parameters={
        "type": "object",
        "properties": {
            "tools": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The names of the tools, such as those of a request.",
            }
        },
        "required": ["tools"],
        "additionalProperties": False,
    },
)


class DescribeTools:
    """The tool. `toolbox` gives the tools that the model is offered."""

    def __init__(self, toolbox: Callable[[], Toolbox]) -> None:
        self._toolbox = toolbox

    @property
    def definition(self) -> ToolDefinition:
        """See the class."""
        return _DEFINITION

    async def run(self, invocation: ToolInvocation) -> ToolOutput:
        """See the port. Names of tools that there are not are told of; only where all are is that a failure."""
        toolbox = self._toolbox()
        names = list(dict.fromkeys(map(str, invocation.arguments["tools"])))
        known = [name for name in names if name in toolbox]
        parts = [description_of(toolbox[name]) for name in known]
        missing = [name for name in names if name not in toolbox]
        if missing or not names:
            parts.append(_missing(missing, toolbox))
        return ToolOutput(content=(TextBlock(text="\n\n".join(parts)),), is_error=not known)


def has_more_to_say(configured: ConfiguredTool) -> bool:
    """Whether there is more to say of a tool than its definition does."""
    settings = configured.settings
    parameters = settings.parameters.values()
    return bool(_more(settings) or any(map(_more, parameters)))


def _more(said: ToolConfig | ParameterConfig) -> str | None:
    # Where there is no summary, the definition has the description.
    return said.examples or (said.description if said.summary else None)


def description_of(configured: ConfiguredTool) -> str:
    """All that there is to say of a tool, as Markdown."""
    definition, settings = configured.tool.definition, configured.settings
    paragraphs = [f"# {definition.name}"]
    for text in (definition.description, settings.description, settings.examples and f"Examples:\n{settings.examples}"):
        if text and text.strip() not in paragraphs:
            paragraphs.append(text.strip())
    parameters = "\n".join(_parameters(definition.parameters, settings))
    paragraphs.append(f"Parameters:\n{parameters}" if parameters else "It takes no parameters.")
    return "\n\n".join(paragraphs)


def _parameters(schema: JsonObject, settings: ToolConfig) -> Iterator[str]:
    properties: dict[str, JsonObject] = schema.get("properties", {})
    for name, declared in properties.items():
        kind = "required" if name in schema.get("required", ()) else "optional"
        more = settings.parameters.get(name, ParameterConfig())
        yield f"- `{name}` ({_type_of(declared)}, {kind}){_colon(declared, more)}"


def _type_of(declared: JsonObject) -> str:
    types = declared.get("type", "any")
    return types if isinstance(types, str) else " or ".join(map(str, types))


def _colon(declared: JsonObject, more: ParameterConfig) -> str:
    said = [declared.get("description"), more.description, more.examples and f"Examples: {more.examples}"]
    texts = list(dict.fromkeys(str(text).strip() for text in said if text))
    return f": {' '.join(texts)}" if texts else ""


def _missing(names: list[str], toolbox: Toolbox) -> str:
    there = ", ".join(name for name in sorted(toolbox) if name != NAME) or "none"
    said = "".join(f"There is no tool {name!r}. " for name in names)
    return f"{said}The tools are: {there}."
