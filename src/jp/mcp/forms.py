"""Forms with which a server asks while a tool runs, as jp's own questions. Pure.

A form has fields of plain types only (the protocol says so): texts, numbers, yes or no, and choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeGuard, assert_never

import msgspec

from jp.config.entries import JsonObject
from jp.conversation.entries import Question

MOST_FIELDS = 32

Value = str | int | float | bool | list[str]


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field: what is asked, and how what is answered becomes a value.

    `choices` are the values that it may have, by what a person is shown.
    """

    question: Question
    kind: Literal["text", "integer", "number", "boolean", "choice", "choices"]
    required: bool
    choices: dict[str, str] = {}


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """A form of `server`. Without fields, it asks whether to go on."""

    server: str
    message: str
    fields: tuple[Field, ...]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """An address that `server` wants a person to open."""

    server: str
    message: str
    url: str


Elicitation = Form | Page


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a form: values, or the reason why there are none."""

    action: Literal["accept", "decline", "cancel"]
    values: dict[str, Value | None] = {}


def form_of(server: str, message: str, schema: JsonObject) -> Form:
    """Return the form that a schema describes. What is no field is left out."""
    properties = schema.get("properties")
    required = schema.get("required")
    names = required if _is_list(required) else []
    fields: list[Field] = []
    for name, field in list(properties.items() if _is_object(properties) else ())[:MOST_FIELDS]:
        if _is_object(field):
            fields.append(_field(name, field, required=name in names))
    return Form(server=server, message=message, fields=tuple(fields))


def _is_object(value: object) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _field(name: str, schema: JsonObject, *, required: bool) -> Field:
    kind, choices = _kind(schema)
    labels = tuple(choices)
    text = _words(name, schema, kind, labels, required=required)
    default = schema.get("default")
    if kind == "boolean":
        question = Question(id=name, text=text, kind="boolean", default=default if isinstance(default, bool) else None)
    elif kind == "choice":
        shown = next((label for label, value in choices.items() if value == default), None)
        question = Question(id=name, text=text, kind="select", options=labels, default=shown)
    else:
        question = Question(id=name, text=text, kind="text", default=_text_of(default))
    return Field(question=question, kind=kind, required=required, choices=choices)


def _text_of(default: object) -> str | None:
    if default is None:
        return None
    return ", ".join(map(str, default)) if _is_list(default) else str(default)


def _kind(
    schema: JsonObject,
) -> tuple[Literal["text", "integer", "number", "boolean", "choice", "choices"], dict[str, str]]:
    declared = schema.get("type")
    if declared == "array":
        items = schema.get("items")
        return "choices", _choices(items if _is_object(items) else {})
    choices = _choices(schema)
    if choices:
        return "choice", choices
    match declared:
        case "boolean" | "integer" | "number":
            return declared, {}
        case _:
            return "text", {}


def _choices(schema: JsonObject) -> dict[str, str]:
    """Return what may be chosen: the values, by what a person is shown."""
    listed = schema.get("enum")
    names = schema.get("enumNames")
    if _is_list(listed):
        labels = names if _is_list(names) and len(names) == len(listed) else listed
        return {str(label): str(value) for label, value in zip(labels, listed, strict=True)}
    titled = schema.get("oneOf", schema.get("anyOf"))
    options = [option for option in titled if _is_object(option) and "const" in option] if _is_list(titled) else []
    return {str(option.get("title", option["const"])): str(option["const"]) for option in options}


def _words(name: str, schema: JsonObject, kind: str, labels: Sequence[str], *, required: bool) -> str:
    title = schema.get("title")
    said = [title if isinstance(title, str) and title else name]
    description = schema.get("description")
    if isinstance(description, str) and description:
        said.append(f": {description}")
    if kind == "choices":
        said.append(f" (several of {', '.join(labels)}, separated by commas)" if labels else " (separated by commas)")
    elif kind in {"integer", "number"}:
        said.append(" (a number)")
    if not required:
        said.append(" (may be left empty)")
    return "".join(said)


def value_of(field: Field, answer: object) -> Value | None:
    """Return what an answer means in a field; None where it means nothing there. An empty text is none."""
    match field.kind:
        case "boolean":
            return answer if isinstance(answer, bool) else None
        case "choice":
            return _chosen(field, str(answer))
        case "choices":
            parts = answer if _is_list(answer) else str(answer).split(",")
            chosen = [_chosen(field, str(part).strip()) for part in parts if str(part).strip()]
            known = [value for value in chosen if value is not None]
            return known if known and len(known) == len(chosen) else None
        case "integer" | "number":
            return _number(field.kind, answer)
        case "text":
            return str(answer) if answer not in {None, ""} else None
        case _:
            assert_never(field.kind)


def _chosen(field: Field, answer: str) -> str | None:
    if not field.choices:
        return answer
    return field.choices.get(answer, answer if answer in field.choices.values() else None)


def _number(kind: Literal["integer", "number"], answer: object) -> int | float | None:
    try:
        value = float(str(answer).strip())
    except ValueError:
        return None
    if value.is_integer():
        return int(value)
    is_finite = value - value == 0
    return value if kind == "number" and is_finite else None
