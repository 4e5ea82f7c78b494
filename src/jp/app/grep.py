"""Search in the conversations of a workspace, or of all of them: words by the index, or a regular expression.

The index of `search_history` is brought up to date first: only logs whose file has changed are read.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, get_args

import msgspec

from jp.app.options import Options, Tell, open_workspace
from jp.conversation.ids import ConversationId
from jp.errors import JpError, UsageError

if TYPE_CHECKING:
    from jp.context.search import IndexedPassage
    from jp.conversation.entries import AnyEntry
    from jp.workspace.layout import Storage
    from jp.workspace.listing import ConversationInfo
    from jp.workspace.search_index import Found, IndexedLog, SearchIndex
    from jp.workspace.store import Stream

Kind = Literal["user", "assistant", "tool", "attachment"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_OPERATORS = re.compile(r"[\\^$*+?\[\](){}|]")
_LINE_SECONDS = 2.0
"""Most seconds that an expression may take on the lines of one passage."""

_PROGRESS_STEP = 256
_MOST_AT_ONCE = 100
"""Conversations that are indexed while a person waits for the picker."""

_SHORTEST_SEARCH = 3


class GrepRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A search.

    Args:
        pattern: Words, all of which a passage has to have; or a regular expression, which a line has to match.
        syntax: `auto` takes a pattern with operators of an expression as one, where it is one.
        kinds: Search only these.
        labels: Only conversations with all of these labels, `K=V` or `K`.
        since: Only conversations used at or after this time, in seconds since the Unix epoch.
        context: Lines to show before and after each line that matches.
        everywhere: Search all workspaces that are known here.
        ignore_case: For an expression; words match in any case.
    """

    pattern: str
    syntax: Literal["auto", "words", "regex"] = "auto"
    kinds: frozenset[Kind] = frozenset(KINDS)
    labels: tuple[str, ...] = ()
    since: float | None = None
    context: int = 0
    everywhere: bool = False
    ignore_case: bool = False


class FoundLine(msgspec.Struct, frozen=True):
    """A line of a passage, without its secrets. `matches` is false for a line of the context."""

    text: str
    matches: bool


class GrepMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A passage with lines that match. `about` describes a tool call or an attachment, `path` is the directory."""

    id: str
    turn: int
    kind: Kind
    about: str
    title: str
    path: str
    lines: tuple[FoundLine, ...]

    @property
    def name(self) -> str:
        """Return `ID:TURN`, as `print`, `--attach` and `--fork` take it."""
        return f"{self.id}:{self.turn}"


class _Matcher(Protocol):
    expression: str | None

    def lines(self, passage: Found, kind: Kind) -> list[tuple[str, bool]]:
        """Return the lines of a passage, each with whether it matches; none where the passage does not."""
        ...


def grep(options: Options, request: GrepRequest) -> list[GrepMatch]:
    """Return the matches, those in the oldest conversation first.

    Raises:
        UsageError: the pattern has no word, or is no expression.
        JpError: a directory cannot be listed.
    """
    from jp.workspace.layout import search_index_path
    from jp.workspace.search_index import with_index

    matcher = _matcher(request)
    places = _places(options, everywhere=request.everywhere)

    def search(index: SearchIndex) -> list[tuple[Found, Kind, list[tuple[str, bool]]]]:
        _refresh(index, places, options, tell)
        found: list[tuple[Found, Kind, list[tuple[str, bool]]]] = []
        for count, passage in enumerate(index.find(matcher.expression), 1):
            if matcher.expression is None and count % _PROGRESS_STEP == 0:
                tell(f"searched {count:,} passages")
            kind = _kind(passage)
            if passage.place in places and kind in request.kinds and (lines := matcher.lines(passage, kind)):
                found.append((passage, kind, lines))
        return found

    with options.progress("searching") as tell:
        return _matches(with_index(search_index_path() if options.persist else None, search), places, request)


class ContentSearch:
    """Finds conversations of this workspace by their words, for the picker: at once, so it indexes only the newest."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._places: dict[str, _Place] | None = None

    def __call__(self, text: str) -> frozenset[ConversationId]:
        """Return the ids of the conversations with all of these words in one passage; the last may be a beginning."""
        from jp.context.search import words_of
        from jp.workspace.layout import conversation_id_of, search_index_path
        from jp.workspace.search_index import with_index

        wanted = words_of(text)
        if len(text.strip()) < _SHORTEST_SEARCH or not wanted:
            return frozenset()
        expression = " AND ".join([*(f'"{word}"' for word in wanted[:-1]), f'"{wanted[-1]}"*'])

        def search(index: SearchIndex) -> list[str]:
            if self._places is None:
                places = _places(self._options, everywhere=False)
                _refresh(index, places, self._options, lambda _: None, most=_MOST_AT_ONCE)
                self._places = places
            return index.places_with(expression)

        try:
            found = with_index(search_index_path() if self._options.persist else None, search)
        except JpError:
            return frozenset()
        names = [os.path.basename(place) for place in found if place in (self._places or ())]  # noqa: PTH119 - a text
        return frozenset(identity for name in names if (identity := conversation_id_of(name)) is not None)


class _Place(msgspec.Struct, frozen=True):
    storage: Storage
    local: bool


def _matcher(request: GrepRequest) -> _Matcher:
    is_expression = request.syntax == "regex"
    if request.syntax == "auto" and _OPERATORS.search(request.pattern):
        try:
            return _Expression(request)
        except UsageError:
            is_expression = False
    return _Expression(request) if is_expression else _Words(request.pattern)


class _Words:
    def __init__(self, pattern: str) -> None:
        from jp.context.search import match_expressions, words_of

        expressions = match_expressions(pattern)
        if not expressions:
            raise UsageError(
                f"{pattern!r} has no word to search for", hint="a regular expression finds other characters"
            )
        self.expression: str | None = expressions[0]
        self._words = [_folded(word) for word in words_of(pattern)]

    def lines(self, passage: Found, kind: Kind) -> list[tuple[str, bool]]:
        # Of a message, what describes it is only who wrote it.
        shown = passage.text.split("\n")
        shown = [passage.about, *shown] if kind in {"tool", "attachment"} else shown
        lines = [f" {_folded(line)} " for line in shown]
        whole = f" {_folded(' '.join(shown))} "
        if not all(f" {word} " in whole for word in self._words):
            return []
        found = [any(f" {word} " in line for word in self._words) for line in lines]
        # A phrase can span two lines: then the passage begins with its first line.
        return list(zip(shown, found if any(found) else [True, *found[1:]], strict=True))


class _Expression:
    expression: str | None = None

    def __init__(self, request: GrepRequest) -> None:
        from jp.tool.files.changes import LineMatcher

        try:
            self._lines = LineMatcher(f"(?i){request.pattern}" if request.ignore_case else request.pattern)
        except JpError as error:
            raise UsageError(
                f"{request.pattern!r} is no regular expression: {error.message}", hint="search for words instead"
            ) from None

    def lines(self, passage: Found, kind: Kind) -> list[tuple[str, bool]]:
        shown = passage.text.split("\n")
        shown = [passage.about, *shown] if kind in {"tool", "attachment"} else shown
        try:
            found = set(self._lines.lines(shown, seconds=_LINE_SECONDS))
        except JpError:
            return []
        return [(line, number in found) for number, line in enumerate(shown, 1)] if found else []


def _folded(text: str) -> str:
    """Return the words of a text as the index compares them: without case and accents, one space between them."""
    from jp.context.search import words_in

    plain = unicodedata.normalize("NFKD", " ".join(words_in(text)))
    return "".join(character for character in plain if not unicodedata.combining(character))


def _kind(passage: Found) -> Kind:
    if passage.tool:
        return "tool"
    return "user" if passage.about == "user" else "assistant" if passage.about == "assistant" else "attachment"


def _places(options: Options, *, everywhere: bool) -> dict[str, _Place]:
    """Return the conversations to search by their directories, as texts: building ten thousand paths is slow."""
    from jp.workspace.layout import ARCHIVE
    from jp.workspace.listing import directory_names

    found: dict[str, _Place] = {}
    for storage, local in _storages(options, everywhere=everywhere):
        place = _Place(storage, local)
        names = directory_names(storage.conversations)
        archived = directory_names(storage.archive) if ARCHIVE in names else []
        above, digits = f"{storage.conversations}/", set[str]()
        for name in names:
            if name[0].isdigit():
                digits.add(name.partition("-")[0])
                found.setdefault(above + name, place)
        for name in archived:
            if name[0].isdigit() and name.partition("-")[0] not in digits:
                found.setdefault(f"{storage.archive}/{name}", place)
    return found


def _storages(options: Options, *, everywhere: bool) -> list[tuple[Storage, bool]]:
    from jp.workspace.layout import Storage, search_index_path, storage_at, storage_directory, storages_of
    from jp.workspace.listing import directory_names
    from jp.workspace.search_index import with_index

    workspace = open_workspace(options)
    data = workspace.user_data
    found = {storage.directory: (storage, local) for storage, local in storages_of(workspace.root, data)}
    if everywhere:
        own = storage_at(None, data, local=False)
        found.setdefault(own.directory, (own, True))
        for name in sorted(directory_names(data / "workspaces")):
            found.setdefault(data / "workspaces" / name, (Storage(data / "workspaces" / name, private=True), True))
        for place in with_index(search_index_path(), lambda index: index.stamps()):
            directory = storage_directory(Path(place))
            found.setdefault(directory, (Storage(directory, private=False), False))
    return list(found.values())


def _refresh(
    index: SearchIndex, places: Mapping[str, _Place], options: Options, tell: Tell, *, most: int | None = None
) -> None:
    """Index what has changed since; of more than `most` conversations, only the newest."""
    known = index.stamps()
    now = {place: _stamp(place) for place in places}
    stale = [place for place, stamp in now.items() if stamp and known.get(place) != stamp]
    above = tuple({f"{one.storage.conversations}/" for one in places.values()})
    gone = [place for place in known if place not in now and place.startswith(above)]
    if most is not None:
        stale = sorted(stale, reverse=True)[:most]
    if stale or gone:
        logs = _changed_logs(stale, places, now, options, tell)
        index.update_all(logs, gone=gone)


def _stamp(place: str) -> str:
    """Return what changes with the log of a conversation; empty where there is none."""
    from jp.workspace.layout import EVENTS, ORIGINAL_EVENTS

    for name in (EVENTS, ORIGINAL_EVENTS):
        try:
            found = os.stat(f"{place}/{name}")  # noqa: PTH116 - ten thousand paths
        except OSError:
            continue
        return f"{name} {found.st_size} {found.st_mtime_ns}"
    return ""


def _changed_logs(
    stale: Sequence[str], places: Mapping[str, _Place], stamps: Mapping[str, str], options: Options, tell: Tell
) -> Iterator[IndexedLog]:
    from jp.workspace.blobs import DiskBlobs
    from jp.workspace.search_index import IndexedLog
    from jp.workspace.store import read_stream

    for count, place in enumerate(stale, 1):
        tell(f"indexed {count:,} of {len(stale):,} conversations")
        storage = places[place].storage
        try:
            stream = read_stream(Path(place), DiskBlobs(storage.blobs, private=storage.private))
        except JpError as error:
            options.log(f"{place!r} is not searched: {error.message}")
            continue
        yield IndexedLog(
            place=place, stamp=stamps[place], entries=stream.entries, passages=_passages_of(stream.entries, stream)
        )


def _passages_of(entries: Sequence[AnyEntry], stream: Stream) -> Callable[[int], Iterator[IndexedPassage]]:
    from jp.compaction.log_contents import searchable_passages
    from jp.tool.toolbox import HISTORY_TOOLS

    return lambda since: searchable_passages(entries, stream, without=HISTORY_TOOLS, since=since)


def _matches(
    found: Sequence[tuple[Found, Kind, list[tuple[str, bool]]]], places: Mapping[str, _Place], request: GrepRequest
) -> list[GrepMatch]:
    from jp.app.targets import has_labels, title_of
    from jp.workspace.layout import conversation_id_of
    from jp.workspace.listing import info_of

    infos: dict[str, ConversationInfo] = {}
    matches: list[GrepMatch] = []
    ids = {one.place: conversation_id_of(os.path.basename(one.place)) for one, _, _ in found}  # noqa: PTH119 - a text
    named = [(identity, one) for one in found if (identity := ids[one[0].place]) is not None]
    order = sorted(named, key=lambda one: (one[0].deciseconds, one[1][0].place, one[1][0].turn))
    for identity, (passage, kind, lines) in order:
        place = places[passage.place]
        info = infos.get(passage.place)
        if info is None:
            info = infos[passage.place] = info_of(identity, Path(passage.place), local=place.local)
        if not has_labels(info.metadata.labels, request.labels) or info.last_activity < (request.since or 0):
            continue
        matches.append(
            GrepMatch(
                id=str(info.id),
                turn=passage.turn,
                kind=kind,
                about=passage.about,
                title=title_of(info),
                path=passage.place,
                lines=_near(lines, request.context),
            )
        )
    return matches


def _near(lines: Sequence[tuple[str, bool]], context: int) -> tuple[FoundLine, ...]:
    """Return the lines that match, with so many before and after each."""
    shown = {
        number
        for position, (_, matches) in enumerate(lines)
        if matches
        for number in range(max(position - context, 0), min(position + context + 1, len(lines)))
    }
    return tuple(FoundLine(*lines[number]) for number in sorted(shown))
