"""Servers' tools, resources, content and forms in jp's own types, and the cache of tool lists."""

from __future__ import annotations

import binascii
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, assert_never
from urllib.parse import quote

import msgspec

from jp.config.entries import JsonObject, McpServerConfig
from jp.conversation.entries import Question
from jp.conversation.resource import (
    Annotations,
    AudioBlock,
    Block,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    TextBlock,
)
from jp.errors import ExitCode, JpError
from jp.file_access import read_beginning, replace_cached

if TYPE_CHECKING:
    import mcp_types as types


Handshake = Literal["initialize", "discover"]
"""The handshake of a session: `initialize` for versions before 2026-07-28, `discover` since."""


class Hints(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A server's claims about a tool's effects. They are shown to the user, and never grant a permission."""

    reads_only: bool | None = None
    destroys: bool | None = None
    repeatable: bool | None = None
    open_world: bool | None = None

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the claims as text for the user."""
        said = (
            (self.reads_only, "changes nothing", "may change something"),
            (self.destroys, "may overwrite or delete", "only adds"),
            (self.repeatable, "does nothing more when it is called again", "does it again when it is called again"),
            (self.open_world, "reaches out", "stays within what it knows"),
        )
        return tuple(yes if hint else no for hint, yes, no in said if hint is not None)


class ServerTool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool as its server defines it. `parameters` is a JSON Schema of type object."""

    name: str
    description: str = ""
    parameters: JsonObject
    title: str | None = None
    hints: Hints = Hints()


class Listing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tools of a server, sorted by name, and its handshake."""

    tools: tuple[ServerTool, ...] = ()
    opening: Handshake = "initialize"

    def tool(self, name: str) -> ServerTool | None:
        """Return the tool of that name."""
        return next((tool for tool in self.tools if tool.name == name), None)


class ServerError(JpError):
    """A server is not usable: it does not start, has ended, or violates the protocol."""


class EndedError(ServerError):
    """The process of a server has ended."""


class UnauthorizedError(ServerError):
    """A server needs credentials, or does not accept them."""

    exit_code = ExitCode.AUTHENTICATION


class RefusalError(JpError):
    """A server responded with an error."""


class ClosedError(ServerError):
    """The session ended before the response."""


LONGEST = 8192
"""Maximum characters of a server's URI."""

_FORM = re.compile(r"mcp\+(?P<server>[^+/\s]+)\+(?P<uri>\S.*)", re.DOTALL | re.IGNORECASE)
_NO_URI = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def canonical_uri(server: str, uri: str) -> str:
    """Return jp's URI for the resource `uri` of `server`."""
    legible = _NO_URI.sub(lambda match: quote(match[0], errors="replace"), uri[:LONGEST])
    return f"mcp+{server}+{legible}"


def split_uri(uri: str) -> tuple[str, str] | None:
    """Return the server and its own URI; None if `uri` is not one of `canonical_uri`."""
    match = _FORM.fullmatch(uri)
    return None if match is None else (match["server"], match["uri"])


_VERSION = 1
_LARGEST = 8 * 1024 * 1024


class _File(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    listing: msgspec.Raw


def fingerprint(config: McpServerConfig, directory: Path) -> str:
    """Return a hash of a server's configuration, for the name of a file.

    It includes the `directory` of a program. It excludes values of variables and headers, which are secrets and change.
    """
    import hashlib

    identity = (
        config.command,
        config.arguments,
        sorted(config.variables),
        sorted(config.environment),
        config.url,
        sorted(config.headers),
        sorted(config.headers_env.items()),
        "" if config.command is None else os.fsencode(directory).hex(),
    )
    return hashlib.sha256(msgspec.json.encode(identity)).hexdigest()


class ListingCache:
    """A cache of tool lists in a directory, which need not exist."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, key: str) -> Path:
        """Return the path for a server with the fingerprint `key`."""
        return self._directory / f"{key}.json"

    def read(self, key: str) -> Listing | None:
        """Return the cached listing; None if there is none, or it is not readable."""
        try:
            data = read_beginning(self.path(key), _LARGEST + 1)
            stored = msgspec.json.decode(data, type=_File)
            return msgspec.json.decode(stored.listing, type=Listing) if stored.version == _VERSION else None
        except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
            return None

    def write(self, key: str, listing: Listing) -> None:
        """Replace the cached listing.

        Raises:
            StorageError: it could not be written; the old one is unchanged.
        """
        path = self.path(key)
        stored = _File(version=_VERSION, listing=msgspec.Raw(msgspec.json.encode(listing)))
        replace_cached(path, msgspec.json.encode(stored))


MOST_READ = 4
"""Maximum number of links in a result that are read."""

_LARGEST_CONTENT = 256 * 1024
"""Maximum bytes of a linked resource, according to the server."""

_TEXTUAL = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")


def worth_reading(content: Iterable[types.ContentBlock]) -> list[types.ResourceLink]:
    """Return the links of a result to read now; none if there are too many."""
    links = [item for item in content if item.type == "resource_link"]
    return [link for link in links if _is_small_text(link)] if len(links) <= MOST_READ else []


def _is_small_text(link: types.ResourceLink) -> bool:
    """Return whether a link is to a small text; a missing type or size is accepted."""
    return (link.mime_type is None or is_textual(link.mime_type)) and (link.size or 0) <= _LARGEST_CONTENT


def is_textual(mime_type: str) -> bool:
    """Return whether content of this type is text."""
    return mime_type.startswith(_TEXTUAL) or mime_type.endswith(("+json", "+xml"))


def blocks_of(server: str, content: Iterable[types.ContentBlock]) -> tuple[Block, ...]:
    """Return the blocks of a tool's result."""
    return tuple(_block(server, item) for item in content)


def _block(server: str, item: types.ContentBlock) -> Block:
    match item.type:
        case "text":
            return TextBlock(text=item.text)
        case "image" | "audio":
            return _media(item)
        case "resource":
            resource = resource_of(server, item.resource, item.annotations)
            said = f"[resource {item.resource.uri}: its content is not base64]"
            return TextBlock(text=said) if resource is None else ResourceBlock(resource=resource)
        case "resource_link":
            return ResourceLink(
                uri=canonical_uri(server, item.uri),
                name=item.name,
                title=item.title,
                description=item.description,
                mime_type=item.mime_type,
            )
        case _:
            assert_never(item)


def _media(item: types.ImageContent | types.AudioContent) -> Block:
    data = decoded(item.data)
    if data is None:
        return TextBlock(text=f"[{item.type} of type {item.mime_type}: its content is not base64]")
    made = ImageBlock if item.type == "image" else AudioBlock
    return made(mime_type=item.mime_type, blob=data)


def resource_of(
    server: str,
    contents: types.TextResourceContents | types.BlobResourceContents,
    annotations: types.Annotations | None = None,
) -> Resource | None:
    """Return a resource that was read or embedded; None if its blob is not base64."""
    import mcp_types as types

    uri = canonical_uri(server, contents.uri)
    said = None if annotations is None else _annotations(annotations)
    if isinstance(contents, types.TextResourceContents):
        return Resource(uri=uri, mime_type=contents.mime_type, annotations=said, text=contents.text)
    data = decoded(contents.blob)
    if data is None:
        return None
    text = _text(data, contents.mime_type)
    blob = data if text is None else None
    return Resource(uri=uri, mime_type=contents.mime_type, annotations=said, text=text, blob=blob)


def _text(data: bytes, mime_type: str | None) -> str | None:
    """Return the bytes as text if their type is a text type; else None."""
    if mime_type is None or not is_textual(mime_type):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _annotations(said: types.Annotations) -> Annotations:
    audience = None if said.audience is None else tuple(said.audience)
    return Annotations(audience=audience, priority=said.priority, last_modified=said.last_modified)


def decoded(text: str) -> bytes | None:
    """Decode base64, which may have line breaks; None if it is invalid."""
    try:
        return binascii.a2b_base64(text.encode("ascii", "replace").translate(None, b" \t\r\n"), strict_mode=True)
    except ValueError:
        return None


MOST_FIELDS = 32

Value = str | int | float | bool | list[str]


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a form: its question and its kind. `choices` are the values by their labels."""

    question: Question
    kind: Literal["text", "integer", "number", "boolean", "choice", "choices"]
    required: bool
    choices: dict[str, str] = {}


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """A form of `server`. Without fields, it is a confirmation."""

    server: str
    message: str
    fields: tuple[Field, ...]


class UrlRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request of `server` to open a URL."""

    server: str
    message: str
    url: str


Elicitation = Form | UrlRequest


class FormAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a form: its values, or why there are none."""

    action: Literal["accept", "decline", "cancel"]
    values: dict[str, Value | None] = {}


def form_of(server: str, message: str, schema: JsonObject) -> Form:
    """Return the form of a schema, without entries that are not fields."""
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
    text = _question_text(name, schema, kind, labels, required=required)
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
    """Return the choices of a schema: the values by their labels."""
    listed = schema.get("enum")
    names = schema.get("enumNames")
    if _is_list(listed):
        labels = names if _is_list(names) and len(names) == len(listed) else listed
        return {str(label): str(value) for label, value in zip(labels, listed, strict=True)}
    titled = schema.get("oneOf", schema.get("anyOf"))
    options = [option for option in titled if _is_object(option) and "const" in option] if _is_list(titled) else []
    return {str(option.get("title", option["const"])): str(option["const"]) for option in options}


def _question_text(name: str, schema: JsonObject, kind: str, labels: Sequence[str], *, required: bool) -> str:
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
    """Return the value of an answer; None if it is not valid for the field. An empty text is not."""
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
