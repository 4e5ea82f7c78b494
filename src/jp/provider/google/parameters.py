"""How a request is asked for: the choice of tool, sampling, limits, the answer's form. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Parameters, ToolDefinition
from jp.provider.abilities import Model
from jp.provider.asking import cache_not_sent, not_sent, sampling_of
from jp.provider.google.schema import answer_schema
from jp.provider.google.thinking import Thinking, unmet

PROTECTED = frozenset({
    *("contents", "model", "systemInstruction", "system_instruction", "store", "toolConfig", "tools"),
})
"""What `other` cannot set: it would not be what the log says was sent, or is the account's to say."""

_MOST_STOP_WORDS = 5
_SAMPLING = {"temperature": "temperature", "top_p": "topP", "top_k": "topK"}


def tool_config(parameters: Parameters, tools: Sequence[ToolDefinition], model: Model) -> JsonObject | None:
    """Which tools the model may call. A name is one of `tools`.

    Without tools it is said as well: a model that called some earlier would try them again.
    """
    wanted = parameters.tool_choice
    is_gemini = model.details.id.startswith("gemini-")
    if not tools:
        return _calling("NONE") if is_gemini else None
    match wanted:
        case "none":
            return _calling("NONE")
        case "auto":
            # Calls are held to the schemas of the tools.
            return _calling("VALIDATED") if is_gemini else None
        case "required":
            return _calling("ANY")
        case name:
            return _calling("ANY", allowedFunctionNames=[name])


def _calling(mode: str, **further: object) -> JsonObject:
    return {"functionCallingConfig": {"mode": mode, **further}}


def takes_sampling(model: Model, thinking: Thinking) -> bool:
    """Whether temperature and the like have an effect."""
    abilities = model.abilities
    return abilities.sampling and (abilities.sampling_while_thinking or not thinking.is_active)


def held_schema(schema: JsonObject | None, model: Model, *, has_tools: bool) -> JsonObject | None:
    """The schema that the API holds an answer to, None where none is asked for or it cannot."""
    abilities = model.abilities
    if schema is None or not abilities.structured or (has_tools and not abilities.structured_with_tools):
        return None
    return answer_schema(schema)


def generation_config(
    parameters: Parameters, model: Model, thinking: Thinking, schema: JsonObject | None
) -> JsonObject:
    """What is said of the answer; `schema` is what the API holds it to."""
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


def left_out(parameters: Parameters, model: Model, thinking: Thinking) -> tuple[str, ...]:
    """Sentences about the parameters that are not sent as they were asked for."""
    name, sentences = model.details.id, list[str]()
    sampling = sampling_of(parameters)
    if sampling and not takes_sampling(model, thinking):
        sentences.append(not_sent(sampling, f"{name!r} takes none"))
    if further := _stop_words(parameters)[_MOST_STOP_WORDS:]:
        sentences.append(not_sent(further, f"the API takes {_MOST_STOP_WORDS} stop words"))
    sentences += cache_not_sent(parameters.cache, "the API keeps what it wants")
    return (*sentences, *unmet(parameters, model, thinking))
