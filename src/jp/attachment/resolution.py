"""Selection and resolution of a turn's attachments, and their size in tokens."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import assert_never

import msgspec
from msgspec.structs import replace

from jp.attachment.base import Declaration, Resolution, ResolveContext
from jp.attachment.registry import AttachmentRegistry
from jp.context.estimate import estimate_tokens, estimate_tokens_of_bytes
from jp.conversation.entries import AnyEntry, ChatRequest
from jp.conversation.resource import BinaryContent, Resource, StoredContent, TextContent, content_of
from jp.errors import JpError


class ResolutionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The attachments that a turn resolves."""

    includes: tuple[Declaration, ...] = ()
    excludes: tuple[Declaration, ...] = ()

    @property
    def declarations(self) -> tuple[str, ...]:
        """Return what `chat_request.attachments` records: the includes, and the excludes that took part."""
        excludes = self.excludes if self.includes else ()
        return (*(include.text for include in self.includes), *(exclude.text for exclude in excludes))


class ResolvedAttachments(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a turn's `chat_request`, and sentences for the user. `declarations` are its `attachments`."""

    resources: tuple[Resource, ...] = ()
    declarations: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def delivered_in(entries: Iterable[AnyEntry]) -> frozenset[str]:
    """Return the declarations that some request of a stream has resolved already.

    In a fork these are the requests that were copied, so what its turns lack is resolved at its first turn.
    """
    requests = (entry for entry in entries if isinstance(entry, ChatRequest))
    return frozenset(text for request in requests for text in request.attachments if not text.startswith("!"))


def plan_resolution(
    declared: Sequence[Declaration], typed: Sequence[Declaration], *, delivered: Collection[str]
) -> ResolutionPlan:
    """Decide what a turn resolves.

    `declared` is `conversation.attachments`, in order: what no request has resolved yet (`delivered`, see
    `delivered_in`) is resolved now. `typed` is this turn's `--attach`: always resolved, afresh. Excludes of both
    apply to everything that is resolved, but that what is typed wins over an exclude of just that.
    """
    given = {declaration.text: replace(declaration, typed=True) for declaration in typed}
    pending = [declaration for declaration in declared if not declaration.exclude and declaration.text not in delivered]
    # What is typed may lie anywhere, even where a file declares it too.
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
    """Return the excludes that hold for `include`; which files they cover only its handler knows."""
    return tuple(item for item in excludes if item.typed or not include.typed or item.uri != include.uri)


class _Resolving:
    """The includes of a plan, all at once. The first in order that fails decides; what comes after it is stopped."""

    def __init__(self, plan: ResolutionPlan, registry: AttachmentRegistry, context: ResolveContext) -> None:
        from anyio import CancelScope

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
                self._results[index] = await handler.resolve(include, self._context, excludes=excludes)
            except JpError as error:
                self._results[index] = error
                for scope in self._scopes[index + 1 :]:
                    scope.cancel()


async def resolve_all(
    plan: ResolutionPlan, registry: AttachmentRegistry, context: ResolveContext
) -> ResolvedAttachments:
    """Resolve everything in `plan` at the same time; the result has the plan's order.

    A resource that several declarations name is delivered once, where it comes first.

    Raises:
        AttachmentError: a declaration failed; of several the first.
    """
    resolutions = await _Resolving(plan, registry, context).run() if plan.includes else []
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
    """About how many tokens `resources` have together, as they would be sent."""
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
