"""The commands that show settings: `jp config show`, `get`, `explain`, `fmt` and `path`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from jp.cli.options import GlobalOptions, require_persistence
from jp.cli.terminal.wording import worded
from jp.errors import ExitCode

if TYPE_CHECKING:
    from jp.app.options import AnyWorkspace
    from jp.config.edit import Layout
    from jp.config.explain import Action, Distrusted, Effect, ElementOrigin, Explanation, Statement
    from jp.config.layers import Layer, Resolved, UnsupportedSetting
    from jp.config.schema import KeyPath
    from jp.render.tables import Part, Tree


_OptionalTarget = Annotated[
    str | None, typer.Option("-i", "--id", metavar="TARGET", help="A conversation (default: settings of new ones)")
]


def show(
    options: GlobalOptions,
    *,
    target: _OptionalTarget = None,
    origins: Annotated[bool, typer.Option("--origins", help="Show the origin of each value")] = False,
    unsupported: Annotated[
        bool, typer.Option("--ignored", help="List what is ignored or read differently, and where")
    ] = False,
) -> None:
    """Show the configuration in effect, as TOML.

    A value that you copy into a file replaces lower ones; lists are added to. Values of untrusted files are ignored and
    not shown; a note, and `ignored` in JSON, list them. With --ignored, settings of the original JP that jp does not
    have are listed instead, each with its file and line.

    Examples:
        jp config show --origins
        jp config show --ignored
        jp config show --id .
        jp config show --format json
    """
    from jp.app.settings import as_value, tell_ignored
    from jp.cli.output import print_result
    from jp.config.explain import as_data, as_toml

    resolved = _resolved(options, target)
    if unsupported:
        found = [(layer, setting) for layer in resolved.layers for setting in layer.unsupported]
        value = [_unsupported(layer, setting) for layer, setting in found]
        print_result(options, text="\n".join(map(_unsupported_line, value)), value={"unsupported": value})
        return
    tell_ignored(options, resolved)
    text = as_toml(resolved, with_origins=origins, worded=worded)
    shown: dict[str, object] = {
        "config": as_data(resolved.config),
        "ignored": [as_value(item) for item in resolved.ignored],
    }
    if origins:
        shown["origins"] = {key: origin.text for key, origin in resolved.origins.items()}
    print_result(options, text=text, value=shown)


def _unsupported(layer: Layer, setting: UnsupportedSetting) -> dict[str, Any]:
    """Return a setting that jp cannot take as it is, as JSON has it."""
    from jp.config.files import MISSING
    from jp.config.positions import place_of
    from jp.config.schema import key_text

    place = place_of(layer.source, setting.path) if layer.source else None
    reason = "jp does not have it"
    if setting.reading:
        reason = setting.reading if setting.reading == MISSING else f"read as {setting.reading}"
    return {
        "key": key_text(setting.path),
        "value": setting.value,
        "reason": reason,
        "origin": layer.origin.text,
        "file": layer.origin.where if layer.source else None,
        "line": None if place is None else place.line,
    }


def _unsupported_line(setting: Mapping[str, Any]) -> str:
    line = "" if setting["line"] is None else f", line {setting['line']}"
    where = setting["file"] or setting["origin"]
    return f"{where}{line}: {setting['key']} = {_text(setting['value'])} ({setting['reason']})"


def get(
    options: GlobalOptions,
    *,
    key: Annotated[str, typer.Argument(help="A key, such as assistant.model.id", metavar="KEY")],
    target: _OptionalTarget = None,
) -> None:
    """Print one value: text as it is, anything else as JSON, nothing if it is not set.

    Profiles of compaction and hints of tools that are built in are among the values.

    With --format json it comes with its `origin`; a table with the `origins` of all keys in it that some file, option
    or conversation sets.

    Examples:
        jp config get assistant.model.id
        jp config get conversation.attachments
        jp config get assistant --format json
    """
    from jp.app.settings import as_value
    from jp.cli.output import print_result
    from jp.config.explain import origins_at, value_at, value_text
    from jp.config.schema import parse_key
    from jp.config.trust import overlap

    resolved = _with_built_ins(_resolved(options, target), parse_key(key))
    value = value_at(resolved.config, key)
    origins = origins_at(resolved, key)
    name = "origin" if isinstance(origins, str) else "origins"
    ignored = [as_value(item) for item in resolved.ignored if overlap(parse_key(key), item.path)]
    data = {"key": key, "value": value, name: origins, "ignored": ignored}
    print_result(options, text=value_text(value), value=data)


def _resolved(options: GlobalOptions, target: str | None) -> Resolved:
    from jp.app.conversations import read_conversation
    from jp.app.options import open_workspace
    from jp.app.settings import read_sources

    if target is None:
        return read_sources(options, open_workspace(options)).resolve()
    return read_conversation(options, target).resolved


def _with_built_ins(resolved: Resolved, path: KeyPath) -> Resolved:
    """Return `resolved` with the profiles that are built in, and the hints of the tool that `path` names."""
    from msgspec.structs import replace

    from jp.compaction.fact_lines import SHIPPED, hints_of
    from jp.config.entries import ToolConfig
    from jp.config.model import profiles_of

    conversation = resolved.config.conversation
    profiles = profiles_of(conversation.compaction)
    tools = dict(conversation.tools)
    is_tool = path[:2] == ("conversation", "tools")
    names = {*tools, *path[2:3]} & {*SHIPPED} if is_tool else set[str]()
    for name in names:
        tools[name] = replace(tools.get(name, ToolConfig()), compaction=hints_of(name, conversation.tools))
    compaction = replace(conversation.compaction, profiles=profiles)
    conversation = replace(conversation, compaction=compaction, tools=tools)
    return replace(resolved, config=replace(resolved.config, conversation=conversation))


def path(options: GlobalOptions) -> None:
    """Print the configuration files that are read here, least specific first, and whether they exist.

    Examples:
        jp config path
    """
    from jp.app.options import open_workspace
    from jp.app.settings import config_places
    from jp.cli.output import print_result
    from jp.config.files import candidates

    found = list(candidates(config_places(open_workspace(options))))
    lines = [f"{item.kind:<15}{item.path}{'' if item.path.exists() else '  (not there)'}" for item in found]
    value = [{"kind": item.kind, "path": str(item.path), "exists": item.path.exists()} for item in found]
    print_result(
        options, text="\n".join(lines), value={"files": value}, paths={str(item.path): item.path for item in found}
    )


def fmt(
    options: GlobalOptions,
    *,
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files (default: all that are read here)", metavar="PATH"),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; list the files to change, and exit with 1")
    ] = False,
) -> ExitCode:
    """Write configuration files in one layout: plain spacing, an empty line before each table.

    Values, comments and their order stay. A file is replaced in one step, and none if one of them is invalid. Files
    that another one extends, outside the workspace and your own directories, are only formatted if you name them.

    Examples:
        jp config fmt
        jp config fmt --check
        jp config fmt .jp/config/personas/*.toml
    """
    from jp.app.options import current_directory, open_workspace
    from jp.app.settings import config_places
    from jp.cli.output import print_result
    from jp.config.edit import files_read, format_files
    from jp.config.files import expanded

    if not check:
        require_persistence(options, "jp config fmt")
    files = [current_directory() / expanded(path) for path in paths or ()]
    if not files:
        files, elsewhere = files_read(config_places(open_workspace(options)))
        for path in elsewhere:
            options.notice(f"{str(path)!r} lies elsewhere and is left alone: name it to format it")
    layouts: list[Layout] = []
    format_files(list(dict.fromkeys(files)), write=not check, report=layouts.append)
    changed = [str(layout.path) for layout in layouts if not layout.is_formatted]
    word = "would format" if check else "formatted"
    print_result(
        options,
        text="\n".join(f"{word} {path}" for path in changed),
        value={"check": check, "changed": changed, "files": [str(layout.path) for layout in layouts]},
    )
    return ExitCode.FAILURE if check and changed else ExitCode.OK


_LONGEST = 200
_MARKS: Mapping[Effect, str] = {
    "in effect": "*",
    "in part": "*",
    "no effect": " ",
    "replaced": " ",
    "ignored until trusted": "!",
}
_WORDS: Mapping[Action, str] = {
    "default": "",
    "set": "",
    "append": "adds ",
    "prepend": "puts in front ",
    "replace": "replaces all by ",
    "change": "changes elements: ",
    "merge": "merges ",
    "unset": "takes it out",
}


def explain(
    options: GlobalOptions,
    *,
    key: Annotated[
        str, typer.Argument(help="A key such as assistant.model.id, or a table such as assistant", metavar="KEY")
    ],
    target: Annotated[
        str | None,
        typer.Option("-i", "--id", metavar="TARGET", help="A conversation (default: settings of new ones)"),
    ] = None,
) -> None:
    """Explain how a key got its value: the value of each layer, least specific first, and its effect.

    A `*` marks a layer that is in effect, alone or together with others. A list is shown with the origin of each
    element, a table with each of its keys. A `!` marks a value of the workspace's files that is ignored until you
    accept it with `jp workspace trust`.

    Examples:
        jp config explain assistant.model.id
        jp config explain conversation.attachments --id .
        jp config explain assistant --format json
    """
    from jp.app.options import open_workspace
    from jp.app.settings import config_places
    from jp.cli.output import print_result
    from jp.config.explain import explain as explained
    from jp.config.schema import key_text, parse_key
    from jp.config.sources import unread_files

    workspace = open_workspace(options)
    resolved, distrusted = _view(options, workspace, target)
    value, found = explained(resolved, key, distrusted)
    asked = key_text(parse_key(key))
    lines = list(_lines(found[0]) if [each.key for each in found] == [asked] else _table_lines(asked, value, found))
    unread = unread_files(config_places(workspace))
    parts: list[Part] = [msgspec.structs.replace(_tree(asked, value, found), plain="\n".join(lines))]
    if unread:
        parts += ["", f"not read, because of `inherit = false` in a file before: {', '.join(map(str, unread))}"]
    data = {
        "key": asked,
        "value": _plain(value),
        "keys": [_as_data(each) for each in found],
        "not_read": [str(path) for path in unread],
    }
    print_result(options, text=parts, value=data)


def _view(options: GlobalOptions, workspace: AnyWorkspace, target: str | None) -> tuple[Resolved, Distrusted]:
    """Return the configuration in effect, and a test for what is not accepted in it."""
    from jp.app.conversations import read_conversation
    from jp.app.settings import distrusted, read_sources

    if target is None:
        resolved = read_sources(options, workspace).resolve()
    else:
        resolved = read_conversation(options, target).resolved
    return resolved, distrusted(resolved)


def _table_lines(key: str, value: Any, found: Sequence[Explanation]) -> Iterator[str]:
    """Explain a table by its keys, or an element by its list."""
    from jp.config.explain import TABLE_RULE

    if len(found) == 1 and key.startswith(f"{found[0].key}."):
        yield f"{key} = {_text(value)}"
        yield f"part of {found[0].key}"
        yield ""
        yield from _lines(found[0])
        return
    yield f"{key}: {TABLE_RULE}" if found else f"{key} has no entries: nothing is configured there"
    for each in found:
        if not each.is_default:
            yield ""
            yield from _lines(each)
    defaults = [each for each in found if each.is_default]
    if defaults:
        yield ""
        yield "by default:"
        yield from (f"  {each.key} = {_text(each.value)}" for each in defaults)


def _tree(key: str, value: Any, found: Sequence[Explanation]) -> Tree:
    """Return a key, a table with its keys, or an element with its list as a tree."""
    from jp.config.explain import TABLE_RULE
    from jp.render.tables import Tree

    if not found:
        return Tree(label=f"{key} has no entries: nothing is configured there")
    if [each.key for each in found] == [key]:
        return _branch(found[0])
    defaults = [Tree(label=f"{each.key} = {_text(each.value)} (default)") for each in found if each.is_default]
    branches = [*(_branch(each) for each in found if not each.is_default), *defaults]
    is_element = len(found) == 1 and key.startswith(f"{found[0].key}.")
    label = f"{key} = {_text(value)}, part of {found[0].key}" if is_element else f"{key}: {TABLE_RULE}"
    return Tree(label=label, branches=branches)


def _branch(explanation: Explanation) -> Tree:
    """Return a key with its layers and its elements as a tree."""
    from jp.render.tables import Tree

    waits = ["part of it is ignored until trusted: see `jp workspace trust`"] if explanation.waits_for_trust else []
    said = [explanation.rule, *waits, *map(_line, explanation.statements)]
    elements = [Tree(label=line.strip()) for line in _elements(explanation)]
    below = [Tree(label="elements", branches=elements)] if elements else []
    head = f"{explanation.key} = {_text(explanation.value)}"
    return Tree(label=head, branches=[*(Tree(label=text) for text in said), *below])


def _lines(explanation: Explanation) -> Iterator[str]:
    yield f"{explanation.key} = {_text(explanation.value)}"
    yield explanation.rule
    if explanation.waits_for_trust:
        yield "part of it is ignored until trusted: see `jp workspace trust`"
    yield ""
    yield from (_line(statement) for statement in explanation.statements)
    if explanation.elements:
        yield ""
        yield from _elements(explanation)


def _line(statement: Statement) -> str:
    said = "" if statement.action == "unset" else _text(statement.value)
    return f"{_MARKS[statement.effect]} {_origin(statement)}: {_WORDS[statement.action]}{said} ({statement.effect})"


def _elements(explanation: Explanation) -> Iterator[str]:
    for index, element in enumerate(explanation.elements):
        first, *others = (_origin(explanation.statements[source]) for source in element.sources)
        changed = f", changed by {', '.join(others)}" if others else ""
        yield f"  {index}: {_text(element.value)} from {first}{changed}"


def _origin(statement: Statement) -> str:
    place = "" if statement.place is None else f", line {statement.place.line}"
    return f"{worded(statement.origin.text)}{place}"


def _text(value: Any) -> str:
    if value is None or value is msgspec.UNSET:
        return "nothing"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _plain(value: Any) -> Any:
    return None if value is msgspec.UNSET else value


def _as_data(explanation: Explanation) -> dict[str, Any]:
    return {
        "key": explanation.key,
        "value": _plain(explanation.value),
        "rule": explanation.rule,
        "layers": [_statement_data(statement) for statement in explanation.statements],
        "elements": [_element_data(element) for element in explanation.elements],
    }


def _statement_data(statement: Statement) -> dict[str, Any]:
    place = statement.place
    return {
        "kind": statement.origin.kind,
        "where": statement.origin.where,
        "origin": statement.origin.text,
        "line": None if place is None else place.line,
        "column": None if place is None else place.column,
        "action": statement.action,
        "value": _plain(statement.value),
        "effect": statement.effect,
        "trusted": statement.trusted,
    }


def _element_data(element: ElementOrigin) -> dict[str, Any]:
    return {"value": element.value, "layers": list(element.sources)}
