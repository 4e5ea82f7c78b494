"""Attachments of a query: their schemes, the request that has them, and other conversations that they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from jp.app.options import AnyWorkspace, Options, base_directory, current_directory, open_session
from jp.app.settings import is_accepted_attachment, remedy_for, trust_store, untrusted_attachments
from jp.config.layers import Ignored, Resolved
from jp.config.model import AttachmentsConfig, ConversationConfig
from jp.config.trust import UntrustedError, mark_of_attachment
from jp.conversation.entries import AnyEntry, ChatRequest, JsonObject
from jp.conversation.ids import ConversationId
from jp.conversation.resource import (
    Carrier,
    Resource,
    StoredContent,
    TextContent,
    checksum,
    content_of,
    raw_bytes,
    size_in_bytes,
)
from jp.errors import JpError
from jp.remedies import RemoveAttachment, Show, phrase
from jp.tool.base import directory_of
from jp.turn.ports import Recorder
from jp.turn.request import Loader
from jp.workspace.blobs import BlobDamagedError, BlobMissingError, with_content
from jp.workspace.files import timestamp

if TYPE_CHECKING:
    from jp.app.servers import Servers
    from jp.attachment.base import AttachmentHandler, Declaration, Resolution, ResolveContext
    from jp.attachment.conversation import StoredConversation
    from jp.attachment.registry import AttachmentRegistry, ResolutionPlan, ResolvedAttachments
    from jp.workspace.listing import ConversationInfo


C = TypeVar("C", bound=Carrier)


class RestoringLoader:
    """A loader that takes content from the resources of `request` where its blob is lost."""

    def __init__(self, loader: Loader, request: ChatRequest) -> None:
        self._loader = loader
        self._resources = request.resources
        self._restored: dict[str, Resource] = {}

    def load(self, carrier: C, /) -> C:
        """See `Loader`."""
        try:
            return self._loader.load(carrier)
        except (BlobMissingError, BlobDamagedError):
            content = None if (found := self._attached_copy(carrier)) is None else content_of(found)
            if found is None or content is None or isinstance(content, StoredContent):
                raise
            restored = with_content(carrier, raw_bytes(content))
            self._restored[found.uri] = found
            return restored

    def _attached_copy(self, carrier: Carrier) -> Resource | None:
        return next((resource for resource in self._resources if checksum(resource) == carrier.sha256), None)

    def notices(self) -> list[str]:
        """Return notices of what was brought back since the last call."""
        names = [resource.name or resource.uri for resource in self._restored.values()]
        self._restored = {}
        return [f"the earlier copy of {name!r} was lost; it is the same as what is attached now" for name in names]


class RestoringRecorder:
    """A recorder of a turn: its request stores lost content again."""

    def __init__(self, recorder: Recorder, request: ChatRequest, notice: Callable[[str], None]) -> None:
        self._recorder = recorder
        self._loader = RestoringLoader(recorder, request)
        self._notice = notice

    @property
    def directory(self) -> Path | None:
        """See `jp.tool.base.OnDisk`."""
        return directory_of(self._recorder)

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """See the port, `jp.turn.ports.Recorder`."""
        return self._recorder.entries

    def append(self, entry: AnyEntry) -> AnyEntry:
        """See the port."""
        recorded = self._recorder.append(entry)
        if isinstance(entry, ChatRequest):
            for sentence in self._loader.notices():
                self._notice(f"{sentence}, and stored again")
        return recorded

    def load(self, carrier: C, /) -> C:
        """See the port."""
        return self._loader.load(carrier)


_ABSOLUTE = ("/", "~", "file:/", "file:~")


class AttachmentSchemes:
    """The attachment handlers for a command in a workspace, and the directories that they work in.

    Neither is loaded before something is attached. Where a turn is taken in `conversation`, `earlier` is how many
    entries were there before it: only these can be attached to it. Who resolves anything has entered `servers`.
    """

    def __init__(
        self,
        workspace: AnyWorkspace,
        options: Options,
        conversation: ConversationInfo | None = None,
        *,
        earlier: int | None = None,
    ) -> None:
        self._workspace = workspace
        self.options = options
        self._conversation = conversation
        self._earlier = earlier
        self._untrusted: tuple[Ignored, ...] = ()
        self._limits = AttachmentsConfig()

    @cached_property
    def registry(self) -> AttachmentRegistry:
        """The readers of attachments, by scheme."""
        from jp.attachment.registry import AttachmentRegistry

        return AttachmentRegistry(
            cache_directory=self._workspace.user_data / "cache",
            joined={"jp": self._conversation_handler, "mcp": self._mcp_handler},
        )

    @cached_property
    def servers(self) -> Servers:
        """The MCP servers, whose resources can be attached."""
        from jp.app.servers import Servers

        return Servers(self.options, root=base_directory(self._workspace), cache=self._workspace.user_data / "cache")

    def _mcp_handler(self) -> AttachmentHandler:
        from jp.attachment.mcp import McpHandler

        return McpHandler(self.servers)

    def _conversation_handler(self) -> AttachmentHandler:

        from jp.attachment.conversation import ConversationHandler

        running = None if self._conversation is None else self._conversation.id
        reader = WorkspaceConversations(self._workspace, running=running, earlier=self._earlier)
        return NamedConversations(ConversationHandler(reader), self._workspace, running)

    @property
    def context(self) -> ResolveContext:
        """Their place to read, within bounds. Outside any workspace only a directory stays where it is."""
        from jp.attachment.base import ResolveContext

        is_anchored = self._workspace.root is not None
        return ResolveContext(
            root=base_directory(self._workspace),
            cwd=current_directory(),
            anchored=is_anchored,
            max_files=self._limits.max_files,
        )

    def limit(self, limits: AttachmentsConfig) -> None:
        """Take the limits of a configuration."""
        self._limits = limits

    def typed(self, texts: Sequence[str]) -> list[Declaration]:
        """Return declarations that a user typed: relative to the current directory, and free to lie anywhere.

        Raises:
            AttachmentError: one of them is malformed.
        """
        return [self.registry.declare(text, self.context, confined=False) for text in texts]

    def allow(self, texts: Sequence[str]) -> None:
        """Let canonical declarations of this session lie anywhere, as their user typed them."""
        self._accepted = frozenset(map(mark_of_attachment, texts))

    def distrust(self, resolved: Resolved) -> None:
        """Take the limits of that configuration, and refuse what it attaches and nobody has accepted."""
        self._untrusted = untrusted_attachments(resolved)
        self.limit(resolved.config.attachments)

    def configured(self, texts: Sequence[str]) -> list[Declaration]:
        """Return declarations of a configuration: relative to the root, and confined to it.

        What the user has typed for this conversation is not: only its own file could have held it back.

        Raises:
            AttachmentError: one of them is malformed.
            UntrustedError: the user has to accept one of them first.
        """
        if needed := [value for value in self._untrusted if value.value in texts]:
            raise UntrustedError(needed, remedy=remedy_for(needed, self._conversation))
        return [
            self.registry.declare(
                text, self._context_of(text), confined=not is_accepted_attachment(text, self._accepted)
            )
            for text in texts
        ]

    def _context_of(self, text: str) -> ResolveContext:
        # What a file declares relatively is one declaration wherever the next query is asked: it is read once.
        is_absolute = text.removeprefix("!").startswith(_ABSOLUTE)
        return self.context if is_absolute else replace(self.context, anchored=True)

    @cached_property
    def _accepted(self) -> frozenset[str]:
        if self._conversation is None:
            return frozenset()
        return trust_store(self.options, self._workspace, self._conversation).accepted()


def outside_of_root(typed: Sequence[Declaration]) -> tuple[str, ...]:
    """Return those of the canonical declarations that do not begin at the workspace's root."""
    return tuple(item.text for item in typed if leads_outside(item))


def leads_outside(declaration: Declaration) -> bool:
    """Return whether a canonical declaration attaches what does not lie below the workspace's root."""
    return not declaration.exclude and declaration.uri.startswith(("file:/", "file:~", "clipboard:"))


async def compose_request(
    question: ChatRequest,
    typed: Sequence[Declaration],
    schemes: AttachmentSchemes,
    entries: Sequence[AnyEntry],
    config: ConversationConfig,
    streamed: Sequence[Resource] = (),
) -> tuple[ChatRequest, tuple[str, ...]]:
    """Return the turn's `chat_request` with what is attached to it, and sentences for the user.

    `streamed` was read already, and cannot be read again. What `question` brings along counts as delivered: only what
    is typed is read again, and takes its place.

    Raises:
        AttachmentError: an attachment could not be resolved.
    """
    if not (typed or config.attachments or streamed):
        return question, ()

    from jp.attachment.base import assumed_declarations
    from jp.attachment.registry import delivered_declarations, plan_resolution, resolve_all
    from jp.conversation.turns import turns_of, undone
    from jp.tool.duplicates import DeliveryIndex, mark_resources

    gone = undone(entries)
    turns = [turn for turn in turns_of(entries) if turn.id not in gone]
    standing = [entry for turn in turns for entry in turn.entries]
    delivered = {*delivered_declarations(standing), *assumed_declarations(entries), *question.attachments}
    # What is delivered may be of a scheme that only the original JP knows.
    pending = [text for text in config.attachments if text not in delivered]
    plan = plan_resolution(schemes.configured(pending), typed, delivered=delivered)
    context = replace(schemes.context, max_bytes=config.max_attachment_bytes)
    try:
        resolved = await resolve_all(plan, schemes.registry, context, progress=schemes.options.progress)
    except JpError as error:
        error.hint = phrase(error.hint, _way_out(plan, error.message, is_new=not turns))
        raise
    deduplication = config.deduplication
    marked = mark_resources(
        (*streamed, *resolved.resources),
        DeliveryIndex(entries),
        turn=len(turns),
        enabled=deduplication.enabled,
        min_bytes=deduplication.min_bytes,
        lookback_turns=deduplication.lookback_turns,
    )
    fresh = {resource.uri for resource in marked}
    brought = [resource for resource in question.resources if resource.uri not in fresh]
    declared = dict.fromkeys((*question.attachments, *resolved.declarations))
    return replace(question, resources=(*brought, *marked), attachments=tuple(declared)), resolved.notices


def _way_out(plan: ResolutionPlan, failure: str, *, is_new: bool) -> str:
    """Return advice on giving up what `failure` is about, if declared earlier: typing less does not help then.

    A conversation that `is_new` has nothing yet that could be taken out of it.
    """
    declared = next((item.uri for item in plan.includes if not item.typed and item.written in failure), None)
    if declared is None:
        return ""
    if is_new:
        return phrase(" It is declared: `", Show("setting origin", "conversation.attachments"), "` says where.")
    return phrase(
        " It is declared in `conversation.attachments`: `", RemoveAttachment(declared), "` takes it out of there."
    )


def restoring(recorder: Recorder, request: ChatRequest, notice: Callable[[str], None]) -> Recorder:
    """Return `recorder`, for which the resources of `request` bring back what of earlier content is lost."""
    if not request.resources:
        return recorder

    return RestoringRecorder(recorder, request, notice)


async def resolve_now(
    schemes: AttachmentSchemes, declared: Sequence[Declaration], max_bytes: int
) -> ResolvedAttachments:
    """Return the present content of the sources, whatever was sent before.

    Raises:
        AttachmentError: one could not be resolved.
    """
    from jp.attachment.registry import plan_resolution, resolve_all

    context = replace(schemes.context, max_bytes=max_bytes)
    plan = plan_resolution((), declared, delivered=())
    return await resolve_all(plan, schemes.registry, context, progress=schemes.options.progress)


_BYTES_A_TOKEN = 4
"""About so many bytes of text are one token."""


def excess_of(request: ChatRequest, *, limit: int) -> str:
    """Return a message if the input is large enough to be a mistake, else an empty text.

    Text counts as its bytes; pictures and documents count as the text that costs as many tokens.
    """
    texts = [resource for resource in request.resources if _is_text(resource)]
    others = [resource for resource in request.resources if not _is_text(resource)]
    size = len(request.content.encode()) + sum(map(size_in_bytes, texts))
    if not others and size <= limit:
        return ""

    from jp.attachment.registry import tokens_of
    from jp.context.estimate import estimate_tokens

    encoded = tokens_of(others)
    size += encoded * _BYTES_A_TOKEN
    if size <= limit:
        return ""
    tokens = estimate_tokens(request.content) + tokens_of(texts) + encoded
    counted = "counts as" if others else "is"
    return f"the input {counted} {size:,} bytes, about {tokens:,} tokens, and the limit is {limit:,} bytes"


def _is_text(resource: Resource) -> bool:
    content = content_of(resource)
    return isinstance(content, TextContent) or (isinstance(content, StoredContent) and content.chars is not None)


class WorkspaceConversations:
    """Reads conversations without their locks.

    Of the conversation `running` only the first `earlier` entries are seen: those before the turn that is being taken;
    None means all.
    """

    def __init__(
        self, workspace: AnyWorkspace, *, running: ConversationId | None = None, earlier: int | None = None
    ) -> None:
        self._workspace = workspace
        self._running = running
        self._earlier = earlier

    def ids(self) -> Collection[str]:
        """See `ConversationReader`."""
        return self._workspace.ids()

    def read(self, conversation: str) -> StoredConversation:
        """See `ConversationReader`."""
        from jp.app.targets import title_of
        from jp.attachment.conversation import StoredConversation

        info = self._info(conversation)
        stream = self._workspace.read(info)
        is_running = info.id == self._running
        return StoredConversation(
            title=title_of(info),
            modified=timestamp(int(info.last_activity * 1000)),
            entries=stream.entries[: self._earlier] if is_running else stream.entries,
            load=stream.load,
            metadata=msgspec.to_builtins(info.metadata),
        )

    def base_config(self, conversation: str) -> JsonObject:
        """See `ConversationReader`."""
        return self._workspace.base_config(self._info(conversation))

    def _info(self, conversation: str) -> ConversationInfo:
        return self._workspace.get(ConversationId(conversation))


_NAMED = re.compile(r"jp:(?://)?(?P<target>last|prev|\.|@[^?]+)(?P<query>\?.*)?", re.DOTALL)


class NamedConversations:
    """The `jp` scheme, which `handler` reads by ids. A declaration holds the id that a target meant when it was made.

    `running` is the conversation of the turn, which is not the one that was used last.
    """

    def __init__(self, handler: AttachmentHandler, workspace: AnyWorkspace, running: ConversationId | None) -> None:
        self._handler = handler
        self._workspace = workspace
        self._running = running

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """See the port.

        Raises:
            AttachmentError: it is malformed, or a target in it means no conversation, or several.
        """
        from jp.app.targets import identify
        from jp.attachment.base import AttachmentError

        found = _NAMED.fullmatch(uri)
        if found is None:
            return self._handler.canonical(uri, context)
        target = unquote(found["target"])
        session = open_session(self._workspace)
        try:
            conversation = identify(target, self._workspace, session, without=self._running)
        except JpError as error:
            raise AttachmentError(phrase(f"{uri!r}: ", error.message), hint=error.hint) from error
        return self._handler.canonical(f"jp:{conversation}{found['query'] or ''}", context)

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """See the port."""
        return await self._handler.resolve(declaration, context, excludes=excludes)
