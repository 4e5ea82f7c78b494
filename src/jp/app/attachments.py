"""Comparison of what a conversation attaches with what was read before."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from jp.app.options import AnyWorkspace, Options, open_session, open_workspace
from jp.app.query.attachments import AttachmentSchemes
from jp.app.settings import read_sources, remedy_for
from jp.attachment.base import AttachmentError, Declaration, history_of, scheme_of
from jp.attachment.comparison import AttachmentStatus, State, StatusReader
from jp.attachment.files import similarity
from jp.attachment.registry import activity, tokens_of
from jp.attachment.web_address import without_credentials
from jp.config.layers import Resolved
from jp.conversation.entries import AnyEntry
from jp.conversation.resource import size_in_bytes
from jp.errors import UsageError
from jp.remedies import Ask, Option, Show, TrustWorkspace, UseOption, join, phrase
from jp.suggestions import MIN_SIMILARITY

if TYPE_CHECKING:
    from jp.workspace.listing import ConversationInfo
    from jp.workspace.session import Session


_SHOWN = 5
_LIST = phrase("list them with `", Show("attachments"), "`")


def meant(typed: str, canonical: str | None, declared: Mapping[str, str]) -> str:
    """Return the declaration that `typed` means: as listed, as a path or URI of the same, or a part of only one.

    `canonical` is `typed` as a declaration, None where it is malformed; `declared` has the canonical form of
    each declaration. A part begins where a word does.

    Raises:
        UsageError: it means none of them, or several.
    """
    if typed in declared:
        return typed
    same = [text for text, form in declared.items() if canonical is not None and form == canonical]
    found = same or _having(typed, declared)
    if len(found) == 1 or same:
        return found[0]
    if not found:
        raise UsageError(f"{typed!r} is not attached", hint=_near(typed, declared))
    shown = ", ".join(map(repr, found[:_SHOWN]))
    more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    raise UsageError(f"{typed!r} is a part of {len(found):,} attachments: {shown}{more}", hint="give more of it")


def _having(part: str, declared: Mapping[str, str]) -> list[str]:
    """Return the declarations that have `part`: excludes where it begins with `!`, or where no other has it."""
    body = part.removeprefix("!")
    if not any(map(str.isalnum, body)):
        return []
    beginning = r"(?<![^\W_])" if body[0].isalnum() else ""
    expression = re.compile(beginning + re.escape(body))
    found = [text for text in declared if expression.search(unquote(text)) or expression.search(text)]
    includes = [] if part.startswith("!") else [text for text in found if not text.startswith("!")]
    return includes or [text for text in found if text.startswith("!")]


def _near(typed: str, declared: Mapping[str, str]) -> str:
    scores = [(similarity(typed, unquote(text).replace("file:", "", 1)), text) for text in declared]
    near = [text for score, text in sorted(scores, reverse=True) if score >= MIN_SIMILARITY][:2]
    return f"did you mean {' or '.join(map(repr, near))}?" if near else _LIST


T = TypeVar("T")


class DeclaredAttachments(msgspec.Struct, frozen=True, kw_only=True):
    """Attachments that a conversation declares: `texts` as configured, those in `untrusted` without the user's trust.

    `trusting` gives it.
    """

    texts: tuple[str, ...]
    untrusted: Collection[str]
    trusting: TrustWorkspace
    max_bytes: int


def declared_in(
    resolved: Resolved,
    options: Options,
    workspace: AnyWorkspace,
    info: ConversationInfo | None,
    *,
    texts: tuple[str, ...] | None = None,
) -> DeclaredAttachments:
    """Return the attachments that the configuration declares, or with it `texts`."""
    config = resolved.config.conversation
    return DeclaredAttachments(
        texts=config.attachments if texts is None else texts,
        untrusted={value.value for value in resolved.ignored if value.key == "conversation.attachments"},
        trusting=remedy_for(resolved.ignored, info),
        max_bytes=config.max_attachment_bytes,
    )


class SessionAttachments(msgspec.Struct, frozen=True, kw_only=True):
    """Attachments for the next conversation of a session: `texts` is what was declared for it."""

    session: Session
    workspace: AnyWorkspace
    resolved: Resolved
    texts: tuple[str, ...]


def session_attachments(options: Options, target: str) -> SessionAttachments | None:
    """Return what is declared for the next conversation; None where `target` is one, or nothing tells the session."""
    workspace = open_workspace(options)
    session = open_session(workspace)
    if target != "." or not session.is_known or session.active() is not None:
        return None
    resolved = read_sources(options, workspace).resolve()
    return SessionAttachments(session=session, workspace=workspace, resolved=resolved, texts=session.attachments())


async def standings(
    declared: DeclaredAttachments,
    schemes: AttachmentSchemes,
    entries: Sequence[AnyEntry],
    *,
    reaches_out: bool,
) -> list[AttachmentStatus]:
    """Return the state of each of the declarations, in their order."""
    survey = _survey(declared, schemes, entries, reaches_out=reaches_out)
    progress = schemes.options.progress

    async def look(text: str) -> AttachmentStatus:
        if text in declared.untrusted:
            # Not even its spelling is looked at: that may be a stranger's code.
            return replace(
                survey.logged(_as_written(text)), detail=phrase("not trusted: see `", declared.trusting, "`")
            )
        with progress(f"checking {as_typed(text)}"):
            return await _standing(text, survey, schemes)

    return await _all(look, declared.texts)


async def expectations(
    given: Sequence[Declaration], declared: DeclaredAttachments, schemes: AttachmentSchemes, entries: Sequence[AnyEntry]
) -> list[str]:
    """Sentences about what was just declared and will not come with the next turn as one may expect."""
    survey = _survey(declared, schemes, entries)
    includes = [declaration for declaration in given if not declaration.exclude]

    async def look(declaration: Declaration) -> AttachmentStatus:
        with schemes.options.progress(activity(declaration)):
            return await survey.status(declaration)

    found = await _all(look, includes)
    sentences = map(_expectation, includes, found)
    return [sentence for sentence in sentences if sentence]


def _expectation(declaration: Declaration, standing: AttachmentStatus) -> str:
    written = as_typed(declaration.written)
    if standing.turn is not None:
        told = f"{written!r} was read in turn {standing.turn} and is not read again; `"
        return phrase(told, Ask((UseOption(Option.ATTACH),)), "` does that")
    match standing.state:
        case "missing":
            told = phrase(standing.detail, " now: the next query fails unless it is there by then")
            return join("; ", (told, standing.hint))
        case "excluded":
            return f"{written!r} attaches nothing: {standing.detail or 'an exclude matches it'}"
        case _:
            return phrase("the next query fails: ", standing.detail) if standing.detail else ""


async def _all(look: Callable[[T], Awaitable[AttachmentStatus]], items: Sequence[T]) -> list[AttachmentStatus]:
    """Return the findings of `look` for the items, which it looks at all at once."""
    from anyio import create_task_group

    found: dict[int, AttachmentStatus] = {}

    async def take(index: int, item: T) -> None:
        found[index] = await look(item)

    async with create_task_group() as tasks:
        for index, item in enumerate(items):
            tasks.start_soon(take, index, item)
    return [found[index] for index in range(len(items))]


def find_declared(typed: Sequence[str], texts: Sequence[str], schemes: AttachmentSchemes) -> dict[str, bool]:
    """Return the declarations of `texts` that the typed ones mean, each with whether only a part of it is meant.

    Raises:
        UsageError: something typed means none of them, or several.
        AttachmentError: something typed is malformed, and no part of any.
    """
    declared = {text: _canonical(text, schemes.configured) or text for text in texts}
    return dict(_meant(text, declared, schemes) for text in typed)


def _meant(typed: str, declared: Mapping[str, str], schemes: AttachmentSchemes) -> tuple[str, bool]:

    malformed = None
    try:
        (declaration,) = schemes.typed([typed])
        canonical = declaration.text
    except AttachmentError as error:
        canonical, malformed = None, error
    try:
        found = meant(as_typed(typed), canonical, declared)
    except UsageError:
        if malformed is not None:
            raise malformed from None
        raise
    return found, found != typed and declared[found] != canonical


def as_typed(text: str) -> str:
    """Return written text as it may be shown: an address without its password; elsewhere an `@` is an `@`."""
    return without_credentials(text) if scheme_of(text.removeprefix("!")) in {"http", "https"} else text


def _canonical(text: str, declare: Callable[[Sequence[str]], list[Declaration]]) -> str | None:
    try:
        return declare([text])[0].text
    except AttachmentError:
        return None


def _survey(
    declared: DeclaredAttachments, schemes: AttachmentSchemes, entries: Sequence[AnyEntry], *, reaches_out: bool = False
) -> StatusReader:
    return StatusReader(
        registry=schemes.registry,
        context=replace(schemes.context, max_bytes=declared.max_bytes),
        history=history_of(entries),
        excludes=tuple(_excludes(declared, schemes)),
        reaches_out=reaches_out,
    )


def _excludes(declared: DeclaredAttachments, schemes: AttachmentSchemes) -> list[Declaration]:
    found: list[Declaration] = []
    for text in declared.texts:
        if text.startswith("!") and text not in declared.untrusted:
            try:
                found += schemes.configured([text])
            except AttachmentError:
                continue
    return found


def _as_written(text: str) -> Declaration:
    return Declaration(uri=text.removeprefix("!"), written=text, exclude=text.startswith("!"))


async def _standing(text: str, survey: StatusReader, schemes: AttachmentSchemes) -> AttachmentStatus:
    plain = _as_written(text)
    try:
        (declaration,) = schemes.configured([text])
    except AttachmentError as error:
        return replace(survey.logged(plain), detail=error.message)
    if declaration.text not in survey.history.deliveries and text in survey.history.deliveries:
        # An original's log has its own spelling.
        declaration = replace(declaration, uri=plain.uri)
    return await survey.status(declaration)


class ListedAttachment(msgspec.Struct, frozen=True, kw_only=True):
    """A declared source and what the conversation has of it.

    Args:
        uri: the declaration, without a password.
        checked: the source was compared with what was read.
        turn: the turn that read it.
        files, bytes, tokens: the size of what was read.
        changed, added, removed: addresses of resources that differ now.
        detail: the reason of the state.
    """

    uri: str
    state: State
    checked: bool
    turn: int | None
    files: int
    bytes: int
    tokens: int
    changed: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    detail: str | None


def listed(text: str, status: AttachmentStatus) -> ListedAttachment:
    """Return the `status` of the declaration `text` as a row of a list."""
    return ListedAttachment(
        uri=as_typed(text),
        state=status.state,
        checked=status.is_compared,
        turn=status.turn,
        files=len(status.copies),
        bytes=sum(map(size_in_bytes, status.copies)),
        tokens=tokens_of(status.copies),
        changed=tuple(status.difference.changed),
        added=tuple(status.difference.added),
        removed=tuple(status.difference.removed),
        detail=status.detail or None,
    )


def files_of(texts: Sequence[str], schemes: AttachmentSchemes) -> dict[str, Path]:
    """Return the absolute paths of the declarations that name one file or directory."""
    from jp.attachment.file_paths import Names, locate

    found: dict[str, Path] = {}
    for text in texts:
        with suppress(AttachmentError):
            location = locate(text, schemes.context, Names()) if scheme_of(text) == "file" else None
            if location is not None and not location.tail:
                found[text] = Path(location.path)
    return found
