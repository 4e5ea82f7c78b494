"""The handler of each scheme, and resolution of a turn's attachments."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NoReturn, assert_never, cast

import msgspec
from msgspec.structs import replace

from jp.attachment.base import (
    AttachmentError,
    AttachmentHandler,
    Declaration,
    DeclarationContext,
    Resolution,
    ResolveContext,
    format_size,
    parse,
    scheme_of,
)
from jp.attachment.file_paths import names_something
from jp.context.estimate import estimate_tokens, estimate_tokens_of_bytes
from jp.conversation.entries import AnyEntry, ChatRequest
from jp.conversation.resource import BinaryContent, Resource, StoredContent, TextContent, content_of, size_in_bytes
from jp.entry_points import entries_of, load_entry, package_of
from jp.errors import JpError, reason_of

BUILT_IN: Mapping[str, str] = {
    "file": "jp.attachment.files:FileHandler",
    "gh": "jp.attachment.github:GithubHandler",
    "http": "jp.attachment.web:HttpHandler",
    "https": "jp.attachment.web:HttpHandler",
    "cmd": "jp.attachment.command:CommandHandler",
    "clipboard": "jp.attachment.clipboard:ClipboardHandler",
}
"""The handler of each built-in scheme as an entry point. It is imported on first use."""


class AttachmentRegistry:
    """Handlers by scheme: jp's own, imported on first use, then those of other packages.

    `cache_directory` is for the cache of entry points, None for no cache. `joined` creates the handlers of schemes
    that need a dependency, which the caller has.
    """

    def __init__(
        self,
        *,
        cache_directory: Path | None = None,
        joined: Mapping[str, Callable[[], AttachmentHandler]] | None = None,
    ) -> None:
        self._cache_directory = cache_directory
        self._joined = joined or {}
        self._own = {*BUILT_IN, *self._joined}
        self._handlers: dict[str, AttachmentHandler] = {}
        self._third_party: dict[str, str] | None = None

    def _others(self) -> dict[str, str]:
        if self._third_party is None:
            self._third_party = third_party_schemes(self._cache_directory)
        return self._third_party

    def handler(self, uri: str) -> AttachmentHandler:
        """Return the handler for the scheme of `uri`.

        Raises:
            AttachmentError: the scheme is unknown, or its handler does not load.
        """
        scheme = scheme_of(uri)
        if scheme not in self._handlers:
            self._handlers[scheme] = self._made(scheme, uri)
        return self._handlers[scheme]

    def _made(self, scheme: str, uri: str) -> AttachmentHandler:
        if scheme in self._joined:
            return self._joined[scheme]()
        if scheme in BUILT_IN:
            return cast("Callable[[], AttachmentHandler]", load_entry(BUILT_IN[scheme]))()
        value = self._others().get(scheme)
        if value is None:
            message = f"{uri!r} has the scheme {scheme!r}, which is not known"
            raise AttachmentError(message, hint=f"known schemes: {', '.join(self.schemes())}")

        return load_handler(scheme, value)

    def schemes(self) -> list[str]:
        """Return all known schemes, sorted."""
        return sorted({*self._own, *self._others()})

    def declare(self, text: str, context: ResolveContext, *, confined: bool) -> Declaration:
        """Return the canonical declaration of the user's `text`.

        A `confined` declaration is from a file: its paths are relative to the root, and it may not leave the root. The
        paths of a typed one are relative to the current directory. To declare the `text` of the result is idempotent.

        Raises:
            AttachmentError: `text` is malformed, or its scheme is unknown.
        """
        directory = os.path.abspath(context.root if confined else context.cwd)  # noqa: PTH100  keeps links and text
        around = DeclarationContext(
            directory=directory,
            exists=lambda path: names_something(path, directory),
            built_in=self._own,
            schemes=self.schemes,
        )
        written = parse(text, around)
        uri = self.handler(written.uri).canonical(written.uri, context)
        return Declaration(uri=uri, written=text, exclude=written.exclude, confined=confined)


_MOST_RESOURCES = 2_000
_TOTAL = 10
"""Maximum bytes of a declaration, as a multiple of the maximum of one resource."""

_REMEDY = "report it to its authors, or attach something else"


class CheckedHandler:
    """A handler of another package whose results are checked. `source` names the package, for messages."""

    def __init__(self, handler: AttachmentHandler, scheme: str, source: Callable[[], str]) -> None:
        self._handler = handler
        self._scheme = scheme
        self._source = source

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """Return the canonical URI of the handler, which must have the same scheme.

        Raises:
            AttachmentError: `uri` is malformed, or the handler is defective.
        """
        try:
            found: object = self._handler.canonical(uri, context)
        except (Exception, SystemExit) as error:  # noqa: BLE001  a package may raise anything
            self._fail(uri, error)
        try:
            text = msgspec.convert(found, str)
            text.encode()
        except (msgspec.ValidationError, UnicodeEncodeError):
            text = ""
        if scheme_of(text) != self._scheme:
            raise self._defect(uri, f"gave {found!r} for its canonical URI")
        return text

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Return the resolution of the handler, with its types and sizes checked.

        Raises:
            AttachmentError: see `AttachmentHandler.resolve`; or the handler is defective.
        """
        try:
            found: object = await self._handler.resolve(declaration, context, excludes=excludes)
        except (Exception, SystemExit) as error:  # noqa: BLE001  a package may raise anything
            self._fail(declaration.written, error)
        try:
            resolution = _checked(found)
            _check_bounds(resolution, context)
        except _DefectError as defect:
            raise self._defect(declaration.written, str(defect)) from defect
        return resolution

    def _fail(self, written: str, error: BaseException) -> NoReturn:
        """Raise the handler's own error, also from the group of its tasks; report any other as a defect."""
        cause = _only_cause(error)
        if isinstance(cause, JpError):
            raise cause
        raise self._defect(written, f"failed: {type(cause).__name__}: {cause}") from error

    def _defect(self, written: str, problem: str) -> AttachmentError:
        message = f"{written!r}: the attachment scheme {self._scheme!r}, {self._source()}, {problem}"
        return AttachmentError(message, hint=_REMEDY)


class _DefectError(Exception):
    """A defect of a handler's result; its text completes a sentence."""


def _only_cause(error: BaseException) -> BaseException:
    """Return the only exception of a group, or `error` itself."""
    is_group = isinstance(error, BaseExceptionGroup)
    causes = cast("BaseExceptionGroup[BaseException]", error).exceptions if is_group else ()
    return _only_cause(causes[0]) if len(causes) == 1 else error


def _checked(found: object) -> Resolution:
    """Return the result of a handler if it can be stored. Structs do not validate on construction."""
    if not isinstance(found, Resolution):
        raise _DefectError(f"gave {type(found).__name__!r} where a Resolution has to be")
    try:
        plain: object = msgspec.to_builtins(found, builtin_types=(bytes,))
        resolution = msgspec.convert(plain, Resolution, builtin_types=(bytes,))
        for resource in resolution.resources:
            msgspec.json.encode(replace(resource, blob=None))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise _DefectError(f"gave what cannot be stored: {reason_of(error)}") from error
    for resource in resolution.resources:
        if not scheme_of(resource.uri):
            raise _DefectError(f"gave a resource whose URI is {resource.uri!r}")
        if resource.sha256 is not None or (resource.text is None) == (resource.blob is None):
            raise _DefectError(f"gave {resource.uri!r} with other than just one of text and blob")
    return resolution


def _check_bounds(resolution: Resolution, context: ResolveContext) -> None:
    bound = context.max_bytes
    if len(resolution.resources) > _MOST_RESOURCES:
        count = len(resolution.resources)
        raise _DefectError(f"gave {count:,} resources; at most {_MOST_RESOURCES:,} can be attached at once")
    sizes = {resource.uri: size_in_bytes(resource) for resource in resolution.resources}
    for uri, size in sizes.items():
        if size > bound:
            raise _DefectError(f"gave {uri!r} with {format_size(size)}; an attachment has at most {format_size(bound)}")
    if (total := sum(sizes.values())) > _TOTAL * bound:
        raise _DefectError(f"gave {format_size(total)} together; the most is {format_size(_TOTAL * bound)}")


GROUP = "jp.attachments"
"""The entry point group. The name of an entry is its scheme, its value a callable that returns a handler."""

_PACKAGE_REMEDY = "update or uninstall the package that provides it"
_CACHE_NAME = "attachment-schemes.json"


def third_party_schemes(cache_directory: Path | None) -> dict[str, str]:
    """Return the entry points of other packages: a value such as `package.module:Handler` for each scheme.

    `cache_directory` may be missing or not writable; every call searches again then.
    """
    found = entries_of(GROUP, None if cache_directory is None else cache_directory / _CACHE_NAME)
    return dict(sorted(((name.lower(), value) for name, value in found.items()), reverse=True))


def load_handler(scheme: str, value: str) -> AttachmentHandler:
    """Import the handler that an entry point names.

    Raises:
        AttachmentError: it cannot be imported, or is no handler.
    """
    try:
        found = load_entry(value)
        handler = found() if callable(found) else found
    except (Exception, SystemExit) as error:
        message = f"the attachment scheme {scheme!r} comes from {_source(scheme, value)}, which failed to load: {error}"
        raise AttachmentError(message, hint=_PACKAGE_REMEDY) from error
    if not (callable(getattr(handler, "canonical", None)) and callable(getattr(handler, "resolve", None))):
        message = f"the attachment scheme {scheme!r} comes from {_source(scheme, value)}, which is not a handler"
        raise AttachmentError(message, hint=_PACKAGE_REMEDY)

    return CheckedHandler(cast("AttachmentHandler", handler), scheme, lambda: _source(scheme, value))


def _source(scheme: str, value: str) -> str:
    return package_of(GROUP, scheme, value)


class ResolutionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The declarations that a turn resolves."""

    includes: tuple[Declaration, ...] = ()
    excludes: tuple[Declaration, ...] = ()

    @property
    def declarations(self) -> tuple[str, ...]:
        """Return the value of `chat_request.attachments`: includes, and the excludes that apply to them."""
        excludes = self.excludes if self.includes else ()
        return (*(include.text for include in self.includes), *(exclude.text for exclude in excludes))


class ResolvedAttachments(msgspec.Struct, frozen=True, kw_only=True):
    """Resources and declarations of a turn's `chat_request`, and notices for the user."""

    resources: tuple[Resource, ...] = ()
    declarations: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def delivered_declarations(entries: Iterable[AnyEntry]) -> frozenset[str]:
    """Return the declarations that a request of the stream has resolved.

    A fork has the requests that were copied; its first turn resolves the declarations that they lack.
    """
    requests = (entry for entry in entries if isinstance(entry, ChatRequest))
    return frozenset(text for request in requests for text in request.attachments if not text.startswith("!"))


def plan_resolution(
    declared: Sequence[Declaration], typed: Sequence[Declaration], *, delivered: Collection[str]
) -> ResolutionPlan:
    """Return the declarations that a turn resolves.

    Args:
        declared: `conversation.attachments`, in order. Those that no request has resolved yet are resolved now.
        typed: this turn's `--attach`, which is always resolved again. Excludes of both apply to everything that is
            resolved, but a typed declaration wins over an exclude of the same text.
        delivered: see `delivered_declarations`.
    """
    given = {declaration.text: replace(declaration, typed=True) for declaration in typed}
    pending = [declaration for declaration in declared if not declaration.exclude and declaration.text not in delivered]
    # A typed declaration is not confined, even if a file has the same one.
    freely = {text: declaration for text, declaration in given.items() if not declaration.exclude}
    due = [freely.get(declaration.text, declaration) for declaration in pending]
    excludes = [given.get(item.text, item) for item in (*declared, *typed) if item.exclude]
    return ResolutionPlan(includes=_once((*due, *freely.values())), excludes=_once(excludes))


def _once(declarations: Iterable[Declaration]) -> tuple[Declaration, ...]:
    by_text: dict[str, Declaration] = {}
    for declaration in declarations:
        by_text.setdefault(declaration.text, declaration)
    return tuple(by_text.values())


def _binding(excludes: Sequence[Declaration], include: Declaration) -> tuple[Declaration, ...]:
    """Return the excludes that may apply to `include`; its handler matches them."""
    return tuple(item for item in excludes if item.typed or not include.typed or item.uri != include.uri)


class _Resolver:
    """Resolves the includes of a plan concurrently. The first error in order is raised, and later includes stop."""

    def __init__(
        self, plan: ResolutionPlan, registry: AttachmentRegistry, context: ResolveContext, progress: Progress
    ) -> None:
        from anyio import CancelScope

        self._progress = progress
        self._plan = plan
        self._registry = registry
        self._context = context
        self._scopes = [CancelScope() for _ in plan.includes]
        self._results: list[Resolution | JpError | None] = [None] * len(plan.includes)

    async def run(self) -> list[Resolution]:
        from anyio import create_task_group

        async with create_task_group() as tasks:
            for index in range(len(self._plan.includes)):
                tasks.start_soon(self._resolve, index)
        resolutions: list[Resolution] = []
        for result in self._results:
            if isinstance(result, JpError):
                raise result
            if result is not None:
                resolutions.append(result)
        return resolutions

    async def _resolve(self, index: int) -> None:
        include = self._plan.includes[index]
        with self._scopes[index]:
            try:
                handler = self._registry.handler(include.uri)
                excludes = _binding(self._plan.excludes, include)
                with self._progress(activity(include)) as tell:
                    context = replace(self._context, tell=tell)
                    self._results[index] = await handler.resolve(include, context, excludes=excludes)
            except JpError as error:
                self._results[index] = error
                for scope in self._scopes[index + 1 :]:
                    scope.cancel()


_VERBS = {"cmd": "running", "gh": "fetching", "http": "fetching", "https": "fetching"}

Progress = Callable[[str], AbstractContextManager[Callable[[str], None]]]
"""Says what is done as long as a block runs."""


def activity(declaration: Declaration) -> str:
    """Return what is done to read a source, for a person; an address has no password there."""
    scheme, written = scheme_of(declaration.uri), declaration.written
    if scheme in {"http", "https"}:
        from jp.attachment.web_address import without_credentials

        written = without_credentials(written)
    return f"{_VERBS.get(scheme, 'reading')} {written.removeprefix('cmd:')}"


def _show_nothing(text: str) -> AbstractContextManager[Callable[[str], None]]:
    return nullcontext(lambda _: None)


async def resolve_all(
    plan: ResolutionPlan, registry: AttachmentRegistry, context: ResolveContext, *, progress: Progress = _show_nothing
) -> ResolvedAttachments:
    """Resolve the declarations in `plan` concurrently; the result has the plan's order.

    A resource of several declarations is delivered once, at its first position. `progress` shows what is read.

    Raises:
        AttachmentError: a declaration failed; of several the first in order.
    """
    resolutions = await _Resolver(plan, registry, context, progress).run() if plan.includes else []
    resources: dict[str, Resource] = {}
    notices: list[str] = []
    for resolution in resolutions:
        notices.extend(resolution.notices)
        for resource in resolution.resources:
            resources.setdefault(resource.uri, resource)
    return ResolvedAttachments(
        resources=tuple(resources.values()), declarations=plan.declarations, notices=tuple(notices)
    )


# Providers scale a picture down until it costs about this much, and read a page of a PDF as text and as a picture.
_TOKENS_PER_IMAGE = 1_600
_TOKENS_PER_PAGE = 2_250
_BYTES_PER_PAGE = 50_000
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")


def tokens_of(resources: Iterable[Resource]) -> int:
    """Return the estimated number of tokens of `resources`."""
    return sum(map(_tokens, resources))


def _tokens(resource: Resource) -> int:
    content = content_of(resource)
    match content:
        case TextContent(text=text):
            return estimate_tokens(text)
        case StoredContent(size=size, chars=chars) if chars is not None:
            return estimate_tokens_of_bytes(size)
        case StoredContent(size=size):
            return _binary_tokens(resource, pages=size // _BYTES_PER_PAGE)
        case BinaryContent(data=data):
            # Pages inside compressed object streams do not show.
            return _binary_tokens(resource, pages=len(_PAGE.findall(data)) or len(data) // _BYTES_PER_PAGE)
        case _:
            assert_never(content)


def _binary_tokens(resource: Resource, *, pages: int) -> int:
    return max(pages, 1) * _TOKENS_PER_PAGE if resource.mime_type == "application/pdf" else _TOKENS_PER_IMAGE
