"""Edit, format and rewrite configuration files: `jp config set`, `fmt` and `import`. Files are replaced in one step."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, cast

import msgspec

from jp.config.assignment import Assignment, FragmentName, JsonPatch, is_long_map, node_at, parse_cfg
from jp.config.files import (
    SUFFIXES,
    TOML,
    InvalidFileError,
    Places,
    candidates,
    checked,
    is_file,
    is_inside,
    load_group,
    parse,
    read_text,
    require_one_format,
)
from jp.config.layers import SEPARATORS, UnsupportedSetting
from jp.config.schema import FILE, Free, InvalidValueError, Items, KeyPath, MergedText, Names, Node, Table, key_text
from jp.config.toml import Data, UnwritableError, formatted, rewritten
from jp.errors import ConfigurationError, StorageError
from jp.remedies import ImportSettings, Show, phrase

_HINT = "check who may write there, and that the disk has room; the file is as it was"


@contextmanager
def exclusive(directory: Path) -> Generator[None]:
    """Hold a lock on a directory, so that two commands do not undo each other's edit; make it where it is missing.

    Raises:
        StorageError: it cannot be used.
    """
    import fcntl

    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(directory, os.O_RDONLY)
    except OSError as error:
        msg = f"{str(directory)!r} cannot be used: {error.strerror}"
        raise StorageError(msg, hint=_HINT) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _check_extensions(written: Path, target: Path, before: Path) -> None:
    """Refuse a file whose `extends` leads to what is not there, before it takes the place of one that could be read.

    Where `before`, the file as it was, already does that, its workspace goes on without it.
    """
    try:
        load_group(before, kind="user", root=None, foreign=False)
    except ConfigurationError:
        return
    try:
        load_group(written, kind="user", root=None, foreign=False)
    except ConfigurationError as error:
        raise ConfigurationError(error.message.replace(str(written), str(target)), hint=error.hint) from None


def replace_file(path: Path, text: str, *, before: Path | None = None) -> None:
    """Write a file beside `path` (where a link leads) and put it in its place, with its permissions.

    `before` is the file as it was, if that has another name.

    Raises:
        ConfigurationError: it extends what is not there; the file is as it was.
        StorageError: it could not be written; the file is as it was.
    """
    target = Path(os.path.realpath(path))
    written = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        written.unlink(missing_ok=True)
        handle = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(handle, "wb") as file:
            if target.exists():
                os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        if not path.is_symlink():  # what it extends is relative to the link
            _check_extensions(written, target, before or target)
        written.replace(target)
    except ConfigurationError:
        written.unlink(missing_ok=True)
        raise
    except OSError as error:
        written.unlink(missing_ok=True)
        msg = f"{str(path)!r} could not be written: {error.strerror}"
        raise StorageError(msg, hint=_HINT) from None


def set_in_file(path: Path, values: Sequence[str]) -> None:
    """Carry out assignments, as `--cfg` takes them, in a file, which is created where it is missing.

    `=` sets what the file says (a list adds to the layers below, as ever), `+=` adds to it, `key:=null` takes it out.
    The file is replaced in one step, and only by one that is valid.

    Raises:
        ConfigurationError: a value is no assignment or not accepted, or the file is invalid.
        StorageError: the file could not be written.
    """
    edits = [_edit(text) for text in values]
    _refuse_other_format(path)
    with exclusive(path.parent):
        text = read_text(path) or ""
        checked(text, path)
        data = parse(text, path)
        for edit in edits:
            data = edited(data, edit)
        new = rewritten(text, data)
        checked(new, path)
        if new != text:
            replace_file(path, new)


def _refuse_other_format(path: Path) -> None:
    """Refuse to write a TOML file beside one in another format, of which then only one could count."""
    other = next((other for other in map(path.with_suffix, SUFFIXES[1:]) if other.exists()), None)
    if other is not None:
        hint = phrase("rewrite it as TOML first: `", ImportSettings(str(other)), "`")
        raise ConfigurationError(f"the settings are in {str(other)!r}, and jp writes only TOML", hint=hint)


def _edit(text: str) -> JsonPatch | Assignment:
    value = parse_cfg(text, FILE)
    if isinstance(value, FragmentName):
        msg = f"{text!r} sets nothing"
        raise ConfigurationError(msg, hint="write `KEY=VALUE`, or `KEY:=JSON`")
    return value


def edited(data: Data, edit: JsonPatch | Assignment) -> Data:
    """Return a file's data after an edit.

    Raises:
        InvalidValueError: an element that the edit names is not in the file, or TOML cannot hold the value.
    """
    if isinstance(edit, JsonPatch):
        edit = Assignment(path=(), operator="+=", value=edit.value)
    new = _edited(data, edit, 0)
    return {} if new is msgspec.UNSET else new


def _edited(current: Any, edit: Assignment, depth: int) -> Any:
    """Return the new value at the first `depth` names of the edit's key; UNSET for none."""
    path = edit.path
    node = node_at(path[:depth], FILE)
    if depth == len(path):
        return _set(edit.value, path) if edit.operator == "=" else _added(current, edit.value, node, path)
    if isinstance(node, Items):
        return _inside(node, current, lambda items: _edited_item(items, edit, depth), path[:depth])
    return _inside(node, current, lambda entries: _edited_entry(entries, edit, depth), path[:depth])


def _edited_entry(current: Any, edit: Assignment, depth: int) -> Any:
    name = edit.path[depth]
    entries: Data = {} if current is msgspec.UNSET else current
    return _with(entries, name, _edited(entries.get(name, msgspec.UNSET), edit, depth + 1))


def _edited_item(current: Any, edit: Assignment, depth: int) -> Any:
    items: list[Any] = [] if current is msgspec.UNSET else current
    index = int(edit.path[depth])
    if index >= len(items):
        message = f"{key_text(edit.path[: depth + 1])} is not in the file, whose list has {len(items)} elements"
        raise InvalidValueError(message, edit.path, hint="elements are counted from 0; `+=` adds one")
    new = _edited(items[index], edit, depth + 1)
    return [*items[:index], *([] if new is msgspec.UNSET else [new]), *items[index + 1 :]]


def _with(entries: Data, name: str, value: Any) -> Any:
    rest = {other: below for other, below in entries.items() if other != name}
    if value is msgspec.UNSET:
        return rest or msgspec.UNSET
    return entries | {name: value}


def _inside(node: Node, current: Any, change: Callable[[Any], Any], path: KeyPath) -> Any:
    """Change a value: `current` itself, or the `value` of its long form."""
    if not isinstance(current, dict) or isinstance(node, Table):
        return change(current)
    form = cast("Data", current)
    if is_long_map(form) or (isinstance(node, Items) and "value" in form):
        return _with(form, "value", change(form["value"]))
    if isinstance(node, Items):
        message = f"{key_text(path)} changes single elements in this file"
        raise InvalidValueError(message, path, hint="edit the file by hand")
    return change(form)


def _set(value: Any, path: KeyPath) -> Any:
    if value is None:
        return msgspec.UNSET
    if _has_null(value):
        message = f"{key_text(path)} would hold null, which TOML does not have"
        raise InvalidValueError(message, path, hint="`KEY:=null` takes one key out")
    return value


def _has_null(value: Any) -> bool:
    match value:
        case dict():
            return any(_has_null(below) for below in cast("Data", value).values())
        case list():
            return any(_has_null(item) for item in cast("list[Any]", value))
        case _:
            return value is None


def _added(current: Any, value: Any, node: Node, path: KeyPath) -> Any:
    match node:
        case Items() if not _is_long(value):
            items = _set(value if isinstance(value, list) else [value], path)
            return _inside(node, current, lambda old: [*([] if old is msgspec.UNSET else old), *items], path)
        case MergedText() if isinstance(value, str):
            return _added_text(current, value)
        case Table() | Names() | Free() if isinstance(value, dict):
            return _inside(node, current, lambda old: _merged(old, cast("Data", value), path), path)
        case _:
            return _set(value, path)


def _is_long(value: Any) -> bool:
    return isinstance(value, dict) and "value" in value


def _added_text(current: Any, text: str) -> Any:
    if current is msgspec.UNSET:
        return {"value": text, "strategy": "append"}
    if isinstance(current, str):
        return SEPARATORS["paragraph"].join((current, text))
    form = cast("Data", current)
    return form | {"value": SEPARATORS[form.get("separator", "paragraph")].join((form["value"], text))}


def _merged(current: Any, value: Data, path: KeyPath) -> Any:
    entries: Any = {} if current is msgspec.UNSET else current
    for name, below in value.items():
        place = (*path, name)
        node = node_at(place, FILE)
        old = msgspec.UNSET if entries is msgspec.UNSET else entries.get(name, msgspec.UNSET)
        new = _set(below, place) if isinstance(node, MergedText) else _added(old, below, node, place)
        entries = _with({} if entries is msgspec.UNSET else entries, name, new)
    return entries


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """A file, and whether it has the one layout."""

    path: Path
    is_formatted: bool


def files_read(places: Places) -> tuple[list[Path], list[Path]]:
    """Return the files that are read, with those that they extend, and apart from these the files that lie elsewhere.

    Elsewhere is outside the workspace and the user's own directories.

    Raises:
        ConfigurationError: a file cannot be read or is invalid.
    """
    found: dict[str, Path] = {}
    for candidate in candidates(places):
        require_one_format(candidate)
        group = load_group(candidate.path, kind=candidate.kind, root=places.root, foreign=candidate.foreign)
        for layer in () if group is None else group.layers:
            found.setdefault(os.path.realpath(layer.origin.where), Path(layer.origin.where))
    homes = [home for home in (places.root, places.user, places.user_workspace) if home is not None]
    inside = [path for path in found.values() if any(is_inside(path, home) for home in homes)]
    return inside, [path for path in found.values() if path not in inside]


class Rewriting(msgspec.Struct, frozen=True, kw_only=True):
    """A file in jp's spelling: what it says now and would say as the TOML file `target`.

    `unsupported` is what would be lost, and `backup` where the file as it is would be kept.
    """

    path: Path
    target: Path
    old: str
    new: str
    unsupported: tuple[UnsupportedSetting, ...]
    backup: Path


def rewritings(paths: Iterable[Path]) -> list[Rewriting]:
    """Return the files among `paths` that are not TOML in jp's spelling.

    Raises:
        ConfigurationError: a file is missing, invalid, or written in a way that cannot be kept.
    """
    return [found for path in paths if (found := _rewriting(path)) is not None]


def _rewriting(path: Path) -> Rewriting | None:
    text = _text_of(path)
    read = checked(text, path)
    adapted = dict(read.data)
    target = path if path.suffix not in SUFFIXES[1:] else path.with_suffix(TOML)
    if target == path and adapted == parse(text, path):
        return None
    if target != path and target.exists():
        raise ConfigurationError(f"{str(target)!r} is there already", hint="move one of both files away")
    if _has_null(adapted):
        hint = "remove it, or write the default in its place"
        raise ConfigurationError(f"{str(path)!r} unsets something with null, which TOML does not have", hint=hint)
    try:
        new = _in_same_layout(rewritten(text if target == path else "", adapted), text if target == path else "")
    except UnwritableError as error:
        raise ConfigurationError(f"{str(path)!r}: {error.message}", hint=error.hint) from None
    checked(new, target)
    return Rewriting(path=path, target=target, old=text, new=new, unsupported=read.unsupported, backup=_backup(path))


def _in_same_layout(new: str, old: str) -> str:
    """Return a text in the layout of `jp config fmt` if the old one is."""
    try:
        return formatted(new) if formatted(old) == old else new
    except UnwritableError:
        return new


def _backup(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.{number}.bak" if number else f"{path.name}.bak") for number in count())
    return next(name for name in names if not name.exists())


def write_rewriting(rewriting: Rewriting) -> None:
    """Write a file in jp's spelling, and keep the file as it was under the name of its backup.

    Raises:
        ConfigurationError: the file has changed since it was read.
        StorageError: it could not be written; the file is as it was.
    """
    path = rewriting.path
    with exclusive(path.parent):
        if read_text(path) != rewriting.old:
            raise ConfigurationError(f"{str(path)!r} has just changed", hint="run the command again")
        try:
            shutil.copy2(path, rewriting.backup)
            replace_file(rewriting.target, rewriting.new, before=path)
            if rewriting.target != path:
                path.unlink()
        except OSError as error:
            msg = f"{str(path)!r} could not be rewritten: {error.strerror}"
            raise StorageError(msg, hint=_HINT) from None


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


def _text_of(path: Path) -> str:
    text = read_text(path) if is_file(path) or not path.exists() else None
    if text is None:
        message = f"{str(path)!r} is no file" if path.exists() else f"there is no file {str(path)!r}"
        raise InvalidFileError(message, hint=phrase("`", Show("settings files"), "` prints which files are read"))
    return text


def _formatted(path: Path) -> tuple[bool, str]:
    """Return whether a file has the layout, and its text in that layout. Only TOML has one."""
    text = _text_of(path)
    checked(text, path)
    if path.suffix in SUFFIXES[1:]:
        return True, text
    try:
        new = formatted(text)
    except UnwritableError as error:
        raise ConfigurationError(f"{str(path)!r}: {error.message}", hint=error.hint) from None
    return new == text, new
