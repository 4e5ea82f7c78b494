"""The attachment port: declarations, handlers, errors, and how many handlers run at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from jp.conversation.resource import Resource
from jp.errors import ExitCode, JpError

if TYPE_CHECKING:
    from anyio import Semaphore
    from anyio.lowlevel import RunVar


class AttachmentError(JpError):
    """An attachment could not be resolved; nothing was sent or written."""

    exit_code = ExitCode.ATTACHMENT


class MissingSourceError(AttachmentError):
    """The source of an attachment does not exist."""


class ResolveContext(msgspec.Struct, frozen=True, kw_only=True):
    """Context and bounds of resolving URIs.

    `root` is the workspace's root (or the current directory outside any), `cwd` what paths that a user types refer
    to. `anchored` says that `root` is the same for every command on a conversation, so that declarations may begin
    there. `max_bytes` bounds one resource.
    """

    root: Path
    cwd: Path
    anchored: bool = True
    max_bytes: int = 10 * 1024 * 1024


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """A source to attach, or with `exclude` to leave out.

    `uri` is canonical: the form that is configured and recorded. `written` is what the user wrote: the form that
    errors name. `confined` says that nothing outside the root may be reached: so for everything that a file declared.
    `typed` says that it was given with this command, so that it wins over what was declared earlier.
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
    """The resources of a declaration. `notices` are sentences for the user about what was skipped, and why."""

    resources: tuple[Resource, ...]
    notices: tuple[str, ...] = ()


class AttachmentHandler(Protocol):
    """One scheme. Stateless."""

    def canonical(self, uri: str, context: ResolveContext) -> str:
        """Return the form under which `uri` is declared: two spellings of one thing become equal. Idempotent.

        What `uri` names need not exist.

        Raises:
            AttachmentError: `uri` is malformed.
        """
        ...

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        """Return the resources that `declaration` names, without those that `excludes` match, in a stable order.

        `excludes` may be of other schemes: those match nothing.

        Raises:
            AttachmentError: the declaration names nothing, too much, or what cannot be read.
        """
        ...


_UNIT = 1024


def in_units(size: int) -> str:
    """Return a number of bytes as people read it."""
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
    """Nobody waits for the result any more."""


async def in_thread(work: Callable[[Callable[[], None]], T]) -> T:
    """Run `work` in a thread. It gets a function to call now and then, which raises once nobody waits any more."""
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
    """At most `count` at once of what is called `name`, in one event loop; each loop has its own."""

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
