"""Parameters of a Google request: thinking, sampling, tools and the format of the answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import msgspec

from jp.conversation.entries import JsonObject
from jp.conversation.thread import Parameters, ToolDefinition
from jp.provider.base import Abilities, Model
from jp.provider.parameters import SHARES, cache_not_sent, effort_of, is_off, nearest_level, not_sent, sampling_of

_MOST_NODES = 2_000
"""Largest size of a schema with its references resolved; a larger one is described in words."""

_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_FORMATS = frozenset({"date-time", "date", "time"})
_NOTES = ("title", "description")
_PLAIN = frozenset({"type", "minItems", "maxItems", "minimum", "maximum", "required"})
"""Keywords that mean the same in the API."""

_SILENT = frozenset({
    *("$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "deprecated", "readOnly", "writeOnly"),
})


class _InexpressibleError(Exception):
    """A schema that the API cannot express."""


def answer_schema(schema: JsonObject) -> JsonObject | None:
    """Return `schema` as `responseJsonSchema`, None if it has to be described in words."""
    try:
        translated = _Translation(schema).schema(schema, ())
    except (_InexpressibleError, AttributeError, KeyError, TypeError, ValueError):
        return None  # the schema of an imported log may be invalid
    return translated if translated.keys() & {"type", "anyOf", "enum"} else None


class _Translation:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._nodes = 0

    def schema(self, node: object, within: tuple[str, ...]) -> JsonObject:
        """Return the translation of one schema; `within` are the references that contain it."""
        self._nodes += 1
        if node is False or self._nodes > _MOST_NODES:
            raise _InexpressibleError
        if node is True:
            return {}
        resolved, within = self._resolved(cast("JsonObject", node), within)
        variants = resolved.get("anyOf") or resolved.get("oneOf")
        if variants:
            return self._alternatives(resolved, variants, within)
        translated, told = self._typed(resolved, within)
        return _described(translated, resolved, told)

    def _resolved(self, node: JsonObject, within: tuple[str, ...]) -> tuple[JsonObject, tuple[str, ...]]:
        """Return `node` with its references and `allOf` merged into it, and the references that contain it."""
        while "$ref" in node or "allOf" in node:
            rest = {name: value for name, value in node.items() if name not in {"$ref", "allOf"}}
            parts: list[JsonObject] = list(node.get("allOf", ()))
            if "$ref" in node:
                reference: str = node["$ref"]
                if reference in within:
                    raise _InexpressibleError
                within = (*within, reference)
                parts.insert(0, self._target(reference))
            node = _together([rest, *parts])
        return node, within

    def _target(self, reference: str) -> JsonObject:
        start, *steps = reference.split("/")
        if start != "#":
            raise _InexpressibleError
        found = self._root
        for step in steps:
            found: JsonObject = found[step.replace("~1", "/").replace("~0", "~")]
        return found

    def _alternatives(self, node: JsonObject, variants: Sequence[JsonObject], within: tuple[str, ...]) -> JsonObject:
        """Return the translated alternatives, each with the keywords that apply to all."""
        common = {
            name: value
            for name, value in node.items()
            if name not in {"anyOf", "oneOf", *_NOTES} and name not in _SILENT
        }
        translated = [self.schema(_together([common, variant]) if common else variant, within) for variant in variants]
        return _described({"anyOf": translated}, node, ())

    def _typed(self, node: JsonObject, within: tuple[str, ...]) -> tuple[JsonObject, set[str]]:
        """Return the translation, and the keywords of `node` that it does not express."""
        translated: JsonObject = {}
        told = {name for name in node if name not in _SILENT and name not in _NOTES}
        for name in _PLAIN & node.keys():
            translated[name] = node[name]
        if not set(_names(node.get("type", ()))) <= _TYPES:
            raise _InexpressibleError
        if node.get("format") in _FORMATS:
            translated["format"] = node["format"]
        if values := _enumerated(node):
            translated = {**({} if "type" in translated else {"type": _type_of(values)}), **translated, "enum": values}
            told -= {"const", "enum"}
        elif "const" in node and (isinstance(node["const"], bool) or node["const"] is None):
            translated.setdefault("type", "null" if node["const"] is None else "boolean")
        self._add_members(translated, node, within)
        return {name: translated[name] for name in sorted(translated)}, told - translated.keys()

    def _add_members(self, translated: JsonObject, node: JsonObject, within: tuple[str, ...]) -> None:
        if properties := cast("JsonObject", node.get("properties")):
            translated.setdefault("type", "object")
            translated["properties"] = {name: self.schema(member, within) for name, member in properties.items()}
            translated["propertyOrdering"] = list(properties)
        if "additionalProperties" in node:
            further = node["additionalProperties"]
            translated.setdefault("type", "object")
            translated["additionalProperties"] = further if isinstance(further, bool) else self.schema(further, within)
        if "items" in node:
            translated.setdefault("type", "array")
            translated["items"] = self.schema(node["items"], within)
        if "prefixItems" in node:
            translated.setdefault("type", "array")
            translated["prefixItems"] = [self.schema(item, within) for item in node["prefixItems"]]


def _names(value: object) -> list[str]:
    return [value] if isinstance(value, str) else list(cast("Iterable[str]", value))


def _enumerated(node: JsonObject) -> list[object] | None:
    """Return the enumerated values if the API can express them: strings or numbers."""
    values = cast("list[object]", [node["const"]] if "const" in node else node.get("enum", []))
    kinds = {bool if isinstance(value, bool) else str if isinstance(value, str) else type(value) for value in values}
    return values if kinds and (kinds <= {str} or kinds <= {int, float}) else None


def _type_of(values: Sequence[object]) -> str:
    if isinstance(values[0], str):
        return "string"
    return "integer" if all(isinstance(value, int) for value in values) else "number"


def _together(schemas: Sequence[JsonObject]) -> JsonObject:
    """Return one schema for several that all apply.

    If they differ in a keyword, the first is sent and the others are described in words; the answer is validated
    against all of them.
    """
    found: JsonObject = {}
    differing: list[JsonObject] = []
    for schema in schemas:
        for name, value in schema.items():
            if name not in found:
                found[name] = value
            elif name == "properties":
                found[name] = {**value, **found[name]}
            elif name == "required":
                found[name] = list(dict.fromkeys((*found[name], *value)))
            elif name == "allOf":
                found[name] = [*found[name], *value]
            elif name not in _NOTES and name not in _SILENT and value != found[name]:
                differing.append({name: value})
    return {**found, "and": differing} if differing else found


def _described(translated: JsonObject, node: JsonObject, told: Iterable[str]) -> JsonObject:
    """Return `translated` with the notes of `node`, and a description of its keywords that are not in `told`."""
    notes: JsonObject = {name: node[name] for name in _NOTES if isinstance(node.get(name), str)}
    rules = {name: node[name] for name in node if name in set(told)}
    if rules:
        listed = ", ".join(f"{name}: {msgspec.json.encode(value).decode()}" for name, value in rules.items())
        described = notes.get("description")
        notes["description"] = f"{described}\n\n{{{listed}}}" if described else f"{{{listed}}}"
    return {**translated, **notes}


_DYNAMIC = -1
"""Budget that lets the model decide."""

_UNKNOWN_OUTPUT = 65_536
"""Output limit that an effort is a share of, for a model that the table does not have."""


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """Thinking settings on the wire, and whether the model may think."""

    wire: JsonObject | None = None
    is_active: bool = False


def longest_output(parameters: Parameters, model: Model) -> int:
    """Return the most tokens that the model may write, including reasoning."""
    return parameters.max_tokens or model.details.max_output or _UNKNOWN_OUTPUT


def thinking_of(parameters: Parameters, model: Model) -> Thinking:
    """Return the thinking settings of a request; reasoning that the model does by default is made visible."""
    abilities = model.abilities
    wanted = parameters.reasoning
    if abilities.thinking not in {"budget", "levels"}:
        return Thinking()
    if is_off(parameters):
        return _off(abilities)
    if wanted is None and not abilities.thinks_by_default:
        return Thinking()
    visible: JsonObject = {"includeThoughts": True}
    if abilities.thinking == "budget":
        budget = None if wanted is None else _budget(parameters, model)
        return Thinking(wire=visible if budget is None else {**visible, "thinkingBudget": budget}, is_active=True)
    effort = effort_of(parameters, longest_output(parameters, model))
    level = None if effort is None else nearest_level(effort, abilities.levels)
    return Thinking(wire=visible if level is None else {**visible, "thinkingLevel": level.upper()}, is_active=True)


def _off(abilities: Abilities) -> Thinking:
    """Return the least thinking that the model has: some cannot turn it off."""
    cannot = abilities.thinking_off == "never"
    if abilities.thinking == "budget":
        return Thinking(wire={"thinkingBudget": abilities.least_budget if cannot else 0}, is_active=cannot)
    least = next(iter(abilities.levels), None)
    return Thinking(wire=None if least is None else {"thinkingLevel": least.upper()}, is_active=True)


def _budget(parameters: Parameters, model: Model) -> int:
    """Return a number of tokens that the model accepts."""
    if parameters.reasoning == "auto":
        return _DYNAMIC
    longest = longest_output(parameters, model)
    if isinstance(parameters.reasoning, int):
        wanted = parameters.reasoning
    else:
        wanted = longest * SHARES[effort_of(parameters, longest) or "medium"] // 100
    abilities = model.abilities
    most = wanted if abilities.most_budget is None else min(wanted, abilities.most_budget)
    return max(abilities.least_budget, most)


def unmet(parameters: Parameters, model: Model, thinking: Thinking) -> Iterator[str]:
    """Return notes about reasoning settings that the model does not have."""
    name, wanted = model.details.id, parameters.reasoning
    if is_off(parameters):
        if thinking.is_active:
            yield f"{name!r} cannot wholly be kept from reasoning"
    elif wanted is not None and thinking.wire is None:
        yield f"reasoning {wanted!r} not sent: {name!r} goes on without it"
    elif isinstance(wanted, int):
        yield from _changed_number(wanted, thinking, name)
    elif wanted in {"xhigh", "max"}:
        level = str((thinking.wire or {}).get("thinkingLevel", wanted)).lower()
        if level != wanted:
            yield f"reasoning {wanted!r} sent as {level!r}, the most that {name!r} knows"


def _changed_number(wanted: int, thinking: Thinking, name: str) -> Iterator[str]:
    wire = thinking.wire or {}
    if "thinkingLevel" in wire:
        yield f"reasoning {wanted} sent as {wire['thinkingLevel'].lower()!r}: {name!r} takes no number of tokens"
        return
    sent: int = wire["thinkingBudget"]
    if sent != wanted:
        bound = "most" if sent < wanted else "least"
        yield f"reasoning {wanted} sent as {sent}, the {bound} that {name!r} takes"


PROTECTED = frozenset({
    *("contents", "model", "systemInstruction", "system_instruction", "store", "toolConfig", "tools"),
})
"""Fields that `other` cannot set: the log would not say what was sent, or they belong to the account."""

_MOST_STOP_WORDS = 5
_SAMPLING = {"temperature": "temperature", "top_p": "topP", "top_k": "topK"}


def tool_config(parameters: Parameters, tools: Sequence[ToolDefinition], model: Model) -> JsonObject | None:
    """Return the tools that the model may call; a name is one of `tools`.

    It is also sent without tools: a model that called some before would call them again.
    """
    wanted = parameters.tool_choice
    is_gemini = model.details.id.startswith("gemini-")
    if not tools:
        return _calling("NONE") if is_gemini else None
    match wanted:
        case "none":
            return _calling("NONE")
        case "auto":
            # The API enforces the schemas of the tools.
            return _calling("VALIDATED") if is_gemini else None
        case "required":
            return _calling("ANY")
        case name:
            return _calling("ANY", allowedFunctionNames=[name])


def _calling(mode: str, **further: object) -> JsonObject:
    return {"functionCallingConfig": {"mode": mode, **further}}


def takes_sampling(model: Model, thinking: Thinking) -> bool:
    """Return whether temperature and similar parameters have an effect."""
    abilities = model.abilities
    return abilities.sampling and (abilities.sampling_while_thinking or not thinking.is_active)


def held_schema(schema: JsonObject | None, model: Model, *, has_tools: bool) -> JsonObject | None:
    """Return the schema that the API enforces, None if there is none or the API cannot enforce it."""
    abilities = model.abilities
    if schema is None or not abilities.structured or (has_tools and not abilities.structured_with_tools):
        return None
    return answer_schema(schema)


def generation_config(
    parameters: Parameters, model: Model, thinking: Thinking, schema: JsonObject | None
) -> JsonObject:
    """Return the settings of the answer; `schema` is the one that the API enforces."""
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
    """Return notes about parameters that are not sent as configured."""
    name, sentences = model.details.id, list[str]()
    sampling = sampling_of(parameters)
    if sampling and not takes_sampling(model, thinking):
        sentences.append(not_sent(sampling, f"{name!r} takes none"))
    if further := _stop_words(parameters)[_MOST_STOP_WORDS:]:
        sentences.append(not_sent(further, f"the API takes {_MOST_STOP_WORDS} stop words"))
    sentences += cache_not_sent(parameters.cache, "the API keeps what it wants")
    return (*sentences, *unmet(parameters, model, thinking))
