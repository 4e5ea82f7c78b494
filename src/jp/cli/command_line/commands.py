"""The table of commands: names, aliases, one line of help, and the function of each.

The table is all that `jp --help`, `jp conversation --help` and an unknown command need, so nothing else is imported
for them: Typer alone costs more than their whole budget. A command's module is imported when the command is invoked.

How to write a command:

1. Add a `Command` row here. `target` is `module:function`; the line of help ends without a full stop.
2. Write the function in that module, fully typed and documented. Its first parameter receives the options that every
   command has; the others are Typer parameters, keyword-only:

       from __future__ import annotations

       from typing import Annotated

       import typer

       from jp.cli.options import GlobalOptions
       from jp.cli.output import print_result
       from jp.errors import ExitCode, JpError

       def show(
           options: GlobalOptions,
           *,
           target: Annotated[str, typer.Argument(help="Which conversation.")] = ".",
           limit: Annotated[int, typer.Option("-n", "--limit", metavar="N", min=1, help="At most N turns.")] = 10,
           raw: Annotated[bool, typer.Option("--raw", help="Print it as it is stored.")] = False,
           labels: Annotated[list[str] | None, typer.Option("--label", metavar="K=V", help="…; repeatable.")] = None,
       ) -> ExitCode | None:
           '''Show a conversation.'''

   - The docstring is the command's help: a line, a paragraph or two for newcomers, and a section
     `Examples:`. Indented lines are printed unchanged, everything else is wrapped.
   - Parameters are `str`, `int`, `float`, `bool`, `Literal["a", "b"]`, one of these with `| None`, or a `list[...]`
     of one of these (repeatable option, or an argument that takes many). Anything else makes Typer import pydantic
     and fails a test. A value with a grammar (durations, URIs, targets) is a `str` that the command parses.
   - A flag names its only form (`"--raw"`), or Typer invents `--no-raw`. Every option that takes a value has a
     `metavar`. The options of `jp.cli.command_line.argv.GLOBAL_OPTIONS` are taken everywhere.
   - An option whose value is optional is declared with `jp.cli.command_line.loading.optional_value`, one that takes
     the next word only when it is a bound with `bound_value`, one whose opposite counts in the same order with
     `switched_value` of the same module.
   - The module imports what it needs for its signature; everything else is imported inside the function.

3. Results go through `jp.cli.output.print_result` (one call a run) or, for an answer that streams, through a renderer
   of `jp.render`; notices through `options.notice`; nothing else writes to stdout.
4. Failures are raised as `JpError`; any other exception is reported as a defect of jp. Return an exit code, or None for
   success. A command that has an event loop runs its work inside `jp.cli.terminal.signals.interruptions`.
5. Standard input is read with `jp.app.values` only.

Names in the tree are whole commands: `find` in `jp.cli.command_line.argv` walks it. Plain classes are used instead of
Structs because msgspec would double the time that help takes.
"""

from __future__ import annotations

from collections.abc import Iterator


class Command:
    """One command: its name, where its function is, and one line about it."""

    __slots__ = ("aliases", "name", "summary", "target")

    def __init__(self, name: str, target: str, summary: str, *, aliases: tuple[str, ...] = ()) -> None:
        self.name = name
        self.target = target
        self.summary = summary
        self.aliases = aliases


class Group:
    """Commands under a common name."""

    __slots__ = ("aliases", "commands", "name", "summary")

    def __init__(
        self, name: str, summary: str, commands: tuple[Command | Group, ...], *, aliases: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self.summary = summary
        self.commands = commands
        self.aliases = aliases

    def get(self, word: str) -> Command | Group | None:
        """Return the child called `word`, by its name or an alias."""
        for child in self.commands:
            if word == child.name or word in child.aliases:
                return child
        return None


def walk(group: Group, *, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Yield every command below `group` with its full name, in the order of the table."""
    for child in group.commands:
        path = (*above, child.name)
        if isinstance(child, Group):
            yield from walk(child, above=path)
        else:
            yield path, child


QUERY = "query"
"""The command that words without a command are for."""

ROOT = Group(
    "jp",
    "Ask language models from the command line.",
    (
        Command("init", "jp.cli.init:init", "Create a workspace in this directory or in PATH"),
        Command(
            QUERY,
            "jp.cli.query.command:query",
            "Ask a question, in a new conversation or an existing one",
            aliases=("q",),
        ),
        Command("chat", "jp.cli.chat:chat", "Ask one question after the other"),
        Group(
            "attachment",
            "Manage what is attached to a conversation",
            (
                Command("add", "jp.cli.attachment:add", "Attach sources from the next turn on"),
                Command("rm", "jp.cli.attachment:remove", "Stop attaching sources"),
                Command("ls", "jp.cli.attachment:ls", "List the attached sources"),
                Command("print", "jp.cli.attachment:print_content", "Print what would be attached"),
            ),
            aliases=("a",),
        ),
        Group(
            "conversation",
            "Manage conversations",
            (
                Command("ls", "jp.cli.conversation.ls:ls", "List conversations"),
                Command("show", "jp.cli.conversation.show:show", "Show facts about a conversation"),
                Command("use", "jp.cli.conversation.ls:use", "Make a conversation this terminal's active one"),
                Command("fork", "jp.cli.conversation.fork:fork", "Copy turns into a new conversation"),
                Command(
                    "import",
                    "jp.cli.conversation.fork:import_conversations",
                    "Copy conversations from elsewhere, including JP (Rust)",
                ),
                Command("edit", "jp.cli.conversation.edit:edit", "Change title, labels, pin, place or expiry"),
                Group(
                    "label",
                    "Manage the labels of a conversation",
                    (
                        Command("add", "jp.cli.conversation.edit:add", "Label a conversation"),
                        Command("rm", "jp.cli.conversation.edit:remove", "Remove labels"),
                        Command("ls", "jp.cli.conversation.edit:ls", "List the labels of a conversation"),
                    ),
                ),
                Command("archive", "jp.cli.conversation.edit:archive", "Archive conversations"),
                Command("unarchive", "jp.cli.conversation.edit:unarchive", "Restore archived conversations"),
                Command(
                    "compact", "jp.cli.conversation.compact:compact", "Shrink the context: hide or summarize old turns"
                ),
                Command("undo", "jp.cli.conversation.show:undo", "Undo the last turn, compaction or setting"),
                Command("redo", "jp.cli.conversation.show:redo", "Revert the last undo"),
                Command("print", "jp.cli.conversation.print:print_stream", "Print the messages of a conversation"),
                Command("merge", "jp.cli.conversation.grep:merge", "Resolve a git conflict in a conversation"),
                Command("grep", "jp.cli.conversation.grep:grep", "Search in conversations"),
                Command("export", "jp.cli.conversation.grep:export", "Export a conversation as a page, text or data"),
                Command("context", "jp.cli.conversation.context:context", "Show what fills the context"),
                Command("usage", "jp.cli.conversation.usage:usage", "Show the tokens and costs of a conversation"),
                Command(
                    "recall", "jp.cli.conversation.print:recall", "Print hidden or shortened content, by its handle"
                ),
                Command("path", "jp.cli.conversation.ls:path", "Print the directory of a conversation"),
                Command("rm", "jp.cli.conversation.fork:remove", "Delete conversations"),
            ),
            aliases=("c",),
        ),
        Group(
            "config",
            "Show and change settings",
            (
                Command("show", "jp.cli.config.show:show", "Show the configuration in effect"),
                Command("get", "jp.cli.config.show:get", "Print one value"),
                Command("set", "jp.cli.config.set:set_value", "Set values in a configuration file"),
                Command("import", "jp.cli.config.set:import_files", "Rewrite the original JP's configuration"),
                Command("explain", "jp.cli.config.show:explain", "Explain how a key got its value"),
                Command("fmt", "jp.cli.config.show:fmt", "Format configuration files"),
                Command("path", "jp.cli.config.show:path", "Print the files that are read"),
            ),
        ),
        Group(
            "prompt",
            "Manage saved prompts",
            (
                Command("add", "jp.cli.prompt:add", "Save a prompt"),
                Command("ls", "jp.cli.prompt:ls", "List the saved prompts"),
                Command("show", "jp.cli.prompt:show", "Print a prompt"),
                Command("edit", "jp.cli.prompt:edit", "Change a prompt in an editor"),
                Command("rm", "jp.cli.prompt:remove", "Delete a prompt"),
            ),
        ),
        Group(
            "model",
            "List models, their limits, prices and abilities",
            (
                Command("ls", "jp.cli.model.ls:ls", "List models, with --refresh from the providers"),
                Command("show", "jp.cli.model.show:show", "Show the facts about a model and their sources"),
            ),
        ),
        Group(
            "tool",
            "Manage the tools that the model can call",
            (
                Command("ls", "jp.cli.tool.ls:ls", "List tools, and which of them the model can call"),
                Command("show", "jp.cli.tool.ls:show", "Show what a tool does, and the origin of its settings"),
                Command("run", "jp.cli.tool.run:run", "Run a tool without a model"),
                Command("rules", "jp.cli.tool.ls:rules", "List what your settings let run unasked, or remove it"),
            ),
        ),
        Group(
            "keys",
            "Manage the API keys of providers",
            (
                Command("set", "jp.cli.keys:set_key", "Store the key of a provider"),
                Command("ls", "jp.cli.keys:ls", "List the source of each key"),
                Command("rm", "jp.cli.keys:remove", "Delete a stored key"),
            ),
        ),
        Group(
            "workspace",
            "Manage the workspace: its directory and its trust",
            (
                Command("trust", "jp.cli.workspace:trust", "Trust this workspace's configuration"),
                Command("show", "jp.cli.workspace:show", "Show the workspace in use, and whether it is trusted"),
                Command("doctor", "jp.cli.workspace:doctor", "Check settings, keys, the sandbox and conversations"),
                Command("gc", "jp.cli.workspace:gc", "Delete files that no conversation needs"),
            ),
        ),
        Group(
            "hook",
            "Manage git hooks that ask a model",
            (
                Command("install", "jp.cli.hook:install", "Install a git hook in this repository"),
                Command("ls", "jp.cli.hook:ls", "List the git hooks of this repository"),
                Command("rm", "jp.cli.hook:remove", "Remove a git hook, and restore the one before it"),
            ),
        ),
        Command("completion", "jp.cli.completion.command:completion", "Print the completion script of a shell"),
    ),
)
