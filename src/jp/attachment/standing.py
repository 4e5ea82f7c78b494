"""How the declarations of a conversation stand: what was read of each, and whether that is still so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from jp.attachment.abandoning import in_thread
from jp.attachment.base import Declaration, MissingSourceError, ResolveContext
from jp.attachment.comparison import Difference, FileComparison, compare_resources
from jp.attachment.declaration import scheme_of
from jp.attachment.history import Delivery, History, claimed
from jp.attachment.registry import AttachmentRegistry
from jp.conversation.resource import Resource
from jp.errors import JpError

State = Literal["pending", "sent", "changed", "missing", "excluded"]
"""To be read at the next turn; in the conversation as it is; other than there; not there; kept out by an exclude."""

_ALWAYS_COMPARED = frozenset({"file", "jp"})
_NEVER_COMPARED = frozenset({"cmd"})


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How one declaration stands.

    `copies` are the newest of what came of it, `turn` is the last that has one of them. `is_compared` says whether the
    source was looked at, `detail` what else there is to say, `hint` what may mend that.
    """

    state: State
    is_compared: bool = False
    turn: int | None = None
    copies: tuple[Resource, ...] = ()
    difference: Difference = Difference()
    detail: str = ""
    hint: str = ""


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What the standing of declarations depends on. `excludes` are those that hold for what is still to be read.

    `reaches_out`: what lies on other machines is compared as well. Commands never are: they would run.
    """

    registry: AttachmentRegistry
    context: ResolveContext
    history: History
    excludes: tuple[Declaration, ...] = ()
    reaches_out: bool = False

    async def standing(self, declaration: Declaration) -> Standing:
        """How `declaration` stands. That its source cannot be read is a detail."""
        if declaration.exclude:
            return self.known(declaration)
        scheme = scheme_of(declaration.uri)
        delivery = self.history.deliveries.get(declaration.text)
        if scheme in _NEVER_COMPARED or not (scheme in _ALWAYS_COMPARED or self.reaches_out):
            return self.known(declaration)
        look = self._next if delivery is None else self._files if scheme == "file" else self._resources
        try:
            return await look(declaration)
        except MissingSourceError as error:
            return _missing(self.known(declaration), error)
        except JpError as error:
            return replace(self.known(declaration), detail=error.message, hint=error.hint)

    def known(self, declaration: Declaration) -> Standing:
        """What the log alone says, for declarations whose URIs say what they name."""
        delivery = self.history.deliveries.get(declaration.text)
        if delivery is None:
            is_excluded = declaration.exclude or any(exclude.uri == declaration.uri for exclude in self.excludes)
            return Standing(state="excluded" if is_excluded else "pending")
        return self._sent(delivery, claimed(declaration.uri, delivery))

    def _sent(self, delivery: Delivery, uris: Sequence[str]) -> Standing:
        if not uris:
            if delivery.excludes:
                return Standing(state="excluded", turn=delivery.turn)
            return Standing(state="sent", turn=delivery.turn, detail="this conversation has no copy of it")
        copies = [self.history.copies[uri] for uri in uris]
        turn = max(copy.turn for copy in copies)
        return Standing(state="sent", turn=turn, copies=tuple(copy.resource for copy in copies))

    async def _next(self, declaration: Declaration) -> Standing:
        """How something stands that is still to be read; a file is only looked at."""
        if scheme_of(declaration.uri) == "file":
            files = [exclude for exclude in self.excludes if scheme_of(exclude.uri) == "file"]
            exclude = await in_thread(lambda check: FileComparison(declaration, self.context, check).excluded_by(files))
            detail = "" if exclude is None else f"{exclude!r} leaves it out"
            return Standing(state="pending" if exclude is None else "excluded", is_compared=True, detail=detail)
        handler = self.registry.handler(declaration.uri)
        resolution = await handler.resolve(declaration, self.context, excludes=self.excludes)
        if resolution.resources:
            return Standing(state="pending", is_compared=True)
        return Standing(state="excluded", is_compared=True, detail="; ".join(resolution.notices))

    async def _files(self, declaration: Declaration) -> Standing:
        delivery, copies = self.history.deliveries[declaration.text], self.history.copies
        uris = FileComparison(declaration, self.context, lambda: None).claimed(delivery)
        try:
            seen = await in_thread(
                lambda check: FileComparison(declaration, self.context, check).compare(delivery, copies)
            )
        except MissingSourceError as error:
            return _missing(self._sent(delivery, uris), error) if uris else self._sent(delivery, uris)
        except JpError as error:
            return replace(self._sent(delivery, uris), detail=error.message, hint=error.hint)
        known = self._sent(delivery, seen.uris)
        if seen.uris:
            return _compared(known, seen.difference)
        return known if seen.excluded_by is None else replace(known, detail=f"{seen.excluded_by!r} left it out")

    async def _resources(self, declaration: Declaration) -> Standing:
        delivery, known = self.history.deliveries[declaration.text], self.known(declaration)
        if not known.copies:
            return known
        # What was attached against an exclude is compared against it, too.
        excludes = [
            Declaration(uri=uri, written=f"!{uri}", exclude=True) for uri in delivery.excludes if uri != declaration.uri
        ]
        resolution = await self.registry.handler(declaration.uri).resolve(declaration, self.context, excludes=excludes)
        uris = [copy.uri for copy in known.copies]
        return _compared(known, compare_resources(resolution.resources, uris, self.history.copies))


def _missing(known: Standing, error: MissingSourceError) -> Standing:
    return replace(known, state="missing", is_compared=True, detail=error.message, hint=error.hint)


def _compared(known: Standing, difference: Difference) -> Standing:
    return replace(known, state="changed" if difference else "sent", is_compared=True, difference=difference)
