"""`jp prompt`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jp.cli.options import GlobalOptions, require_persistence

if TYPE_CHECKING:
    from jp.app.options import AnyWorkspace
    from jp.app.prompts import SavedText

_Name = Annotated[str, typer.Argument(help="The prompt's name", metavar="NAME")]
_Place = Literal["user", "workspace"]
_Where = Annotated[
    _Place | None,
    typer.Option("--in", metavar="PLACE", help="user or workspace; where both have it, the default is workspace"),
]


def add(
    options: GlobalOptions,
    *,
    name: _Name,
    words: Annotated[
        list[str] | None, typer.Argument(help="The prompt; @FILE is the text of a file", metavar="TEXT")
    ] = None,
    where: Annotated[
        _Place, typer.Option("--in", metavar="PLACE", help="user: for you; workspace: for all who work in it")
    ] = "user",
    replace: Annotated[bool, typer.Option("--replace", help="Replace a prompt of this name")] = False,
) -> None:
    """Save a prompt, typed, piped in or written in your editor; `jp query --prompt NAME` uses it for one turn.

    A prompt is a Jinja template. `{{ input }}` is replaced by the words of the query and what is piped in, which
    follow the prompt if it has none; other names are those of `template.values`.

    It is a file, prompts/NAME.md in your configuration directory or in .jp of the workspace. A prompt that came with a
    workspace is used only after `jp workspace trust`.

    Examples:
        jp prompt add commit "Write a commit message for this change."
        jp prompt add translate "Translate into {{ language }}: {{ input }}"
        jp prompt add --in workspace review @docs/review.md
        git diff --cached | jp query --prompt commit
        jp query --prompt translate -c template.values.language=Dutch "good morning"
    """
    from jp.app.options import open_workspace
    from jp.app.prompts import SavedText, prompt_path, save_prompt
    from jp.app.query.composer import check_template
    from jp.cli.output import print_result
    from jp.errors import UsageError

    require_persistence(options, "jp prompt add")
    workspace = open_workspace(options)
    path = prompt_path(workspace, where, name)
    if path.exists() and not replace:
        raise UsageError(
            f"there is a prompt {name!r} already", hint=f"`jp prompt edit {name}` changes it, --replace replaces it"
        )
    text = _text(options, tuple(words or ()))
    check_template(text, name)
    save_prompt(workspace, options, SavedText(name=name, place=where, path=path, text=text))
    print_result(options, text=str(path), value={"name": name, "in": where, "path": str(path)}, paths={str(path): path})


def ls(options: GlobalOptions) -> None:
    """List the saved prompts: yours, and those of the workspace, which win where they are trusted.

    Examples:
        jp prompt ls
        jp prompt ls --format json
    """
    from jp.app.options import open_workspace
    from jp.app.prompts import saved_prompts
    from jp.cli.output import print_result
    from jp.render.tables import Table

    found = saved_prompts(open_workspace(options))
    if not found:
        options.notice("there are no saved prompts; `jp prompt add NAME TEXT` saves one")
    rows = [(prompt.name, _place_text(prompt), prompt.first_line) for prompt in found]
    table = Table(head=("name", "in", "prompt"), rows=rows, keys=frozenset({0}))
    print_result(options, text=[table] if rows else "", value={"prompts": [_as_value(prompt) for prompt in found]})


def show(options: GlobalOptions, *, name: _Name, where: _Where = None) -> None:
    """Print a saved prompt as it is stored, also one that is not trusted yet.

    Examples:
        jp prompt show commit
    """
    from jp.app.options import open_workspace
    from jp.cli.output import print_result

    prompt = _find(open_workspace(options), name, where)
    if not prompt.trusted:
        options.notice("this prompt is not trusted yet: `jp workspace trust` accepts it")
    print_result(options, text=prompt.text.removesuffix("\n"), value={**_as_value(prompt), "text": prompt.text})


def edit(options: GlobalOptions, *, name: _Name, where: _Where = None) -> None:
    """Change a saved prompt in your editor.

    Examples:
        jp prompt edit commit
    """
    from msgspec.structs import replace

    from jp.app.options import open_workspace
    from jp.app.prompts import save_prompt
    from jp.app.query.composer import check_template
    from jp.cli.output import print_result

    require_persistence(options, "jp prompt edit")
    workspace = open_workspace(options)
    prompt = _find(workspace, name, where)
    changed = replace(prompt, text=_edited(options, prompt.text))
    check_template(changed.text, name)
    save_prompt(workspace, options, changed)
    value = _as_value(replace(changed, trusted=True))
    print_result(options, text=str(prompt.path), value=value, paths={str(prompt.path): prompt.path})


def remove(options: GlobalOptions, *, name: _Name, where: _Where = None) -> None:
    """Delete a saved prompt.

    Examples:
        jp prompt rm commit
    """
    from jp.app.options import open_workspace
    from jp.cli.output import print_result

    require_persistence(options, "jp prompt rm")
    prompt = _find(open_workspace(options), name, where)
    prompt.path.unlink()
    print_result(options, text=f"deleted {prompt.path}", value={"name": prompt.name, "path": str(prompt.path)})


def _find(workspace: AnyWorkspace, name: str, where: _Place | None) -> SavedText:
    """Return a prompt, trusted or not.

    Raises:
        UsageError: there is none of that name.
    """
    from jp.app.prompts import saved_prompts, unknown_prompt

    for prompt in saved_prompts(workspace):
        if prompt.name == name and where in {None, prompt.place}:
            return prompt
    raise unknown_prompt(workspace, name)


def _text(options: GlobalOptions, words: tuple[str, ...]) -> str:
    """Return what is typed, else what is piped in, else what the person writes in an editor.

    Raises:
        UsageError: there is nothing.
    """
    import anyio

    from jp.app.drafts import has_terminal
    from jp.app.query.question import typed_text
    from jp.app.values import read_piped, stdin_source
    from jp.errors import UsageError

    async def read() -> str:
        typed = (await typed_text(words)).text
        if typed.strip():
            return typed
        source = stdin_source(asked="-" in words, refused=False)
        piped = await read_piped(source, on_idle=lambda: options.notice("reading standard input …"))
        return "" if piped is None else piped.text

    text = anyio.run(read)
    if not text.strip() and not words and has_terminal():
        text = _edited(options, "")
    if not text.strip():
        raise UsageError("the prompt is empty", hint='type one, as in `jp prompt add short "In one sentence:"`')
    return text if text.endswith("\n") else f"{text}\n"


def _edited(options: GlobalOptions, text: str) -> str:
    from functools import partial

    from jp.app.drafts import edited_text
    from jp.app.settings import trusted_config
    from jp.cli.terminal.approval import run_question

    editor = trusted_config(options).editor
    return run_question(partial(edited_text, text, suffix=".md", config=editor))


def _place_text(prompt: SavedText) -> str:
    return prompt.place if prompt.trusted else f"{prompt.place}, not trusted"


def _as_value(prompt: SavedText) -> dict[str, object]:
    return {"name": prompt.name, "in": prompt.place, "path": str(prompt.path), "trusted": prompt.trusted}
