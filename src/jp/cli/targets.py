"""Which conversation is meant: a target, held against a workspace and this terminal's session.

The grammar is in `jp.cli.candidates`. Where a target means several conversations, a person at a terminal picks one;
elsewhere it is an error that lists them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, assert_never

from jp.cli.candidates import (
    Active,
    Candidate,
    Identified,
    Labelled,
    Last,
    Named,
    Picked,
    Previous,
    Target,
    Titled,
    in_order,
    matching,
    near,
    parse_target,
)
from jp.cli.places import AnyWorkspace
from jp.conversation.ids import ConversationId
from jp.errors import UsageError
from jp.workspace.listing import ConversationInfo
from jp.workspace.session import Session

if TYPE_CHECKING:
    from jp.cli.picker import Offer

_LISTED = 10
_PREFIX = "jp-c"
_LIST = "list them with `jp conversation ls`"
_NAME_ONE = "name one: `jp conversation ls` lists them, `jp conversation use ID` activates one"
TARGET_HELP = (
    "An id or the start of one, '.' (active here), 'prev', 'last' (used last), '@LABEL' or '@LABEL=VALUE', words of a "
    "title, or '?' to pick one."
)


class AmbiguousTargetError(UsageError):
    """A target means several conversations."""

    kind = "ambiguous_target"


class UnknownTargetError(UsageError):
    """A target means no conversation."""

    kind = "unknown_target"


def choose(target: str, workspace: AnyWorkspace, session: Session, *, archived: bool = False) -> ConversationInfo:
    """The one conversation that `target` means; `archived`: among those, where it is not named by its id.

    Raises:
        UsageError: it means none, or several where nobody can pick one.
        KeyboardInterrupt: a person left the picker.
    """
    chooser = _Chooser(workspace, session, archived=archived)
    found = chooser.found(target)
    while not isinstance(found, ConversationInfo):
        from jp.cli.picker import pick

        found = chooser.taken(pick(chooser.offer(found)), found)
    return found


async def choose_async(
    target: str, workspace: AnyWorkspace, session: Session, *, is_attended: bool = True
) -> ConversationInfo:
    """See `choose`: for who has an event loop. Where it is not attended, nobody picks one."""
    chooser = _Chooser(workspace, session, is_attended=is_attended)
    found = chooser.found(target)
    while not isinstance(found, ConversationInfo):
        from jp.cli.picker import pick_async

        found = chooser.taken(await pick_async(chooser.offer(found)), found)
    return found


def choose_all(
    targets: Iterable[str], workspace: AnyWorkspace, session: Session, *, archived: bool = False
) -> list[ConversationInfo]:
    """The conversations that `targets` mean, each once, in their order. See `choose`."""
    chosen = [choose(target, workspace, session, archived=archived) for target in targets]
    return list({info.id: info for info in chosen}.values())


def identify(
    target: str, workspace: AnyWorkspace, session: Session, *, without: ConversationId | None = None
) -> ConversationId:
    """The id of the conversation that `target` means, where nobody is asked. `without` is not the one used last.

    Raises:
        UsageError: it means none, or several.
    """
    found = _Chooser(workspace, session, is_attended=False, without=without).found(target)
    if isinstance(found, ConversationInfo):
        return found.id
    raise _ambiguous(target, found.candidates)


def choose_other(workspace: AnyWorkspace, session: Session) -> ConversationInfo:
    """The conversation that was active before in this session; a person picks one where there is none.

    Raises:
        UsageError: there is none, and nobody can pick one.
        KeyboardInterrupt: a person left the picker.
    """
    chooser = _Chooser(workspace, session)
    if chooser.previous() is None and chooser.can_pick():
        return choose("?", workspace, session)
    return choose("prev", workspace, session)


def title_of(info: ConversationInfo) -> str:
    """What a person calls a conversation: its title, its first words, or those of its directory's name.

    Fit to be shown.
    """
    from jp.render.sanitize import one_line

    words = info.directory.name.partition("-")[2].replace("-", " ")
    return one_line(info.metadata.title or info.metadata.first_words or words or "untitled")


class _Several:
    """What there is to pick from, and what is typed already."""

    def __init__(self, candidates: Sequence[Candidate], text: str = "") -> None:
        self.candidates = candidates
        self.text = text


class _Chooser:
    """One choice. The workspace is listed at most once for it."""

    def __init__(
        self,
        workspace: AnyWorkspace,
        session: Session,
        *,
        archived: bool = False,
        is_attended: bool = True,
        without: ConversationId | None = None,
    ) -> None:
        self._workspace = workspace
        self._session = session
        self._archived = archived
        self._is_attended = is_attended
        self._without = without
        self._infos: dict[ConversationId, ConversationInfo] = {}

    def found(self, text: str) -> ConversationInfo | _Several:
        """The conversation, or those of which a person has to pick one.

        Raises:
            UsageError: there is none, or nobody can pick one.
        """
        target: Target = parse_target(text)
        match target:
            case Active():
                return self._active()
            case Previous():
                return self._previous()
            case Last():
                return self._last()
            case Picked(text=typed):
                return self._picked(text, typed)
            case Identified() | Labelled() | Titled():
                return self._named(text, target)
            case _:
                assert_never(target)

    def info(self, conversation_id: ConversationId) -> ConversationInfo:
        """What was found under an id, as it is now."""
        return self._workspace.get(conversation_id)

    def taken(self, picked: ConversationId, several: _Several) -> ConversationInfo | _Several:
        """What was picked; where somebody has deleted it meanwhile, what there is still to pick from.

        Raises:
            UsageError: nothing is.
        """
        from jp.cli.streams import write_stderr

        left = {candidate.id for candidate in self._listed()}
        if picked in left:
            return self.info(picked)
        write_stderr(f"note: conversation {str(picked)!r} was deleted meanwhile\n")
        rest = [candidate for candidate in several.candidates if candidate.id in left]
        if not rest:
            raise self._nothing()
        return _Several(rest, several.text)

    def offer(self, several: _Several) -> Offer:
        """A list for the picker."""
        from time import time

        from jp.cli.picker import Offer
        from jp.workspace.store import last_request

        active = self._session.active()
        return Offer(
            candidates=in_order(several.candidates, active),
            preview=lambda candidate: last_request(self._infos[candidate.id].directory),
            now=time(),
            active=active,
            text=several.text,
        )

    def can_pick(self) -> bool:
        """Whether there is somebody who can pick, and something to pick from."""
        return self._has_person() and bool(self._choices())

    def previous(self) -> ConversationId | None:
        """What was active before in this session, archived ones aside."""
        infos = self._listed()
        others = {candidate.id for candidate in infos if candidate.is_archived != self._archived}
        return self._session.previous(without=others)

    def _has_person(self) -> bool:
        from jp.cli.picker import can_pick

        return self._is_attended and can_pick()

    def _listed(self) -> list[Candidate]:
        """All conversations, oldest first."""
        self._infos = {info.id: info for info in self._workspace.conversations()}
        return [_candidate(info) for info in self._infos.values()]

    def _choices(self) -> list[Candidate]:
        """Those that a target may mean which does not name an id."""
        return [candidate for candidate in self._listed() if candidate.is_archived == self._archived]

    def _active(self) -> ConversationInfo:
        found = self._session.active()
        if found is None:
            raise UsageError("no conversation is active in this terminal", hint=_NAME_ONE)
        return self.info(found)

    def _previous(self) -> ConversationInfo:
        found = self.previous()
        if found is None:
            which = "archived" if self._archived else "other"
            raise UsageError(f"no {which} conversation was active in this terminal", hint=_NAME_ONE)
        return self.info(found)

    def _last(self) -> ConversationInfo:
        choices = [candidate for candidate in self._choices() if candidate.id != self._without]
        if not choices:
            raise self._nothing()
        newest = max(choices, key=lambda candidate: (candidate.last_activity, candidate.id.deciseconds))
        return self._infos[newest.id]

    def _picked(self, text: str, typed: str) -> _Several:
        if not self._has_person():
            raise _no_picker(text)
        choices = self._choices()
        if not choices:
            raise self._nothing()
        return _Several(choices, typed)

    def _named(self, text: str, target: Named) -> ConversationInfo | _Several:
        candidates = self._listed()
        found = matching(target, candidates, archived=self._archived)
        if len(found) == 1:
            return self._infos[found[0].id]
        if not found:
            raise self._unknown(text, target, candidates)
        if self._has_person():
            return _Several(found)
        raise _ambiguous(text, found)

    def _nothing(self) -> UsageError:
        if self._archived:
            return UsageError("no conversation is archived", hint=_LIST)
        return UsageError("there are no conversations here yet", hint='start one with `jp query --new "…"`')

    def _unknown(self, text: str, target: Named, candidates: Sequence[Candidate]) -> UsageError:
        with suppress(UsageError):  # what is there and cannot be used says why
            self._workspace.get(ConversationId.parse(text))
        message = f"no conversation matches {text!r}"
        others = matching(target, candidates, archived=not self._archived)
        if others:
            which = "that is not archived" if self._archived else "that is archived"
            names = _names(others)
            return UnknownTargetError(message, hint=f"one {which} does: {names}; name it by its id")
        wanted = target.label if isinstance(target, Labelled) else text
        if isinstance(target, Identified) or wanted.startswith(_PREFIX):
            return UnknownTargetError(message, hint=f"ids look like 'jp-c17800836875'; {_LIST}")
        choices = [candidate for candidate in candidates if candidate.is_archived == self._archived]
        alike = [] if isinstance(target, Labelled) else near(wanted, choices)
        meant = " or ".join(f"{candidate.title!r} ({candidate.id})" for candidate in alike)
        return UnknownTargetError(message, hint=f"did you mean {meant}?" if meant else _LIST)


def _candidate(info: ConversationInfo) -> Candidate:
    metadata = info.metadata
    return Candidate(
        id=info.id,
        title=title_of(info),
        labels=metadata.labels,
        last_activity=info.last_activity,
        pinned_at=metadata.pinned_at or "",
        is_archived=metadata.archived_at is not None,
    )


def _no_picker(text: str) -> UsageError:
    import os

    terminal = os.environ.get("TERM", "")
    if os.isatty(0) and os.isatty(2) and terminal in {"", "dumb"}:
        why, hint = f"TERM={terminal!r} says that this terminal cannot show one", "set TERM, as in TERM=xterm-256color"
    else:
        why, hint = "there is no terminal for it here", "stdin and stderr have to be the terminal"
    return UsageError(
        f"{text!r} picks a conversation from a list, and {why}", hint=f"{hint}; or name the conversation: {_LIST}"
    )


def _ambiguous(text: str, found: Sequence[Candidate]) -> UsageError:
    message = f"{len(found):,} conversations match {text!r}: {_names(found)}"
    return AmbiguousTargetError(message, hint="use one of these ids")


def _names(found: Sequence[Candidate]) -> str:
    """Those that were used last: id, title and age of each."""
    from time import time

    from jp.cli.values import ago

    now = time()
    newest = sorted(found, key=lambda candidate: (candidate.last_activity, candidate.id.deciseconds), reverse=True)
    names = [f"{item.id} ({item.title}, {ago(now - item.last_activity)})" for item in newest[:_LISTED]]
    more = [f"and {len(found) - _LISTED:,} more"] if len(found) > _LISTED else []
    return ", ".join([*names, *more])
