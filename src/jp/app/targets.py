"""Targets: their grammar, and which of a workspace's conversations one matches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, assert_never

import msgspec

from jp.conversation.ids import ConversationId
from jp.errors import UsageError
from jp.remedies import Ask, ChangeConversation, Option, Show, UseOption, phrase
from jp.suggestions import MIN_SIMILARITY
from jp.workspace.listing import ConversationInfo
from jp.workspace.session import Session

if TYPE_CHECKING:
    from jp.workspace.retention import EphemeralWorkspace
    from jp.workspace.workspace import Workspace

_NAME = re.compile(r"[^\s=@,:]+")
_HINT = "write it as K=V, such as area=lexer, or just K"


def parse_labels(texts: Iterable[str], *, option: str | Option) -> dict[str, str]:
    """Return names and values; of a name that is given twice the last value.

    Raises:
        UsageError: one of them is none; it names `option`.
    """
    return dict(_parsed(text, option) for text in texts)


def check_name(text: str, *, option: str | Option) -> str:
    """Return `text`, which is the name of a label.

    Raises:
        UsageError: it cannot be; it names `option`.
    """
    if _NAME.fullmatch(text) is None or not text.isprintable():
        raise UsageError(
            phrase(option, f" cannot be {text!r}"), hint="a label's name has no spaces and none of = @ , :"
        )
    return text


def has_labels(labels: Mapping[str, str], wanted: Iterable[str]) -> bool:
    """Return whether all of `wanted` are there: `K=V` with this value, `K` with any."""
    for text in wanted:
        name, equals, value = text.partition("=")
        if name not in labels or (equals and labels[name] != value):
            return False
    return True


def label_text(name: str, value: str) -> str:
    """Return a label as it is written."""
    return f"{name}={value}" if value else name


def _parsed(text: str, option: str | Option) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not value.isprintable() and value:
        raise UsageError(phrase(option, f" cannot be {text!r}"), hint=_HINT)
    if _NAME.fullmatch(name) is None or not name.isprintable():
        raise UsageError(phrase(option, f" cannot be {text!r}"), hint=_HINT)
    return name, value


PICK = "?"
"""The target that opens the picker; what follows it is the first filter."""

_PREFIX = "jp-c"
_NEAR = 3
_COMPARED = 1000
_COMPARED_CHARS = 100


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as far as it has to be known to choose it. `title` is what a person calls it.

    `last_activity` is in seconds since the Unix epoch, `pinned_at` empty where it is not pinned.
    """

    id: ConversationId
    title: str
    labels: Mapping[str, str] = {}
    last_activity: float = 0.0
    pinned_at: str = ""
    is_archived: bool = False


class Active(msgspec.Struct, frozen=True):
    """The conversation that is active in this session."""


class Previous(msgspec.Struct, frozen=True):
    """The one that was active before."""


class Last(msgspec.Struct, frozen=True):
    """The one that was used last in the workspace."""


class Picked(msgspec.Struct, frozen=True):
    """The one that is picked from a list, which begins with those that match `text`."""

    text: str


class Identified(msgspec.Struct, frozen=True):
    """The one whose id begins with `digits`."""

    digits: str
    text: str


class Labeled(msgspec.Struct, frozen=True):
    """The one with a label: `K=V`, or `K` with any value."""

    label: str


class Titled(msgspec.Struct, frozen=True):
    """The one whose title is `text`, or has it in it."""

    text: str


Named = Identified | Labeled | Titled
"""The name that is looked for among the conversations of a workspace."""

Target = Active | Previous | Last | Picked | Named

_WORDS: dict[str, Target] = {".": Active(), "prev": Previous(), "last": Last()}


def parse_target(text: str) -> Target:
    """Read a target.

    Raises:
        UsageError: it is empty, or names a label that there cannot be.
    """
    written = text.strip()
    if not written:
        raise UsageError(
            "an empty text names no conversation",
            hint=phrase(
                "name an id, a title, '.', 'prev', 'last' or '@LABEL'; `", Show("conversations"), "` lists them"
            ),
        )
    if written in _WORDS:
        return _WORDS[written]
    if written.startswith(PICK):
        return Picked(written.removeprefix(PICK).strip())
    if written.startswith("@"):
        label = written.removeprefix("@")
        check_name(label.partition("=")[0], option="the label of a target")
        return Labeled(label)
    digits = written.lower().removeprefix(_PREFIX)
    is_id = digits.isascii() and digits.isdecimal()
    return Identified(digits, written) if is_id else Titled(written)


def is_titled(text: str) -> bool:
    """Return whether a word is a target only as a part of a title: no option, id, label or word such as `prev`."""
    try:
        return not text.startswith("-") and isinstance(parse_target(text), Titled)
    except UsageError:
        return False


def matching(target: Named, candidates: Sequence[Candidate], *, archived: bool) -> list[Candidate]:
    """Return the conversations that `target` means, in no order; one where something is named exactly.

    Any conversation is found by its id; otherwise archived ones only with `archived`, and then no others.
    """
    wanted = [candidate for candidate in candidates if candidate.is_archived == archived]
    match target:
        case Identified(digits=digits, text=text):
            found = [candidate for candidate in candidates if candidate.id.digits.startswith(digits)]
            exact = [candidate for candidate in found if candidate.id.digits == digits]
            return exact or found or _titled(text, wanted)
        case Labeled(label=label):
            return [candidate for candidate in wanted if has_labels(candidate.labels, (label,))]
        case Titled(text=text):
            return _titled(text, wanted)
        case _:
            assert_never(target)


def _titled(text: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    wanted = text.casefold()
    found = [candidate for candidate in candidates if wanted in candidate.title.casefold()]
    return [candidate for candidate in found if candidate.title.casefold() == wanted] or found


def in_order(candidates: Iterable[Candidate], active: ConversationId | None = None) -> list[Candidate]:
    """Return the active one, the pinned ones (pinned last first), and the rest (used last first)."""

    def place(candidate: Candidate) -> tuple[bool, str, float, int]:
        return candidate.id == active, candidate.pinned_at, candidate.last_activity, candidate.id.deciseconds

    return sorted(candidates, key=place, reverse=True)


def near(text: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Up to three of those that were used last whose titles, or words in these, are spelled much like `text`."""
    from difflib import SequenceMatcher

    wanted = text[:_COMPARED_CHARS].casefold()
    matcher = SequenceMatcher(b=wanted, autojunk=False)

    def likeness(candidate: Candidate) -> float:
        best = 0.0
        for words in _phrases(candidate.title[:_COMPARED_CHARS].casefold(), len(wanted.split())):
            matcher.set_seq1(words)
            if matcher.real_quick_ratio() >= MIN_SIMILARITY and matcher.quick_ratio() >= MIN_SIMILARITY:
                best = max(best, matcher.ratio())
        return best

    newest = sorted(candidates, key=lambda candidate: candidate.last_activity, reverse=True)[:_COMPARED]
    alike = [(likeness(candidate), candidate) for candidate in newest]
    alike = [item for item in alike if item[0] >= MIN_SIMILARITY]
    return [candidate for _, candidate in sorted(alike, key=lambda item: item[0], reverse=True)[:_NEAR]]


def _phrases(title: str, count: int) -> set[str]:
    """Return a title, and every run of `count` words in it."""
    words = title.split()
    runs = {" ".join(words[start : start + count]) for start in range(len(words) - count + 1)}
    return {title, *runs}


_LISTED = 10
_LIST = phrase("list them with `", Show("conversations"), "`")
_NAME_ONE = phrase(
    *("name one: `", Show("conversations"), "` lists them, `"),
    *(ChangeConversation("activate", "ID"), "` activates one"),
)
_START = phrase("start one with `", Ask((UseOption(Option.NEW),), words="…"), "`")
TARGET_HELP = (
    "An id or the start of one, '.' (active here), 'prev', 'last' (used last), '@LABEL' or '@LABEL=VALUE', words of a "
    "title, or '?' to pick one"
)


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """The choices, in their order. `text` is typed already; `preview` gives the last request of one."""

    candidates: Sequence[Candidate]
    preview: Callable[[Candidate], str]
    now: float
    active: ConversationId | None = None
    text: str = ""


class Picker(Protocol):
    """Lets a person choose a conversation."""

    def pick(self, offer: Offer) -> ConversationId:
        """Return the one that was chosen.

        Raises:
            KeyboardInterrupt: they left without a choice.
        """
        ...

    async def pick_async(self, offer: Offer) -> ConversationId:
        """See `pick`: for who has an event loop already. It may be cancelled."""
        ...


class Asker(Protocol):
    """A party that wants to know which conversation is meant."""

    def notice(self, text: str) -> None:
        """Hear what the user may want to know."""
        ...

    def picker(self) -> Picker | None:
        """Return what lets a person choose; None where nobody can."""
        ...


class AmbiguousTargetError(UsageError):
    """A target means several conversations."""

    kind = "ambiguous_target"


class UnknownTargetError(UsageError):
    """A target means no conversation."""

    kind = "unknown_target"


def choose(
    asker: Asker, target: str, workspace: Workspace | EphemeralWorkspace, session: Session, *, archived: bool = False
) -> ConversationInfo:
    """Return the one conversation that `target` means; `archived`: among those, where it is not named by its id.

    Raises:
        UsageError: it means none, or several where nobody can pick one.
        KeyboardInterrupt: a person left the picker.
    """
    picker = asker.picker()
    chooser = _Chooser(asker, workspace, session, archived=archived, has_picker=picker is not None)
    found = chooser.found(target)
    while picker is not None and not isinstance(found, ConversationInfo):
        found = chooser.taken(picker.pick(chooser.offer(found)), found)
    return _chosen(found)


async def choose_async(
    asker: Asker, target: str, workspace: Workspace | EphemeralWorkspace, session: Session, *, is_attended: bool = True
) -> ConversationInfo:
    """See `choose`: for who has an event loop. Where it is not attended, nobody picks one."""
    picker = asker.picker() if is_attended else None
    chooser = _Chooser(asker, workspace, session, has_picker=picker is not None)
    found = chooser.found(target)
    while picker is not None and not isinstance(found, ConversationInfo):
        found = chooser.taken(await picker.pick_async(chooser.offer(found)), found)
    return _chosen(found)


def _chosen(found: ConversationInfo | _Several) -> ConversationInfo:
    """Return the one that was found: without a picker, what means several is an error before."""
    if isinstance(found, ConversationInfo):
        return found
    msg = "several conversations and nobody to pick one"
    raise RuntimeError(msg)


def choose_all(
    asker: Asker,
    targets: Iterable[str],
    workspace: Workspace | EphemeralWorkspace,
    session: Session,
    *,
    archived: bool = False,
) -> list[ConversationInfo]:
    """Return the conversations that `targets` mean, each once, in their order. See `choose`."""
    chosen = [choose(asker, target, workspace, session, archived=archived) for target in targets]
    return list({info.id: info for info in chosen}.values())


def identify(
    target: str, workspace: Workspace | EphemeralWorkspace, session: Session, *, without: ConversationId | None = None
) -> ConversationId:
    """Return the id of the conversation that `target` means, where nobody is asked. `without` is not the one used last.

    Raises:
        UsageError: it means none, or several.
    """
    found = _Chooser(None, workspace, session, without=without).found(target)
    if isinstance(found, ConversationInfo):
        return found.id
    raise _ambiguous(target, found.candidates)


def choose_other(asker: Asker, workspace: Workspace | EphemeralWorkspace, session: Session) -> ConversationInfo:
    """Return the conversation that was active before in this session; a person picks one where there is none.

    Raises:
        UsageError: there is none, and nobody can pick one.
        KeyboardInterrupt: a person left the picker.
    """
    chooser = _Chooser(asker, workspace, session, has_picker=asker.picker() is not None)
    if chooser.previous() is None and chooser.can_pick():
        return choose(asker, "?", workspace, session)
    return choose(asker, "prev", workspace, session)


def title_of(info: ConversationInfo) -> str:
    """Return a person's name for a conversation: its title, its first words, or those of its directory's name.

    Fit to be shown.
    """
    return display_name(info.metadata.title, info.metadata.first_words, info.directory.name)


def display_name(title: str | None, first_words: str | None, directory: str) -> str:
    """Return the same of a conversation in `directory`."""
    from jp.render.sanitize import one_line

    words = directory.rpartition("/")[2].partition("-")[2].replace("-", " ")
    return one_line(title or first_words or words or "untitled")


class _Several:
    """The conversations to pick from, and the text that is typed already."""

    def __init__(self, candidates: Sequence[Candidate], text: str = "") -> None:
        self.candidates = candidates
        self.text = text


class _Chooser:
    """One choice. The workspace is listed at most once for it."""

    def __init__(
        self,
        asker: Asker | None,
        workspace: Workspace | EphemeralWorkspace,
        session: Session,
        *,
        archived: bool = False,
        has_picker: bool = False,
        without: ConversationId | None = None,
    ) -> None:
        self._asker = asker
        self._workspace = workspace
        self._session = session
        self._archived = archived
        self._has_picker = has_picker
        self._without = without
        self._infos: dict[ConversationId, ConversationInfo] = {}

    def found(self, text: str) -> ConversationInfo | _Several:
        """Return the conversation, or those of which a person has to pick one.

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
            case Identified() | Labeled() | Titled():
                return self._named(text, target)
            case _:
                assert_never(target)

    def info(self, conversation_id: ConversationId) -> ConversationInfo:
        """Return the conversation that was found under an id, as it is now."""
        return self._workspace.get(conversation_id)

    def taken(self, picked: ConversationId, several: _Several) -> ConversationInfo | _Several:
        """Return the one that was picked; if it was deleted meanwhile, those that are still there to pick from.

        Raises:
            UsageError: nothing is.
        """
        left = {candidate.id for candidate in self._listed()}
        if picked in left:
            return self.info(picked)
        if self._asker is not None:
            self._asker.notice(f"conversation {str(picked)!r} was deleted meanwhile")
        rest = [candidate for candidate in several.candidates if candidate.id in left]
        if not rest:
            raise self._nothing()
        return _Several(rest, several.text)

    def offer(self, several: _Several) -> Offer:
        """Return a list for the picker."""
        from time import time

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
        """Return whether there is somebody who can pick, and something to pick from."""
        return self._has_picker and bool(self._choices())

    def previous(self) -> ConversationId | None:
        """Return the conversation that was active before in this session, archived ones aside."""
        infos = self._listed()
        others = {candidate.id for candidate in infos if candidate.is_archived != self._archived}
        return self._session.previous(without=others)

    def _listed(self) -> list[Candidate]:
        """Return all conversations, oldest first."""
        self._infos = {info.id: info for info in self._workspace.conversations()}
        return [_candidate(info) for info in self._infos.values()]

    def _choices(self) -> list[Candidate]:
        """Return those that a target may mean which does not name an id."""
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
        if not self._has_picker:
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
        if self._has_picker:
            return _Several(found)
        raise _ambiguous(text, found)

    def _nothing(self) -> UsageError:
        if self._archived:
            return UsageError("no conversation is archived", hint=_LIST)
        return UsageError("there are no conversations here yet", hint=_START)

    def _unknown(self, text: str, target: Named, candidates: Sequence[Candidate]) -> UsageError:
        with suppress(UsageError):  # what is there and cannot be used says why
            self._workspace.get(ConversationId.parse(text))
        message = f"no conversation matches {text!r}"
        others = matching(target, candidates, archived=not self._archived)
        if others:
            which = "that is not archived" if self._archived else "that is archived"
            names = _names(others)
            return UnknownTargetError(message, hint=f"one {which} does: {names}; name it by its id")
        wanted = target.label if isinstance(target, Labeled) else text
        if isinstance(target, Identified) or wanted.startswith(_PREFIX):
            return UnknownTargetError(message, hint=phrase("ids look like 'jp-c17800836875'; ", _LIST))
        choices = [candidate for candidate in candidates if candidate.is_archived == self._archived]
        alike = [] if isinstance(target, Labeled) else near(wanted, choices)
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
        f"{text!r} picks a conversation from a list, and {why}",
        hint=phrase(hint, "; or name the conversation: ", _LIST),
    )


def _ambiguous(text: str, found: Sequence[Candidate]) -> UsageError:
    message = f"{len(found):,} conversations match {text!r}: {_names(found)}"
    return AmbiguousTargetError(message, hint="use one of these ids")


def _names(found: Sequence[Candidate]) -> str:
    """Return those that were used last: id, title and age of each."""
    from time import time

    from jp.app.values import ago

    now = time()
    newest = sorted(found, key=lambda candidate: (candidate.last_activity, candidate.id.deciseconds), reverse=True)
    names = [f"{item.id} ({item.title}, {ago(now - item.last_activity)})" for item in newest[:_LISTED]]
    more = [f"and {len(found) - _LISTED:,} more"] if len(found) > _LISTED else []
    return ", ".join([*names, *more])
