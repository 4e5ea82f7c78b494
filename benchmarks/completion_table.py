"""Write the table that completion in a shell reads: `make reference`.

Importing Typer, and the module of a command, takes several times as long as a whole completion may. The table has what
is asked for there: the options and arguments of each command, with the kind of their values.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args, get_origin

from typer.core import TyperArgument, TyperOption

from jp.app.grep import KINDS
from jp.app.targets import TARGET_HELP
from jp.app.toolset import AUTOMATIC, BUILT_IN
from jp.attachment import registry
from jp.cli.command_line.commands import ROOT, walk
from jp.cli.command_line.loading import LoadedCommand
from jp.config.entries import Effort
from jp.config.model import PROFILES
from jp.config.schema import APP, known_keys
from jp.provider.registry import PROVIDERS

PATH = Path(__file__).parents[1] / "src/jp/cli/completion/table.json"

_BY_METAVAR = {
    "TARGET": "target",
    "URI": "attachment",
    "PATH": "path",
    "[PATH]": "path",
    "FILE": "path",
    "[=NAME]": "tool",
    "NAME,…": "tool,",
    "[=PROFILE]": "profile",
    "PROVIDER": "provider",
    "KEY": "setting",
    "KEY=VALUE": "value",
    "LEVEL": "|".join(("off", *get_args(Effort))),
    "KIND,…": f"{'|'.join(KINDS)},",
    "[=MODE]": "strip|digest|omit|strip-requests|strip-responses",
    "superseded": "superseded",
    "FORM": "md|json|html|bundle",
}
_BY_NAME = {
    "--label": "label",
    "--no-label": "name",
    "--model": "model",
    "--prompt": "prompt",
    "--profile": "profile",
    "--tool-use": "auto|none|required",
    "--resources": "superseded",
}
_BY_ARGUMENT = {
    ("conversation label add", "labels"): "label",
    ("conversation label rm", "names"): "name",
    ("attachment rm", "uris"): "attached",
    ("model show", "model"): "model",
    ("conversation recall", "handle"): "",
    **{(f"prompt {command}", "name"): "prompt" for command in ("show", "edit", "rm")},
    **{(f"tool {command}", "name"): "tool" for command in ("show", "run")},
}


def table() -> dict[str, Any]:
    """Return the table."""
    commands = {" ".join(path): _described(" ".join(path), LoadedCommand(row, path)) for path, row in walk(ROOT)}
    return {
        "commands": commands,
        "settings": [".".join(path) for path, _ in known_keys(APP) if "*" not in path],
        "tools": sorted({*BUILT_IN, *AUTOMATIC}),
        "profiles": sorted(PROFILES),
        "providers": sorted(PROVIDERS),
        "schemes": sorted(registry.BUILT_IN),
    }


def text() -> str:
    """Return the table as it is stored: a line for each option, so that two branches can add some each."""
    commands = ",\n".join(f"{json.dumps(name)}: {_lines(rows)}" for name, rows in table()["commands"].items())
    rest = {name: value for name, value in table().items() if name != "commands"}
    return f'{{"commands": {{\n{commands}\n}},\n{json.dumps(rest, indent=0)[2:]}\n'


def _lines(rows: list[Any]) -> str:
    return "[" + ",".join(f"\n  {json.dumps(row, ensure_ascii=False)}" for row in rows) + "]"


def _described(name: str, command: LoadedCommand) -> list[list[str]]:
    """Return a row for each parameter: forms, what it takes, the kind of its values, and help; no forms: an argument.

    What an argument takes is `value`, or `values` if there may be several.
    """
    rows: list[list[str]] = []
    syntax = command.options()
    for parameter in command.parameters:
        if isinstance(parameter, TyperOption):
            groups: dict[str, list[str]] = {}
            for form in (*parameter.opts, *parameter.secondary_opts):
                groups.setdefault(syntax[form].takes, []).append(form)
            help_text = _first_words(parameter.help or "")
            rows += [[" ".join(forms), takes, _kind(parameter), help_text] for takes, forms in groups.items()]
        else:
            kind = _BY_ARGUMENT.get((name, parameter.name or ""), _argument_kind(parameter))
            rows.append(["", "values" if parameter.nargs == -1 else "value", kind, ""])
    return rows


def _kind(option: TyperOption) -> str:
    if option.is_flag or option.count:
        return ""
    if choices := _choices(option):
        return choices
    named = next((kind for form, kind in _BY_NAME.items() if form in option.opts), None)
    return _BY_METAVAR.get(option.metavar or "", "") if named is None else named


def _argument_kind(argument: TyperArgument) -> str:
    if choices := _choices(argument):
        return choices
    if (argument.name or "").startswith("target"):
        return "target"
    return _BY_METAVAR.get(argument.metavar or "", "path" if argument.name == "path" else "")


def _choices(parameter: TyperOption | TyperArgument) -> str:
    annotation = parameter.type_descriptor.annotation
    return "|".join(get_args(annotation)) if "Literal" in str(get_origin(annotation)) else ""


_LONGEST = 70


def _first_words(help_text: str) -> str:
    if help_text == TARGET_HELP:
        return "A conversation"
    words = help_text.partition(";")[0].partition(". ")[0].rstrip(".")
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
