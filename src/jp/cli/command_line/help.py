"""Pages of help: plain text of at most 80 columns, made from the table and from what a command declares. Pure."""

from __future__ import annotations

from jp.cli.command_line.commands import Command, Group

WIDTH = 80
_LONGEST_NAME = 30

Rows = tuple[tuple[str, str], ...]

EXAMPLES = """\
Examples:
    jp init --model anthropic/claude-sonnet-5-5
    jp keys set anthropic
    jp query "What is in this file?" --attach README.md
    git diff --staged | jp query "Write a commit message for this change"
    jp query "And shorter?"
    jp conversation print
    jp conversation ls"""

OPTIONS: Rows = (
    ("-c, --cfg KEY=VALUE", "Set a value, or load settings by NAME or @FILE; repeatable"),
    ("-F, --format FORMAT", "Output format: auto, text, pretty or json"),
    ("-q, --quiet", "Hide notices"),
    ("-v, --verbose", "Log details to stderr (-vv for more)"),
    ("-w, --workspace PATH", "Workspace to use (default: nearest parent)"),
    ("-!, --no-persist", "Write nothing to disk"),
    ("--color WHEN", "Use color: auto, always or never"),
    ("--width N", "Width of the output (default: the terminal's)"),
    ("-V, --version", "Print the version"),
    ("-h, --help", "Print this help, or that of a command"),
)

EXIT_CODES = """\
Exit codes:
  0 done, 1 other failure, 2 usage, 3 configuration or trust, 4 authentication,
  5 provider or network, 6 quota, 7 context too long, 8 a tool was denied,
  9 the answer does not fit, 10 attachment, 11 conversation locked,
  12 nothing to do, 13 refused or empty answer, 14 stopped by a cap,
  124 deadline, 130 interrupted, 141 broken pipe, 143 terminated"""


class Page:
    """One page: the usage line, running text, titled lists of names with what they mean, and a last paragraph."""

    __slots__ = ("footer", "sections", "text", "usage")

    def __init__(self, *, usage: str, text: str, sections: tuple[tuple[str, Rows], ...], footer: str) -> None:
        self.usage = usage
        self.text = text
        self.sections = sections
        self.footer = footer

    def render(self) -> str:
        """Return the page as text."""
        parts = [f"Usage: {self.usage}", *_paragraphs(self.text)]
        parts += [f"{title}:\n{_list(rows)}" for title, rows in self.sections if rows]
        parts += _paragraphs(self.footer)
        return "\n\n".join(parts) + "\n"


def root_page(root: Group) -> Page:
    """Return the page for newcomers: examples, commands, options, exit codes."""
    return Page(
        usage=f'{root.name} [OPTIONS] COMMAND [ARGUMENTS], or {root.name} "QUESTION"',
        text=f"{root.summary}\n\n{EXAMPLES}",
        sections=(
            ("Commands", tuple((_names(node), _summary(node)) for node in root.commands)),
            ("Options, before or after the command", OPTIONS),
        ),
        footer=EXIT_CODES,
    )


def group_page(group: Group, path: tuple[str, ...]) -> Page:
    """Return the commands of a group."""
    name = " ".join(path)
    return Page(
        usage=f"{name} COMMAND [OPTIONS] [ARGUMENTS]",
        text=f"{group.summary}.",
        sections=(("Commands", tuple((_names(node), _summary(node)) for node in group.commands)),),
        footer=f"{name} COMMAND --help explains one command; jp --help lists the options that every command has.",
    )


def _names(node: Command | Group) -> str:
    return ", ".join((node.name, *node.aliases))


def _summary(node: Command | Group) -> str:
    if isinstance(node, Group):
        return f"{node.summary}: {', '.join(child.name for child in node.commands)}"
    return node.summary


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of `text`, wrapped, except for those with indented lines."""
    from textwrap import fill

    blocks = text.strip().split("\n\n")
    return [
        block if "\n " in block else fill(" ".join(block.split()), WIDTH, break_on_hyphens=False)
        for block in blocks
        if block
    ]


def _list(rows: Rows) -> str:
    """Names in a column, meanings beside them, both indented; a name that is too long has a line of its own."""
    from textwrap import wrap

    column = min(max(len(name) for name, _ in rows), _LONGEST_NAME) + 4
    lines: list[str] = []
    for name, meaning in rows:
        wrapped = wrap(meaning, WIDTH - column, break_on_hyphens=False) or [""]
        if len(name) + 4 > column:
            lines.append(f"  {name}")
        else:
            lines.append(f"  {name:<{column - 2}}{wrapped.pop(0)}".rstrip())
        lines += [f"{'':{column}}{line}" for line in wrapped]
    return "\n".join(lines)
