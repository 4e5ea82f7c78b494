"""Attachments as handlers see them: declarations, the handler protocol, errors, and what a conversation already has."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from jp.conversation.entries import AnyEntry, ChatRequest, Event, Header, Original, ToolCallResponse
from jp.conversation.resource import Resource, ResourceBlock, file_uri
from jp.conversation.turns import turns_of, undone
from jp.errors import ExitCode, JpError
from jp.remedies import Ask, Option, UseOption, phrase

if TYPE_CHECKING:
    from anyio import Semaphore
    from anyio.lowlevel import RunVar


class AttachmentError(JpError):
    """An attachment could not be resolved; nothing was sent or written."""

    exit_code = ExitCode.ATTACHMENT


class MissingSourceError(AttachmentError):
    """The source of an attachment does not exist."""


def _ignore(text: str) -> None:
    del text


class ResolveContext(msgspec.Struct, frozen=True, kw_only=True):
    """Context and bounds of resolving URIs.

    `root` is the workspace's root (or the current directory outside any), `cwd` what paths that a user types refer
    to. `anchored` says that `root` is the same for every command on a conversation, so that declarations may begin
    there. `max_bytes` bounds one resource, `max_files` the files of one directory or glob. `tell` says to a person how
    far it is.
    """

    root: Path
    cwd: Path
    anchored: bool = True
    max_bytes: int = 10 * 1024 * 1024
    max_files: int = 2_000
    tell: Callable[[str], None] = _ignore


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """A source to attach, or with `exclude` to skip.

    `uri` is canonical, and stored in configuration and conversations. `written` is the user's form, for messages.
    `confined` forbids paths outside of the root; set for declarations in files. `typed`: given with this command, so
    that it wins over earlier declarations.
    """

    uri: str
    written: str
    exclude: bool = False
    confined: bool = True
    typed: bool = False

    @property
    def text(self) -> str:
        """Return the declaration as `conversation.attachments` and a `chat_request` hold it."""
        return f"!{self.uri}" if self.exclude else self.uri


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """The resources of a declaration. `notices` tell the user what was skipped, and why."""

    resources: tuple[Resource, ...]
    notices: tuple[str, ...] = ()


class AttachmentHandler(Protocol):
    """The handler of one scheme. Stateless."""

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """Return the canonical form of `uri`, the same for all spellings of one source. Idempotent.

        The source need not exist.

        Raises:
            AttachmentError: `uri` is malformed.
        """
        ...

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Return the resources of `declaration` that no exclude matches, in a stable order.

        `excludes` of other schemes match nothing.

        Raises:
            AttachmentError: the source is missing, too large, or not readable.
        """
        ...


ANY_DEPTH = "**"
"""A segment of a glob that matches any number of directories."""


def encode(path: str) -> str:
    """Return `path` percent-encoded; unreserved characters and `/` stay (RFC 3986 §2.3)."""
    return file_uri(f"/{path}").removeprefix("file:///")


_UNIT = 1024


def format_size(size: int) -> str:
    """Return a number of bytes with a unit, such as `9.8 KiB`."""
    if size < _UNIT:
        return f"{size} bytes"
    amount, unit = size / _UNIT, "KiB"
    for larger in ("MiB", "GiB", "TiB"):
        if amount < _UNIT:
            break
        amount, unit = amount / _UNIT, larger
    return f"{amount:,.1f} {unit}"


T = TypeVar("T")


class _AbandonedError(Exception):
    """The task that waited for the result was canceled."""


async def run_in_thread(work: Callable[[Callable[[], None]], T]) -> T:
    """Run `work` in a thread. Its argument is a function to call repeatedly, which raises once this is canceled."""
    from anyio.to_thread import run_sync

    is_abandoned = False

    def check() -> None:
        if is_abandoned:
            raise _AbandonedError

    try:
        return await run_sync(work, check, abandon_on_cancel=True)
    finally:
        is_abandoned = True


class Slots:
    """A limit of `count` concurrent tasks for the resource `name`, in each event loop."""

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._count = count

    @cached_property
    def _semaphore(self) -> RunVar[Semaphore]:
        from anyio.lowlevel import RunVar

        return RunVar(f"jp_{self._name}_slots")

    def one(self) -> Semaphore:
        """Return the semaphore to hold for as long as a slot is needed."""
        from anyio import Semaphore

        try:
            return self._semaphore.get()
        except LookupError:
            semaphore = Semaphore(self._count)
            self._semaphore.set(semaphore)
            return semaphore


_SCHEME = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)|(mcp)\+[^+/\s]+\+", re.IGNORECASE)
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]")
_CONVERSATION = re.compile(r"(?P<id>jp-c[0-9]+)(?::(?P<turn>[0-9]+)|\?(?P<selector>.*))?", re.DOTALL)
_ORIGINAL_EXCLUDE = re.compile(r"\?exclude(?:=(?P<value>true|false))?$")


class ParsedDeclaration(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed declaration. Its `uri` is not canonical yet."""

    uri: str
    exclude: bool = False


class DeclarationContext(msgspec.Struct, frozen=True, kw_only=True):
    """Context for the parser of declarations.

    `directory` is the absolute base of relative paths. `exists` says whether a path, taken literally, exists.
    `built_in` are the schemes that win over file names; `schemes` returns these and all others.
    """

    directory: str
    exists: Callable[[str], bool]
    built_in: Collection[str]
    schemes: Callable[[], Collection[str]]


def scheme_of(uri: str) -> str:
    """Return the scheme of `uri` in lower case, up to a `+`; empty without one.

    It is `mcp` for `mcp+server+x://…`, whose server name may have characters that are not valid in a scheme.
    """
    match = _SCHEME.match(uri)
    return (match[1] or match[2]).partition("+")[0].lower() if match else ""


def parse(text: str, around: DeclarationContext) -> ParsedDeclaration:
    """Parse a declaration: a URI, a path or a glob; with `!` before it, an exclude.

    An existing path is taken literally, whatever it contains. An excluded name without a slash matches that name at
    any depth, as in an ignore file; `!./name` is one path. A conversation id is short for its `jp` URI, as in JP:
    `jp-c17800836875?u,a:0..3`; with a turn, as `jp conversation grep` prints it, all of that turn.

    Raises:
        AttachmentError: `text` is empty or `-`, or its scheme is unknown.
    """
    exclude = text.startswith("!")
    body = text.removeprefix("!")
    if not body or "\0" in body:
        raise AttachmentError(f"{text!r} is not an attachment", hint="give a path, a glob or a URI")
    if body == "-":
        hint = phrase(
            "standard input is there only for `command | ", Ask((UseOption(Option.ATTACH, "-"),), is_open=True), "`"
        )
        raise AttachmentError(f"{text!r} is not an attachment", hint=hint)
    if (conversation := _CONVERSATION.fullmatch(body)) is not None and not around.exists(body):
        selector = f"*:{turn}..{turn}" if (turn := conversation["turn"]) else conversation["selector"]
        return ParsedDeclaration(uri=_conversation_uri(conversation["id"], selector), exclude=exclude)
    if _is_uri(body, text, around):
        return _read_uri(body, exclude=exclude)
    return ParsedDeclaration(uri=_path_uri(body, around, any_depth=exclude), exclude=exclude)


def _is_uri(body: str, text: str, around: DeclarationContext) -> bool:
    scheme = scheme_of(body)
    if not scheme:
        return False
    if scheme in around.built_in:
        return True
    if "://" not in body and around.exists(body):
        return False
    schemes = around.schemes()
    if scheme in schemes:
        return True
    if _WINDOWS.match(body):
        hint = "on WSL, 'C:\\x' is '/mnt/c/x'"
        raise AttachmentError(f"{text!r} is a path of Windows, which jp does not support", hint=hint)
    known = f"known schemes: {', '.join(schemes)}"
    hint = known if "://" in body else f"{known}; a file with a colon in its name is written {'./' + body!r}"
    raise AttachmentError(f"{text!r} has the scheme {scheme!r}, which is not known", hint=hint)


def _read_uri(body: str, *, exclude: bool) -> ParsedDeclaration:
    original = _ORIGINAL_EXCLUDE.search(body) if scheme_of(body) == "file" else None
    if original is None:
        return ParsedDeclaration(uri=body, exclude=exclude)
    return ParsedDeclaration(uri=body[: original.start()], exclude=exclude or original["value"] != "false")


def _conversation_uri(name: str, selector: str | None) -> str:
    """Return the URI of a conversation id. `selector` may be a selector or a whole query."""
    if not selector:
        return f"jp:{name}"
    is_query = selector == "raw" or "=" in selector or "&" in selector
    return f"jp:{name}?{selector if is_query else f'select={selector}'}"


def _path_uri(path: str, around: DeclarationContext, *, any_depth: bool) -> str:
    spelled = encode(path) if around.exists(path) else _escaped(path)
    if path == "~" or path.startswith("~/"):
        return f"file:{spelled}"
    if path.startswith("/"):
        return f"file://{spelled}"
    is_name = "/" not in path.rstrip("/") and path.strip("./")
    depth = f"{ANY_DEPTH}/" if any_depth and is_name else ""
    return f"file:///{encode(around.directory.strip('/'))}/{depth}{spelled}"


def _escaped(path: str) -> str:
    """Return `path` as the path of a URI, with its wildcards."""
    return path.replace("%", "%25").replace("#", "%23")


class ResourceCopy(msgspec.Struct, frozen=True, kw_only=True):
    """The newest copy of a resource, and the turn that has it."""

    turn: int
    resource: Resource


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The newest request with a declaration: all its declarations, and the URIs of its resources.

    `turn` is None for a conversation of JP, whose declarations count as delivered.
    """

    turn: int | None
    declarations: tuple[str, ...]
    uris: tuple[str, ...]

    @property
    def excludes(self) -> tuple[str, ...]:
        """Return the excludes of the request, without `!`."""
        return tuple(text[1:] for text in self.declarations if text.startswith("!"))


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Delivered attachments of a conversation: `deliveries` by declaration, `copies` by URI, also those of tools."""

    deliveries: Mapping[str, Delivery]
    copies: Mapping[str, ResourceCopy]


def history_of(entries: Sequence[AnyEntry]) -> History:
    """Return the history of a stream, without turns that were undone."""
    gone = undone(entries)
    deliveries: dict[str, Delivery] = {}
    copies: dict[str, ResourceCopy] = {}
    assumed = assumed_declarations(entries)
    deliveries.update((text, Delivery(turn=None, declarations=assumed, uris=())) for text in assumed)
    for turn in turns_of(entries):
        for entry in () if turn.id in gone else turn.entries:
            for resource in _resources_of(entry):
                copies[resource.uri] = ResourceCopy(turn=turn.number, resource=resource)
            if isinstance(entry, ChatRequest):
                uris = tuple(resource.uri for resource in entry.resources)
                delivery = Delivery(turn=turn.number, declarations=entry.attachments, uris=uris)
                deliveries.update((text, delivery) for text in entry.attachments if not text.startswith("!"))
    return History(deliveries=deliveries, copies=copies)


def assumed_declarations(entries: Sequence[AnyEntry]) -> tuple[str, ...]:
    """Return the declarations of a conversation of JP that no request names; they count as delivered."""
    match entries:
        case [Header(original=Original(attachments=attachments)), *_]:
            return attachments
        case _:
            return ()


def _resources_of(entry: Event) -> Iterator[Resource]:
    if isinstance(entry, ChatRequest):
        yield from entry.resources
    elif isinstance(entry, ToolCallResponse):
        yield from (block.resource for block in entry.content if isinstance(block, ResourceBlock))


def attributed_uris(declaration: str, delivery: Delivery) -> tuple[str, ...]:
    """Return the URIs of a delivery that belong to `declaration`; not for `file` declarations.

    The log does not record this. They are its own URI and those of its parts, else the URI that it adds parameters
    to, else the URIs of its scheme that belong to no other declaration.
    """
    others = [text for text in delivery.declarations if text != declaration and not text.startswith("!")]
    free = [uri for uri in delivery.uris if uri not in others]
    parts = tuple(uri for uri in free if uri == declaration or _is_part(uri, declaration))
    own = parts or tuple(uri for uri in free if _is_plainer(uri, declaration))
    if own:
        return own
    scheme = scheme_of(declaration)
    return tuple(uri for uri in free if scheme_of(uri) == scheme and not _belongs_to_any(uri, others))


def _is_part(uri: str, whole: str) -> bool:
    path, _, query = whole.partition("?")
    return uri.startswith((f"{path}/", f"{path}#")) and uri.endswith(query)


def _is_plainer(uri: str, declaration: str) -> bool:
    return declaration.startswith((f"{uri}?", f"{uri}&"))


def _belongs_to_any(uri: str, declarations: Iterable[str]) -> bool:
    return any(_is_part(uri, text) or _is_plainer(uri, text) for text in declarations)
