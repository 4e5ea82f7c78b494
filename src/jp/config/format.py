"""`jp config fmt`: one layout for configuration files, with every comment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import assert_never

import msgspec

from jp.config.assignment import node_at
from jp.config.edit import exclusive, replace_file, toml_key
from jp.config.files import InvalidFileError, Places, candidates, checked, is_file, is_inside, load_group, read_text
from jp.config.keys import KeyPath
from jp.config.scan import Array, Atom, Element, Header, Inline, Pair, Part, Remark, Value, element_path, scan
from jp.config.schema import FILE, Free, InvalidValueError, Names, Node, Table
from jp.errors import ConfigurationError

_WIDTH = 100
_INDENT = "  "


class UnformattableError(ConfigurationError):
    """The file is written in a way that the layout cannot keep."""


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """A key with its value and what is said about it: comments above it, behind it and after it."""

    names: KeyPath
    value: Value
    above: tuple[str, ...] = ()
    behind: str = ""
    after: tuple[str, ...] = ()


class _Section(msgspec.Struct, kw_only=True):
    """A table. `path` has indexes of elements where it stands in a list of tables, `names` has none."""

    path: KeyPath
    names: KeyPath
    repeated: bool = False
    above: tuple[str, ...] = ()
    behind: str = ""
    after: tuple[str, ...] = ()
    lines: list[_Line] = []


class _Commented(msgspec.Struct, frozen=True, kw_only=True):
    part: Pair | Header
    above: tuple[str, ...]
    after: tuple[str, ...]


class _Outline(msgspec.Struct, frozen=True, kw_only=True):
    """A text's parts with the comments that belong to them, and those that stand at its beginning and its end."""

    head: tuple[str, ...]
    parts: tuple[_Commented, ...]
    foot: tuple[str, ...]


def formatted(text: str) -> str:
    """The text in the one layout. It is a valid file, and so is what comes of it, with the same data.

    Raises:
        UnformattableError: that cannot be done without losing a value or a comment.
    """
    lines = text.replace("\r\n", "\n")
    outline = _outline(scan(lines))
    sections = _sections(outline)
    new = _text(outline, _ordered(sections))
    if not _says_the_same(lines, new):
        raise UnformattableError("it is written in a way that cannot be formatted", hint="Leave it as it is.")
    return new.replace("\n", "\r\n") if "\r\n" in text else new


def _says_the_same(old: str, new: str) -> bool:
    import tomllib

    try:
        said = [msgspec.json.encode(tomllib.loads(text), order="sorted") for text in (old, new)]
    except tomllib.TOMLDecodeError:
        return False
    comments = [sorted(_comments(scan(text))) for text in (old, new)]
    return said[0] == said[1] and comments[0] == comments[1]


def _comments(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Remark(text=text):
                yield from [text] if text else []
            case Header(behind=behind):
                yield from [behind] if behind else []
            case Pair(behind=behind, value=value):
                yield from [behind] if behind else []
                yield from _comments_in(value)
            case _:
                assert_never(part)


def _comments_in(value: Value) -> Iterator[str]:
    match value:
        case Array(elements=elements, below=below):
            for element in elements:
                yield from element.above
                yield from [element.behind] if element.behind else []
                yield from _comments_in(element.value)
            yield from below
        case Inline(pairs=pairs):
            for pair in pairs:
                yield from _comments_in(pair.value)
        case Atom():
            pass
        case _:
            assert_never(value)


def _outline(parts: Sequence[Part]) -> _Outline:
    """Who each comment belongs to: the part below it, or above it where an empty line follows and none came before."""
    head: tuple[str, ...] = ()
    found: list[_Commented] = []
    paragraphs: list[tuple[str, ...]] = []
    touches = False
    for part, block in _blocks(parts):
        paragraph, is_attached = block
        if paragraph and touches and not is_attached:
            found[-1] = msgspec.structs.replace(found[-1], after=paragraph)
        elif paragraph and not (head or found or paragraphs or is_attached):
            head = paragraph
        elif paragraph:
            paragraphs.append(paragraph)
        touches = False
        if part is not None:
            found.append(_Commented(part=part, above=_joined(paragraphs), after=()))
            paragraphs = []
            touches = True
    return _Outline(head=head, parts=tuple(found), foot=_joined(paragraphs))


def _blocks(parts: Sequence[Part]) -> Iterator[tuple[Pair | Header | None, tuple[tuple[str, ...], bool]]]:
    """The comments between empty lines, each with the part that follows directly and whether one does."""
    block: list[str] = []
    for part in parts:
        match part:
            case Remark(text=text) if text:
                block.append(text)
            case Remark():
                yield None, (tuple(block), False)
                block = []
            case _:
                yield part, (tuple(block), True)
                block = []
    yield None, (tuple(block), False)


def _joined(paragraphs: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The lines of paragraphs, with an empty one between each two."""
    lines: tuple[str, ...] = ()
    for paragraph in paragraphs:
        lines = (*lines, "", *paragraph) if lines else paragraph
    return lines


class _Sections:
    """The tables of a file, by path."""

    def __init__(self) -> None:
        self.found: dict[KeyPath, _Section] = {(): _Section(path=(), names=(), lines=[])}

    def at(self, path: KeyPath, names: KeyPath) -> _Section:
        """The table at `path`."""
        return self.found.setdefault(path, _Section(path=path, names=names, lines=[]))


def _sections(outline: _Outline) -> list[_Section]:
    sections = _Sections()
    counts: dict[KeyPath, int] = {}
    here = sections.found[()]
    for one in outline.parts:
        match one.part:
            case Header(names=names, repeated=repeated, behind=behind):
                here = sections.at(element_path(names, counts, repeated=repeated), names)
                here.repeated, here.behind = repeated, behind
                here.above, here.after = one.above, one.after
            case Pair(names=names, value=value, behind=behind):
                line = _Line(names=names, value=value, above=one.above, behind=behind, after=one.after)
                for path, each in _expanded(line, here.path):
                    section = here if path == here.path else sections.at(path, path)
                    section.lines.append(each)
            case _:
                assert_never(one.part)
    return list(sections.found.values())


def _expanded(line: _Line, above: KeyPath) -> Iterator[tuple[KeyPath, _Line]]:
    """The lines that a line comes to, each with the table it belongs into."""
    path = (*above, *line.names)
    if _is_in_list(above):
        yield above, line
        return
    if isinstance(line.value, Inline) and line.value.pairs and _has_header(path, line.value):
        *before, last = line.value.pairs
        for index, pair in enumerate((*before, last)):
            rest = _Line(names=pair.names, value=pair.value)
            if index == 0:
                rest = msgspec.structs.replace(rest, above=line.above, behind=line.behind)
            if pair is last:
                rest = msgspec.structs.replace(rest, after=line.after)
            yield from _expanded(rest, path)
        return
    table = max((path[:count] for count in range(len(path)) if _is_table(path[:count])), key=len)
    table = max(table, above, key=len)
    yield table, msgspec.structs.replace(line, names=path[len(table) :])


def _is_in_list(path: KeyPath) -> bool:
    return any(not _is_table(path[:count]) for count in range(1, len(path) + 1))


def _is_table(path: KeyPath) -> bool:
    return isinstance(_node(path), Table | Names | Free)


def _has_header(path: KeyPath, value: Inline) -> bool:
    """Whether a table in braces becomes one with a header: one that the model knows, not a long form."""
    is_long = {pair.names for pair in value.pairs} == {("value",), ("strategy",)}
    return isinstance(_node(path), Table | Names) and not is_long


def _node(path: KeyPath) -> Node | None:
    try:
        return node_at(path, FILE)
    except InvalidValueError:
        return None


def _ordered(sections: Sequence[_Section]) -> list[_Section]:
    """The tables in the order of the model, and the keys in each; names that it does not know as they came."""
    ranks = _Ranks()
    for section in sections:
        ranks.see(section.path)
        for line in section.lines:
            ranks.see((*section.path, *line.names))
    for section in sections:
        section.lines.sort(key=lambda line: ranks.key((*section.path, *line.names)))
    shown = [section for section in sections if _is_needed(section, sections)]
    return sorted(shown, key=lambda section: ranks.key(section.path))


def _is_needed(section: _Section, sections: Sequence[_Section]) -> bool:
    """Whether a table has to be there: not where it only opens others."""
    if section.lines or section.repeated or section.above or section.behind or section.after or not section.path:
        return True
    length = len(section.path)
    return not any(other.path[:length] == section.path for other in sections if other is not section)


class _Ranks:
    """Where keys stand in the model, and where those with names of their own were first seen."""

    def __init__(self) -> None:
        self._seen: dict[KeyPath, int] = {}

    def see(self, path: KeyPath) -> None:
        """Remember a key and those above it."""
        for count in range(1, len(path) + 1):
            self._seen.setdefault(path[:count], len(self._seen))

    def key(self, path: KeyPath) -> tuple[int, ...]:
        """By what a key is sorted."""
        return tuple(self._rank(path[:count]) for count in range(1, len(path) + 1))

    def _rank(self, path: KeyPath) -> int:
        above = _node(path[:-1])
        known = list(above.fields) if isinstance(above, Table) else []
        return known.index(path[-1]) if path[-1] in known else len(known) + self._seen.get(path, 0)


def _text(outline: _Outline, sections: Sequence[_Section]) -> str:
    blocks = ["\n".join(outline.head)]
    blocks += ["\n".join(_section_lines(section)) for section in sections]
    blocks.append("\n".join(outline.foot))
    text = "\n\n".join(block for block in blocks if block)
    return f"{text}\n" if text else ""


def _section_lines(section: _Section) -> Iterator[str]:
    is_first = True
    needs_gap = False
    if section.path:
        yield from section.above
        header = toml_key(section.names)
        yield _with_comment(f"[[{header}]]" if section.repeated else f"[{header}]", section.behind)
        yield from section.after
        needs_gap = bool(section.after)
    for line in section.lines:
        if needs_gap or (line.above and not is_first):
            yield ""
        yield from line.above
        key = toml_key(line.names)
        yield _with_comment(f"{key} = {_value(line.value, len(key) + 3, (*section.path, *line.names))}", line.behind)
        yield from line.after
        needs_gap = bool(line.after)
        is_first = False


def _with_comment(text: str, comment: str) -> str:
    return f"{text}  {comment}" if comment else text


def _value(value: Value, column: int, path: KeyPath, indent: str = "") -> str:
    match value:
        case Atom(text=text):
            return text
        case Inline(pairs=pairs):
            return _braces(pairs, path)
        case Array():
            flat = _brackets(value, path)
            if flat is not None and column + len(flat) <= _WIDTH:
                return flat
            return "\n".join(["[", *_rows(value, path, indent + _INDENT), f"{indent}]"])
        case _:
            assert_never(value)


def _braces(pairs: Sequence[Pair], path: KeyPath) -> str:
    entries = [f"{toml_key(pair.names)} = {_value(pair.value, -_WIDTH, (*path, *pair.names))}" for pair in pairs]
    return f"{{ {', '.join(entries)} }}" if entries else "{}"


def _brackets(array: Array, path: KeyPath) -> str | None:
    """A list on one line; None where it holds comments or texts of several lines."""
    if any(_comments_in(array)):
        return None
    texts = [_value(element.value, -_WIDTH, (*path, "0")) for element in array.elements]
    return None if any("\n" in text for text in texts) else f"[{', '.join(texts)}]"


def _rows(array: Array, path: KeyPath, indent: str) -> Iterator[str]:
    for element in array.elements:
        yield from (f"{indent}{comment}" for comment in element.above)
        yield _with_comment(f"{indent}{_element(element, path, indent)},", element.behind)
    yield from (f"{indent}{comment}" for comment in array.below)


def _element(element: Element, path: KeyPath, indent: str) -> str:
    return _value(element.value, len(indent) + 1, (*path, "0"), indent)


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """A file, and whether it has the one layout."""

    path: Path
    is_formatted: bool


def files_read(places: Places) -> tuple[list[Path], list[Path]]:
    """The files that are read, those that they extend included, and of these the ones that lie elsewhere.

    Elsewhere is outside the workspace and the user's own directories.

    Raises:
        ConfigurationError: a file cannot be read or is invalid.
    """
    found: dict[str, Path] = {}
    for candidate in candidates(places):
        group = load_group(candidate.path, kind=candidate.kind, root=places.root, foreign=candidate.foreign)
        for layer in () if group is None else group.layers:
            found.setdefault(os.path.realpath(layer.origin.where), Path(layer.origin.where))
    homes = [home for home in (places.root, places.user, places.user_workspace) if home is not None]
    inside = [path for path in found.values() if any(is_inside(path, home) for home in homes)]
    return inside, [path for path in found.values() if path not in inside]


def format_files(paths: Sequence[Path], *, write: bool, report: Callable[[Layout], None]) -> None:
    """Format files; without `write` only look. Nothing is written where one of them is invalid.

    `report` hears of each file, as soon as it has the layout.

    Raises:
        ConfigurationError: a file is missing, invalid, or written in a way that cannot be formatted.
        StorageError: one could not be written.
    """
    layouts = [Layout(path=path, is_formatted=_formatted(path)[0]) for path in paths]
    for layout in layouts:
        if write and not layout.is_formatted:
            _write(layout.path)
        report(layout)


def _write(path: Path) -> None:
    with exclusive(path.parent):
        is_formatted, text = _formatted(path)
        if not is_formatted:
            replace_file(path, text)


def _formatted(path: Path) -> tuple[bool, str]:
    """Whether a file has the layout, and its text in it."""
    text = read_text(path) if is_file(path) or not path.exists() else None
    if text is None:
        message = f"{str(path)!r} is no file" if path.exists() else f"there is no file {str(path)!r}"
        raise InvalidFileError(message, hint="`jp config path` prints which files are read.")
    checked(text, path)
    try:
        new = formatted(text)
    except UnformattableError as error:
        raise UnformattableError(f"{str(path)!r}: {error.message}", hint=error.hint) from None
    return new == text, new
