"""`jp config explain`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from jp.cli.options import GlobalOptions

if TYPE_CHECKING:
    from jp.app.places import AnyWorkspace
    from jp.config.explain import Action, Distrusted, Effect, ElementOrigin, Explanation, Statement
    from jp.config.layers import Resolved

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
        str, typer.Argument(help="Such as assistant.model.id, or a table such as assistant.", metavar="KEY")
    ],
    target: Annotated[
        str | None,
        typer.Option("-i", "--id", metavar="TARGET", help="A conversation; without it, what new ones get."),
    ] = None,
) -> None:
    """Say how a key came to its value: what each layer says of it, the least specific first, and which one won.

    A `*` marks what is in effect, alone or together with others. Of a list, each element is shown with where it comes
    from; of a table, each key in it. A `!` marks what the workspace's files declare and is ignored until you accept it
    with `jp workspace trust`.

    Examples:
        jp config explain assistant.model.id
        jp config explain conversation.attachments --id .
        jp config explain assistant --format json
    """
    from jp.app.places import open_workspace
    from jp.app.settings import config_places
    from jp.cli.output import print_result
    from jp.config.explain import explain as explained
    from jp.config.schema import key_text, parse_key
    from jp.config.sources import unread_files

    workspace = open_workspace(options)
    resolved, distrusted = _view(options, workspace, target)
    value, found = explained(resolved, key, distrusted)
    asked = key_text(parse_key(key))
    lines = list(_lines(found[0]) if [each.key for each in found] == [asked] else _around(asked, value, found))
    unread = unread_files(config_places(workspace))
    if unread:
        lines += ["", f"not read, because of `inherit = false` in a file before: {', '.join(map(str, unread))}"]
    data = {
        "key": asked,
        "value": _plain(value),
        "keys": [_as_data(each) for each in found],
        "not_read": [str(path) for path in unread],
    }
    print_result(options, text="\n".join(lines), value=data)


def _view(options: GlobalOptions, workspace: AnyWorkspace, target: str | None) -> tuple[Resolved, Distrusted]:
    """Return the configuration in effect, and a test for what is not accepted in it."""
    from jp.app.conversations import read_conversation
    from jp.app.settings import distrusted, read_sources

    if target is None:
        resolved = read_sources(options, workspace).resolve()
    else:
        resolved = read_conversation(options, target).resolved
    return resolved, distrusted(resolved)


def _around(key: str, value: Any, found: Sequence[Explanation]) -> Iterator[str]:
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
    return f"{statement.origin.text}{place}"


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
