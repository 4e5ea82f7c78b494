"""From a row of the table to a Typer command: imported, built and invoked only when it is asked for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption
from typer.main import get_command

from jp.cli.argv import Option
from jp.cli.coercion import make_plain
from jp.cli.options import GlobalOptions
from jp.cli.parameters import BoundValue, OptionalValue, SwitchedValue
from jp.cli.tree import Command
from jp.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from jp.cli.help import Page


class LoadedCommand:
    """A command that can be described and invoked.

    `plain` says for each parameter whether its values are read without pydantic.
    """

    def __init__(self, command: Command, path: tuple[str, ...]) -> None:
        """Import and build `command`, whose full name, `jp` included, is `path`."""
        module, _, function = command.target.partition(":")
        self.name = " ".join(path)
        self.command = build(getattr(import_module(module), function))
        self.parameters = [p for p in self.command.params if isinstance(p, TyperArgument | TyperOption)]
        self.plain = {parameter.name: make_plain(parameter) for parameter in self.parameters}

    def options(self) -> dict[str, Option]:
        """How each form of the command's own options is read."""
        options: dict[str, Option] = {}
        for parameter in self.parameters:
            if isinstance(parameter, TyperOption):
                option = _read_as(parameter)
                options |= dict.fromkeys((*parameter.opts, *parameter.secondary_opts), option)
                options |= _opposites(parameter)
        return options

    def page(self) -> Page:
        """The command's help."""
        from jp.cli.help import Page

        arguments = [p for p in self.parameters if isinstance(p, TyperArgument)]
        options = [p for p in self.parameters if isinstance(p, TyperOption)]
        usage = " ".join([self.name, "[OPTIONS]", *map(_usage_of, arguments)])
        return Page(
            usage=usage,
            text=self.command.help or "",
            footer="jp --help lists the options that every command has.",
            sections=(
                ("Arguments", tuple((_name_of(p), p.help or "") for p in arguments if p.help)),
                ("Options", tuple((_forms_of(p), _with_default(p)) for p in options if not p.hidden)),
            ),
        )

    def invoke(self, arguments: Sequence[str], options: GlobalOptions) -> int:
        """Run the command; its exit code.

        Raises:
            UsageError: the arguments are not those of the command.
        """
        try:
            with self.command.make_context(self.name, list(arguments), obj=options) as context:
                code = self.command.invoke(context)
        except typer.Exit as stop:
            return stop.exit_code
        except typer.TyperException as error:
            raise self._usage_error(error) from error
        return ExitCode.OK if code is None else int(code)

    def _usage_error(self, error: typer.TyperException) -> UsageError:
        message = error.format_message().rstrip(".")
        return UsageError(
            f"{message[:1].lower()}{message[1:]}", hint=f"usage: {self.page().usage}; see {self.name} --help"
        )


def build(function: Callable[..., object]) -> TyperCommand:
    """The Typer command that calls `function` with the global options and what was parsed."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(add_help_option=False)(_receive_options(function))
    command = get_command(app)
    if not isinstance(command, TyperCommand):
        raise TypeError(f"{function!r} became {command!r}")
    return command


def _receive_options(function: Callable[..., object]) -> Callable[..., object]:
    """`function` as Typer has to see it: its first parameter is the context, which holds the global options."""
    signature = inspect.signature(function, eval_str=True)
    _, *parameters = signature.parameters.values()
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

    def call(*, context: typer.Context, **arguments: Any) -> object:
        return function(context.obj, **arguments)

    call.__doc__ = function.__doc__
    call.__name__ = function.__name__
    call.__annotations__ = {}
    call.__signature__ = signature.replace(parameters=[context, *parameters])
    return call


def _read_as(parameter: TyperOption) -> Option:
    name = max(parameter.opts, key=len)
    match parameter.type_descriptor.parameter_info:
        case SwitchedValue(name=name, bare=bare):
            return Option(name, "optional", bare=bare)
        case BoundValue(bare=bare, reads=reads):
            return Option(name, "bound", bare=bare, reads=reads)
        case OptionalValue(bare=bare, reads=reads):
            return Option(name, "optional", bare=bare, reads=reads)
        case _:
            return Option(name, "flag" if parameter.is_flag or parameter.count else "value")


def _opposites(parameter: TyperOption) -> dict[str, Option]:
    match parameter.type_descriptor.parameter_info:
        case SwitchedValue(name=name, off=off, bare=bare):
            return dict.fromkeys(off, Option(name, "optional", bare=bare, mark=SwitchedValue.MARK))
        case _:
            return {}


def _usage_of(argument: TyperArgument) -> str:
    return _name_of(argument) if argument.required else f"[{_name_of(argument)}]"


def _name_of(argument: TyperArgument) -> str:
    name = argument.metavar or argument.name.upper()
    return f"{name}…" if argument.nargs == -1 and not name.endswith(("…", "...")) else name


def _forms_of(option: TyperOption) -> str:
    """`-a, --attach URI`; an optional value's metavar is written `[=VALUE]`, next to the option."""
    forms = ", ".join(sorted((*option.opts, *option.secondary_opts), key=len))
    if option.is_flag or option.count:
        return forms
    metavar = option.metavar or option.name.upper()
    return f"{forms}{metavar}" if metavar.startswith("[") else f"{forms} {metavar}"


def _with_default(option: TyperOption) -> str:
    text = option.help or ""
    shown = option.show_default and not option.is_flag and option.default not in (None, "", 0)
    return f"{text} [default: {option.default}]" if shown else text
